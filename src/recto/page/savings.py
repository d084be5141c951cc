"""What folding saved in a call, by rule, and why its page broke the provider's cache (R11, X2).

A page is compared with itself, had nothing in it been folded. Prices are those that fold steps are weighed by.
"""

from __future__ import annotations

from collections import Counter as Tally
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from recto.page.difference import Difference, difference
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
    # Most pages go on: two of them are compared part by part only where they do not.
    found = difference(before, after) if before and prefix_break(before, after) else None
    if found is None or found.broken is None:
        return None
    cause, place = found.broken.cause, after.place_at(found.broken.bytes_kept)
    return _Broken(cause, place, found.tokens_again + (_placeholders(found, place) if cause == FOLD_STEP else 0))


def _placeholders(found: Difference, start: int) -> int:
    """Tokens of what stands for results that are folded since this page: it is written, where they would be read."""
    parts = found.after.manifest.parts
    changed = [row.after.start for row in found.rows if row.change == "changed" and row.after.start >= start]
    return sum(parts[place].tokens_after for place in changed if parts[place].decision == "folded")


def _fold(rule: str, freed: int, unread: int, again: int, prices: CachePrices) -> Saving:
    if not prices.is_listed:
        return Saving(kind=FOLD, name=rule, tokens=freed)
    # What would have been written costs more by this than what would have been read.
    read, more = prices_of(freed, unread, prices)
    return Saving(kind=FOLD, name=rule, tokens=freed, saved=read + more, cost=prices_of(0, again, prices)[1])


def _break(broken: _Broken, prices: CachePrices) -> Saving:
    cost = prices_of(0, broken.tokens, prices)[1] if prices.is_listed else None
    return Saving(kind=BREAK, name=broken.cause, tokens=broken.tokens, cost=cost)
