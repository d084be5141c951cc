"""D3, F5: a document is parsed once for all readers, its start is readable early, and failures reach readers."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from recto.config.file_settings import DocumentSettings
from recto.conversation.document import Excerpt, Extent
from recto.conversation.message_files import Attachment
from recto.errors import FileRefused, StorageDown
from recto.files.parsing.ports import DocumentEnd, DocumentStart, Failed
from tests.files.scripted_cache import (
    ONE,
    finish_and_close,
    page,
    pdf,
    reading,
    scripted_cache,
    text_in,
    wait_until_settled,
)
from tests.waiting import settle


async def test_F5_the_first_page_is_there_before_the_last(tmp_path: Path):
    gate = asyncio.Event()
    place = scripted_cache(
        tmp_path, DocumentStart(unit="page", page_count=300), page(1, "first"), gate, page(2, "last"), DocumentEnd()
    )
    documents = place.open()
    document = await reading(documents)
    first = await document.pages(1, 1)
    assert first == Excerpt(
        text="[page 1]\n\nfirst",
        start=0,
        extent=Extent(characters=15, elements=2, unit="page", pages=1, page_count=300),
        first_page=1,
        last_page=1,
        length=15,
    )
    assert (await document.characters(2, 6)).text == "age 1]"
    assert [one.text for one in await document.elements(1, 1)] == ["first"]
    waiting = asyncio.create_task(document.pages(2, 2))
    await settle()
    assert not waiting.done()
    gate.set()
    assert (await waiting).text == "\n\n[page 2]\n\nlast"
    assert (await document.whole()).is_whole
    await finish_and_close(documents)


async def test_D3_all_who_ask_share_one_reading_which_goes_on_when_they_are_gone(tmp_path: Path):
    gate = asyncio.Event()
    place = scripted_cache(tmp_path, gate, *pdf(3))
    documents = place.open()
    asking = [asyncio.create_task(text_in(documents)) for _ in range(5)]
    await place.script.started.wait()
    for task in asking[:4]:
        task.cancel()
    gate.set()
    text = await asking[4]
    assert "text of 3" in text
    await finish_and_close(documents)
    assert len(place.script.tasks) == 1
    assert place.script.inputs == [b"the bytes"]
    assert place.script.tasks[0][1].format == "pdf"
    again = place.open()
    assert await text_in(again) == text
    assert len(place.script.tasks) == 1
    await again.close()


async def test_D3_users_share_nothing_and_a_users_threads_all(tmp_path: Path):
    place = scripted_cache(tmp_path, *pdf(1))
    documents = place.open()
    for one in (ONE, replace(ONE, id="2", name="other.pdf"), replace(ONE, blob="d", owner="bob")):
        await text_in(documents, one)
    assert [owner for owner, _ in place.script.tasks] == ["ada", "bob"]
    await finish_and_close(documents)
    assert len({path.parent for path in place.stored_paths()}) == 2


@pytest.mark.parametrize(
    ("other", "settings"),
    [
        (replace(ONE, sha256="bb" * 32), DocumentSettings()),
        (replace(ONE, mime_type="text/plain"), DocumentSettings()),
        (ONE, DocumentSettings(ocr="eng")),
        (ONE, DocumentSettings(limits=replace(DocumentSettings().limits, pages=1))),
    ],
)
async def test_D3_other_bytes_formats_languages_or_limits_are_read_anew(
    tmp_path: Path, other: Attachment, settings: DocumentSettings
):
    place = scripted_cache(tmp_path, *pdf(1))
    for one, chosen_settings in ((ONE, place.settings), (other, settings)):
        place.settings = chosen_settings
        documents = place.open()
        await text_in(documents, one)
        await finish_and_close(documents)
    assert len(place.script.tasks) == 2


@pytest.mark.parametrize(
    "failure", [FileRefused("it has a password", code="locked"), Failed(reason="it has a password", code="locked")]
)
async def test_D7_a_failure_is_told_to_all_who_wait_and_not_tried_again_for_a_while(
    tmp_path: Path, failure: FileRefused | Failed
):
    place = scripted_cache(tmp_path, failure)
    documents = place.open()
    for _ in range(3):
        with pytest.raises(FileRefused, match="password") as raised:
            await text_in(documents)
        assert raised.value.code == "locked"
    assert len(place.script.tasks) == 1
    place.now += timedelta(seconds=601)
    with pytest.raises(FileRefused, match="password"):
        await text_in(documents)
    assert len(place.script.tasks) == 2
    await finish_and_close(documents)
    assert place.names() == []


async def test_D7_a_busy_parser_is_asked_again(tmp_path: Path):
    place = scripted_cache(tmp_path, FileRefused("others are first", code="busy"))
    documents = place.open()
    for _ in range(2):
        with pytest.raises(FileRefused, match="others"):
            await text_in(documents)
        await wait_until_settled()
    assert len(place.script.tasks) == 2
    await finish_and_close(documents)


async def test_D7_bytes_that_cannot_be_had_are_no_fault_of_the_document(tmp_path: Path):
    async def broken() -> AsyncGenerator[bytes]:
        yield b"some"
        raise StorageDown(problem="no such bucket")

    place = scripted_cache(tmp_path, *pdf(1))
    documents = place.open()
    with pytest.raises(StorageDown, match="no such bucket"):
        await (await documents.open(ONE, broken)).whole()
    await wait_until_settled()
    assert "text of 1" in await text_in(documents)
    await finish_and_close(documents)


async def test_D7_what_came_before_a_failure_stays_for_a_while_and_says_so(tmp_path: Path):
    place = scripted_cache(
        tmp_path, DocumentStart(unit="page"), page(1, "a"), FileRefused("it took too long", code="timeout")
    )
    documents = place.open()
    text = "[page 1]\n\na\n\n[the rest could not be read: it took too long]"
    for _ in range(2):
        document = await reading(documents)
        assert (await document.characters(0, 1000)).text == text
        assert (await document.elements(2, 9))[0].kind == "note"
        assert (await document.whole()).is_whole
    assert len(place.script.tasks) == 1
    place.now += timedelta(seconds=601)
    await text_in(documents)
    assert len(place.script.tasks) == 2
    await finish_and_close(documents)
    assert place.names() == []


@pytest.mark.parametrize(
    ("steps", "error", "words"),
    [([], FileRefused, "ended before"), ([ZeroDivisionError("odd")], ZeroDivisionError, "odd")],
)
async def test_D7_a_reading_that_stops_or_fails_unexpectedly_keeps_nobody_waiting(
    tmp_path: Path, steps: list[Exception], error: type[Exception], words: str
):
    documents = scripted_cache(tmp_path, DocumentStart(), *steps).open()
    with pytest.raises(error, match=words):
        await text_in(documents)
    await finish_and_close(documents)


async def test_D3_closing_ends_what_is_read_and_tells_who_waits(tmp_path: Path):
    place = scripted_cache(tmp_path, DocumentStart(unit="page"), asyncio.Event())
    documents = place.open()
    waiting = asyncio.create_task(text_in(documents))
    await place.script.started.wait()
    at_once = asyncio.create_task(text_in(documents, replace(ONE, sha256="cc" * 32)))
    await settle(1)
    await documents.close()
    for task in (waiting, at_once):
        with pytest.raises(FileRefused, match="stopping"):
            await task
    with pytest.raises(FileRefused, match="stopping"):
        await text_in(documents)
    assert place.names() == []
    assert place.script.closed == len(place.script.tasks)


async def test_D3_only_so_many_indexes_are_in_memory_and_readers_of_others_go_on(tmp_path: Path):
    place = scripted_cache(tmp_path, *pdf(1), settings=DocumentSettings(open_documents=1))
    documents = place.open()
    first = await reading(documents)
    await first.whole()
    await wait_until_settled()
    await text_in(documents, replace(ONE, sha256="bb" * 32))
    await wait_until_settled()
    assert await reading(documents) is not first
    assert (await first.characters(0, 3)).text == "[pa"
    assert len(place.script.tasks) == 2
    await finish_and_close(documents)
