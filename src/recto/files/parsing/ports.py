"""What is asked of a parser, what it answers as it goes, and the limits it is held to. Values; nothing acts here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from recto.config.file_settings import ParseLimits
from recto.conversation.document import Element, Unit

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
class Opened:
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
Frame: TypeAlias = Opened | FoundElements | Failed | DocumentEnd
