"""D3: cached documents on disk are complete, private, readable in parts, and deleted in time."""

import asyncio
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from recto.config.file_settings import DocumentSettings
from recto.conversation.document import Element
from recto.errors import FileRefused, StorageDown
from recto.files.documents.document_file import DocumentFile
from recto.files.documents.document_folder import DocumentFolder
from recto.files.parsing.ports import DocumentEnd, DocumentStart, FoundElements
from recto.ids import new_id
from tests.files.scripted_cache import (
    ONE,
    finish_and_close,
    page,
    pdf,
    pieces,
    reading,
    scripted_cache,
    text_in,
    wait_until_settled,
)
from tests.waiting import settle


async def test_D3_files_are_only_for_the_server(tmp_path: Path):
    folder = tmp_path / "documents"
    place = scripted_cache(folder, *pdf(1))
    documents = place.open()
    await text_in(documents)
    await finish_and_close(documents)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*")) if path.is_dir()}
    assert modes == {0o700}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()} == {0o600}
    assert len(place.names()) == 1
    assert "aa" * 32 not in str(place.names())


async def test_D3_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path):
    (tmp_path / "documents").write_text("in the way")
    documents = scripted_cache(tmp_path / "documents", *pdf(1)).open()
    with pytest.raises(StorageDown):
        await text_in(documents)
    await finish_and_close(documents)


async def test_D3_a_document_that_cannot_be_kept_is_read_all_the_same(tmp_path: Path):
    place = scripted_cache(tmp_path, *pdf(2))
    documents = place.open()
    await text_in(documents)
    await finish_and_close(documents)
    (path,) = place.stored_paths()
    path.unlink()
    path.mkdir()
    (path / "file").touch()
    other = place.open()
    assert "text of 2" in await text_in(other)
    await wait_until_settled()
    assert "text of 2" in await text_in(other)
    await finish_and_close(other)
    assert len(place.script.tasks) == 2
    assert [Path(name).name for name in place.names()] == ["file"]


@pytest.mark.parametrize("is_other_process", [False, True])
async def test_D3_deleted_bytes_have_no_text(tmp_path: Path, is_other_process: bool):
    place = scripted_cache(tmp_path, *pdf(1))
    documents = place.open()
    two = replace(ONE, blob="c", sha256="bb" * 32)
    for one in (ONE, two, replace(ONE, blob="d", owner="bob")):
        await text_in(documents, one)
    await wait_until_settled()
    if is_other_process:
        DocumentFolder(tmp_path).forget([ONE.blob, "of nobody"])
        documents = place.open()
    else:
        await documents.forget([ONE.blob])
    assert len(place.stored_paths()) == 2
    await text_in(documents)
    assert len(place.script.tasks) == 4
    await finish_and_close(documents)


async def test_D3_bytes_deleted_while_they_are_read_leave_nothing(tmp_path: Path):
    place = scripted_cache(tmp_path, DocumentStart(unit="page"), page(1, "a"), asyncio.Event())
    documents = place.open()
    document = await reading(documents)
    await document.characters(0, 3)
    waiting = asyncio.create_task(document.whole())
    await asyncio.gather(documents.forget([ONE.blob]), documents.forget([ONE.blob]))
    with pytest.raises(FileRefused, match="it was deleted"):
        await waiting
    # Not even the part that was read before.
    with pytest.raises(FileRefused, match="it was deleted"):
        await document.characters(0, 3)
    assert place.names() == []
    await documents.close()


async def test_D3_bytes_that_another_process_deletes_while_they_are_read_leave_nothing(tmp_path: Path):
    gate = asyncio.Event()
    place = scripted_cache(tmp_path, DocumentStart(unit="page"), page(1, "a"), gate, DocumentEnd())
    documents = place.open()
    document = await reading(documents)
    await document.characters(0, 3)
    DocumentFolder(tmp_path).forget([ONE.blob])
    gate.set()
    assert (await document.whole()).is_whole
    await finish_and_close(documents)
    assert place.names() == []


