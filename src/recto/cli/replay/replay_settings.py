"""Settings of a replay: prices, policies, prompt cache and context window."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from recto.models.prices import Prices
from recto.page.text.tokens import OFFLINE, TokenCounter


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """Parameters of a replay. `model` overrides the models named in sessions.

    A prefix stays cached for `cache_life` after the call that used it. Above `clear_over` tokens, the policy `clear`
    keeps the newest `clear_keep` results. With `cut`, a session restarts where its agent compacted it; without,
    compactions are ignored.
    """

    prices: Prices
    policies: tuple[str, ...]
    model: str = ""
    window: int = 200_000
    cache_life: timedelta = timedelta(minutes=5)
    clear_over: int = 100_000
    clear_keep: int = 3
    cut: bool = False
    counter: TokenCounter = OFFLINE
