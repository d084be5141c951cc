"""Markdown tables of rows of cells, in pieces of limited size."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from recto.conversation.document import Element

# Longest row. A frame contains a row twice, as cells and as text, where a line end in a cell takes four characters.
ROW_CHARACTERS = 32_768
# Least length of the cells of a split row. Rows of very many cells may therefore exceed the limit.
SHORTEST_PIECE = 20
PIECE_ROWS = 200
# Most cells of a piece, so that pieces of wide rows have fewer rows.
PIECE_CELLS = 20_000
_SPECIAL = re.compile(r"[|\r\n\t]")
_BREAKS = re.compile(r"\s*[\r\n]+\s*")
TableRow = tuple[str, ...]


def table_elements(rows: Iterable[Sequence[str]], page: int | None = None) -> Iterator[Element]:
    """Yield a table, then pieces with its further rows. The first row is its head; short rows are padded."""
    pending = split_long_rows(rows)
    first = [tuple(row) for row in islice(pending, PIECE_ROWS)]
    if not first:
        return
    width = max(map(len, first))
    padded = [_pad(row, width) for row in first]
    yield Element(kind="table", text=table_text(padded), page=page, rows=tuple(padded))
    count = max(1, min(PIECE_ROWS, PIECE_CELLS // max(1, width)))
    while piece := [_pad(tuple(row), width) for row in islice(pending, count)]:
        yield Element(kind="rows", text="\n".join(map(line_of, piece)), page=page, rows=tuple(piece))


def table_text(rows: Sequence[TableRow]) -> str:
    """Return a complete Markdown table. Its first row is the head."""
    head, *others = rows
    return "\n".join(chain((line_of(head), "| " + " | ".join(["---"] * len(head)) + " |"), map(line_of, others)))


def line_of(row: TableRow) -> str:
    """Return a row as a line of Markdown."""
    cells = list(row)
    for place, cell in enumerate(row):
        if _SPECIAL.search(cell):
            cells[place] = _BREAKS.sub("<br>", cell.strip()).replace("\t", " ").replace("|", "\\|")
    return f"| {' | '.join(cells)} |"


def trim_rows(rows: Iterable[Sequence[str]]) -> list[TableRow]:
    """Strip cells and remove empty rows and columns after the last text."""
    stripped = [tuple([cell.strip() for cell in row]) for row in rows]
    while stripped and not any(stripped[-1]):
        stripped.pop()
    width = max((place + 1 for row in stripped for place, cell in enumerate(row) if cell), default=0)
    return [row[:width] for row in stripped]


def split_long_rows(rows: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Split a row that is too long into several rows with the same columns."""
    for row in rows:
        if sum(map(len, row)) <= ROW_CHARACTERS:
            yield row
        else:
            room = max(SHORTEST_PIECE, ROW_CHARACTERS // sum(map(bool, row)))
            for start in range(0, max(map(len, row)), room):
                yield [cell[start : start + room] for cell in row]


def _pad(row: TableRow, width: int) -> TableRow:
    return row if len(row) >= width else row + ("",) * (width - len(row))
