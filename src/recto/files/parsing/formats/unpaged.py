"""Elements of a document without pages that count, as frames of a size. Nothing is parsed here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from recto.conversation.document import Element
from recto.files.parsing.ports import FoundElements, Frame, Opened

FRAME_ELEMENTS = 100


def unpaged_frames(elements: Iterable[Element]) -> Iterator[Frame]:
    """The elements, some to a frame. None of them stands on a page."""
    yield Opened()
    waiting: list[Element] = []
    for element in elements:
        waiting.append(replace(element, page=None))
        if len(waiting) == FRAME_ELEMENTS:
            yield FoundElements(elements=tuple(waiting))
            waiting = []
    if waiting:
        yield FoundElements(elements=tuple(waiting))
