"""Values that the parser of documents and its callers exchange, and the reasons why a document cannot be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from recto.config.file_settings import ParseLimits
from recto.conversation.document import Element, Unit
from recto.conversation.file_formats import FORMATS

# Raised whenever the same bytes would give another text: those of an older version are not used any more (D3).
PARSER_VERSION = 4


@dataclass(frozen=True, kw_only=True)
class Task:
    """A document to be read. `format` is how its bytes are, by its usual ending; the name is for words only.

    `ocr` are the languages that scans are read in, as tesseract names them; empty: they are not.
    """

    format: str
    name: str
    limits: ParseLimits = ParseLimits()
    ocr: str = ""


@dataclass(frozen=True, kw_only=True)
class DocumentStart:
    """The document is one: how many pages, slides or sheets it has, where that is known."""

    unit: Unit | None = None
    page_count: int | None = None


@dataclass(frozen=True, kw_only=True)
class FoundElements:
    """More of it, in order. `pages` is how many are done with this. With `scans`, what comes next is read by OCR."""

    elements: tuple[Element, ...] = ()
    pages: int = 0
    scans: bool = False


@dataclass(frozen=True, kw_only=True)
class Failed:
    """It cannot be read, or not on from here: a code, and why in words that end with what to do about it."""

    code: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class DocumentEnd:
    """It is read to its end."""


# `Opened` first, then any number of `FoundElements`, then `DocumentEnd` or `Failed`. Without `Opened` only the last.
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
    """A document that cannot be read, or not on from here."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.reason)
        self.failed = failed
