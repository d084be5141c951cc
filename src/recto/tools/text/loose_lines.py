"""Search for whole lines that differ only in blanks and indentation. It never guesses.

The nearest kind of match wins: a looser comparison is tried only if the stricter ones match nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

BLANKS = re.compile(r"[ \t]+")
# Possible tab widths, the usual first.
TAB_WIDTHS = (4, 8, 2, 3, 1, 5, 6, 7)
# Changes a replacement line to the text's indentation.
Reindent: TypeAlias = Callable[[str], str]
# Compares the indentation of text lines and search lines; None if they do not match.
Compare: TypeAlias = Callable[[Sequence[str], Sequence[str]], Reindent | None]


@dataclass(frozen=True, kw_only=True)
class LooseMatch:
    """A match from `start` to before `end`, and the indentation of lines that replace it."""

    start: int
    end: int
    reindent: Reindent


def find_loose_matches(text: str, search: str) -> tuple[LooseMatch, ...]:
    """Return all matches of the first kind that has any: differences in trailing blanks and an indentation shared by
    all lines; then tabs for spaces in it, or the reverse; then other blanks between words.

    Return nothing if the lines also occur with an indentation that neither explains: the right match is unknown.
    """
    if matches := tuple(_matches(text, search, str.strip, _by_shift)):
        return matches
    for bare in (str.strip, _with_single_blanks):
        if matches := tuple(_matches(text, search, bare, _by_columns)):
            return matches if len(matches) == sum(1 for _ in _matches(text, search, bare, _accept_any)) else ()
    return ()


def has_uneven_match(text: str, search: str) -> bool:
    """Return True if the lines are there in a row, but with irregular indentation."""
    return any(True for _ in _matches(text, search, _with_single_blanks, _accept_any))


def _accept_any(_: Sequence[str], __: Sequence[str]) -> Reindent:
    return str


def _with_single_blanks(line: str) -> str:
    return BLANKS.sub(" ", line.strip())


def _matches(text: str, search: str, bare: Callable[[str], str], compare: Compare) -> Iterator[LooseMatch]:
    search = search.replace("\r\n", "\n")
    search_lines = search.removesuffix("\n").split("\n")
    bare_search = [bare(line) for line in search_lines]
    anchor = max(range(len(bare_search)), key=lambda place: len(bare_search[place]))
    if not bare_search[anchor]:
        return
    lines = text.split("\n")
    bare_lines = [bare(line) for line in lines]
    free, offset, counted = 0, 0, 0
    for place in [place for place, line in enumerate(bare_lines) if line == bare_search[anchor]]:
        first = place - anchor
        candidate = lines[first : first + len(bare_search)] if first >= free else []
        if (
            bare_lines[first : first + len(bare_search)] != bare_search
            or (reindent := compare(candidate, search_lines)) is None
        ):
            continue
        offset += sum(map(len, lines[counted:first])) + first - counted
        counted = first
        free = first + len(bare_search)
        stop = offset + sum(map(len, candidate)) + len(candidate) - 1
        # A searched line end is replaced too; otherwise the text's stays whole.
        stop += 1 if search.endswith("\n") and free < len(lines) else -candidate[-1].endswith("\r")
        yield LooseMatch(start=offset, end=stop, reindent=reindent)


def _indents(lines: Sequence[str], search_lines: Sequence[str]) -> list[tuple[str, str]]:
    return [
        (get_indent(line), get_indent(other)) for line, other in zip(lines, search_lines, strict=False) if line.strip()
    ]


def get_indent(line: str) -> str:
    """The blanks that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def _by_shift(lines: Sequence[str], search_lines: Sequence[str]) -> Reindent | None:
    """Match if all lines are indented by the same blanks more, or fewer."""
    pairs = _indents(lines, search_lines)
    if not pairs:
        return None
    have, want = pairs[0]
    more, fewer = have.removesuffix(want), want.removesuffix(have)
    if all(one == more + other for one, other in pairs):
        return partial(_shift, more=more, fewer="")
    if all(fewer + one == other for one, other in pairs):
        return partial(_shift, more="", fewer=fewer)
    return None


def _shift(line: str, *, more: str, fewer: str) -> str:
    if not line.strip():
        return line
    # A line with less indentation loses all of it.
    return more + line[min(len(fewer), len(get_indent(line))) :]


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """Start columns of lines for a tab width: the text's are `shift` columns to the right of the search lines'."""

    width: int
    shift: int
    # The text's own indentation of the matched lines, by column.
    indents: dict[int, str]

    def reindent(self, line: str) -> str:
        if not line.strip():
            return line
        column = max(0, _column(get_indent(line), self.width) + self.shift)
        has_tabs = any("\t" in indent for indent in self.indents.values())
        tabs, spaces = divmod(column, self.width) if has_tabs else (0, column)
        return self.indents.get(column, "\t" * tabs + " " * spaces) + line.lstrip()


def _by_columns(lines: Sequence[str], search_lines: Sequence[str]) -> Reindent | None:
    """Match if all lines are shifted by the same columns for some tab width; the smallest shift wins."""
    pairs, candidates = _indents(lines, search_lines), list[_Columns]()
    for width in TAB_WIDTHS if pairs else ():
        shifts = {_column(have, width) - _column(want, width) for have, want in pairs}
        if len(shifts) == 1:
            indents = {_column(have, width): have for have, _ in reversed(pairs)}
            candidates.append(_Columns(width=width, shift=shifts.pop(), indents=indents))
    return min(candidates, key=lambda one: abs(one.shift)).reindent if candidates else None


def _column(indent: str, width: int) -> int:
    return len(indent.expandtabs(width))
