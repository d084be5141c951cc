"""Cutting texts that are too long: where, how much of several, and the mark that says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from recto.page.text.tokens import TokenCounter

# Places inside what people see as one character: pairs of halves, accents, variations, skin tones, joined signs.
_PAIR = re.compile(r"(?<=[\ud800-\udbff])[\udc00-\udfff]")
_INSIDE = re.compile(_PAIR.pattern + r"|[\u0300-\u036f\ufe00-\ufe0f\u200d\U0001f3fb-\U0001f3ff]|(?<=\u200d)|(?<=\r)\n")
# No character people write is longer; text made of accents only is cut all the same.
LONGEST_CHARACTER = 16
# About as long as the mark of a cut: cutting less than that would only make it longer.
NEVER_CUT = 60
# A cut that fills this much of the budget is good enough; each further step counts the whole text again.
FULL_ENOUGH = 0.98


class Try(NamedTuple):
    """What comes of cutting to a limit, and its size in whatever the budget counts."""

    limit: int
    text: str
    size: int


def boundary(text: str, limit: int) -> int:
    """The nearest place at or before the limit that splits no character people see."""
    for place in range(limit, max(0, limit - LONGEST_CHARACTER), -1):
        if not _INSIDE.match(text, place):
            return place
    return limit - 1 if _PAIR.match(text, limit) else limit


def cut_to(text: str, tokens: int, mark: str, counter: TokenCounter) -> str:
    """The longest beginning of a text that is within `tokens`, mark included; the whole text where it is.

    Where not even the mark fits, nothing is left.
    """
    if counter.count((text,))[0] <= tokens:
        return text
    fits, fails = -1, len(text)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        if counter.count((text[:middle] + mark,))[0] <= tokens:
            fits = middle
        else:
            fails = middle
    return text[:fits] + mark if fits >= 0 else ""


def shortened(content: str, limit: int, mark: str, total: str = "") -> str:
    """The text, or its beginning and the mark. `total` says how long it is where only its beginning is given."""
    if not is_cut(content, limit, total):
        return content
    shown = content[: boundary(content, limit)]
    said = mark.format(shown=len(shown), total=total or len(content))
    return f"{shown}\n{said}" if shown else said


def is_cut(content: str, limit: int, total: str = "") -> bool:
    """Whether a limit cuts a text. One that is not here whole is cut by any."""
    return bool(total) or len(content) > max(limit, NEVER_CUT)


def common_length(lengths: Sequence[int], room: int) -> int:
    """The longest that all may be cut to so that together they have no more than `room`; shorter ones stay whole."""
    left, several = room, sorted(lengths)
    for place, length in enumerate(several):
        share = left // (len(several) - place)
        if length > share:
            return share
        left -= length
    return max(several, default=0)


def widest(low: Try, high: Try, budget: int, attempt: Callable[[int], Try]) -> Try:
    """The longest cut found that the budget holds. `low` fits, `high` does not; all returned was counted."""
    aim = budget * (1 + FULL_ENOUGH) / 2
    guess = True
    while high.limit - low.limit > 1 and low.size < budget * FULL_ENOUGH:
        share = (aim - low.size) / (high.size - low.size) if guess else 0.5
        pivot = low.limit + round((high.limit - low.limit) * share)
        tried = attempt(min(max(pivot, low.limit + 1), high.limit - 1))
        low, high = (tried, high) if tried.size <= budget else (low, tried)
        guess = not guess
    return low
