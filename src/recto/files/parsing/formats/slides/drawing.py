"""The slides of an odp and the pages of an odg, from their own XML. (xberg reads boxes only, and no other shapes.)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from recto.conversation.document import Element
from recto.files.parsing.formats.archive import Archive
from recto.files.parsing.formats.opendocument.odf import HREF, OFFICE, TABLE, TEXT, chart, table, words, written
from recto.files.parsing.formats.package import part
from recto.files.parsing.formats.xberg_nodes import SPEAKER_NOTES, note

_DRAW = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"
_SHOW = "{urn:oasis:names:tc:opendocument:xmlns:presentation:1.0}"
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
_GROUPS = (f"{_DRAW}g", f"{_DRAW}a")
# Boxes of every slide that say nothing of it.
_FURNITURE = ("page-number", "date-time", "header", "footer")
_TITLE = "title"
_TITLE_LEVEL = 2


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """The pages of a document in their order."""

    archive: Archive
    pages: Sequence[ElementTree.Element]

    def elements(self, page: ElementTree.Element) -> Iterator[Element]:
        """What stands on a page: its title first, what was said about it and its speaker's notes last."""
        shapes = list(_shapes(page))
        for shape in shapes:
            if _role(shape) == _TITLE and (text := " ".join(_all_words(shape).split())):
                yield Element(kind="heading", text=f"{'#' * _TITLE_LEVEL} {text}", level=_TITLE_LEVEL)
        for shape in shapes:
            if _role(shape) not in (_TITLE, *_FURNITURE):
                yield from self._shape(shape)
        for said in page.findall(f"{OFFICE}annotation"):
            yield from note("[comment] ", _all_words(said), None)
        notes = [_all_words(box) for box in page.findall(f"{_SHOW}notes/{_DRAW}frame") if _role(box) == "notes"]
        yield from note(SPEAKER_NOTES, "\n".join(notes), None)

    def _shape(self, shape: ElementTree.Element) -> Iterator[Element]:
        if shape.tag != f"{_DRAW}frame":
            yield from written(shape)
            return
        for one in shape:
            if one.tag == f"{_DRAW}text-box":
                yield from written(one)
            elif one.tag == f"{TABLE}table":
                yield from table(one)
            elif one.tag == f"{_DRAW}object":
                yield from chart(self.archive, one.get(HREF, ""))
        about = shape.find(f"{_SVG}desc") if shape.find(f"{_DRAW}image") is not None else None
        if about is not None and (text := " ".join("".join(about.itertext()).split())):
            yield Element(kind="paragraph", text=f"[image: {text}]")


def open_drawing(data: bytes) -> Drawing | None:
    """The pages in a zip, or None where there are none."""
    archive = Archive(data)
    root = part(archive, "content.xml")
    return None if root is None else Drawing(archive=archive, pages=list(root.iter(f"{_DRAW}page")))


def _shapes(page: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """The shapes on a page, in and out of groups."""
    waiting = list(reversed(page))
    while waiting:
        one = waiting.pop()
        if one.tag in _GROUPS:
            waiting += reversed(one)
        elif one.tag.startswith(_DRAW):
            yield one


def _role(shape: ElementTree.Element) -> str:
    """What a box is for, where the slide's layout says so."""
    return shape.get(f"{_SHOW}class", "")


def _all_words(box: ElementTree.Element) -> str:
    return "\n".join(words(one) for one in box.iter(f"{TEXT}p"))
