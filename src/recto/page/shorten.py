"""Texts cut to one common length, so that the longest lose first; each says where it ends. Nothing is counted here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from recto.page.boundary import boundary

# About as long as the mark of a cut: cutting less than that would only make it longer.
NEVER_CUT = 60
# A cut that fills this much of the budget is good enough; each further step counts the whole text again.
FULL_ENOUGH = 0.98


class Try(NamedTuple):
    """What comes of cutting to a limit, and its size in whatever the budget counts."""

    limit: int
    text: str
    size: int


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
