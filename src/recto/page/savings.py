"""Tokens and money that folding saved in a call, by rule, and the cost of a prefix break (R11, X2).

The baseline is the same page with nothing folded. Prices are those used to plan fold steps.
"""

from __future__ import annotations

from collections import Counter as Tally
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from recto.page.difference import tokens_again
from recto.page.fold.fold_by_cost import prices_of
from recto.page.fold.fold_settings import CachePrices
from recto.page.prefix import SentPage, prefix_break

SavingKind: TypeAlias = Literal["fold", "break"]
FOLD: SavingKind = "fold"
BREAK: SavingKind = "break"
FOLD_STEP = "fold_step"


@dataclass(frozen=True, kw_only=True)
class Saving:
    """The saving of one fold rule in a call, or the cost of a prefix break. `name` is the rule or the cause of the
    break.

    `tokens` counts tokens that were not sent, or that a break made the provider read again. `benefit` and `cost` are
    billionths of the currency, or None without list prices. The cost of a break by folding is also counted for the
    rule.
    """

    kind: SavingKind
    name: str
    tokens: int
    benefit: int | None = None
    cost: int | None = None


def savings_of(before: SentPage | None, after: SentPage, prices: CachePrices) -> tuple[Saving, ...]:
    """Return the savings of a call. `before` is the page in the provider's cache, or None.

    Without folding, the provider would have read the folded tokens from its cache up to the end of the previous page,
    and written later ones to it.
    """
    parts, broken = after.manifest.parts, _broken(before, after)
    rule, cached = "", len(parts) if before else 0
    if broken and broken.cause == FOLD_STEP:
        rule = parts[broken.place].rule or ""
    elif broken:
        cached = broken.place
    savings, unread = Tally[str](), Tally[str]()
    for place, part in enumerate(parts):
        for receipt in part.receipts:
            saving = receipt.tokens_before - receipt.tokens_after
            savings[receipt.rule] += saving
            unread[receipt.rule] += saving if place >= cached else 0
    rows, cost_again = list[Saving](), prices_of(0, broken.tokens, prices)[1] if broken else 0
    for name, tokens in savings.items():
        # `more` is the surcharge for tokens that would have been written to the cache instead of read.
        read, more = prices_of(tokens, unread[name], prices)
        cost = cost_again if name == rule else 0
        rows.append(Saving(kind=FOLD, name=name, tokens=tokens, benefit=read + more, cost=cost))
    if broken:
        rows.append(Saving(kind=BREAK, name=broken.cause, tokens=broken.tokens, cost=cost_again))
    return tuple(rows if prices.is_listed else [replace(row, benefit=None, cost=None) for row in rows])


class _Broken(NamedTuple):
    """A prefix break: its cause, the first part after it, and the tokens sent again."""

    cause: str
    place: int
    tokens: int


def _broken(before: SentPage | None, after: SentPage) -> _Broken | None:
    first_break = prefix_break(before, after) if before else None
    if before is None or first_break is None:
        return None
    place, tokens = after.place_at(first_break.bytes_kept), tokens_again(before, after, first_break)
    if first_break.cause == FOLD_STEP:
        # Placeholders that replaced results since the last page are written to the cache too.
        were = {part.source: place for place, part in enumerate(before.manifest.parts)}
        for at, part in enumerate(after.manifest.parts[place:], start=place):
            is_fold = part.decision == "folded" and part.source in were
            if is_fold and after.bytes_at(at) != before.bytes_at(were[part.source]):
                tokens += part.tokens_after
    return _Broken(first_break.cause, place, tokens)
