"""Planner of fold steps (X2): which spent results to fold, if the savings exceed the cost of the broken cache.

Steps are permanent, so that the prefix breaks once. The plan depends only on the conversation, its earlier steps and
prices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from recto.conversation.messages import Message, ToolMessage
from recto.page.fold.activity import Activity, SeenResult, find_activity
from recto.page.fold.cost_settings import CachePrices, CostSettings
from recto.page.fold.fold_settings import FoldKey
from recto.page.fold.folded_result import label, with_placeholder
from recto.page.text.tokens import tokens_of

PAYS = "pays"
UNCACHED = "no_cache"


class PlannedStep(NamedTuple):
    """Labels of the results to fold, the tokens saved on each later call, and the tokens written to the cache once
    more.

    `cause` is `pays`, `no_cache` if the provider has none, or the reason that the cache is cold.
    """

    results: tuple[str, ...]
    cause: str
    freed: int
    rewritten: int


def plan_step(
    messages: Sequence[Message], key: FoldKey, folded: Collection[str], prices: CachePrices, *, cold: str = ""
) -> PlannedStep | None:
    """Return the next step of a conversation with these `folded` results, or None if none pays.

    `cold` is the reason that the prefix is in no cache; then folding costs nothing.
    """
    cost, activity = key.settings.cost or CostSettings(), find_activity(messages, key)
    spent = [one for one in _spent(activity, cost, folded) if _tokens(one.message, key) >= cost.least_result]
    if not spent:
        return None
    sizes = [_size(message, key, folded) for message in messages]
    if sum(sizes) < cost.least_page:
        return None
    freed = [_freed(result.message, key) for result in reversed(spent)]
    if cold or not prices.is_cached:
        return PlannedStep(_labels(spent), cold or UNCACHED, sum(freed), 0)
    best = _best(_steps(spent, freed, sizes, activity), prices, cost, activity.now.calls)
    if best is None:
        return None
    return PlannedStep(_labels(spent[-best.results :]), PAYS, best.gone, best.stays)


def _spent(activity: Activity, cost: CostSettings, folded: Collection[str]) -> Iterator[SeenResult]:
    """Yield results unused for longer than their window."""
    enough = activity.quoting >= cost.quoting_edits and activity.near >= cost.touched_share * activity.quoting
    for result in activity.results:
        if label(result.message) in folded:
            continue
        window = cost.window if enough or not result.shows else _window_of_read(result, activity, cost)
        if activity.idle(result.place, cost.turn_calls) > window:
            yield result


def _window_of_read(result: SeenResult, activity: Activity, cost: CostSettings) -> int:
    """Return the window of a read. It is short only if all its files are stale."""
    place = result.place
    is_stale = all(
        activity.edited.get(file, -1) > place and (result.is_part or activity.reads[file][-1] > place)
        for file in result.files
    )
    return cost.edited_window if is_stale else cost.read_window


class _Step(NamedTuple):
    """A candidate: the number of newest spent results to fold, the tokens freed, and the tokens after the first that
    stay.
    """

    results: int
    gone: int
    stays: int


def _steps(
    spent: Sequence[SeenResult], freed: Sequence[int], sizes: Sequence[int], activity: Activity
) -> Iterator[_Step]:
    # The last page ended where the newest assistant message begins; nothing after it is cached.
    sums = [0, *accumulate(sizes[: activity.last_call])]
    for count, (result, gone) in enumerate(zip(reversed(spent), accumulate(freed), strict=True), start=1):
        yield _Step(count, gone, max(sums[-1] - sums[min(result.place, len(sums) - 1)] - gone, 0))


def _best(steps: Iterator[_Step], prices: CachePrices, cost: CostSettings, calls: int) -> _Step | None:
    """Return the step that saves most over the expected calls, if it pays for itself soon enough."""
    best, most = None, 0.0
    for step in steps:
        a_call, once = step.gone * prices.read, step.stays * (prices.write - prices.read)
        saved = a_call * calls * cost.horizon - once
        if step.gone >= cost.least_step and once <= a_call * calls * cost.payback and saved > most:
            best, most = step, saved
    return best


def _labels(results: Sequence[SeenResult]) -> tuple[str, ...]:
    return tuple([label(result.message) for result in results])


def _tokens(message: Message, key: FoldKey) -> int:
    return tokens_of(message, key.counter)


def _size(message: Message, key: FoldKey, folded: Collection[str]) -> int:
    tokens = _tokens(message, key)
    if isinstance(message, ToolMessage) and label(message) in folded:
        return tokens - _freed(message, key)
    return tokens


def _freed(message: ToolMessage, key: FoldKey) -> int:
    """Return the tokens that folding a result saves; negative if the placeholder is longer."""
    cost = key.settings.cost or CostSettings()
    before, after = with_placeholder(message, cost.placeholder, key).tokens
    return before - after
