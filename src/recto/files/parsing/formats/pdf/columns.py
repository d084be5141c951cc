"""Tables without lines, found by the places of words. Prose in columns and doubtful cases stay text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from recto.conversation.document import Element
from recto.files.parsing.formats.tables import table_elements

FEWEST_ROWS = 3
FEWEST_COLUMNS = 2
# Most consecutive lines with a single piece in a table: cells with several lines, or rows with one filled cell.
MOST_SINGLE = 2
# Largest distance of two lines of a table, in line heights.
MOST_APART = 4.0
# Largest mean number of words in the cells of a short column. Half of the columns of a table must be short.
SHORT_CELL = 3.5
CHARACTERS_A_WORD = 3
# The mark before a list item.
_MARK = re.compile(r"[\W_]+|\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]+)[.)、）]?")


@dataclass(frozen=True, kw_only=True)
class LinePiece:
    """Adjacent words of a line."""

    left: float
    right: float
    text: str


@dataclass(frozen=True, kw_only=True)
class PageLine:
    """A line of a page. `height` is the height of its letters."""

    bottom: float
    height: float
    pieces: tuple[LinePiece, ...]


Rows = tuple[tuple[str, ...], ...]


def find_tables(lines: Sequence[PageLine]) -> Iterator[Rows]:
    """Yield the tables of a page in order."""
    for run in _runs(lines):
        if columns := _columns(run):
            rows = [row for line in run if (row := _row(line, columns))]
            if len(rows) == len(run) and _is_table(rows):
                yield tuple(rows)


def _runs(lines: Sequence[PageLine]) -> Iterator[Sequence[PageLine]]:
    """Yield runs of lines of several pieces, with few other lines between them."""
    run: list[PageLine] = []
    for line in lines:
        singles = next((count for count, one in enumerate(reversed(run)) if len(one.pieces) > 1), 0)
        if run:
            most = MOST_APART * max(run[-1].height, line.height)
            is_close = 0 < run[-1].bottom - line.bottom <= most
            if not is_close or (len(line.pieces) == 1 and singles == MOST_SINGLE):
                yield from _trim_run(run)
                run = []
        if run or len(line.pieces) > 1:
            run.append(line)
    yield from _trim_run(run)


def _trim_run(run: Sequence[PageLine]) -> Iterator[Sequence[PageLine]]:
    last = max((place for place, line in enumerate(run) if len(line.pieces) > 1), default=-1)
    if sum(len(line.pieces) > 1 for line in run) >= FEWEST_ROWS:
        yield run[: last + 1]


def _columns(run: Sequence[PageLine]) -> list[tuple[float, float]]:
    """Return the left and right edge of each column.

    Return an empty list if there are too few columns, or if one has a single piece.
    """
    pieces = sorted((one for line in run if len(line.pieces) > 1 for one in line.pieces), key=lambda one: one.left)
    columns: list[tuple[float, float, int]] = []
    for one in pieces:
        if columns and one.left < columns[-1][1]:
            left, right, count = columns[-1]
            columns[-1] = (left, max(right, one.right), count + 1)
        else:
            columns.append((one.left, one.right, 1))
    if any(count == 1 for *_, count in columns):
        return []
    return [(left, right) for left, right, _ in columns] if len(columns) >= FEWEST_COLUMNS else []


def _row(line: PageLine, columns: Sequence[tuple[float, float]]) -> tuple[str, ...] | None:
    """Return the cells of a line; None if a piece has no column of its own."""
    cells = [""] * len(columns)
    for one in line.pieces:
        places = [place for place, (left, right) in enumerate(columns) if one.left < right and one.right > left]
        if len(places) != 1 or cells[places[0]]:
            return None
        cells[places[0]] = one.text
    return tuple(cells)


def _is_table(rows: Sequence[tuple[str, ...]]) -> bool:
    """Return True for cells of a table; False for columns of prose, for lists, and for cells without letters."""
    columns = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
    short = 0
    for column in columns:
        words = (max(len(cell.split()), sum(not one.isascii() for one in cell) / CHARACTERS_A_WORD) for cell in column)
        short += sum(words) / len(column) <= SHORT_CELL
    is_list = len(columns) == FEWEST_COLUMNS and all(map(_MARK.fullmatch, columns[0]))
    has_letters = any(_letters(cell) for row in rows for cell in row)
    return 2 * short >= len(columns) and has_letters and not is_list


def insert_tables(elements: Sequence[Element], tables: Sequence[Rows], page: int) -> list[Element]:
    """Replace paragraphs by the tables that contain exactly their letters."""
    result = list(elements)
    for rows in tables:
        letters = [_letters(one.text) for one in result]
        letters_of_table = _letters("".join(cell for row in rows for cell in row))
        ends = [0, *accumulate(map(len, letters))]
        places = {end: place for place, end in enumerate(ends)}
        table = list(table_elements(rows, page))
        # Find elements with exactly the letters of the table.
        for start, (begin, after) in enumerate(pairwise(ends)):
            if begin == after or (end := places.get(begin + len(letters_of_table))) is None:
                continue
            is_words = all(one.kind in ("paragraph", "heading", "item", "text") for one in result[start:end])
            if is_words and Counter("".join(letters[start:end])) == Counter(letters_of_table):
                result[start:end] = table
                break
        else:
            words = " ".join(cell for row in rows for cell in row if cell)
            result = [new for one in result for new in _cut(one, words, table)]
    return result


def _cut(element: Element, words: str, table: Sequence[Element]) -> Iterator[Element]:
    """Split a paragraph that contains a table. Yield any other element unchanged."""
    places = [place for place, one in enumerate(element.text) if one.isalnum()]
    letters = _letters(words)
    at = _letters(element.text).find(letters) if element.kind == "paragraph" else -1
    if at < 0:
        yield element
        return
    # Punctuation around the letters of the table belongs to the table.
    own = [place for place, one in enumerate(words) if one.isalnum()]
    before = element.text[: places[at]].rstrip().removesuffix(words[: own[0]].rstrip()).rstrip()
    rest = element.text[places[at + len(letters) - 1] + 1 :]
    after = rest.lstrip().removeprefix(words[own[-1] + 1 :].lstrip()).lstrip()
    yield from [replace(element, text=before)] if before else []
    yield from table
    yield from [replace(element, text=after)] if after else []


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))
