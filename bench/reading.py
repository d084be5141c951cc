"""How fast documents are read, beside MarkItDown on the same ones in the same run, and a page that was read before."""

from __future__ import annotations

import asyncio
import json
import math
import os
import select
import statistics
import subprocess
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import cast
from zipfile import ZipFile

from goal import Goal
from peer import HERE, PeerMissing, environment_of

from recto.config.file_settings import DocumentSettings, ParseLimits, PoolSettings
from recto.conversation.message_files import Attachment
from recto.errors import FileRefused
from recto.files.documents.document_cache import DocumentCache
from recto.files.file_type import HEAD_BYTES, detect_type
from recto.files.parsing.parser_pool import Parsers

DOCUMENTS = HERE.parent / "tests" / "documents"
# The PDFs whose pages are counted, and documents of other formats.
PDFS = ("long.pdf", "letter.pdf", "deck.pdf")
OTHERS = ("letter.docx", "book.xlsx", "deck.pptx")
TIMES_AS_FAST, CACHED_MILLISECONDS = 3.0, 2.0
PAGE_CHARACTERS = 20_000
# Longer than any reader should take for a document of one page; whoever does hangs.
PATIENCE = 20.0
# A sheet with two cells, as far from one another as can be.
SHEET = "xl/worksheets/sheet1.xml"
FAR_CELLS = (
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1"><c r="A1">'
    '<v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row></sheetData></worksheet>'
)


@dataclass(frozen=True, kw_only=True)
class Took:
    """What a document took, and how many pages it has; without seconds there was no answer."""

    seconds: float | None
    pages: int = 1


def reading_goals(folder: Path, rounds: int, *, with_peer: bool) -> Iterator[Goal]:
    """Every figure of reading."""
    far = _far_cells(folder / "far.xlsx")
    ours = asyncio.run(_ours(folder, rounds, far))
    pages = sum(took.pages for took in ours.pdfs)
    rate = pages / sum(took.seconds or math.inf for took in ours.pdfs)
    yield Goal(name="pages of PDFs read", value=rate, unit="/s")
    yield Goal(name="first page of a long PDF", value=1_000 * ours.first, unit="ms")
    yield Goal(name="a page read before, p95", value=1_000 * ours.cached, unit="ms", most=CACHED_MILLISECONDS)
    yield Goal(name="a sheet with far cells, until an answer", value=ours.far, unit="s", most=PATIENCE)
    if with_peer:
        yield from _beside(rate, ours, pages, rounds, far)


def _far_cells(path: Path) -> Path:
    with ZipFile(DOCUMENTS / "book.xlsx") as book, ZipFile(path, "w") as far:
        for name in book.namelist():
            far.writestr(name, FAR_CELLS if name == SHEET else book.read(name))
    return path


@dataclass(frozen=True, kw_only=True)
class Ours:
    """What ours took: seconds, the middle of several rounds."""

    pdfs: Sequence[Took]
    others: float
    first: float
    cached: float
    far: float


async def _ours(folder: Path, rounds: int, far: Path) -> Ours:
    # One child: the peer is one process too.
    parsers = Parsers(PoolSettings(children=1))
    limits = ParseLimits(seconds=5)
    documents = [
        DocumentCache(folder / f"kept-{number}", parsers, DocumentSettings(limits=limits, ocr=""), clock=_now)
        for number in range(rounds)
    ]
    try:
        await _read(documents[0], DOCUMENTS / "letter.html")  # the child is warm from now on
        pdfs = [await _middle(documents, DOCUMENTS / name) for name in PDFS]
        others = [await _middle(documents, DOCUMENTS / name) for name in OTHERS]
        return Ours(
            pdfs=pdfs,
            others=sum(took.seconds or math.inf for took in others),
            first=await _first(folder / "first", parsers),
            cached=await _cached(documents[0], DOCUMENTS / "long.pdf"),
            far=await _time_answer(documents[0], far),
        )
    finally:
        for one in documents:
            await one.close()
        await parsers.close()


async def _middle(documents: Sequence[DocumentCache], path: Path) -> Took:
    """Each round with a cache of its own, so that none is known."""
    tooks = [await _read(one, path) for one in documents]
    return Took(seconds=statistics.median([took.seconds or math.inf for took in tooks]), pages=tooks[0].pages)


