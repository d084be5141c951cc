"""Text as it is written, in pieces that make exactly the whole again. Nothing in it is understood."""

from __future__ import annotations

from collections.abc import Iterator

from recto.page.document import Element

PIECE_CHARACTERS = 32_768


def pieces(text: str) -> Iterator[Element]:
    """The text in elements that end at line ends, as far as lines are not too long for that."""
    start = 0
    while start < len(text):
        end = _end_of_piece(text, start)
        yield Element(kind="text", text=text[start:end])
        start = end


def _end_of_piece(text: str, start: int) -> int:
    end = start + PIECE_CHARACTERS
    if end >= len(text):
        return len(text)
    line_end = text.rfind("\n", start, end)
    return line_end + 1 if line_end >= start else end
