"""Rows with very long cells, as several that fit a frame. Every character stays under its head; no column is moved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

# A frame has a row twice: as cells and as a line, where each line end within a cell takes four characters.
ROW_CHARACTERS = 32_768
# Rows of very many long cells are torn less than this would take.
SHORTEST_PIECE = 20


def fitted(rows: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """The rows; what is too long for one goes on in the next, in the same columns."""
    for row in rows:
        if sum(map(len, row)) <= ROW_CHARACTERS:
            yield row
        else:
            yield from _torn(row)


def _torn(row: Sequence[str]) -> Iterator[list[str]]:
    room = max(SHORTEST_PIECE, ROW_CHARACTERS // sum(map(bool, row)))
    for start in range(0, max(map(len, row)), room):
        yield [cell[start : start + room] for cell in row]
