"""Parse documents in tests and check that their frames are a legal sequence."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from typing import Protocol, cast

from recto.config.file_settings import ParseLimits
from recto.conversation.document import Element, ElementKind, text_of
from recto.files.parsing.formats.parse import parse
from recto.files.parsing.ports import DocumentEnd, DocumentStart, Failed, FoundElements, Frame, Task
from tests.documents.content import HERE


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The frames of a document."""

    frames: tuple[Frame, ...]

    @property
    def elements(self) -> tuple[Element, ...]:
        return tuple(one for frame in self.frames if isinstance(frame, FoundElements) for one in frame.elements)

    @property
    def text(self) -> str:
        return text_of(self.elements)

    @property
    def start(self) -> DocumentStart:
        assert isinstance(self.frames[0], DocumentStart), self.frames[0]
        return self.frames[0]

    @property
    def failed(self) -> Failed:
        assert isinstance(self.frames[-1], Failed), self.frames[-1]
        return self.frames[-1]

    def texts(self, *kinds: ElementKind) -> list[str]:
        return [one.text for one in self.elements if one.kind in kinds]

    def cells(self) -> list[tuple[str, ...]]:
        return [row for one in self.elements for row in one.rows]


def read(data: bytes, form: str, *, ocr: str = "", limits: ParseLimits | None = None) -> Reading:
    task = Task(format=form, name=f"it.{form}", ocr=ocr, limits=limits or ParseLimits())
    reading = Reading(frames=tuple(parse(data, task)))
    assert_legal(reading.frames)
    return reading


def read_document(name: str, *, ocr: str = "") -> Reading:
    """Parse a document in tests/documents."""
    return read((HERE / name).read_bytes(), name.rpartition(".")[2], ocr=ocr)


def assert_legal(frames: Sequence[Frame]) -> None:
    """Check the order of frames: a start, elements, then an end or a failure. No text that a database rejects."""
    *before, last = frames
    assert isinstance(last, DocumentEnd | Failed)
    assert bool(before) or isinstance(last, Failed)
    assert all(isinstance(frame, DocumentStart) for frame in before[:1])
    assert all(isinstance(frame, FoundElements) for frame in before[1:])
    pages = [frame.pages for frame in before if isinstance(frame, FoundElements)]
    assert pages == sorted(pages)
    for frame in before:
        for element in frame.elements if isinstance(frame, FoundElements) else ():
            assert element.text or element.kind == "text"
            assert "\0" not in element.text.encode().decode()
            assert all("\0" not in cell.encode().decode() for row in element.rows for cell in row)


def squeezed(text: str) -> str:
    """Return the text without blanks: a PDF does not contain those between scripts."""
    return "".join(text.split())


class Joining(Protocol):
    """The part of pypdfium2 that joins documents."""

    def import_pages(self, pdf: object, /) -> None: ...
    def save(self, dest: object, /) -> None: ...


class Library(Protocol):
    class PdfDocument:
        def __init__(self, data: bytes, /) -> None: ...
        @staticmethod
        def new() -> Joining: ...


def join_pdfs(*documents: bytes) -> bytes:
    library = cast("Library", import_module("pypdfium2"))
    new = library.PdfDocument.new()
    for document in documents:
        new.import_pages(library.PdfDocument(document))
    out = BytesIO()
    new.save(out)
    return out.getvalue()