async def _read(documents: DocumentCache, path: Path) -> Took:
    attachment = _attachment(path)
    start = time.perf_counter()
    document = await documents.open(attachment, _pieces(path))
    extent = await document.whole()
    await document.characters(0, extent.characters)
    return Took(seconds=time.perf_counter() - start, pages=extent.page_count or 1)


async def _time_answer(documents: DocumentCache, path: Path) -> float:
    """Seconds until there is an answer, be it a refusal."""
    start = time.perf_counter()
    with suppress(FileRefused):
        await (await documents.open(_attachment(path), _pieces(path))).whole()
    return time.perf_counter() - start


async def _first(folder: Path, parsers: Parsers) -> float:
    """Until the first page of a long document is there."""
    documents = DocumentCache(folder, parsers, DocumentSettings(ocr=""), clock=_now)
    path = DOCUMENTS / "long.pdf"
    start = time.perf_counter()
    document = await documents.open(_attachment(path), _pieces(path))
    await document.pages(1, 1)
    duration = time.perf_counter() - start
    await document.whole()
    await documents.close()
    return duration


async def _cached(documents: DocumentCache, path: Path) -> float:
    """The slowest but five in a hundred readings of a page, each of which opens the document anew."""
    times: list[float] = []
    attachment = _attachment(path)
    for number in range(200):
        start = time.perf_counter()
        document = await documents.open(attachment, _pieces(path))
        await document.characters(number % 7 * PAGE_CHARACTERS, PAGE_CHARACTERS)
        times.append(time.perf_counter() - start)
    return statistics.quantiles(times, n=20)[-1]


def _attachment(path: Path) -> Attachment:
    data = path.read_bytes()
    kind = detect_type(data[:HEAD_BYTES], path.name, None)
    return Attachment(
        id=path.name,
        owner="bench",
        name=path.name,
        kind=kind.kind,
        mime_type=kind.mime_type,
        size=len(data),
        sha256=sha256(data).hexdigest(),
        blob=sha256(path.name.encode()).hexdigest()[:32],
        created=_now(),
    )


def _pieces(path: Path) -> Callable[[], AsyncIterator[bytes]]:
    async def pieces() -> AsyncGenerator[bytes]:
        yield path.read_bytes()

    return pieces


def _now() -> datetime:
    return datetime.now(UTC)


def _beside(rate: float, ours: Ours, pages: int, rounds: int, far: Path) -> Iterator[Goal]:
    """The same documents by MarkItDown, warm too."""
    with _markitdown() as peer:
        theirs = sum(_their_middle(peer, name, rounds) for name in PDFS)
        others = sum(_their_middle(peer, name, rounds) for name in OTHERS)
        hung = peer.read(far) is None
    yield Goal(name="pages of PDFs read by MarkItDown", value=pages / theirs, unit="/s")
    yield Goal(name="times as fast on PDFs", value=rate * theirs / pages, unit="x", least=TIMES_AS_FAST)
    yield Goal(name="times as fast on docx, xlsx and pptx", value=others / ours.others, unit="x")
    yield Goal(name=f"far cells by MarkItDown: no answer in {PATIENCE:g} s", value=float(hung), unit="")


def _their_middle(peer: MarkItDown, name: str, rounds: int) -> float:
    return statistics.median([peer.read(DOCUMENTS / name) or math.inf for _ in range(rounds)])


class MarkItDown:
    """The peer at work: a document is named, and it answers."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def read(self, path: Path) -> float | None:
        """The seconds it took; None where it gave no answer for too long."""
        stdin = self._process.stdin
        if stdin is None:
            raise PeerMissing("MarkItDown cannot be asked.")
        stdin.write(f"{path}\n".encode())
        stdin.flush()
        answer = self.line(PATIENCE)
        return cast("float", answer["seconds"]) if answer else None

    def line(self, seconds: float) -> dict[str, object] | None:
        """The next line it says."""
        stdout = self._process.stdout
        if stdout is None or not select.select([stdout], [], [], seconds)[0]:
            return None
        line = stdout.readline()
        if not line:
            raise PeerMissing(f"MarkItDown ended with code {self._process.wait()}.")
        return cast("dict[str, object]", json.loads(line))


@contextmanager
def _markitdown() -> Generator[MarkItDown]:
    command = [str(environment_of("markitdown")), str(HERE / "peers" / "markitdown_read.py")]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    try:
        peer = MarkItDown(process)
        peer.line(120)
        yield peer
    finally:
        process.kill()
        process.wait()
