"""Parsed documents (D9): elements, their joined text, and excerpts by characters or pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from recto.conversation.json import Json

# `page` starts a page, slide or sheet. `rows` continues the table before it, `text` the text before it.
ElementKind: TypeAlias = Literal["page", "heading", "paragraph", "item", "table", "rows", "code", "note", "text"]
Unit: TypeAlias = Literal["page", "slide", "sheet"]
KINDS: tuple[ElementKind, ...] = get_args(ElementKind)
# Separators between elements. All other pairs are separated by a blank line.
JOINTS: Mapping[tuple[ElementKind, ElementKind], str] = {
    ("text", "text"): "",
    ("item", "item"): "\n",
    ("table", "rows"): "\n",
    ("rows", "rows"): "\n",
}
BLANK_LINE = "\n\n"


@dataclass(frozen=True, kw_only=True)
class Element:
    """An element of a document. `text` is its Markdown for the model, or the plain text itself.

    `page` is the page, slide or sheet of the element, counted from 1. Headings and items have a `level`, tables have
    `rows`.
    """

    kind: ElementKind
    text: str
    page: int | None = None
    level: int | None = None
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Extent:
    """The amount of a document parsed so far. Without a `unit` the document has no countable pages."""

    characters: int = 0
    elements: int = 0
    unit: Unit | None = None
    pages: int = 0
    page_count: int | None = None
    is_whole: bool = False


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """A part of a document's text from the character `start` on, and the parsed extent of the document.

    `length` is the number of characters of the requested pages, or None while it is unknown.
    """

    text: str
    start: int
    extent: Extent
    first_page: int | None = None
    last_page: int | None = None
    length: int | None = None


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Some elements of a document or of its pages, and the parsed extent of the document.

    `length` is the number of elements available, or None while it is unknown.
    """

    elements: Sequence[Element]
    extent: Extent
    length: int | None = None


def joint(before: ElementKind | None, after: ElementKind) -> str:
    """Return the separator between two elements, empty before the first."""
    return "" if before is None else JOINTS.get((before, after), BLANK_LINE)


def text_of(elements: Sequence[Element], before: ElementKind | None = None) -> str:
    """Return the joined text of elements. `before` is the kind of the preceding element."""
    kinds: list[ElementKind | None] = [before, *[element.kind for element in elements]]
    return "".join(joint(kind, element.kind) + element.text for kind, element in zip(kinds, elements, strict=False))


def element_row(element: Element) -> dict[str, Json]:
    """Return an element as a JSON object without its empty fields."""
    row: dict[str, Json] = {"kind": element.kind, "text": element.text}
    if element.page is not None:
        row["page"] = element.page
    if element.level is not None:
        row["level"] = element.level
    if element.rows:
        row["rows"] = [list(cells) for cells in element.rows]
    return row


def element_from(row: Mapping[str, Json]) -> Element:
    """Read an element from its JSON object. Raise KeyError or ValueError if it is invalid."""
    kind: ElementKind | None = next((kind for kind in KINDS if kind == row["kind"]), None)
    if kind is None:
        raise ValueError(f"no kind of element: {row['kind']!r}")
    rows = cast("list[list[str]]", row.get("rows") or [])
    return Element(
        kind=kind,
        text=str(row["text"]),
        page=cast("int | None", row.get("page")),
        level=cast("int | None", row.get("level")),
        rows=tuple([tuple(cells) for cells in rows]),
    )
