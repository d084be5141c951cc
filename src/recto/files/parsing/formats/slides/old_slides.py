"""Tables on the slides of a ppt, by where their cells stand. (xberg has the words of a cell, and not where it is.)"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from recto.files.parsing.formats.ole import Container
from recto.files.parsing.formats.pdf.columns import Rows

_HEAD = 8
_CONTAINER = 0xF
# Kinds of records: a slide, a group of shapes, a shape, its place in the group, its words.
_SLIDE, _GROUP, _SHAPE = 0x03EE, 0xF003, 0xF004
_PLACE, _WIDE_WORDS, _WORDS = 0xF00F, 0x0FA0, 0x0FA8
_FEWEST_ROWS, _FEWEST_COLUMNS = 2, 2
_MOST_CELLS = 10_000
# Deeper than programs nest them.
_DEEPEST = 20


def slide_tables(data: bytes) -> Iterator[Rows]:
    """The tables of all slides, in their order."""
    stream = Container(data).stream("PowerPoint Document")
    for kind, slide in _records(stream):
        if kind == _SLIDE:
            yield from _tables(slide, 0)


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _HEAD <= len(data):
        _, kind, length = struct.unpack_from("<HHI", data, at)
        yield kind, data[at + _HEAD : at + _HEAD + length]
        at += _HEAD + length


def _tables(data: bytes, depth: int) -> Iterator[Rows]:
    """Groups of which every shape with words has a row and a column of its own."""
    for kind, inner in _nested(data):
        if kind == _GROUP and (rows := _rows(list(_cells(inner)))):
            yield rows
        elif depth < _DEEPEST:
            yield from _tables(inner, depth + 1)


def _nested(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _HEAD <= len(data):
        version, kind, length = struct.unpack_from("<HHI", data, at)
        if version & _CONTAINER == _CONTAINER:
            yield kind, data[at + _HEAD : at + _HEAD + length]
        at += _HEAD + length


def _cells(group: bytes) -> Iterator[tuple[int, int, str]]:
    """From the top, from the left, and the words of each shape of a group."""
    for kind, shape in _nested(group):
        place = next((one for inner, one in _records(shape) if inner == _PLACE), b"") if kind == _SHAPE else b""
        if len(place) == struct.calcsize("<4i"):
            left, top, _, _ = struct.unpack("<4i", place)
            yield top, left, "\n".join(words for _, box in _nested(shape) for words in _words(box))


def _words(box: bytes) -> Iterator[str]:
    for kind, text in _records(box):
        if kind in (_WIDE_WORDS, _WORDS):
            yield text.decode("utf-16-le" if kind == _WIDE_WORDS else "latin-1", "replace").replace("\r", "\n").strip()


def _rows(cells: list[tuple[int, int, str]]) -> Rows | None:
    tops, lefts = sorted({top for top, _, words in cells if words}), sorted({left for _, left, words in cells if words})
    is_grid = len(tops) >= _FEWEST_ROWS and len(lefts) >= _FEWEST_COLUMNS and len(tops) * len(lefts) <= _MOST_CELLS
    said = {(top, left): words for top, left, words in cells if words}
    # Shapes that only stand in a group leave most of the places of a grid empty.
    if not is_grid or 2 * len(said) <= len(tops) * len(lefts):
        return None
    return tuple([tuple([said.get((top, left), "") for left in lefts]) for top in tops])
