"""Hostile documents (D7) give text or a reason, in bounded time and memory, and the next one is read."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from pathlib import Path

import pytest
import pytest_asyncio

from recto.config.file_settings import ParseLimits, PoolSettings
from recto.errors import FileRefused
from recto.files.parsing.parser_pool import Parsers
from recto.files.parsing.ports import Frame, Task
from tests.files.parsing import hostile
from tests.files.parsing.a_pool import children, in_pieces, text_from
from tests.files.parsing.hostile import DEEP, DOCUMENTS
from tests.waiting import wait_until

pytestmark = [pytest.mark.full, pytest.mark.asyncio(loop_scope="module")]

HARSH = ParseLimits(seconds=5, pages=500, characters=2_000_000)
GOOD = "good words"
# The end of a reason: advice.
REASON = re.compile(r"^[a-z].+\. (Ask|Try|Tell) [^.]+\.$", re.DOTALL)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def parsers() -> AsyncIterator[Parsers]:
    pool = Parsers(PoolSettings(children=2))
    yield pool
    await pool.close()


@pytest_asyncio.fixture(loop_scope="module")
async def visitors() -> AsyncIterator[tuple[str, list[bytes]]]:
    """Start a server; return its address and the requests that it receives."""
    requests_seen: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests_seen.append(await reader.read(1_000))
        writer.close()

    server = await asyncio.start_server(note, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}", requests_seen
    server.close()
    await server.wait_closed()


def peak_of(pid: int) -> int:
    with suppress(OSError):
        match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(match[1]) * 1_024 if match else 0
    return 0


async def expect_text_or_reason(parsers: Parsers, name: str, data: bytes) -> str:
    """Return the text or the code of the refusal, and check that the pool still reads documents."""
    try:
        outcome = await text_from(parsers, name, data, limits=HARSH)
    except FileRefused as refused:
        assert REASON.match(str(refused)), str(refused)
        outcome = f"({refused.code})"
    # A child that used more was killed; the others report their peak.
    assert all(peak_of(pid) <= HARSH.memory_bytes for pid in children())
    assert await text_from(parsers, "good.txt", GOOD.encode()) == GOOD
    return outcome


BOMBS: dict[str, Callable[[], bytes]] = {
    "a huge part.docx": lambda: hostile.docx_bomb(700),
    "many rows.xlsx": lambda: hostile.xlsx_bomb(400),
    "a far cell.xlsx": hostile.xlsx_with_a_far_cell,
    "nested.zip": lambda: hostile.nested_zip(5),
    "laughs.docx": lambda: hostile.docx(hostile.paragraph("&e9;"), head=hostile.laughs("w:document")),
    "laughs.odt": lambda: hostile.odt("&e9;", head=hostile.laughs("office:document-content")),
    "laughs.xml": lambda: hostile.xml("<a>&e9;</a>", head=hostile.laughs("a")),
    "laughs.html": lambda: hostile.xml("<html><body>&e9;</body></html>", head=hostile.laughs("html")),
    "blowup.docx": lambda: hostile.docx(hostile.paragraph("&long;" * 20_000), head=hostile.blowup("w:document")),
    "loop.pdf": hostile.looping_pdf,
    "itself.pdf": hostile.pdf_calling_itself,
    "many pages.pdf": hostile.pdf_of_many_pages,
    "one page often.pdf": lambda: hostile.pdf_of_one_page_many_times(200_000),
    "a giant image.pdf": hostile.pdf_with_a_giant_image,
    "deep.pdf": hostile.deep_pdf,
    "deep.html": lambda: b"<div>" * DEEP + b"deep",
    "tables.html": lambda: b"<table><tr><td>" * DEEP + b"deep",
    "deep.xml": lambda: b"<a>" * DEEP + b"deep" + b"</a>" * DEEP,
    "deep.json": lambda: b"[" * DEEP + b"]" * DEEP,
    "deep.md": lambda: b"> " * DEEP + b"deep",
    "lists.md": lambda: b"".join(b" " * (2 * depth) + b"- a\n" for depth in range(2_000)),
    "deep.rtf": lambda: b"{\\rtf1 " + b"{" * DEEP + b"deep" + b"}" * (DEEP + 1),
    "tables.docx": lambda: hostile.docx("<w:tbl><w:tr><w:tc>" * DEEP + "</w:tc></w:tr></w:tbl>" * DEEP),
    "deep.eml": lambda: b"".join(
        f"Content-Type: multipart/mixed; boundary=b{number}\n\n--b{number}\n".encode() for number in range(3_000)
    ),
}


@pytest.mark.parametrize("name", BOMBS)
async def test_D7_a_bomb_costs_one_text(parsers: Parsers, name: str):
    await expect_text_or_reason(parsers, name, BOMBS[name]())


async def test_D7_while_documents_of_one_user_take_long_those_of_another_are_read():
    pool, first_frames, go = Parsers(PoolSettings(children=2, slow_seconds=3_600)), list[Frame](), asyncio.Event()

    async def read_slowly() -> None:
        task = Task(format="html", name="long.html", limits=HARSH)
        async with aclosing(pool.parse("a", task, in_pieces(b"long"))) as frames:
            first_frames.append(await anext(frames))
            await go.wait()

    slow = [asyncio.create_task(read_slowly()) for _ in range(3)]
    await wait_until(lambda: first_frames)
    others = asyncio.gather(*[text_from(pool, "good.html", GOOD.encode(), owner="b") for _ in range(3)])
    await wait_until(others.done)
    assert (await others, len(first_frames)) == ([GOOD] * 3, 1)
    go.set()
    await asyncio.gather(*slow)
    await pool.close()
    assert len(first_frames) == 3


PICTURE = '<img src="{0}/a.png"><iframe src="file:///etc/passwd"></iframe>'
LINKS = '<link rel="stylesheet" href="{0}/a.css"><script src="{0}/a.js"></script>'
ENTITIES = "&file; &net;"
# Documents, given the URL of a resource to load.
FETCHING: dict[str, Callable[[str], bytes]] = {
    "fetching.docx": lambda at: hostile.docx(
        hostile.paragraph(f"{GOOD} {ENTITIES}"), head=hostile.fetching("w:document", at)
    ),
    "fetching.odt": lambda at: hostile.odt(f"{GOOD} {ENTITIES}", head=hostile.fetching("office:document-content", at)),
    "fetching.xml": lambda at: hostile.xml(f"<a>{GOOD} {ENTITIES}</a>", head=hostile.fetching("a", at)),
    "fetching.html": lambda at: f"<head>{LINKS}</head><body>{GOOD} {PICTURE}</body>".format(at).encode(),
    "fetching.md": lambda at: f"{GOOD} ![a]({{0}}/a.png) {PICTURE}".format(at).encode(),
    "fetching.pdf": hostile.fetching_pdf,
    "template.docx": hostile.docx_with_a_remote_template,
    "macros.docx": lambda _: hostile.docx_with_macros(),
}


@pytest.mark.parametrize("name", FETCHING)
async def test_D7_no_document_fetches_opens_or_runs_anything(
    parsers: Parsers, visitors: tuple[str, list[bytes]], name: str
):
    address, requests_seen = visitors
    outcome = await expect_text_or_reason(parsers, name, FETCHING[name](address))
    assert "root:" not in outcome
    assert GOOD in outcome or name.startswith("fetching.")
    assert requests_seen == []


@pytest.mark.parametrize("base", ["letter.docx", "book.xlsx", "deck.pptx", "letter.pdf"])
async def test_D7_a_document_cut_off_or_with_a_wrong_bit_anywhere_gives_text_or_a_reason(parsers: Parsers, base: str):
    for data in hostile.damaged((DOCUMENTS / base).read_bytes(), 8):
        assert await expect_text_or_reason(parsers, base, data)
