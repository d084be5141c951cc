"""`recto read`: documents as a model would receive them, or as JSON."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeAlias

import typer
from rich.console import Console

from recto.cli.command import FAILED, WRONG_USE, stop
from recto.conversation.document import Element, Extent, element_row, text_of
from recto.conversation.json import Json, dump
from recto.errors import RectoError, SettingsError
from recto.page.prompt.quote import SEPARATOR, ParsedDocument, join_documents

if TYPE_CHECKING:
    from recto.files.documents.read_document import ReadDocument, Reading

STDIN, STDIN_NAME = "-", "standard input"
NO_PAGES = "it has no pages, slides or sheets. Omit --pages"
NO_SUCH_PAGE = "there is no {unit} {first}: the text ends with {unit} {last}. Choose others"
# Maximum characters of a file name. A longer name would leave no space for the bar.
NAME_CHARACTERS = 40
ShowProgress: TypeAlias = Callable[[Extent], None]
FileArguments = Annotated[list[str], typer.Argument(metavar="FILE", help="Documents; `-` is standard input.")]
ElementsAsJson = Annotated[
    bool, typer.Option("--json", help="Print name, page count and elements as JSON, one object per line.")
]
Pages = Annotated[
    str | None, typer.Option(metavar="N-M", help="Pages, slides or sheets to print: 3, 3-7 or 3-.  [default: all]")
]
Offset = Annotated[int, typer.Option(metavar="N", min=0, help="Characters to skip at the start.")]
MostCharacters = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Maximum characters per file.  [default: all]")
]
Ocr = Annotated[
    str, typer.Option(metavar="LANGS", help="Read scans with tesseract, in these languages: eng, chi_sim+eng.")
]
MostSeconds = Annotated[
    float | None, typer.Option(metavar="N", min=0.1, help="Time limit per file; --ocr adds 240.  [default: 60]")
]
InputName = Annotated[str, typer.Option(metavar="NAME", help="Name of standard input. Its extension sets the format.")]


@dataclass(frozen=True, kw_only=True)
class PrintOptions:
    """Selection and format of the output. Without a last page or `limit`, the output extends to the end."""

    as_json: bool = False
    pages: tuple[int, int | None] | None = None
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class ReadOutcome:
    """A parsed document, or the problem with its file."""

    name: str
    document: ReadDocument | None = None
    problem: str = ""


def read(
    files: FileArguments,
    *,
    as_json: ElementsAsJson = False,
    pages: Pages = None,
    offset: Offset = 0,
    limit: MostCharacters = None,
    ocr: Ocr = "",
    seconds: MostSeconds = None,
    name: InputName = "",
) -> None:
    """Print the text of documents as a model would receive it.

    Reads PDF, Word, Excel, PowerPoint, HTML, mail, e-books and text. Several files are printed under their names;
    unreadable ones are reported on standard error.

    Exit codes: 0 success, 1 a file failed, 2 usage error.
    """
    try:
        options = PrintOptions(as_json=as_json, pages=_pages(pages), offset=offset, limit=limit)
        if files.count(STDIN) > 1:
            raise SettingsError(name="FILE", value=STDIN, allowed="standard input can be read only once")
        if name and STDIN not in files:
            raise SettingsError(name="--name", value=name, allowed="it names standard input: add - to the files")
        if ocr and not re.fullmatch(r"\w+(\+\w+)*", ocr, re.ASCII):
            raise SettingsError(name="--ocr", value=ocr, allowed="use names of tesseract, such as eng or chi_sim+eng")
        if options.as_json and (options.offset or options.limit is not None):
            raise SettingsError(
                name="--json", value=True, allowed="combine it with --pages, not with --offset or --limit"
            )
    except SettingsError as error:
        raise stop("read", error, WRONG_USE) from error
    readings: list[Reading] = []
    for reading in [_reading(file, name) for file in files]:
        limits = replace(reading.limits, seconds=seconds) if seconds is not None else reading.limits
        last_page = options.pages[1] if options.pages else None
        readings.append(replace(reading, limits=limits, ocr=ocr, last_page=last_page))
    # A file name may contain undecodable bytes.
    names = [(name or STDIN_NAME if file == STDIN else file).encode("utf-8", "replace").decode() for file in files]
    printer, bars = Printer(options, len(files)), ProgressBars(len(files))

    async def print_all() -> None:
        with bars.display():
            async with aclosing(_outcomes(names, readings, bars)) as outcomes:
                async for outcome in outcomes:
                    printer.add(outcome)
        printer.end()

    with _exit_on_sigterm():
        asyncio.run(print_all())
    if printer.problems:
        raise typer.Exit(FAILED)


def _pages(text: str | None) -> tuple[int, int | None] | None:
    if text is None:
        return None
    match = re.fullmatch(r"([1-9]\d{0,8})(-([1-9]\d{0,8})?)?", text.strip(), re.ASCII)
    if match:
        first = int(match[1])
        last = int(match[3]) if match[3] else None if match[2] else first
        if last is None or first <= last:
            return first, last
    raise SettingsError(name="--pages", value=text, allowed="use 3, 3-7 or 3-, counted from 1")


def _reading(file: str, name: str) -> Reading:
    """Return the input to parse. Pipes are read here, because a later read could not be cancelled."""
    from recto.files.documents.read_document import Reading

    most = Reading(source=b"").limits.file_bytes + 1
    if file == STDIN:
        return Reading(source=sys.stdin.buffer.read(most), name=name)
    path, is_pipe = Path(file), False
    # Ignore an invalid path here. Reading it later reports the problem.
    with suppress(OSError, ValueError):
        is_pipe = path.is_fifo()
    if is_pipe:
        with path.open("rb") as pipe:
            return Reading(source=pipe.read(most), name=path.name)
    return Reading(source=path)


@contextmanager
def _exit_on_sigterm() -> Generator[None]:
    """Clean up on the first SIGTERM; exit at once on the second."""

    def end(number: int, _: FrameType | None) -> NoReturn:
        signal.signal(number, signal.SIG_DFL)
        # Raise instead of cancelling a task, because an exception also interrupts blocking writes.
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


async def _outcomes(
    names: Sequence[str], readings: Sequence[Reading], bars: ProgressBars
) -> AsyncGenerator[ReadOutcome]:
    """Yield the outcome of each file in order; several are parsed at a time."""
    from recto.files.documents.read_document import read_with
    from recto.files.parsing.parser_pool import Parsers, PoolSettings

    places = PoolSettings().places
    parsers = Parsers(PoolSettings(children=places, of_user=places))
    # Open only as many files as are parsed at a time, to limit memory.
    turn = asyncio.Semaphore(places)

    async def read_file(name: str, reading: Reading) -> ReadOutcome:
        async with turn:
            with bars.file(name) as show:
                try:
                    return ReadOutcome(name=name, document=await read_with(parsers, reading, show))
                except RectoError as error:
                    return ReadOutcome(name=name, problem=str(error))

    tasks = [asyncio.create_task(read_file(*pair)) for pair in zip(names, readings, strict=True)]
    try:
        for task in tasks:
            yield await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await parsers.close()


class Printer:
    """Prints documents in order. A single file is plain text; several are wrapped in blocks (D5)."""

    def __init__(self, options: PrintOptions, count: int) -> None:
        self.problems: list[str] = []
        self._options = options
        self._is_alone = count == 1
        self._is_first = True
        # Buffer the text until the progress bars are gone, because they use the same terminal.
        self._buffer: list[bytes] | None = [] if sys.stdout.isatty() and sys.stderr.isatty() else None

    def add(self, outcome: ReadOutcome) -> None:
        """Print a file and record its problem."""
        elements, problem = _elements(outcome, self._options)
        if problem:
            self.problems.append(f"recto read: {outcome.name}: {problem}")
        if self._options.as_json:
            row: dict[str, Json] = {"name": outcome.name}
            if outcome.document is not None and elements is not None:
                row["unit"], row["page_count"] = outcome.document.unit, outcome.document.page_count
                row["elements"] = [element_row(element) for element in elements]
            if problem:
                row["error"] = problem
            self._write(dump(row) + b"\n")
        elif not self._is_alone:
            content = problem if elements is None else _text(elements, self._options)
            block = join_documents([ParsedDocument(name=outcome.name, content=content)])
            self._write(("" if self._is_first else SEPARATOR).encode() + block.encode())
        elif elements is not None:
            text = _text(elements, self._options)
            self._write(text.encode() + (b"" if text.endswith("\n") else b"\n"))
        self._is_first = False

    def end(self) -> None:
        """Print buffered output and problems."""
        if not self._options.as_json and not self._is_alone:
            self._write(b"\n")
        sys.stdout.buffer.write(b"".join(self._buffer or ()))
        sys.stdout.buffer.flush()
        for problem in self.problems:
            sys.stderr.write(f"{problem}\n")

    def _write(self, data: bytes) -> None:
        if self._buffer is None:
            sys.stdout.buffer.write(data)
        else:
            self._buffer.append(data)


def _elements(outcome: ReadOutcome, options: PrintOptions) -> tuple[tuple[Element, ...] | None, str]:
    """Return the elements to print, if any, and a problem, if any."""
    document = outcome.document
    if document is None:
        return None, outcome.problem
    if options.pages is None:
        return document.elements, document.incomplete
    if document.unit is None:
        return None, NO_PAGES
    if elements := document.pages(*options.pages):
        return elements, document.incomplete
    last = max([element.page or 1 for element in document.elements], default=1)
    none = NO_SUCH_PAGE.format(unit=document.unit, first=options.pages[0], last=last)
    return None, document.incomplete or none


def _text(elements: tuple[Element, ...], options: PrintOptions) -> str:
    end = None if options.limit is None else options.offset + options.limit
    return text_of(elements)[options.offset : end]


class ProgressBars:
    """Progress bars on a terminal: files, and pages of the files being parsed."""

    def __init__(self, count: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        console = Console(stderr=True)
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._files = self._progress.add_task("files", total=count, visible=count > 1)

    @contextmanager
    def display(self) -> Generator[None]:
        """Show the bars in this context."""
        with self._progress:
            yield

    @contextmanager
    def file(self, name: str) -> Generator[ShowProgress]:
        """Show a bar for a file in this context."""
        bar = self._progress.add_task(name[-NAME_CHARACTERS:], total=None)
        try:
            yield lambda extent: self._progress.update(bar, completed=extent.pages, total=extent.page_count)
        finally:
            self._progress.remove_task(bar)
            self._progress.advance(self._files)
