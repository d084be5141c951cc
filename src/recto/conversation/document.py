"""A document as its parser finds it: elements, the one text they make, and parts of that. Nothing is parsed here (D9).

The text is the elements' own, joined. A part of it is named by characters or by pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from recto.conversation.json import Json

# `page` says where a page, slide or sheet begins; `rows` goes on with the table before it, `text` with the text before.
ElementKind: TypeAlias = Literal["page", "heading", "paragraph", "item", "table", "rows", "code", "note", "text"]
Unit: TypeAlias = Literal["page", "slide", "sheet"]
KINDS: tuple[ElementKind, ...] = get_args(ElementKind)
# What follows another of its kind closely; all else is set apart by a blank line.
JOINTS: Mapping[tuple[ElementKind, ElementKind], str] = {
    ("text", "text"): "",
    ("item", "item"): "\n",
    ("table", "rows"): "\n",
    ("rows", "rows"): "\n",
}
BLANK_LINE = "\n\n"


@dataclass(frozen=True, kw_only=True)
class Element:
    """A piece of a document. `text` is what the model gets of it, in Markdown; of a plain text the text itself.

    `page` is the page, slide or sheet it stands on, counted from 1; `level` that of a heading or an item; `rows` are
    the cells of a table.
    """

    kind: ElementKind
    text: str
    page: int | None = None
    level: int | None = None
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Extent:
    """How much of a document is read so far. `pages` of `page_count` are; without a unit it has none that count."""

    characters: int = 0
    elements: int = 0
    unit: Unit | None = None
    pages: int = 0
    page_count: int | None = None
    is_whole: bool = False


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """A part of a document's text from the character `start` on, and how far the document is read by now.

    `first_page` and `last_page` are where it begins and ends. Of pages, `length` is how many characters all of them
    have; None while that is not known.
    """

    text: str
    start: int
    extent: Extent
    first_page: int | None = None
    last_page: int | None = None
    length: int | None = None


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Some elements of a document or of its pages, and how far it is read by now.

    `length` is how many there are to choose from; None while that is not known.
    """

    elements: Sequence[Element]
    extent: Extent
    length: int | None = None


def joint(before: ElementKind | None, after: ElementKind) -> str:
    """What stands between the texts of two elements; nothing before the first."""
    return "" if before is None else JOINTS.get((before, after), BLANK_LINE)


def text_of(elements: Sequence[Element], before: ElementKind | None = None) -> str:
    """The text that elements make, where `before` is the kind of the one they follow."""
    kinds: list[ElementKind | None] = [before, *[element.kind for element in elements]]
    return "".join(joint(kind, element.kind) + element.text for kind, element in zip(kinds, elements, strict=False))


def element_row(element: Element) -> dict[str, Json]:
    """An element as data. What it does not have is left out."""
    row: dict[str, Json] = {"kind": element.kind, "text": element.text}
    if element.page is not None:
        row["page"] = element.page
    if element.level is not None:
        row["level"] = element.level
    if element.rows:
        row["rows"] = [list(cells) for cells in element.rows]
    return row


def element_from(row: Mapping[str, Json]) -> Element:
    """The element that `element_row` made data of. Raises KeyError or ValueError for data that is none."""
    kind: ElementKind | None = next((known for known in KINDS if known == row["kind"]), None)
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