async def test_D3_what_asks_for_bytes_that_are_being_deleted_is_refused_and_leaves_nothing(tmp_path: Path):
    place = scripted_cache(tmp_path, DocumentStart(unit="page"), page(1, "a"), asyncio.Event())
    documents = place.open()
    document = await reading(documents)
    await document.characters(0, 3)
    errors: list[FileRefused] = []

    async def ask_again() -> None:
        with suppress(FileRefused):
            await document.whole()
        try:
            await documents.open(ONE, pieces)
        except FileRefused as error:
            errors.append(error)

    asking = asyncio.create_task(ask_again())
    await settle()
    await documents.forget([ONE.blob])
    await asking
    assert [error.code for error in errors] == ["gone"]
    assert len(place.script.tasks) == 1
    await documents.close()
    assert place.names() == []


@pytest.mark.parametrize("damage", ["cut", "empty", "index", "gone", "link", "linked folder", "pipe"])
async def test_D3_a_damaged_or_linked_file_is_parsed_again(tmp_path: Path, damage: str):
    place = scripted_cache(tmp_path / "documents", *pdf(2))
    documents = place.open()
    text = await text_in(documents)
    await finish_and_close(documents)
    (path,) = place.stored_paths()
    spoil(path, damage, tmp_path)
    again = place.open()
    assert await text_in(again) == text
    assert len(place.script.tasks) == 2
    await finish_and_close(again)
    if damage != "linked folder":
        last = place.open()
        assert await text_in(last) == text
        assert len(place.script.tasks) == 2
        await finish_and_close(last)


def spoil(path: Path, damage: str, outside: Path) -> None:
    match damage:
        case "cut":
            os.truncate(path, path.stat().st_size - 5)
        case "empty":
            os.truncate(path, 0)
        case "index":
            path.write_bytes(path.read_bytes().replace(b'"unit":"page"', b'"unit":"slid"'))
        case "gone":
            path.unlink()
        case "link":
            path.rename(outside / "elsewhere")
            path.symlink_to(outside / "elsewhere")
        case "linked folder":
            path.parent.rename(outside / "elsewhere")
            path.parent.symlink_to(outside / "elsewhere")
        case _:
            path.unlink()
            os.mkfifo(path)


@pytest.mark.parametrize("is_text", [True, False])
async def test_D3_damage_that_reads_like_text_is_not_served(tmp_path: Path, is_text: bool):
    words = [Element(kind="paragraph", text=f"{number:05} " + "words " * 40) for number in range(600)]
    place = scripted_cache(tmp_path, DocumentStart(), FoundElements(elements=tuple(words)), DocumentEnd())
    documents = place.open()
    text = await text_in(documents)
    await finish_and_close(documents)
    (path,) = place.stored_paths()
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"00400 words", b"00400 sword"))
    again = place.open()
    document = await again.open(ONE, pieces)
    assert (await document.characters(0, 1_000)).text == text[:1_000]
    assert list(await document.elements(0, 3)) == words[:3]
    with pytest.raises(FileRefused, match="damaged"):
        await (document.characters(text.index("00400"), 5) if is_text else document.elements(400, 1))
    parsed_again = await again.open(ONE, pieces)
    assert (await parsed_again.characters(0, 10**9)).text == text
    assert list(await parsed_again.elements(0, 1_000)) == words
    assert len(place.script.tasks) == 2
    await finish_and_close(again)
    assert place.stored_paths() == [path]
    assert path.read_bytes() == whole


async def test_D3_two_processes_that_read_the_same_do_not_hurt_each_other(tmp_path: Path):
    gate = asyncio.Event()
    place = scripted_cache(tmp_path, gate, *pdf(2))
    first, second = place.open(), place.open()
    both = asyncio.gather(text_in(first), text_in(second))
    await place.script.started.wait()
    gate.set()
    one, other = await both
    assert one == other
    await finish_and_close(first)
    await finish_and_close(second)
    assert len(place.names()) == 1


