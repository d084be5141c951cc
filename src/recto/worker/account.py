"""Token, cost and savings accounting for a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from recto.conversation.json import Json, load_object
from recto.errors import Conflict, NotFound
from recto.models.ports import Usage
from recto.models.prices import Prices, price_of
from recto.page.prefix import SentPage
from recto.store.runs.calls import sent_page
from recto.store.store import Store
from recto.telemetry import Telemetry

BILLION = 1_000_000_000
NAMES = {
    "input": "inputTokens",
    "output": "outputTokens",
    "reasoning": "reasoningTokens",
    "cached": "cachedInputTokens",
    "cache_written": "cacheWriteInputTokens",
}


@dataclass(frozen=True, kw_only=True)
class Account:
    """Tokens and their price. The price is None if the price of any call is unknown."""

    usage: Usage = Usage()
    price: Decimal | None = Decimal(0)
    currency: str = ""

    def plus(self, other: Account) -> Account:
        """Return the sum of two accounts."""
        price = None if self.price is None or other.price is None else self.price + other.price
        return replace(self, usage=self.usage + other.usage, price=price, currency=other.currency or self.currency)

    @property
    def nanos(self) -> int | None:
        """The price in billionths of the currency, which is the unit of the store."""
        return None if self.price is None else round(self.price * BILLION)

    def row(self) -> dict[str, Json]:
        """Return the account as the rows of runs and calls store it."""
        tokens: dict[str, Json] = {**encode_usage(self.usage)}
        has_price = self.price is not None and self.currency
        return {**tokens, "price": f"{self.price:f}", "currency": self.currency} if has_price else tokens


def encode_usage(usage: Usage) -> dict[str, int]:
    """Return tokens under their AG-UI names."""
    tokens = {theirs: getattr(usage, ours) for ours, theirs in NAMES.items()}
    return {**tokens, "totalTokens": usage.input + usage.output}


def parse_account(row: bytes | None) -> Account:
    """Return the account from a stored row, or an empty one."""
    fields = load_object(row) if row else None
    if fields is None:
        return Account()
    tokens = {ours: value for ours, theirs in NAMES.items() if isinstance(value := fields.get(theirs), int)}
    price = fields.get("price")
    return Account(
        usage=Usage(**tokens),
        price=Decimal(price) if isinstance(price, str) else None,
        currency=str(fields.get("currency", "")),
    )


def charge(model: str, usage: Usage | None, prices: Prices) -> Account:
    """Return the account of one call of a model."""
    if usage is None:
        return Account(price=None)
    return Account(usage=usage, price=price_of(model, usage, prices), currency=prices.currency)


def report_usage(telemetry: Telemetry, model: str, spending: Account, seconds: float | None) -> None:
    """Count an answered call in the metrics. `seconds` is the time to its first token."""
    tokens = {ours: count for ours in NAMES if (count := getattr(spending.usage, ours))}
    telemetry.record_call(model, tokens, seconds)
    if spending.price is not None:
        telemetry.record_cost(model, spending.currency, float(spending.price))


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """Return the seconds between two times, or None if one is missing."""
    return (end - start).total_seconds() if start and end else None


async def read_answered_page(store: Store, run: str, number: int) -> SentPage | None:
    """Return the page of the last answered call of a run up to a number. Earlier runs of the thread count too.

    Return None if there is no such call, or if its page was deleted or damaged.
    """
    try:
        call = await store.calls.find_answered(run, number)
        return sent_page(await store.calls.read(*call)) if call else None
    except (NotFound, Conflict):
        return None
