"""Whole lines of a text that are those searched for, but for blanks and indentation. It never guesses what is meant.

What is nearest comes first: another kind of difference is looked for only where there is none of those before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

BLANKS = re.compile(r"[ \t]+")
# How wide a tab may be meant, the usual first.
TAB_WIDTHS = (4, 8, 2, 3, 1, 5, 6, 7)
# A line of a replacement, brought to the indentation of the text.
Reindent: TypeAlias = Callable[[str], str]
# How lines of the text are indented, as against those searched for; None: they are not the same then.
Compare: TypeAlias = Callable[[Sequence[str], Sequence[str]], Reindent | None]


@dataclass(frozen=True, kw_only=True)
class LooseMatch:
    """Characters of a text from `start` to before `end`, and how lines that take their place are indented."""

    start: int
    end: int
    reindent: Reindent


def loose_matches(text: str, search: str) -> tuple[LooseMatch, ...]:
    """All places of the first kind that has any: blanks at line ends and an indentation that all lines are shifted by;
    then tabs for spaces in it, or the other way round; then other blanks between words.

    Where the lines are also somewhere with an indentation that is neither, it is not known which were meant.
    """
    if found := tuple(_matches(text, search, str.strip, _by_shift)):
        return found
    for bare in (str.strip, _with_single_blanks):
        if found := tuple(_matches(text, search, bare, _by_columns)):
            return found if len(found) == sum(1 for _ in _matches(text, search, bare, _anyhow)) else ()
    return ()


def is_unevenly_there(text: str, search: str) -> bool:
    """Whether the lines are there in a row, indented as nothing else accounts for."""
    return any(True for _ in _matches(text, search, _with_single_blanks, _anyhow))


def _anyhow(_: Sequence[str], __: Sequence[str]) -> Reindent:
    return str


def _with_single_blanks(line: str) -> str:
    return BLANKS.sub(" ", line.strip())


def _matches(text: str, search: str, bare: Callable[[str], str], compare: Compare) -> Iterator[LooseMatch]:
    search = search.replace("\r\n", "\n")
    wanted = search.removesuffix("\n").split("\n")
    sought = [bare(line) for line in wanted]
    anchor = max(range(len(sought)), key=lambda place: len(sought[place]))
    if not sought[anchor]:
        return
    lines = text.split("\n")
    there_bare = [bare(line) for line in lines]
    free, offset, counted = 0, 0, 0
    for place in [place for place, line in enumerate(there_bare) if line == sought[anchor]]:
        first = place - anchor
        there = lines[first : first + len(sought)] if first >= free else []
        if there_bare[first : first + len(sought)] != sought or (reindent := compare(there, wanted)) is None:
            continue
        offset += sum(map(len, lines[counted:first])) + first - counted
        counted = first
        free = first + len(sought)
        stop = offset + sum(map(len, there)) + len(there) - 1
        # A line end that was searched for is replaced too; else it stays, whole.
        stop += 1 if search.endswith("\n") and free < len(lines) else -there[-1].endswith("\r")
        yield LooseMatch(start=offset, end=stop, reindent=reindent)


def _indents(there: Sequence[str], wanted: Sequence[str]) -> list[tuple[str, str]]:
    return [(indent_of(line), indent_of(other)) for line, other in zip(there, wanted, strict=False) if line.strip()]


def indent_of(line: str) -> str:
    """The blanks that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def _by_shift(there: Sequence[str], wanted: Sequence[str]) -> Reindent | None:
    """All lines have the same blanks more, or the same fewer."""
    pairs = _indents(there, wanted)
    if not pairs:
        return None
    have, want = pairs[0]
    more, fewer = have.removesuffix(want), want.removesuffix(have)
    if all(one == more + other for one, other in pairs):
        return partial(_shifted, more=more, fewer="")
    if all(fewer + one == other for one, other in pairs):
        return partial(_shifted, more="", fewer=fewer)
    return None


def _shifted(line: str, *, more: str, fewer: str) -> str:
    if not line.strip():
        return line
    # Of one that is indented less than that, all there is goes.
    return more + line[min(len(fewer), len(indent_of(line))) :]


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """Where lines begin, with tabs of some width: all of the text's are `shift` columns from those searched for."""

    width: int
    shift: int
    # The text's own indentation of the lines that were found, by column.
    known: dict[int, str]

    def reindent(self, line: str) -> str:
        if not line.strip():
            return line
        column = max(0, _column(indent_of(line), self.width) + self.shift)
        has_tabs = any("\t" in indent for indent in self.known.values())
        tabs, spaces = divmod(column, self.width) if has_tabs else (0, column)
        return self.known.get(column, "\t" * tabs + " " * spaces) + line.lstrip()


def _by_columns(there: Sequence[str], wanted: Sequence[str]) -> Reindent | None:
    """With tabs of one width, all lines are shifted by the same: the width that has them shifted least."""
    pairs, found = _indents(there, wanted), list[_Columns]()
    for width in TAB_WIDTHS if pairs else ():
        shifts = {_column(have, width) - _column(want, width) for have, want in pairs}
        if len(shifts) == 1:
            known = {_column(have, width): have for have, _ in reversed(pairs)}
            found.append(_Columns(width=width, shift=shifts.pop(), known=known))
    return min(found, key=lambda one: abs(one.shift)).reindent if found else None


def _column(indent: str, width: int) -> int:
    return len(indent.expandtabs(width))
