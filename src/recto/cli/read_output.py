"""What `recto read` shows: documents as text or as data, in the order they were named, and how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rich.console import Console

from recto.page.canonical import Json, dump
from recto.page.document import Element, Extent, element_row, text_of
from recto.page.quote import SEPARATOR, ParsedDocument, join_documents

if TYPE_CHECKING:
    from recto.files.reading import ReadDocument

NO_PAGES = "it has no pages, slides or sheets; leave --pages out"
NO_SUCH_PAGE = "there is no {unit} {first} in what was read of it, which ends with {unit} {last}; name others"
# Names longer than this would leave no room for the bar.
NAME_CHARACTERS = 40

Tell: TypeAlias = Callable[[Extent], None]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which part of each document is printed, and how. Without a last page or a limit it goes to the end."""

    as_json: bool = False
    pages: tuple[int, int | None] | None = None
    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one file: a document, or the problem with it."""

    name: str
    document: ReadDocument | None = None
    problem: str = ""


class Printer:
    """Prints files one after another. One file is its text alone; of several, each stands in a block (D5)."""

    def __init__(self, wanted: Wanted, count: int) -> None:
        self.problems: list[str] = []
        self._wanted = wanted
        self._is_alone = count == 1
        self._is_first = True
        # On one terminal, the text would run into the bars.
        self._held: list[bytes] | None = [] if sys.stdout.isatty() and sys.stderr.isatty() else None

    def add(self, outcome: Outcome) -> None:
        """Print a file, and remember its problem."""
        elements, problem = _elements(outcome, self._wanted)
        if problem:
            self.problems.append(f"recto read: {outcome.name}: {problem}")
        if self._wanted.as_json:
            self._write(dump(_row(outcome, elements, problem)) + b"\n")
        elif not self._is_alone:
            content = problem if elements is None else _text(elements, self._wanted)
            block = join_documents([ParsedDocument(name=outcome.name, content=content)])
            self._write(("" if self._is_first else SEPARATOR).encode() + block.encode())
        elif elements is not None:
            text = _text(elements, self._wanted)
            self._write(text.encode() + (b"" if text.endswith("\n") else b"\n"))
        self._is_first = False

    def end(self) -> None:
        """Print what is left to be printed."""
        if not self._wanted.as_json and not self._is_alone:
            self._write(b"\n")
        sys.stdout.buffer.write(b"".join(self._held or ()))
        sys.stdout.buffer.flush()
        for problem in self.problems:
            sys.stderr.write(f"{problem}\n")

    def _write(self, data: bytes) -> None:
        if self._held is None:
            sys.stdout.buffer.write(data)
        else:
            self._held.append(data)


class Bars:
    """How far it is: files, and pages of those that are being read. Only a terminal is told."""

    def __init__(self, count: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        console = Console(stderr=True)
        self._progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._files = self._progress.add_task("files", total=count, visible=count > 1)

    @contextmanager
    def shown(self) -> Generator[None]:
        """Show them meanwhile."""
        with self._progress:
            yield

    @contextmanager
    def file(self, name: str) -> Generator[Tell]:
        """A bar of a file, while it is read."""
        bar = self._progress.add_task(name[-NAME_CHARACTERS:], total=None)
        try:
            yield lambda extent: self._progress.update(bar, completed=extent.pages, total=extent.page_count)
        finally:
            self._progress.remove_task(bar)
            self._progress.advance(self._files)


def _elements(outcome: Outcome, wanted: Wanted) -> tuple[tuple[Element, ...] | None, str]:
    """What is printed of a file, or nothing, and what is wrong with it, or nothing."""
    document = outcome.document
    if document is None:
        return None, outcome.problem
    if wanted.pages is None:
        return document.elements, document.incomplete
    if document.unit is None:
        return None, NO_PAGES
    if elements := document.pages(*wanted.pages):
        return elements, document.incomplete
    last = max([element.page or 1 for element in document.elements], default=1)
    none = NO_SUCH_PAGE.format(unit=document.unit, first=wanted.pages[0], last=last)
    return None, document.incomplete or none


def _text(elements: tuple[Element, ...], wanted: Wanted) -> str:
    end = None if wanted.limit is None else wanted.offset + wanted.limit
    return text_of(elements)[wanted.offset : end]


def _row(outcome: Outcome, elements: tuple[Element, ...] | None, problem: str) -> dict[str, Json]:
    row: dict[str, Json] = {"name": outcome.name}
    if outcome.document is not None and elements is not None:
        row["unit"], row["page_count"] = outcome.document.unit, outcome.document.page_count
        row["elements"] = [element_row(element) for element in elements]
    if problem:
        row["error"] = problem
    return row