async def test_D3_cleaning_removes_the_old_the_least_used_and_leftovers(tmp_path: Path):
    place = scripted_cache(tmp_path, *pdf(1))
    documents = place.open()
    for name in ("aa", "bb", "cc"):
        await text_in(documents, replace(ONE, sha256=name * 32))
        place.now += timedelta(days=1)
    await finish_and_close(documents)
    size = place.stored_paths()[0].stat().st_size
    folder = place.stored_paths()[0].parent
    (folder / "killed.part").write_text("left by a killed process")
    # Folders and files of the layout of earlier versions.
    old = folder / ("0" * 64 + "-4-" + "0" * 16)
    old.mkdir()
    (old / "text").touch()
    (tmp_path / "incoming" / "left").mkdir(parents=True)
    (tmp_path / new_id()).touch()
    place.settings = DocumentSettings(kept_bytes=2 * size, kept_days=30)
    again = place.open()
    assert await again.clean() == 5
    assert len(place.names()) == 2
    await text_in(again, replace(ONE, sha256="bb" * 32))
    await text_in(again, replace(ONE, sha256="cc" * 32))
    assert len(place.script.tasks) == 3
    place.now += timedelta(days=29)
    await text_in(again, replace(ONE, sha256="cc" * 32))
    place.now += timedelta(days=2)
    assert await again.clean() == 1
    assert len(place.stored_paths()) == 1
    await finish_and_close(again)


@pytest.mark.parametrize("is_other_process", [False, True])
async def test_D3_cleaning_leaves_what_is_being_read(tmp_path: Path, is_other_process: bool):
    gate = asyncio.Event()
    place = scripted_cache(tmp_path, DocumentStart(unit="page"), page(1, "a"), gate, DocumentEnd())
    documents = place.open()
    other = place.open() if is_other_process else documents
    await (await reading(documents)).characters(0, 3)
    # To another process it is a leftover only once it is old.
    place.now += timedelta(days=0 if is_other_process else 1)
    assert await other.clean() == 0
    gate.set()
    await finish_and_close(documents)
    assert len(place.stored_paths()) == 1
    await other.close()


async def test_D3_half_a_character_is_no_reason_to_fail(tmp_path: Path):
    odd = Element(kind="table", text="a\ud800b", rows=(("\udfff",),))
    documents = scripted_cache(tmp_path, DocumentStart(), FoundElements(elements=(odd,)), DocumentEnd()).open()
    assert await text_in(documents) == "a\ufffdb"
    assert (await (await reading(documents)).elements(0, 1))[0].rows == (("\ufffd",),)
    await finish_and_close(documents)


def test_D3_bytes_after_the_end_of_a_failed_write_are_overwritten(tmp_path: Path):
    file = DocumentFile(tmp_path / "file")
    one, two = (Element(kind="text", text=text) for text in ("one", "two"))
    file.append([one])
    with file.path.open("ab") as other:
        other.write(b"half a line of a write that failed")
    file.append([two])
    assert file.text(0, 6) == "onetwo"
    assert file.elements(0, 2) == (one, two)


async def test_D3_what_another_server_deleted_goes_with_the_next_cleaning(tmp_path: Path):
    place = scripted_cache(tmp_path, *pdf(1))
    documents = place.open()
    there, deleted = (replace(ONE, blob=new_id(), sha256=name * 32) for name in ("aa", "bb"))
    for one in (there, deleted):
        await text_in(documents, one)
    await wait_until_settled()

    async def find_existing(blobs: Sequence[str]) -> frozenset[str]:
        assert set(blobs) == {there.blob, deleted.blob}
        return frozenset({there.blob})

    assert await documents.clean(find_existing) == 1
    assert len(place.stored_paths()) == 1
    await documents.close()
