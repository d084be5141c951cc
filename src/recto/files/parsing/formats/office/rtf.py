"""An rtf prepared for xberg, which loses notes, rare characters and the ends of wide cells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

# xberg drops footnotes, but not as part of their paragraph.
_NOTE = re.compile(rb"\{\\(?:\*\\)?footnote(?![a-z])")
# The first half of a surrogate pair, its replacement text, and the second half.
_FIRST = (
    rb"(5529[6-9]|55[3-9]\d\d|56[0-2]\d\d|563[01]\d|-102[0-3]\d|-10240|-10[01]\d\d|-9[3-9]\d\d|-92[2-9]\d|-921[7-9])"
)
_HALVES = re.compile(rb"\\u" + _FIRST + rb" ?((?:\\uc\d ?|\\'[0-9a-fA-F]{2}|\?)*)\\u(-?\d{4,5})(?!\d)")
_SECOND = 0xDC00
_STANDING_IN = re.compile(rb"\\uc\d ?")
_TOKEN = re.compile(rb"\\(?:(trowd|row|cell|par|nestcell)(?![a-z])|cellx(-?\d{1,6}))")
# In twips: closer edges are one.
_SAME = 30
_MOST_COLUMNS = 100


@dataclass(frozen=True, kw_only=True)
class _Row:
    """A row of a table: the ends of its cells in the text and on the page."""

    ends: tuple[int, ...]
    edges: tuple[int, ...]


def ready(data: bytes) -> bytes:
    return _add_empty_cells(_HALVES.sub(_join_halves, _NOTE.sub(b"{ ", data)))


def _join_halves(match: re.Match[bytes]) -> bytes:
    first, second = int(match[1]) % 0x10000, int(match[3]) % 0x10000
    if second >> 10 != _SECOND >> 10:
        return match[0]
    # The length of replacement texts changes from here on.
    prefix = b"".join(_STANDING_IN.findall(match[2]))
    return prefix + b"\\u%d" % (0x10000 + ((first & 0x3FF) << 10) + (second & 0x3FF))


def _add_empty_cells(data: bytes) -> bytes:
    """Add empty cells after a cell that spans several columns, so that the next one is in its column."""
    out, done = list[bytes](), 0
    for end, count in (one for table in _tables(data) for one in _fillers(table)):
        out += [data[done:end], b"\\cell" * count]
        done = end
    return b"".join(out) + data[done:]


def _tables(data: bytes) -> Iterator[Sequence[_Row]]:
    rows, ends, edges = list[_Row](), list[int](), list[int]()
    is_within = is_nested = False
    for match in _TOKEN.finditer(data):
        match match[1]:
            case None:
                edges.append(int(match[2]))
            case b"trowd":
                edges, is_within = [], True
            case b"cell":
                ends.append(match.end())
            case b"nestcell":
                is_nested = True
            case b"row":
                # Nested tables are not distinguished from their cells.
                rows += [] if is_nested else [_Row(ends=tuple(ends), edges=tuple(edges))]
                ends, is_within, is_nested = [], False, False
            case _ if not is_within:
                yield rows
                rows = []
            case _:
                pass
    yield rows


def _fillers(rows: Sequence[_Row]) -> Iterator[tuple[int, int]]:
    """Yield the ends of cells, and how many empty cells are missing after each."""
    edges = sorted({edge for row in rows for edge in row.edges})
    columns = [edge for before, edge in pairwise([-(10**9), *edges]) if edge - before > _SAME]
    for row in rows if len(columns) <= _MOST_COLUMNS else ():
        places = [sum(column <= edge for column in columns) for edge in row.edges]
        if len(row.ends) == len(places):
            spans = (
                (end, place - before - 1) for end, (before, place) in zip(row.ends, pairwise([0, *places]), strict=True)
            )
            yield from ((end, count) for end, count in spans if count > 0)
