"""State of the provider's prompt cache before the next call, derived from the log (X2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recto.conversation.log import Compacted, Entry, FoldStep, RolledBack, SkillChanged, Undone, view
from recto.conversation.messages import AssistantMessage
from recto.page.fold.cost_settings import USUAL_PRICES, CachePrices

FIRST_CALL, GAP, MODEL_CHANGED = "first_call", "gap", "model_changed"
# Entries that change a page from its beginning, or from an unknown place.
BREAKS: dict[type[Entry], str] = {
    Compacted: "compaction",
    RolledBack: "rollback",
    Undone: "rollback",
    SkillChanged: "skill_changed",
}


@dataclass(frozen=True, kw_only=True)
class CacheState:
    """Inputs of folding by cost: the model, its prices, its steps in force, and why its cache is `cold`.

    `is_settled` means that a step was already made for the next call. Another one would be weighed against a cache that
    this one has broken.
    """

    model: str = ""
    prices: CachePrices = USUAL_PRICES
    steps: tuple[FoldStep, ...] = ()
    cold: str = FIRST_CALL
    is_settled: bool = False


@dataclass(frozen=True, kw_only=True)
class NextCall:
    """The next call: its time, model and prices, and the model of the last page."""

    model: str
    prices: CachePrices
    sent_to: str
    now: datetime
    cache_minutes: float


def cache_state(log: Sequence[Entry], call: NextCall) -> CacheState:
    """Return the state of the cache for the next call."""
    every = list(view(log).newest_first(FoldStep))[::-1]
    steps = tuple(step for step in every if step.model == call.model)
    is_other = call.sent_to not in ("", call.model) or (bool(every) and every[-1].model != call.model)
    since = _since_last_call(log)
    is_settled = any(isinstance(entry, FoldStep) and entry in steps for entry in since)
    cold = MODEL_CHANGED if is_other else _why_cold(log, since, call)
    return CacheState(model=call.model, prices=call.prices, steps=steps, cold=cold, is_settled=is_settled)


def _since_last_call(log: Sequence[Entry]) -> list[Entry]:
    """Return the entries after the newest assistant message, newest first."""
    found = list[Entry]()
    for entry in reversed(log):
        if isinstance(entry, AssistantMessage):
            break
        found.append(entry)
    return found


def _why_cold(log: Sequence[Entry], since: Sequence[Entry], call: NextCall) -> str:
    if len(since) == len(log):
        return FIRST_CALL
    broken = next((BREAKS[type(entry)] for entry in since if type(entry) in BREAKS), "")
    if broken:
        return broken
    last = log[len(log) - len(since) - 1].time
    return why_old(last, call.now, call.cache_minutes)


def why_old(last: datetime | None, now: datetime, cache_minutes: float) -> str:
    """Return `gap` if the last call is older than any cache lifetime, else an empty string."""
    return GAP if last is not None and now - last > timedelta(minutes=cache_minutes) else ""
