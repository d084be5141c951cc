"""What folding saved in a call, by rule, and why its page broke the provider's cache (R11, X2).

A page is compared with itself, had nothing in it been folded. Prices are those that fold steps are weighed by.
"""

from __future__ import annotations

from collections import Counter as Tally
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from recto.page.difference import tokens_again
from recto.page.fold.cost_settings import CachePrices
from recto.page.fold.fold_by_cost import prices_of
from recto.page.prefix import SentPage, prefix_break

SavingKind: TypeAlias = Literal["fold", "break"]
FOLD: SavingKind = "fold"
BREAK: SavingKind = "break"
FOLD_STEP = "fold_step"


@dataclass(frozen=True, kw_only=True)
class Saving:
    """What a rule of folding did for a call, or (`break`) that its page broke the prefix, and why: `name` is either.

    `tokens` were not sent; of a break, were sent again though the page before had them. `saved` and `cost` are in
    billionths of the currency, None where no list has the prices. The cost of a break by folding is its rule's too.
    """

    kind: SavingKind
    name: str
    tokens: int
    saved: int | None = None
    cost: int | None = None


def savings_of(before: SentPage | None, after: SentPage, prices: CachePrices) -> tuple[Saving, ...]:
    """What was saved in the call of a page. `before` is the page in the provider's cache; None: there is none.

    What is folded would have been read from the cache as far as the page before goes on, and else been written to it.
    """
    parts, broken = after.manifest.parts, _broken(before, after)
    rule, cached = "", len(parts) if before else 0
    if broken and broken.cause == FOLD_STEP:
        rule = parts[broken.place].rule or ""
    elif broken:
        cached = broken.place
    freed, unread = Tally[str](), Tally[str]()
    for place, part in enumerate(parts):
        for receipt in part.receipts:
            gone = receipt.tokens_before - receipt.tokens_after
            freed[receipt.rule] += gone
            unread[receipt.rule] += gone if place >= cached else 0
    again = {rule: broken.tokens} if broken else {}
    folds = [_fold(rule, tokens, unread[rule], again.get(rule, 0), prices) for rule, tokens in freed.items()]
    return (*folds, _break(broken, prices)) if broken else tuple(folds)


class _Broken(NamedTuple):
    """Why a page does not go on from the one before, from which part on, and the tokens that are sent again for it."""

    cause: str
    place: int
    tokens: int


def _broken(before: SentPage | None, after: SentPage) -> _Broken | None:
    found = prefix_break(before, after) if before else None
    if before is None or found is None:
        return None
    place, again = after.place_at(found.bytes_kept), tokens_again(before, after, found)
    new = _placeholders(before, after, place) if found.cause == FOLD_STEP else 0
    return _Broken(found.cause, place, again + new)


def _placeholders(before: SentPage, after: SentPage, start: int) -> int:
    """Tokens of what stands for results that are folded since this page: it is written, where they would be read."""
    were, parts = {part.source: place for place, part in enumerate(before.manifest.parts)}, after.manifest.parts
    folded = [at for at in range(start, len(parts)) if parts[at].decision == "folded" and parts[at].source in were]
    new = [at for at in folded if after.bytes_at(at) != before.bytes_at(were[parts[at].source])]
    return sum(parts[at].tokens_after for at in new)


def _fold(rule: str, freed: int, unread: int, again: int, prices: CachePrices) -> Saving:
    if not prices.is_listed:
        return Saving(kind=FOLD, name=rule, tokens=freed)
    # What would have been written costs more by this than what would have been read.
    read, more = prices_of(freed, unread, prices)
    return Saving(kind=FOLD, name=rule, tokens=freed, saved=read + more, cost=prices_of(0, again, prices)[1])


def _break(broken: _Broken, prices: CachePrices) -> Saving:
    cost = prices_of(0, broken.tokens, prices)[1] if prices.is_listed else None
    return Saving(kind=BREAK, name=broken.cause, tokens=broken.tokens, cost=cost)
