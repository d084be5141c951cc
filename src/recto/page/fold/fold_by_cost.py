"""Folding by cost (X2): results of earlier steps stay folded, and a new step is made when it pays.

Arguments of calls are never folded, because models copied markers from folded arguments into files.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

from recto.conversation.log import Compacted, Entry, FoldStep, RolledBack, SkillChanged, Undone, view
from recto.conversation.messages import AssistantMessage, Message, ToolMessage
from recto.page.draft import Draft
from recto.page.fold.activity import Activity, SeenResult, find_activity
from recto.page.fold.fold import FoldResult
from recto.page.fold.fold_settings import RULE, USUAL_PRICES, CachePrices, CostSettings, FoldKey
from recto.page.fold.observations import fold_to_placeholder, label
from recto.page.manifest import Note, Recall, Receipt
from recto.page.text.tokens import tokens_of

PAYS = "pays"
UNCACHED = "no_cache"
WHY_NOW: Mapping[str, str] = {
    PAYS: "{rewritten:,} written to the cache again",
    UNCACHED: "the provider has no cache that it could break",
}
COLD = "nothing of the page was in the cache ({cause})"
REASON = "not needed for long, folded with {others:,} others: {freed:,} tokens less on every call, {now}"
# A price of 1 per million tokens, as billionths of the currency per token.
NANOS_A_TOKEN = 1_000


class CostFold(NamedTuple):
    """A conversation after folding, and the new step if there is one."""

    result: FoldResult
    step: FoldStep | None


def fold_by_cost(messages: Sequence[Message], key: FoldKey, state: CacheState) -> CostFold:
    """Fold the results of all steps in force, and of a new step if it pays."""
    reasons = _format_reasons(state.steps)
    planned = None if state.is_settled else plan_step(messages, key, reasons.keys(), state.prices, cold=state.cold)
    step = None
    if planned:
        saves, costs = prices_of(planned.tokens_freed, planned.rewritten, state.prices)
        step = FoldStep(
            results=planned.results,
            model=state.model,
            cause=planned.cause,
            freed=planned.tokens_freed,
            rewritten=planned.rewritten,
            saves=saves,
            costs=costs,
        )
        reasons |= _format_reasons([step])
    return CostFold(_apply(messages, key, reasons), step)


def _format_reasons(steps: Iterable[FoldStep]) -> dict[str, str]:
    """Return the reason of each folded result. All results of a step share one formatted reason."""
    reasons = dict[str, str]()
    for step in steps:
        now = WHY_NOW.get(step.cause, COLD).format(rewritten=step.rewritten, cause=step.cause.replace("_", " "))
        reason = REASON.format(others=len(step.results) - 1, freed=step.freed, now=now)
        reasons |= dict.fromkeys(step.results, reason)
    return reasons


def prices_of(tokens: int, rewritten: int, prices: CachePrices) -> tuple[int, int]:
    """Return the saving of a step per later call and its one-time cost, in billionths; zeros without list prices."""
    if not prices.is_listed:
        return 0, 0
    return round(tokens * prices.read * NANOS_A_TOKEN), round(rewritten * (prices.write - prices.read) * NANOS_A_TOKEN)


def _apply(messages: Sequence[Message], key: FoldKey, reasons: Mapping[str, str]) -> FoldResult:
    new_messages, notes = list(messages), dict[int, Note]()
    placeholder = (key.settings.cost or CostSettings()).placeholder
    counts = Tally[tuple[str, str | None]]()
    for result in sorted(find_activity(messages, key).results, reverse=True) if reasons else ():
        path = result.files[0] if result.files else None
        counts.update([(result.tool, file) for file in result.files or (None,)])
        name = label(result.message)
        reason = reasons.get(name)
        if reason is None:
            continue
        new_messages[result.place], tokens = fold_to_placeholder(result.message, placeholder, key)
        recall = Recall(result.tool, path, counts[result.tool, path])
        paths = tuple([file for file in result.files if file is not None])
        receipt = Receipt(RULE, name, None, result.tool, paths, *tokens, (), recall, reason)
        notes[result.place] = Note("folded", RULE, reason, (receipt,))
    draft = Draft(messages=tuple(new_messages), origins=range(len(new_messages)), notes=notes)
    return FoldResult(draft=draft, left_alone=())


class PlannedStep(NamedTuple):
    """Labels of the results to fold, the tokens saved on each later call, and the tokens written to the cache again.

    `cause` is `pays`, `no_cache` if the provider has none, or the reason that the cache is cold.
    """

    results: tuple[str, ...]
    cause: str
    tokens_freed: int
    rewritten: int


def plan_step(
    messages: Sequence[Message], key: FoldKey, folded_labels: Collection[str], prices: CachePrices, *, cold: str = ""
) -> PlannedStep | None:
    """Return the next step of a conversation, or None if no step pays.

    Results with `folded_labels` are folded already. `cold` is the reason that no cache contains the prefix, or empty.
    Folding an uncached prefix costs nothing.
    """
    cost, activity = key.settings.cost or CostSettings(), find_activity(messages, key)
    candidates = [
        one for one in _find_candidates(activity, cost, folded_labels) if _tokens(one.message, key) >= cost.least_result
    ]
    if not candidates:
        return None
    sizes = [_tokens(message, key) for message in messages]
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage) and label(message) in folded_labels:
            sizes[place] -= _count_saving(message, key)
    if sum(sizes) < cost.least_page:
        return None
    savings = [_count_saving(result.message, key) for result in reversed(candidates)]
    if cold or not prices.is_cached:
        return PlannedStep(_labels(candidates), cold or UNCACHED, sum(savings), 0)
    # The last page ended before the newest assistant message, so nothing from there on is cached.
    sums, calls = [0, *accumulate(sizes[: activity.last_call])], activity.now.calls
    best, most = None, 0.0
    # Compare folding the newest 1, 2, 3 ... candidates. `stays` counts the unfolded tokens from the oldest of them on,
    # which the provider would write to the cache again.
    for count, (result, saving) in enumerate(zip(reversed(candidates), accumulate(savings), strict=True), start=1):
        stays = max(sums[-1] - sums[min(result.place, len(sums) - 1)] - saving, 0)
        a_call, once = saving * prices.read, stays * (prices.write - prices.read)
        benefit = a_call * calls * cost.horizon - once
        if saving >= cost.least_step and once <= a_call * calls * cost.payback and benefit > most:
            best, most = (count, saving, stays), benefit
    if best is None:
        return None
    count, saving, stays = best
    return PlannedStep(_labels(candidates[-count:]), PAYS, saving, stays)


def _find_candidates(activity: Activity, cost: CostSettings, folded_labels: Collection[str]) -> Iterator[SeenResult]:
    """Yield results unused for longer than their window."""
    enough = activity.quoting >= cost.quoting_edits and activity.near >= cost.touched_share * activity.quoting
    for result in activity.results:
        if label(result.message) in folded_labels:
            continue
        window, place = cost.window, result.place
        if result.shows and not enough:
            # Use the shorter window only if each file was edited and, unless the result shows a part, read again since.
            is_stale = all(
                activity.edits.get(file, -1) > place and (result.is_part or activity.reads[file][-1] > place)
                for file in result.files
            )
            window = cost.edited_window if is_stale else cost.read_window
        if activity.idle(place, cost.turn_calls) > window:
            yield result


def _labels(results: Sequence[SeenResult]) -> tuple[str, ...]:
    return tuple([label(result.message) for result in results])


def _tokens(message: Message, key: FoldKey) -> int:
    return tokens_of(message, key.counter)


def _count_saving(message: ToolMessage, key: FoldKey) -> int:
    """Return the tokens that folding a result saves; negative if the placeholder is longer."""
    cost = key.settings.cost or CostSettings()
    before, after = fold_to_placeholder(message, cost.placeholder, key).tokens
    return before - after


FIRST_CALL, GAP, MODEL_CHANGED = "first_call", "gap", "model_changed"
# Entries that make the cache cold: they change a page from its beginning, or from an unknown place.
BREAKS: dict[type[Entry], str] = {
    Compacted: "compaction",
    RolledBack: "rollback",
    Undone: "rollback",
    SkillChanged: "skill_changed",
}


@dataclass(frozen=True, kw_only=True)
class CacheState:
    """Inputs of folding by cost: the model, its prices, its steps in force, and why its cache is `cold`.

    `is_settled` means that the next call already has a step. Do not plan another one, because its cost would be
    computed for a cache that this step invalidates.
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
    since = list[Entry]()
    for entry in reversed(log):
        if isinstance(entry, AssistantMessage):
            break
        since.append(entry)
    is_settled = any(isinstance(entry, FoldStep) and entry in steps for entry in since)
    if is_other:
        cold = MODEL_CHANGED
    elif len(since) == len(log):
        cold = FIRST_CALL
    else:
        cold = next((BREAKS[type(entry)] for entry in since if type(entry) in BREAKS), "")
        cold = cold or why_old(log[-len(since) - 1].time, call.now, call.cache_minutes)
    return CacheState(model=call.model, prices=call.prices, steps=steps, cold=cold, is_settled=is_settled)


def why_old(last: datetime | None, now: datetime, cache_minutes: float) -> str:
    """Return `gap` if the last call is older than any cache lifetime, else an empty string."""
    return GAP if last is not None and now - last > timedelta(minutes=cache_minutes) else ""
