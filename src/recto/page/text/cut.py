"""Truncation of long texts, with a mark at the cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from recto.page.text.tokens import TokenCounter

# Positions inside one visible character: surrogate pairs, accents, variation selectors, skin tones, joined emoji.
_PAIR = re.compile(r"(?<=[\ud800-\udbff])[\udc00-\udfff]")
_INSIDE = re.compile(_PAIR.pattern + r"|[\u0300-\u036f\ufe00-\ufe0f\u200d\U0001f3fb-\U0001f3ff]|(?<=\u200d)|(?<=\r)\n")
# The maximum length of a common character. A sequence of accents may be longer and is cut anyway.
LONGEST_CHARACTER = 16
# Texts up to this length are never cut: the mark is about as long, so they would only grow.
NEVER_CUT = 60
# Accept a cut that fills this share of the budget, because each further attempt counts the whole text again.
FULL_ENOUGH = 0.98


class Try(NamedTuple):
    """A text cut to a limit, and its size in the budget's unit."""

    limit: int
    text: str
    size: int


def boundary(text: str, limit: int) -> int:
    """Return the nearest place at or before the limit that splits no visible character."""
    for place in range(limit, max(0, limit - LONGEST_CHARACTER), -1):
        if not _INSIDE.match(text, place):
            return place
    return limit - 1 if _PAIR.match(text, limit) else limit


def cut_to(text: str, tokens: int, mark: str, counter: TokenCounter) -> str:
    """Return the longest prefix of a text that fits `tokens` with its mark, or the whole text if it fits.

    Return an empty string if not even the mark fits.
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


def shorten(content: str, limit: int, mark: str, total: str = "") -> str:
    """Return the text, or its beginning and the mark. `total` is its length if only the beginning is given."""
    if not is_cut(content, limit, total):
        return content
    beginning = content[: boundary(content, limit)]
    note = mark.format(shown=len(beginning), total=total or len(content))
    return f"{beginning}\n{note}" if beginning else note


def is_cut(content: str, limit: int, total: str = "") -> bool:
    """Return True if a limit cuts a text. An incomplete text always counts as cut."""
    return bool(total) or len(content) > max(limit, NEVER_CUT)


def common_length(lengths: Sequence[int], room: int) -> int:
    """Return the length limit at which all texts together fit `room`. Texts below the limit stay whole."""
    remaining, several = room, sorted(lengths)
    for place, length in enumerate(several):
        share = remaining // (len(several) - place)
        if length > share:
            return share
        remaining -= length
    return max(several, default=0)


def widest(low: Try, high: Try, budget: int, attempt: Callable[[int], Try]) -> Try:
    """Search for the longest cut within the budget. `low` fits and `high` does not."""
    aim = budget * (1 + FULL_ENOUGH) / 2
    guess = True
    while high.limit - low.limit > 1 and low.size < budget * FULL_ENOUGH:
        share = (aim - low.size) / (high.size - low.size) if guess else 0.5
        pivot = low.limit + round((high.limit - low.limit) * share)
        result = attempt(min(max(pivot, low.limit + 1), high.limit - 1))
        low, high = (result, high) if result.size <= budget else (low, result)
        guess = not guess
    return low
