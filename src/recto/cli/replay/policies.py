"""Folding policies: for each call of a stretch, the messages that change in the page.

A page contains the original message until a policy replaces it; the replacement stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from recto.cli.replay.replay_settings import ReplaySettings
from recto.cli.replay.stretches import CallStretch
from recto.conversation.messages import Message, Text, ToolMessage
from recto.models.prices import cache_prices
from recto.page.fold.cost_settings import CostSettings
from recto.page.fold.fold import fold
from recto.page.fold.fold_settings import FoldSettings, fold_key
from recto.page.fold.folded_result import label, with_placeholder
from recto.page.fold.plan_step import plan_step
from recto.page.text.tokens import tokens_of

# New messages from this call on, by place.
PageChanges: TypeAlias = Mapping[int, Message]
NO_CHANGES: PageChanges = {}
CLEARED, COLD = "[An old result, cleared]", "cold"


@dataclass(frozen=True, kw_only=True)
class PolicyInputs:
    """Settings, and rules with the session's tool names."""

    settings: ReplaySettings
    fold: FoldSettings


Policy: TypeAlias = Callable[[CallStretch, PolicyInputs], Iterator[PageChanges]]


def none(stretch: CallStretch, _: PolicyInputs) -> Iterator[PageChanges]:
    """Change nothing."""
    return iter([NO_CHANGES for _ in stretch.calls])


def eager(stretch: CallStretch, given: PolicyInputs) -> Iterator[PageChanges]:
    """Apply R2 to R9 on every call."""
    shown: dict[int, Message] = {}
    for call in stretch.calls:
        folded = fold(stretch.messages[: call.place], settings=given.fold, counter=given.settings.counter)
        now: dict[int, Message] = {place: folded.messages[place] for place in folded.draft.notes}
        undone = {place: stretch.messages[place] for place in shown if place not in now}
        new = {place: message for place, message in now.items() if shown.get(place) != message}
        yield {**undone, **new}
        shown = now


def clear(stretch: CallStretch, given: PolicyInputs) -> Iterator[PageChanges]:
    """Once the page exceeds a limit, clear all results but the newest, in one step."""
    settings = given.settings
    waiting: list[int] = []
    seen, tokens = 0, stretch.before
    for call in stretch.calls:
        waiting += [place for place in range(seen, call.place) if isinstance(stretch.messages[place], ToolMessage)]
        tokens += sum(stretch.tokens[seen : call.place])
        seen = call.place
        if tokens <= settings.clear_over:
            yield NO_CHANGES
            continue
        old = waiting[: max(len(waiting) - settings.clear_keep, 0)]
        waiting = waiting[len(old) :]
        changes = {place: _cleared(stretch.messages[place]) for place in old}
        tokens -= sum(stretch.tokens[place] - tokens_of(made, settings.counter) for place, made in changes.items())
        yield changes


def _cleared(message: Message) -> Message:
    return replace(message, parts=(Text(text=CLEARED),)) if isinstance(message, ToolMessage) else message


def cost(stretch: CallStretch, given: PolicyInputs) -> Iterator[PageChanges]:
    """Fold spent results in steps that save more than their prefix break costs (X2)."""
    key, listed = fold_key(given.fold, given.settings.counter), given.settings.prices
    placeholder = (given.fold.cost or CostSettings()).placeholder
    results = [(place, one) for place, one in enumerate(stretch.messages) if isinstance(one, ToolMessage)]
    by_label = {label(message): (place, message) for place, message in results}
    folded: set[str] = set()
    for call in stretch.calls:
        prices = cache_prices(call.model, sum(stretch.tokens[: call.place]), listed)
        cold = COLD if call.is_cold else ""
        step = plan_step(stretch.messages[: call.place], key, folded, prices, cold=cold)
        new = [by_label[name] for name in step.results] if step else []
        folded.update(label(message) for _, message in new)
        yield {place: with_placeholder(message, placeholder, key).message for place, message in new}


POLICIES: Mapping[str, Policy] = {"none": none, "eager": eager, "clear": clear, "cost": cost}
