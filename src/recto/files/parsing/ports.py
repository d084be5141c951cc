"""Values that the parser of documents and its callers exchange, and the reasons why a document cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from recto.config.file_settings import ParseLimits
from recto.conversation.document import Element, Unit
from recto.conversation.file_formats import FORMATS

# Increase this whenever the same bytes give a different text. Texts of older versions are then parsed again (D3).
PARSER_VERSION = 4


@dataclass(frozen=True, kw_only=True)
class Task:
    """A document to parse. `format` is its usual extension; `ocr` lists the languages of scans for tesseract."""

    format: str
    name: str
    limits: ParseLimits = ParseLimits()
    ocr: str = ""


@dataclass(frozen=True, kw_only=True)
class DocumentStart:
    """The start of a document, with its number of pages, slides or sheets if known."""

    unit: Unit | None = None
    page_count: int | None = None


@dataclass(frozen=True, kw_only=True)
class FoundElements:
    """The next elements. `pages` is the number of complete pages. With `scans`, OCR follows."""

    elements: tuple[Element, ...] = ()
    pages: int = 0
    scans: bool = False


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A document that cannot be read at all, or not to its end. `reason` includes advice."""

    code: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class DocumentEnd:
    """The end of a complete document."""


# The order is `DocumentStart`, any number of `FoundElements`, then `DocumentEnd` or `Failed`. An unreadable document
# has only `Failed`.
Frame: TypeAlias = DocumentStart | FoundElements | Failed | DocumentEnd

_READ = [row.ending for row in FORMATS if row.parser not in (None, "text")]

ENCRYPTED = Failed(
    code="encrypted",
    reason="it is protected by a password, and so cannot be read. Ask the user for a copy without one.",
)
DAMAGED = Failed(
    code="damaged",
    reason="it is damaged, or is not what its name says. Ask the user to open it, save it anew and send that.",
)
NOT_TEXT = Failed(
    code="not_text",
    reason=(
        f"it has no text that can be read. What can be: {', '.join(_READ)}, and texts of every kind. "
        "Ask the user for one of these."
    ),
)


class UnreadableDocument(Exception):
    """The document cannot be read at all, or not to its end."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.reason)
        self.failed = failed
