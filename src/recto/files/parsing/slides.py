"""Presentations: each slide with its title, what stands on it, and its speaker notes right after it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import unescape
from itertools import groupby

from recto.files.parsing.archive import member
from recto.files.parsing.deck import PICTURE, Deck, open_deck
from recto.files.parsing.extraction import extract
from recto.files.parsing.nodes import SPEAKER_NOTES, content_of, elements_of, note, words_of
from recto.files.parsing.ports import Found, Frame, Opened
from recto.files.parsing.refusal import DAMAGED, Unreadable
from recto.page.document import Element

TITLE_LEVEL = 2
_PAGE = re.compile(r"<draw:page\s.*?</draw:page>", re.DOTALL)
_TITLE = re.compile(r'<draw:frame\s[^>]*presentation:class="title"[^>]*>(.*?)</draw:frame>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


def slides(data: bytes, form: str) -> Iterator[Frame]:
    """The slides in their order. Raises Unreadable."""
    if form == "pptx":
        deck = open_deck(data)
        if deck is None:
            raise Unreadable(DAMAGED)
        yield from _told(len(deck.slides), _of_deck(deck))
        return
    found = list(_of_nodes(data, form))
    yield from _told(len(found), (("", elements) for elements in found))


def _told(count: int, slides: Iterator[tuple[str, Sequence[Element]]]) -> Iterator[Frame]:
    """Slides, each with what is to be said beside its number."""
    yield Opened(unit="slide", page_count=count)
    for number, (beside, elements) in enumerate(slides, 1):
        mark = Element(kind="page", text=f"[slide {number}{beside}]", page=number)
        yield Found(elements=(mark, *(replace(element, page=number) for element in elements)), pages=number)


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


def _of_nodes(data: bytes, form: str) -> Iterator[Sequence[Element]]:
    """Slides as xberg finds them. What comes before the first belongs to it."""
    document = extract(data, form).document
    titles = slide_titles(data) if form == "odp" else []
    number = 0
    marked: list[tuple[int, Element]] = []
    for node in document.nodes if document else []:
        content = content_of(node)
        if content["node_type"] == "slide":
            number += 1
            title = "" if form == "odp" else words_of(content, "title")
            marked += [(number, element) for element in heading(title)]
        elif content["node_type"] == "raw_block" or (form == "ppt" and content["node_type"] == "footnote"):
            text = words_of(content, "content") or words_of(content)
            marked += [(number, element) for element in note(SPEAKER_NOTES, text, None)]
        else:
            marked += [(number, element) for element in elements_of([node])]
    by_slide = {
        key: [element for _, element in group] for key, group in groupby(marked, key=lambda one: max(1, one[0]))
    }
    for place in range(1, number + 1):
        title = titles[place - 1] if place <= len(titles) else ""
        yield list(_titled(by_slide.get(place, []), title))


def _titled(elements: Sequence[Element], title: str) -> Iterator[Element]:
    """The elements with the paragraph that is the title as a heading."""
    place = next((place for place, one in enumerate(elements) if title and one.text == title), None)
    yield from heading(title)
    yield from (one for other, one in enumerate(elements) if other != place)


def slide_titles(data: bytes) -> list[str]:
    """What is the title on each slide of an odp; nothing where none is."""
    return [_title_on(page[0]) for page in _PAGE.finditer(member(data, "content.xml"))]


def _title_on(page: str) -> str:
    frame = _TITLE.search(page)
    return " ".join(unescape(_TAG.sub("", frame[1])).split()) if frame else ""


def heading(title: str) -> Iterator[Element]:
    """The title of a slide, if it has one."""
    if title := " ".join(title.split()):
        yield Element(kind="heading", text=f"{'#' * TITLE_LEVEL} {title}", level=TITLE_LEVEL)
