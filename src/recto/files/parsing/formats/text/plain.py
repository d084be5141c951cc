"""Text as it is written, in pieces that make exactly the whole again. Nothing in it is understood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from recto.conversation.document import Element

PIECE_CHARACTERS = 32_768


def pieces(texts: Iterable[str]) -> Iterator[Element]:
    """The text that these make, in elements that end at line ends, as far as lines are not too long for that."""
    rest = ""
    for text in texts:
        rest, start = rest + text, 0
        while len(rest) - start > PIECE_CHARACTERS:
            end = _end_of_piece(rest, start)
            yield Element(kind="text", text=rest[start:end])
            start = end
        rest = rest[start:]
    if rest:
        yield Element(kind="text", text=rest)


def _end_of_piece(text: str, start: int) -> int:
    end = start + PIECE_CHARACTERS
    line_end = text.rfind("\n", start, end)
    return line_end + 1 if line_end >= start else end
