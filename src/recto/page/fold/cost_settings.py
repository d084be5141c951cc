"""Settings of folding by cost (X2): when a result is spent, when a step pays, and what a prompt cache costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from recto.conversation.locale import language
from recto.errors import SettingsError

RULE = "X2"
# Valid for any result, with or without a newer one.
PLACEHOLDER: Mapping[str, str] = {"zh": "[旧结果，已移出上下文]", "en": "[An old result, taken out of view]"}
PLACEHOLDER_WITH_RECALL: Mapping[str, str] = {
    "zh": "[旧结果，已移出上下文；可用 recall 取回]",
    "en": "[An old result, taken out of view; the recall tool gets it back]",
}


class CachePrices(NamedTuple):
    """Prices of a million prompt tokens read from and written to the provider's cache.

    They are equal if the provider has no cache. If no list has them they are shares, and no money is reported.
    """

    read: float
    write: float
    is_listed: bool = True

    @property
    def is_cached(self) -> bool:
        """True if an unchanged prefix costs less."""
        return self.read < self.write


# Shares of the input price that caching providers charge, for models with unknown prices.
USUAL_PRICES = CachePrices(read=0.1, write=1.25, is_listed=False)


@dataclass(frozen=True, kw_only=True)
class CostSettings:
    """Thresholds of folding by cost. Windows are counted in model calls.

    A result is spent when it was unused for longer than its window: `window` for commands, searches, edits and errors,
    `edited_window` for a read of a file edited since, `read_window` for any other read. A user message ages it by an
    average turn, at most `turn_calls`. After `quoting_edits` of which `touched_share` came within `window` of touching
    their file, reads have the window of commands. Results under `least_result` tokens and pages under `least_page`
    stay.

    A step frees at least `least_step` tokens, is weighed over `horizon` times the calls made so far, and pays for
    itself within `payback` times these. A prefix unused for `cache_minutes` is in no cache.

    `edits` are the tools that change files, `quotes` their arguments with the replaced text, `parts` the arguments of a
    read that select a part of a file; `more` are other tools whose results have the window of commands.
    """

    window: int = 8
    edited_window: int = 40
    read_window: int = 200
    turn_calls: int = 20
    quoting_edits: int = 10
    touched_share: float = 0.9
    least_result: int = 30
    least_page: int = 30_000
    least_step: int = 2_000
    horizon: float = 0.5
    payback: float = 0.2
    cache_minutes: float = 5.0
    edits: tuple[str, ...] = ("filesystem-edit", "filesystem-create")
    quotes: tuple[str, ...] = ("searchContent", "search", "oldText", "old_string", "oldString", "old_str", "patch")
    parts: tuple[str, ...] = ("startLine", "endLine", "start_line", "end_line", "offset", "limit", "view_range")
    more: tuple[str, ...] = ("terminal-jobs", "recall")
    placeholder: str = PLACEHOLDER["zh"]

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, int | float) and value < 0:
                raise SettingsError(name=f"fold.cost.{name}", value=value, allowed="it is 0 or more")
        if self.touched_share > 1:
            raise SettingsError(name="fold.cost.touched_share", value=self.touched_share, allowed="it is at most 1")
        if not self.placeholder.strip():
            raise SettingsError(name="fold.cost.placeholder", value=self.placeholder, allowed="it says something")


def placeholder_in(locale: str, *, has_recall: bool) -> str:
    """Return the placeholder of a folded result in the agent's language. It mentions `recall` if the agent has that
    tool.
    """
    return (PLACEHOLDER_WITH_RECALL if has_recall else PLACEHOLDER)[language(locale)]
