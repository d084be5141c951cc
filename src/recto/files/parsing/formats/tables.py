"""Tables in Markdown of rows of cells, a piece at a time. Refuses to guess what a cell means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from recto.conversation.document import Element

# A frame has a row twice: as cells and as a line, where each line end within a cell takes four characters.
ROW_CHARACTERS = 32_768
# Rows of very many long cells are torn less than this would take.
SHORTEST_PIECE = 20
PIECE_ROWS = 200
# Wide rows make pieces of fewer of them.
PIECE_CELLS = 20_000
_SPECIAL = re.compile(r"[|\r\n\t]")
_BREAKS = re.compile(r"\s*[\r\n]+\s*")
TableRow = tuple[str, ...]


def table_elements(rows: Iterable[Sequence[str]], page: int | None = None) -> Iterator[Element]:
    """A table, then as many pieces of rows as it takes. Its head is the first row; short rows are filled up."""
    pending = split_long_rows(rows)
    first = [tuple(row) for row in islice(pending, PIECE_ROWS)]
    if not first:
        return
    width = max(map(len, first))
    padded = [_pad(row, width) for row in first]
    yield Element(kind="table", text=table_text(padded), page=page, rows=tuple(padded))
    for piece in _pieces(pending, width):
        yield Element(kind="rows", text="\n".join(map(line_of, piece)), page=page, rows=tuple(piece))


def table_text(rows: Sequence[TableRow]) -> str:
    """A whole table. Its head is its first row."""
    head, *others = rows
    return "\n".join(chain((line_of(head), "| " + " | ".join(["---"] * len(head)) + " |"), map(line_of, others)))


def line_of(row: TableRow) -> str:
    """A row as a line."""
    return "| " + " | ".join([_escaped(cell) if _SPECIAL.search(cell) else cell for cell in row]) + " |"


def trim_rows(rows: Iterable[Sequence[str]]) -> list[TableRow]:
    """The rows without what is empty below and to the right of everything."""
    stripped = [tuple([cell.strip() for cell in row]) for row in rows]
    while stripped and not any(stripped[-1]):
        stripped.pop()
    width = max((place + 1 for row in stripped for place, cell in enumerate(row) if cell), default=0)
    return [row[:width] for row in stripped]


def split_long_rows(rows: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """The rows; what is too long for one goes on in the next, in the same columns."""
    for row in rows:
        if sum(map(len, row)) <= ROW_CHARACTERS:
            yield row
        else:
            yield from _split_row(row)


def _split_row(row: Sequence[str]) -> Iterator[list[str]]:
    room = max(SHORTEST_PIECE, ROW_CHARACTERS // sum(map(bool, row)))
    for start in range(0, max(map(len, row)), room):
        yield [cell[start : start + room] for cell in row]


def _pieces(rows: Iterator[Sequence[str]], width: int) -> Iterator[list[TableRow]]:
    count = max(1, min(PIECE_ROWS, PIECE_CELLS // max(1, width)))
    while piece := [_pad(tuple(row), width) for row in islice(rows, count)]:
        yield piece


def _pad(row: TableRow, width: int) -> TableRow:
    return row if len(row) >= width else row + ("",) * (width - len(row))


def _escaped(cell: str) -> str:
    return _BREAKS.sub("<br>", cell.strip()).replace("\t", " ").replace("|", "\\|")
