"""Nearest lines for a search text that is not found, so that the model can write it again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from heapq import nlargest

from recto.page.prompt.reminder import FRAME_TAGS, neutralise
from recto.tools.text.line_range import LINE, LONGEST_LINE

AROUND = 2
LINES_SHOWN = 40
# Comparing two lines is slow, so only few lines and their beginnings are compared.
COMPARED_LINES = 300
COMPARED_CHARACTERS = 200
ALIKE = 0.5
WORD = re.compile(r"\w{2,}")
NOT_THERE = "searchContent is not in it, nor are its lines there with other blanks or another indentation."
UNEVEN = "searchContent is not in it: its lines are there, but their indentation differs in no regular way."
NEAREST = "What comes nearest is there now, in lines {first}-{last}:\n{lines}"
SEARCH = "\nSearch for what is there."
NOTHING_NEAR = "Nothing in it comes near. Read the file again, and copy what is there."


def describe_nearest(text: str, search: str, not_there: str = NOT_THERE) -> str:
    """Return the message for a search without matches: the nearest lines with their numbers."""
    near = find_near_lines(text, search)
    return f"{not_there} {near}{SEARCH}" if near else f"{not_there} {NOTHING_NEAR}"


def find_near_lines(text: str, search: str, at: int | None = None) -> str | None:
    """Return the nearest lines with their numbers, else those around line `at`, or None."""
    lines = text.removesuffix("\n").split("\n")
    search_lines = [line.strip() for line in search.replace("\r\n", "\n").strip("\n").split("\n")]
    position = _by_equal_lines(lines, search_lines)
    if position is None:
        position = _by_similar_line(lines, search_lines)
    if position is None and at is not None:
        position = min(at, len(lines) - 1)
    if position is None:
        return None
    first = max(0, position - AROUND)
    last = min(len(lines), position + min(len(search_lines), LINES_SHOWN) + AROUND)
    excerpt = [
        LINE.format(number=number, text=neutralise(line.rstrip()[:LONGEST_LINE], FRAME_TAGS))
        for number, line in enumerate(lines[first:last], start=first + 1)
    ]
    return NEAREST.format(first=first + 1, last=first + len(excerpt), lines="\n".join(excerpt))


def _by_equal_lines(lines: Sequence[str], search_lines: Sequence[str]) -> int | None:
    """Return the position where most lines match, each in its place; longer lines weigh more."""
    places = {line: place for place, line in enumerate(search_lines) if line}
    votes = Counter[int]()
    for number, line in enumerate(lines):
        bare = line.strip()
        if bare in places:
            votes[number - places[bare]] += len(bare)
    if not votes:
        return None
    best, weight = votes.most_common(1)[0]
    # A single bracket is everywhere.
    return max(0, best) if weight > len(max(search_lines, key=len)) // 4 else None


def _by_similar_line(lines: Sequence[str], search_lines: Sequence[str]) -> int | None:
    """Return the position of the line most like the longest search line, among those that share most of its words."""
    longest = max(search_lines, key=len)[:COMPARED_CHARACTERS]
    words = set(WORD.findall(longest))
    shared = [sum(map(line[:LONGEST_LINE].__contains__, words)) for line in lines]
    likely = nlargest(COMPARED_LINES, [number for number, count in enumerate(shared) if count], key=shared.__getitem__)
    matcher = SequenceMatcher(None, b=longest, autojunk=False)
    best, share = None, ALIKE
    for number in likely:
        matcher.set_seq1(lines[number].strip()[:COMPARED_CHARACTERS])
        if matcher.real_quick_ratio() > share and matcher.quick_ratio() > share and (ratio := matcher.ratio()) > share:
            best, share = number, ratio
    return None if best is None else max(0, best - search_lines.index(max(search_lines, key=len)))
