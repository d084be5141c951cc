"""The protocol between the server and a parser process. Each message is a length and a JSON object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import TypeAlias, cast, get_args

import orjson

from recto.config.file_settings import MEBIBYTE, ParseLimits
from recto.conversation.document import Element, Unit, element_from, element_row
from recto.conversation.json import Json, dump
from recto.errors import FileRefused, WireError
from recto.files.decode import UNREADABLE
from recto.files.parsing.ports import DocumentEnd, DocumentStart, Failed, FoundElements, Frame, Task

LENGTH_BYTES = 4
# Target size of a frame in characters, and its limit in bytes. A character may take six bytes.
PIECE_CHARACTERS = 2**17
FRAME_BYTES = 2**20
# Size added to each element for its field names.
OVERHEAD = 64
REASON_CHARACTERS = 2_000
CODE_CHARACTERS = 40
# Failure code of a process that runs out of memory. It ends after sending the code.
MEMORY_CODE = "memory"
LARGEST_NUMBER = 2**53
UNITS: tuple[Unit, ...] = get_args(Unit)
# `where` of a WireError.
CHILD = "parser"

FrameRow: TypeAlias = dict[str, Json]


@dataclass(frozen=True, kw_only=True)
class Ready:
    """The process is ready for an order."""


@dataclass(frozen=True, kw_only=True)
class ParseOrder:
    """A task, and the number of bytes that follow it."""

    task: Task
    size: int


def seconds_for(task: Task, *, scans: bool = True) -> float:
    """Return the time limit of a task.

    OCR has an additional limit; when it is used up, parsing continues without OCR.
    """
    return task.limits.seconds + (task.limits.ocr_seconds if task.ocr and scans else 0)


# Both directions


def framed(row: FrameRow) -> bytes:
    """Encode a message with its length."""
    body = dump(row)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def frame_length(head: bytes) -> int:
    """Return the length of a frame from its head. Raise WireError if it is over the limit."""
    length = int.from_bytes(head, "big")
    if length > FRAME_BYTES:
        raise WireError(where=CHILD, problem=f"a frame of {length:,} bytes; at most {FRAME_BYTES:,} are taken")
    return length


# To the process


def order_row(order: ParseOrder) -> FrameRow:
    """Encode an order for the process."""
    return cast("FrameRow", asdict(order))


def order_from(body: bytes) -> ParseOrder:
    """Parse an order. It comes from the server, so it is not checked."""
    row = cast("dict[str, dict[str, str]]", orjson.loads(body))
    limits = ParseLimits(**cast("dict[str, int]", row["task"]["limits"]))
    task = Task(format=row["task"]["format"], name=row["task"]["name"], limits=limits, ocr=row["task"]["ocr"])
    return ParseOrder(task=task, size=cast("int", row["size"]))


# From the process: encode


def frame_row(frame: Frame | Ready) -> FrameRow:
    """Encode a frame of the process."""
    match frame:
        case FoundElements():
            elements: list[Json] = [cast("Json", element_row(element)) for element in frame.elements]
            return {"frame": "found", "elements": elements, "pages": frame.pages, "scans": frame.scans}
        case DocumentEnd():
            return {"frame": "ended"}
        case DocumentStart():
            return {"frame": "opened", **cast("FrameRow", asdict(frame))}
        case Failed() | Ready():
            return {"frame": type(frame).__name__.lower(), **cast("FrameRow", asdict(frame))}


def pieces_of(batch: FoundElements, pages_before: int) -> Iterator[FoundElements]:
    """Split a batch into frames of limited size. Only the last frame has the `pages` and `scans` of the batch."""
    size, piece = 0, list[Element]()
    for element in [part for whole in batch.elements for part in _parts(whole)]:
        if piece and size + _size(element) > PIECE_CHARACTERS:
            yield FoundElements(elements=tuple(piece), pages=pages_before)
            size, piece = 0, []
        size += _size(element)
        piece.append(element)
    yield FoundElements(elements=tuple(piece), pages=batch.pages, scans=batch.scans)


def _size(element: Element) -> int:
    return OVERHEAD + len(element.text) + sum(map(_row_size, element.rows))


def _row_size(cells: tuple[str, ...]) -> int:
    return sum(len(cell) + 3 for cell in cells) + 3


def _parts(element: Element) -> Iterator[Element]:
    """Split an element that is too large for a frame.

    If the lines of a table do not match its rows, the parts have text but no rows.
    """
    if _size(element) <= PIECE_CHARACTERS:
        yield element
        return
    lines = element.text.split("\n")
    under_head = len(lines) - len(element.rows)
    if element.rows and under_head in {0, 1}:
        # The line below the head has no cells: it is Markdown's separator.
        cells = [element.rows[0], *[()] * under_head, *element.rows[1:]]
        sizes = [len(line) + _row_size(row) for line, row in zip(lines, cells, strict=True)]
        if max(sizes) + OVERHEAD <= PIECE_CHARACTERS:
            yield from _table_parts(element, sizes, under_head)
            return
    for start in range(0, len(element.text), PIECE_CHARACTERS - OVERHEAD):
        yield replace(element, text=element.text[start : start + PIECE_CHARACTERS - OVERHEAD], rows=())


def _table_parts(element: Element, sizes: Sequence[int], under_head: int) -> Iterator[Element]:
    """Split a table between lines. The parts after the first have the kind `rows`."""
    lines = element.text.split("\n")
    starts, room = [0], PIECE_CHARACTERS - OVERHEAD
    for number, size in enumerate(sizes):
        if size > room:
            starts.append(number)
            room = PIECE_CHARACTERS - OVERHEAD
        room -= size
    for start, end in pairwise([*starts, len(lines)]):
        rows = element.rows[start - under_head if start > 1 else start : end - under_head if end > 1 else end]
        kind = element.kind if start == 0 else "rows"
        yield replace(element, kind=kind, text="\n".join(lines[start:end]), rows=rows)


# From the process: decode


def frame_from(body: bytes) -> Frame | Ready:
    """Parse a frame. Raise WireError if it is invalid."""
    try:
        row = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise WireError(where=CHILD, problem="a frame that is no JSON") from error
    if not isinstance(row, dict):
        raise WireError(where=CHILD, problem="a frame that is no object")
    row = cast("FrameRow", row)
    try:
        match row["frame"]:
            case "found":
                elements = [_element(cast("FrameRow", element)) for element in cast("list[Json]", row["elements"])]
                value = row.get("scans", False)
                if not isinstance(value, bool):
                    raise TypeError("neither true nor false")
                return FoundElements(elements=tuple(elements), pages=_number(row["pages"]), scans=value)
            case "opened":
                unit = UNITS[UNITS.index(cast("Unit", row["unit"]))] if row["unit"] is not None else None
                return DocumentStart(
                    unit=unit, page_count=None if row["page_count"] is None else _number(row["page_count"])
                )
            case "failed":
                code, reason = _text(row["code"]), _text(row["reason"])
                if not code.isidentifier() or len(code) > CODE_CHARACTERS:
                    raise ValueError("code")
                return Failed(code=code, reason=reason[:REASON_CHARACTERS])
            case "ended":
                return DocumentEnd()
            case "ready":
                return Ready()
            case _:
                raise ValueError("frame")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WireError(where=CHILD, problem=f"a frame with a field that is wrong: {error}") from error


def _element(row: FrameRow) -> Element:
    element = element_from(row)
    for number in (element.page, element.level):
        if number is not None:
            _number(number)
    rows = tuple([tuple([_text(cell) for cell in cells]) for cells in element.rows])
    return replace(element, text=_text(row["text"]), rows=rows)


def _number(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LARGEST_NUMBER:
        raise ValueError("not a count")
    return value


def _text(value: Json) -> str:
    """Return a text without NUL, which databases reject."""
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value.replace("\0", UNREADABLE)


# Most bytes per character. JSON may take six, and tables contain their text twice.
BYTES_PER_CHARACTER = 16
SPARE_BYTES = 16 * MEBIBYTE


class FrameFilter:
    """A filter that checks the order of frames and the limits of a task.

    `is_child_ready` is True once the process can take the next task.
    """

    def __init__(self, task: Task) -> None:
        self.is_ended = False
        self.is_child_ready = False
        self._task, self._limits = task, task.limits
        self._reads_scans = False
        self._document: DocumentStart | None = None
        self._characters = 0
        self._pages = 0
        self._bytes = 0

    @property
    def seconds(self) -> float:
        """The time limit. It includes time for OCR once the process has announced scans."""
        return seconds_for(self._task, scans=self._reads_scans)

    def accept(self, frame: Frame | Ready, size: int) -> tuple[Frame, ...]:
        """Return the frames to pass on. Raise FileRefused for an unreadable document, WireError for a wrong order."""
        # Stop a process that sends empty frames forever.
        self._bytes += size
        if self._bytes > self._limits.characters * BYTES_PER_CHARACTER + SPARE_BYTES:
            raise WireError(where=CHILD, problem="more frames than any document has")
        match frame:
            case Failed():
                self.is_ended, self.is_child_ready = True, frame.code != MEMORY_CODE
                raise FileRefused(frame.reason, code=frame.code)
            case DocumentStart() if self._document is None:
                self._document = frame
                return (frame,)
            case FoundElements() if self._document is not None:
                return self._accept_elements(frame)
            case DocumentEnd() if self._document is not None:
                self.is_ended = self.is_child_ready = True
                return (frame,)
            case _:
                raise WireError(where=CHILD, problem=f"{type(frame).__name__} where it may not come")

    def _accept_elements(self, batch: FoundElements) -> tuple[Frame, ...]:
        if batch.pages < self._pages:
            raise WireError(where=CHILD, problem=f"{batch.pages} pages after {self._pages}")
        if batch.scans and (self._reads_scans or not self._task.ocr):
            raise WireError(where=CHILD, problem="scans that it was not asked to read, or said before")
        self._reads_scans = self._reads_scans or batch.scans
        if not batch.elements and batch.pages == self._pages:
            return ()
        most = self._limits.pages
        elements = tuple([element for element in batch.elements if element.page is None or element.page <= most])
        elements = self._within_characters(elements)
        is_all = elements == batch.elements
        # After a cut, count only the pages that start before it.
        started = max([self._pages, *[element.page for element in elements if element.page is not None]])
        pages = min(batch.pages, most) if is_all else started
        self._pages = batch.pages
        let_through = FoundElements(elements=elements, pages=pages)
        if is_all and pages == batch.pages:
            return (let_through,)
        self.is_ended = True
        text = f"[only the first {self._limits.characters:,} characters were read]"
        if self._characters <= self._limits.characters:
            unit = (self._document.unit if self._document else None) or "page"
            count = self._document.page_count if self._document else None
            of_all = f" of {count:,}" if count is not None and count > most else ""
            text = f"[only the first {most:,} {unit}s{of_all} were read]"
        note = FoundElements(elements=(Element(kind="note", text=text),), pages=pages)
        return (*([let_through] if elements else []), note, DocumentEnd())

    def _within_characters(self, elements: tuple[Element, ...]) -> tuple[Element, ...]:
        accepted: list[Element] = []
        for element in elements:
            room = self._limits.characters - self._characters
            self._characters += len(element.text)
            if len(element.text) > room:
                return (*accepted, *([replace(element, text=element.text[:room], rows=())] if room > 0 else []))
            accepted.append(element)
        return tuple(accepted)
