"""Presentations: each slide with its title, what stands on it, and its speaker notes right after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from recto.conversation.document import Element
from recto.files.parsing.formats.extraction import extract
from recto.files.parsing.formats.pdf.columns import with_tables
from recto.files.parsing.formats.slides.deck import PICTURE, Deck, open_deck
from recto.files.parsing.formats.slides.drawing import open_drawing
from recto.files.parsing.formats.slides.old_slides import slide_tables
from recto.files.parsing.formats.xberg_nodes import SPEAKER_NOTES, content_of, elements_of, note, words_of
from recto.files.parsing.ports import FoundElements, Frame, Opened, Unit
from recto.files.parsing.refusal import DAMAGED, UnreadableDocument

TITLE_LEVEL = 2


def slides(data: bytes, form: str) -> Iterator[Frame]:
    """The slides in their order, or the pages of a drawing. Raises Unreadable."""
    if form == "pptx":
        deck = open_deck(data)
        if deck is None:
            raise UnreadableDocument(DAMAGED)
        yield from _frames("slide", len(deck.slides), _of_deck(deck))
        return
    if form == "ppt":
        found = list(_of_nodes(data))
        yield from _frames("slide", len(found), (("", elements) for elements in found))
        return
    drawing = open_drawing(data)
    if drawing is None:
        raise UnreadableDocument(DAMAGED)
    unit = "page" if form == "odg" else "slide"
    yield from _frames(unit, len(drawing.pages), (("", list(drawing.elements(page))) for page in drawing.pages))


def _frames(unit: Unit, count: int, slides: Iterator[tuple[str, Sequence[Element]]]) -> Iterator[Frame]:
    """Slides, each with what is to be said beside its number."""
    yield Opened(unit=unit, page_count=count)
    for number, (beside, elements) in enumerate(slides, 1):
        mark = Element(kind="page", text=f"[{unit} {number}{beside}]", page=number)
        yield FoundElements(elements=(mark, *(replace(element, page=number) for element in elements)), pages=number)


def _of_deck(deck: Deck) -> Iterator[tuple[str, Sequence[Element]]]:
    for number, name in enumerate(deck.slides, 1):
        slide = deck.slide(name)
        elements = list(slide.elements())
        if slide.why_unread:
            elements.append(Element(kind="note", text=f"[slide {number} {slide.why_unread}]"))
        elif all(one.text.startswith(PICTURE) for one in elements) and slide.has_picture():
            elements.append(Element(kind="note", text=f"[slide {number} has no text: it is a picture]"))
        for words in slide.comments():
            elements += note("[comment] ", words, None)
        yield (" (hidden)" if slide.is_hidden() else ""), [*elements, *note(SPEAKER_NOTES, slide.notes(), None)]


def _of_nodes(data: bytes) -> Iterator[Sequence[Element]]:
    """Slides of a ppt as xberg finds them. What comes before the first belongs to it."""
    document = extract(data, "ppt").document
    number = 0
    marked: list[tuple[int, Element]] = []
    for node in document.nodes if document else []:
        content = content_of(node)
        if content["node_type"] == "slide":
            number += 1
            marked += [(number, element) for element in heading(words_of(content, "title"))]
        elif content["node_type"] in ("raw_block", "footnote"):
            text = words_of(content, "content") or words_of(content)
            marked += [(number, element) for element in note(SPEAKER_NOTES, text, None)]
        else:
            marked += [(number, element) for element in elements_of([node])]
    by_slide = {
        key: [element for _, element in group] for key, group in groupby(marked, key=lambda one: max(1, one[0]))
    }
    tables = list(slide_tables(data))
    for place in range(1, number + 1):
        elements = by_slide.get(place, [])
        texts = {one.text for one in elements}
        own = [rows for rows in tables if texts.issuperset(filter(None, rows[0]))]
        yield with_tables(elements, own, place)


def heading(title: str) -> Iterator[Element]:
    """The title of a slide, if it has one."""
    if title := " ".join(title.split()):
        yield Element(kind="heading", text=f"{'#' * TITLE_LEVEL} {title}", level=TITLE_LEVEL)
