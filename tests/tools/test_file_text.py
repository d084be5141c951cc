"""D3: the text of a file is made once for all who read it, as long as they may."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from recto.errors import FileRefused
from recto.page.input_files import InputFile
from recto.tools.file_text import PARSER_VERSION, text_of_file
from recto.tools.read_files import read_files
from recto.tools.text_cache import TextCache, TextKey
from tests.tools.files_at_hand import AtHand, a_file, at_hand, rows_of, run

LONG = "".join(f"line {number}\n" for number in range(10_000))


def test_D3_the_next_page_of_a_file_does_not_read_it_again():
    files = at_hand(a=LONG)
    pages = [rows_of(run(read_files, files, {"ids": ["a"], "offset": offset}))[0] for offset in (0, 20_000, 40_000)]
    assert [page["content"].partition("]\n")[2] for page in pages] == [
        LONG[offset : offset + 20_000] for offset in (0, 20_000, 40_000)
    ]
    assert files.closed == ["a"]


async def test_D3_equal_bytes_are_one_text_whatever_file_or_thread_they_are_of():
    files = at_hand(a=LONG, b=LONG, c="other")
    another = replace(at_hand(z=LONG), texts=files.texts)
    for id, from_files in (("a", files), ("b", files), ("z", another)):
        assert await text_of_file(from_files.maps.documents[id], from_files) == LONG
    assert await text_of_file(files.maps.documents["c"], files) == "other"
    assert (files.closed, another.closed) == (["a", "c"], [])


async def test_D3_two_who_read_at_once_make_it_once():
    files = replace(at_hand(a=LONG, b=LONG), texts=TextCache(most_characters=0))
    documents = [files.maps.documents[id] for id in ("a", "b", "a")]
    assert await asyncio.gather(*[text_of_file(one, files) for one in documents]) == [LONG] * 3
    assert files.closed == ["a"]


async def test_D3_a_text_of_another_version_of_the_parser_is_not_used():
    files = at_hand(a="new")
    document = files.maps.documents["a"]
    older = TextKey(sha256=await files.sha256_of(document), parser=PARSER_VERSION - 1)

    async def old() -> str:
        return "old"

    await files.texts.text(older, old)
    assert await text_of_file(document, files) == "new"


@dataclass(frozen=True, kw_only=True)
class Gone(AtHand):
    """Files that were deleted."""

    async def sha256_of(self, file: InputFile) -> str:
        raise FileRefused(f"{file.name} was deleted.", code="gone")


async def test_D3_what_is_kept_of_a_deleted_file_is_not_given_to_anybody():
    files = at_hand(a="a secret")
    await text_of_file(files.maps.documents["a"], files)
    gone = Gone(turns=files.turns, holds={}, texts=files.texts)
    with pytest.raises(FileRefused, match=r"^a\.txt was deleted\.$"):
        await text_of_file(a_file("a"), gone)


def test_D3_bytes_that_are_no_text_are_told_each_time_they_are_asked_for():
    files = at_hand(a=bytes(range(256)) * 9)
    for _ in range(2):
        (row,) = rows_of(run(read_files, files, {"ids": ["a"]}))
        assert row["content"].startswith("Error: its bytes are no text.")
