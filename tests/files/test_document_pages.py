"""F5, D9: parts of pages of a cached document can be read alone, as text and as elements."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.document import KINDS, Element, text_of
from recto.files.documents.cached_document import CachedDocument
from recto.files.documents.document_cache import DocumentCache
from recto.files.documents.document_file import BLOCK_BYTES, DocumentFile
from recto.files.parsing.ports import DocumentEnd, DocumentStart, FoundElements
from tests.files.scripted_cache import ONE, finish_and_close, pieces, reading, scripted_cache

TEXTS = st.text(alphabet="aé中🙂\n", max_size=12) | st.integers(0, 9_000).map(lambda count: "aé中" * count)
ELEMENTS = st.builds(Element, kind=st.sampled_from([kind for kind in KINDS if kind != "page"]), text=TEXTS)


@given(
    parts=st.lists(st.lists(ELEMENTS, max_size=5), max_size=4),
    has_note=st.booleans(),
    span=st.tuples(st.integers(-1, 5), st.integers(0, 4)),
    step=st.sampled_from([1, 2, 3, 10]),
)
def test_F5_windows_and_pages_put_together_are_the_document(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[list[Element]],
    has_note: bool,
    span: tuple[int, int],
    step: int,
):
    first, last = span[0], sum(span)
    pages = [(Element(kind="page", text="", page=n), *part) for n, part in enumerate(parts, start=1)]
    note = (Element(kind="note", text="before"),) * has_note
    batches = [
        FoundElements(elements=note),
        *[FoundElements(elements=part, pages=n) for n, part in enumerate(pages, start=1)],
    ]
    expected_pages = [(*note, *pages[0]), *pages[1:]] if pages else []
    expected = [one for n, part in enumerate(expected_pages, start=1) if first <= n <= last for one in part]
    place = scripted_cache(tmp_path_factory.mktemp("documents"), DocumentStart(unit="page"), *batches, DocumentEnd())

    async def check(documents: DocumentCache) -> None:
        document = await documents.open(ONE, pieces)
        await check_whole(document, [*note, *[one for part in pages for one in part]], len(pages), step)
        await check_pages(document, first, last, expected, step)
        await finish_and_close(documents)

    async def check_twice() -> None:
        await check(place.open())
        await check(place.open())

    asyncio.run(check_twice())


async def check_whole(document: CachedDocument, elements: list[Element], pages: int, splits: int) -> None:
    text, extent = text_of(elements), await document.whole()
    size = len(text) // splits + 1
    windows = [await document.characters(start, size) for start in range(0, len(text) + 1, size)]
    assert "".join(window.text for window in windows) == text
    assert (extent.characters, extent.elements, extent.pages) == (len(text), len(elements), pages)
    assert [*await document.elements(0, 3), *await document.elements(3, 10**6)] == elements
    if pages:
        assert (await document.pages(1, pages)).text == text


async def check_pages(document: CachedDocument, first: int, last: int, expected: list[Element], step: int) -> None:
    text = (await document.pages(first, last)).text
    size = len(text) // step + 1
    windows = [await document.pages(first, last, start, size) for start in range(0, len(text) + size, size)]
    assert "".join(window.text for window in windows) == text
    assert windows[-1].length == len(text)
    assert text.lstrip("\n") == text_of(expected).lstrip("\n")
    some = [await document.page_elements(first, last, start, step) for start in range(0, len(expected) + step, step)]
    assert [element for one in some for element in one.elements] == expected
    assert some[-1].length == len(expected)


async def test_F5_nobody_waits_for_pages_that_a_text_does_not_have(tmp_path: Path):
    documents = scripted_cache(
        tmp_path, DocumentStart(), FoundElements(elements=(Element(kind="text", text="abc"),)), asyncio.Event()
    ).open()
    document = await reading(documents)
    await document.characters(0, 3)
    assert (await document.pages(1, 1)).text == ""
    assert not (await document.page_elements(1, 1, 0, 5)).elements
    await documents.close()


def test_D9_at_most_one_block_is_read_beside_the_wanted_lines(tmp_path: Path):
    file = DocumentFile(tmp_path / "long")
    for _ in range(20):
        file.append([Element(kind="rows", text="x" * 50_000, page=1)] * 10)
    assert [len(one.text) for one in file.elements(100, 102)] == [50_000, 50_000]
    assert 100_000 < file.bytes_read < 100_000 + 2 * BLOCK_BYTES
    short = DocumentFile(tmp_path / "short")
    short.append([Element(kind="paragraph", text="x")] * 5_000)
    assert len(short.elements(2_500, 2_501)) == len(short.text(2_500, 2_501)) == 1
    assert short.bytes_read < 3 * BLOCK_BYTES
