"""Folding by cost (X2): results of earlier steps stay folded, and a new step is made when it pays.

Arguments of calls are never folded: models were seen to copy a marker into files.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from recto.conversation.log import FoldStep
from recto.conversation.messages import Message
from recto.page.draft import Draft
from recto.page.fold.activity import SeenResult, find_activity
from recto.page.fold.cache_state import CacheState
from recto.page.fold.cost_settings import RULE, CachePrices, CostSettings
from recto.page.fold.fold import Folded
from recto.page.fold.fold_settings import FoldKey
from recto.page.fold.folded_result import label, with_placeholder
from recto.page.fold.plan_step import PAYS, UNCACHED, PlannedStep, plan_step
from recto.page.manifest import Note, Recall, Receipt

WHY_NOW: Mapping[str, str] = {
    PAYS: "{rewritten:,} written to the cache again",
    UNCACHED: "the provider has no cache that it could break",
}
COLD = "nothing of the page was in the cache ({cause})"
REASON = "not needed for long, folded with {others:,} others: {freed:,} tokens less on every call, {now}"
# Prices are per million tokens and are stored in billionths.
NANOS_A_TOKEN = 1_000


class CostFold(NamedTuple):
    """A conversation after folding, and the new step if there is one."""

    folded: Folded
    step: FoldStep | None


def fold_by_cost(messages: Sequence[Message], key: FoldKey, state: CacheState) -> CostFold:
    """Fold the results of all steps in force and of the next one, if it pays."""
    reasons = _format_reasons(state.steps)
    planned = None if state.is_settled else plan_step(messages, key, reasons.keys(), state.prices, cold=state.cold)
    step = _as_marker(planned, state) if planned else None
    reasons |= _format_reasons([step]) if step else {}
    return CostFold(_apply(messages, key, reasons), step)


def _format_reasons(steps: Iterable[FoldStep]) -> dict[str, str]:
    """Return the reason of each folded result. All results of a step share one formatted reason."""
    reasons = dict[str, str]()
    for step in steps:
        now = WHY_NOW.get(step.cause, COLD).format(rewritten=step.rewritten, cause=step.cause.replace("_", " "))
        reason = REASON.format(others=len(step.results) - 1, freed=step.freed, now=now)
        reasons |= dict.fromkeys(step.results, reason)
    return reasons


def _as_marker(planned: PlannedStep, state: CacheState) -> FoldStep:
    saves, costs = prices_of(planned.freed, planned.rewritten, state.prices)
    return FoldStep(
        results=planned.results,
        model=state.model,
        cause=planned.cause,
        freed=planned.freed,
        rewritten=planned.rewritten,
        saves=saves,
        costs=costs,
    )


def prices_of(freed: int, rewritten: int, prices: CachePrices) -> tuple[int, int]:
    """Return what a step saves on each later call and costs once, in billionths; zeros without list prices."""
    if not prices.is_listed:
        return 0, 0
    return round(freed * prices.read * NANOS_A_TOKEN), round(rewritten * (prices.write - prices.read) * NANOS_A_TOKEN)


def _apply(messages: Sequence[Message], key: FoldKey, reasons: Mapping[str, str]) -> Folded:
    shown, notes = list(messages), dict[int, Note]()
    placeholder = (key.settings.cost or CostSettings()).placeholder
    counts = Tally[tuple[str, str | None]]()
    for result in sorted(find_activity(messages, key).results, reverse=True) if reasons else ():
        path = result.files[0] if result.files else None
        counts.update([(result.tool, file) for file in result.files or (None,)])
        reason = reasons.get(label(result.message))
        if reason is None:
            continue
        stands = with_placeholder(result.message, placeholder, key)
        recall = Recall(result.tool, path, counts[result.tool, path])
        shown[result.place] = stands.message
        notes[result.place] = _note(result, reason, stands.tokens, recall)
    draft = Draft(messages=tuple(shown), origins=range(len(shown)), notes=notes)
    return Folded(draft=draft, left_alone=())


def _note(result: SeenResult, reason: str, tokens: tuple[int, int], recall: Recall) -> Note:
    receipt = Receipt(
        rule=RULE,
        message=label(result.message),
        part=None,
        tool=result.tool,
        paths=tuple([file for file in result.files if file is not None]),
        tokens_before=tokens[0],
        tokens_after=tokens[1],
        newer=(),
        recall=recall,
        reason=reason,
    )
    return Note("folded", RULE, reason, (receipt,))
