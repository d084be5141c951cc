"""What of a child's frames is let through: in their order, within the limits of the task. Pure; it refuses the rest."""

from __future__ import annotations

from dataclasses import replace

from recto.config.file_settings import MEBIBYTE
from recto.conversation.document import Element
from recto.errors import FileRefused, WireError
from recto.files.parsing.pool.frames import CHILD, MEMORY_CODE, Ready, seconds_for
from recto.files.parsing.ports import DocumentEnd, Failed, FoundElements, Frame, Opened, Task

# Characters take up to six bytes each, and those of tables are there twice.
BYTES_PER_CHARACTER = 16
SPARE_BYTES = 16 * MEBIBYTE


class ParsedFrames:
    """The frames of one document so far. `is_ended` once no more are let through.

    `child_waits` for the next task once it has said all; not where it is cut off, or leaves for want of memory.
    """

    def __init__(self, task: Task) -> None:
        self.is_ended = False
        self.child_waits = False
        self._task, self._limits = task, task.limits
        self._reads_scans = False
        self._opened: Opened | None = None
        self._characters = 0
        self._pages = 0
        self._bytes = 0

    @property
    def seconds(self) -> float:
        """How long the child may work on it, by what it said so far."""
        return seconds_for(self._task, scans=self._reads_scans)

    def take(self, frame: Frame | Ready, size: int) -> tuple[Frame, ...]:
        """What to pass on of it. Raises FileRefused where the document cannot be read, WireError for what is no answer.

        `size` are its bytes: a child that goes on and on without saying anything is found out by them.
        """
        self._bytes += size
        if self._bytes > self._limits.characters * BYTES_PER_CHARACTER + SPARE_BYTES:
            raise WireError(where=CHILD, problem="more frames than any document has")
        match frame:
            case Failed():
                self.is_ended, self.child_waits = True, frame.code != MEMORY_CODE
                raise FileRefused(frame.reason, code=frame.code)
            case Opened() if self._opened is None:
                self._opened = frame
                return (frame,)
            case FoundElements() if self._opened is not None:
                return self._found(frame)
            case DocumentEnd() if self._opened is not None:
                self.is_ended = self.child_waits = True
                return (frame,)
            case _:
                raise WireError(where=CHILD, problem=f"{type(frame).__name__} where it may not come")

    def _found(self, found: FoundElements) -> tuple[Frame, ...]:
        if found.pages < self._pages:
            raise WireError(where=CHILD, problem=f"{found.pages} pages after {self._pages}")
        if found.scans and (self._reads_scans or not self._task.ocr):
            raise WireError(where=CHILD, problem="scans that it was not asked to read, or said before")
        self._reads_scans = self._reads_scans or found.scans
        if not found.elements and found.pages == self._pages:
            return ()
        kept = self._within_characters(self._within_pages(found.elements))
        is_all = kept == found.elements
        # Of pages that were cut off, those that begin in what is kept are read.
        pages = min(found.pages, self._limits.pages) if is_all else self._last_page(kept)
        self._pages = found.pages
        let_through = FoundElements(elements=kept, pages=pages)
        if is_all and pages == found.pages:
            return (let_through,)
        self.is_ended = True
        note = FoundElements(elements=(Element(kind="note", text=self._note()),), pages=pages)
        return (*([let_through] if kept else []), note, DocumentEnd())

    def _last_page(self, elements: tuple[Element, ...]) -> int:
        return max([self._pages, *[element.page for element in elements if element.page is not None]])

    def _within_pages(self, elements: tuple[Element, ...]) -> tuple[Element, ...]:
        most = self._limits.pages
        return tuple([element for element in elements if element.page is None or element.page <= most])

    def _within_characters(self, elements: tuple[Element, ...]) -> tuple[Element, ...]:
        kept: list[Element] = []
        for element in elements:
            room = self._limits.characters - self._characters
            self._characters += len(element.text)
            if len(element.text) > room:
                return (*kept, *([replace(element, text=element.text[:room], rows=())] if room > 0 else []))
            kept.append(element)
        return tuple(kept)

    def _note(self) -> str:
        if self._characters > self._limits.characters:
            return f"[only the first {self._limits.characters:,} characters were read]"
        unit = (self._opened.unit if self._opened else None) or "page"
        count = self._opened.page_count if self._opened else None
        of_all = f" of {count:,}" if count is not None and count > self._limits.pages else ""
        return f"[only the first {self._limits.pages:,} {unit}s{of_all} were read]"
