"""What a replay goes by: prices, policies, the provider's cache, the model's window."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from recto.models.prices import Prices
from recto.page.text.tokens import OFFLINE, TokenCounter


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """How sessions are played. `model`, where it is given, stands for all that they name.

    A prefix is in the cache for `cache_life` after the call that had it. `window` is that of the model. Over
    `clear_over` tokens, the policy `clear` keeps the newest `clear_keep` results. With `cut`, a session begins anew
    where its agent summarised it; else it is played as if that had never happened.
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
