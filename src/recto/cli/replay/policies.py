"""Folding policies: for each call of a stretch, the messages that change in the page.

A page contains the original message until a policy replaces it, and the replacement until the policy changes it
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from recto.cli.replay.stretches import CallStretch, ReplaySettings
from recto.conversation.messages import Message, Text, ToolMessage
from recto.models.prices import cache_prices
from recto.page.fold.fold import fold
from recto.page.fold.fold_by_cost import plan_step
from recto.page.fold.fold_settings import CostSettings, FoldSettings, fold_key
from recto.page.fold.observations import fold_to_placeholder, label
from recto.page.text.tokens import tokens_of

# Messages that change from a call on, by place.
PageChanges: TypeAlias = Mapping[int, Message]
NO_CHANGES: PageChanges = {}
CLEARED, COLD = "[An old result, cleared]", "cold"


@dataclass(frozen=True, kw_only=True)
class PolicyInputs:
    """Settings, and rules with the session's tool names."""

    settings: ReplaySettings
    fold: FoldSettings


Policy: TypeAlias = Callable[[CallStretch, PolicyInputs], Iterator[PageChanges]]


def none(stretch: CallStretch, _inputs: PolicyInputs) -> Iterator[PageChanges]:
    """Change nothing."""
    return iter([NO_CHANGES for _ in stretch.calls])


def eager(stretch: CallStretch, inputs: PolicyInputs) -> Iterator[PageChanges]:
    """Apply R2 to R9 on every call."""
    current: dict[int, Message] = {}
    for call in stretch.calls:
        result = fold(stretch.messages[: call.place], settings=inputs.fold, counter=inputs.settings.counter)
        now: dict[int, Message] = {place: result.messages[place] for place in result.draft.notes}
        undone = {place: stretch.messages[place] for place in current if place not in now}
        new = {place: message for place, message in now.items() if current.get(place) != message}
        yield {**undone, **new}
        current = now


def clear(stretch: CallStretch, inputs: PolicyInputs) -> Iterator[PageChanges]:
    """Once the page exceeds a limit, clear all results but the newest, in one step."""
    settings = inputs.settings
    waiting: list[int] = []
    position, tokens = 0, stretch.before
    for call in stretch.calls:
        waiting += [place for place in range(position, call.place) if isinstance(stretch.messages[place], ToolMessage)]
        tokens += sum(stretch.tokens[position : call.place])
        position = call.place
        if tokens <= settings.clear_over:
            yield NO_CHANGES
            continue
        old = waiting[: max(len(waiting) - settings.clear_keep, 0)]
        waiting = waiting[len(old) :]
        results = [(place, one) for place in old if isinstance(one := stretch.messages[place], ToolMessage)]
        changes = {place: replace(one, parts=(Text(text=CLEARED),)) for place, one in results}
        tokens -= sum(stretch.tokens[place] - tokens_of(one, settings.counter) for place, one in changes.items())
        yield changes


def cost(stretch: CallStretch, inputs: PolicyInputs) -> Iterator[PageChanges]:
    """Fold spent results in steps that save more than their prefix break costs (X2)."""
    key, price_list = fold_key(inputs.fold, inputs.settings.counter), inputs.settings.prices
    placeholder = (inputs.fold.cost or CostSettings()).placeholder
    results = [(place, one) for place, one in enumerate(stretch.messages) if isinstance(one, ToolMessage)]
    by_label = {label(message): (place, message) for place, message in results}
    folded_labels: set[str] = set()
    for call in stretch.calls:
        prices = cache_prices(call.model, sum(stretch.tokens[: call.place]), price_list)
        cold = COLD if call.is_cold else ""
        step = plan_step(stretch.messages[: call.place], key, folded_labels, prices, cold=cold)
        new = [by_label[name] for name in step.results] if step else []
        folded_labels.update(label(message) for _, message in new)
        yield {place: fold_to_placeholder(message, placeholder, key).message for place, message in new}


POLICIES: Mapping[str, Policy] = {"none": none, "eager": eager, "clear": clear, "cost": cost}
