"""What in a text comes nearest to a text that is not in it, so that who looked for it can write it again."""

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
# Looking at how alike two lines are takes long, so it is done for few of them and for their beginnings.
COMPARED_LINES = 300
COMPARED_CHARACTERS = 200
ALIKE = 0.5
WORD = re.compile(r"\w{2,}")
NOT_THERE = "searchContent is not in it, nor are its lines there with other blanks or another indentation."
UNEVEN = "searchContent is not in it: its lines are there, but their indentation differs in no regular way."
NEAREST = "What comes nearest is there now, in lines {first}-{last}:\n{lines}"
SEARCH = "\nSearch for what is there."
NOTHING_NEAR = "Nothing in it comes near. Read the file again, and copy what is there."


def nearest(text: str, search: str, not_there: str = NOT_THERE) -> str:
    """What to say of a search that found nothing: the lines that come nearest, with their numbers."""
    near = lines_near(text, search)
    return f"{not_there} {near}{SEARCH}" if near else f"{not_there} {NOTHING_NEAR}"


def lines_near(text: str, search: str, at: int | None = None) -> str | None:
    """What is there now and comes nearest, by lines with their numbers; else what is `at` a line, or None."""
    lines = text.removesuffix("\n").split("\n")
    wanted = [line.strip() for line in search.replace("\r\n", "\n").strip("\n").split("\n")]
    found = _by_equal_lines(lines, wanted)
    if found is None:
        found = _by_alike_line(lines, wanted)
    if found is None and at is not None:
        found = min(at, len(lines) - 1)
    if found is None:
        return None
    first = max(0, found - AROUND)
    last = min(len(lines), found + min(len(wanted), LINES_SHOWN) + AROUND)
    shown = [
        LINE.format(number=number, text=neutralise(line.rstrip()[:LONGEST_LINE], FRAME_TAGS))
        for number, line in enumerate(lines[first:last], start=first + 1)
    ]
    return NEAREST.format(first=first + 1, last=first + len(shown), lines="\n".join(shown))


def _by_equal_lines(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Where most of the wanted lines are, each in its place; longer lines say more."""
    places = {line: place for place, line in enumerate(wanted) if line}
    votes = Counter[int]()
    for number, line in enumerate(lines):
        bare = line.strip()
        if bare in places:
            votes[number - places[bare]] += len(bare)
    if not votes:
        return None
    best, weight = votes.most_common(1)[0]
    # A bracket alone is everywhere.
    return max(0, best) if weight > len(max(wanted, key=len)) // 4 else None


def _by_alike_line(lines: Sequence[str], wanted: Sequence[str]) -> int | None:
    """Where the line stands that is most like the longest wanted one, among those that have most of its words."""
    longest = max(wanted, key=len)[:COMPARED_CHARACTERS]
    words = set(WORD.findall(longest))
    shared = [sum(map(line[:LONGEST_LINE].__contains__, words)) for line in lines]
    likely = nlargest(COMPARED_LINES, [number for number, count in enumerate(shared) if count], key=shared.__getitem__)
    matcher = SequenceMatcher(None, b=longest, autojunk=False)
    best, share = None, ALIKE
    for number in likely:
        matcher.set_seq1(lines[number].strip()[:COMPARED_CHARACTERS])
        if matcher.real_quick_ratio() > share and matcher.quick_ratio() > share and (ratio := matcher.ratio()) > share:
            best, share = number, ratio
    return None if best is None else max(0, best - wanted.index(max(wanted, key=len)))
