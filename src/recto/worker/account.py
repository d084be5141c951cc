"""What a run has used: tokens and their price, as its row, its calls and its readers have them. Decides nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from recto.conversation.json import Json, load_object
from recto.models.ports import Usage
from recto.models.prices import Prices, price_of
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
    """Tokens, and what they cost. One call whose price is not known, and that of the whole is not."""

    usage: Usage = Usage()
    price: Decimal | None = Decimal(0)
    currency: str = ""

    def plus(self, other: Account) -> Account:
        """Both together."""
        price = None if self.price is None or other.price is None else self.price + other.price
        return replace(self, usage=self.usage + other.usage, price=price, currency=other.currency or self.currency)

    @property
    def nanos(self) -> int | None:
        """The price in thousand-millionths, which is how the store counts."""
        return None if self.price is None else round(self.price * BILLION)

    def row(self) -> dict[str, Json]:
        """As runs and calls are stored."""
        tokens: dict[str, Json] = {**usage_row(self.usage)}
        known = self.price is not None and self.currency
        return {**tokens, "price": f"{self.price:f}", "currency": self.currency} if known else tokens


def usage_row(usage: Usage) -> dict[str, int]:
    """Tokens under the names AG-UI has for them."""
    tokens = {theirs: getattr(usage, ours) for ours, theirs in NAMES.items()}
    return {**tokens, "totalTokens": usage.input + usage.output}


def account_of(row: bytes | None) -> Account:
    """What an earlier worker wrote down."""
    known = load_object(row) if row else None
    if known is None:
        return Account()
    tokens = {ours: value for ours, theirs in NAMES.items() if isinstance(value := known.get(theirs), int)}
    price = known.get("price")
    return Account(
        usage=Usage(**tokens),
        price=Decimal(price) if isinstance(price, str) else None,
        currency=str(known.get("currency", "")),
    )


def charge(model: str, usage: Usage | None, prices: Prices) -> Account:
    """What one call of a model used."""
    if usage is None:
        return Account(price=None)
    return Account(usage=usage, price=price_of(model, usage, prices), currency=prices.currency)


def report_usage(telemetry: Telemetry, model: str, spent: Account, seconds: float | None) -> None:
    """Count a call that was answered; `seconds` until its first token."""
    tokens = {ours: count for ours in NAMES if (count := getattr(spent.usage, ours))}
    telemetry.record_call(model, tokens, seconds)
    if spent.price is not None:
        telemetry.record_cost(model, spent.currency, float(spent.price))


def seconds_between(start: datetime | None, end: datetime | None) -> float | None:
    """How long that was, where it began and ended."""
    return (end - start).total_seconds() if start and end else None
