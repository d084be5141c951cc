"""The route of savings: what folding saved a user, by rule and agent, and why the prefixes of their pages broke."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, timedelta
from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import backend_of, json_answer, user_of
from recto.api.parameters import day_of, in_query
from recto.api.route import Route
from recto.page.named_rules import NAMED_RULES, link_of
from recto.page.savings import FOLD
from recto.store.runs.daily_savings import Saved

SAVINGS = "/api/v1/agent/savings"
USUAL_DAYS = timedelta(days=29)


class RuleSavings(TypedDict):
    """What a rule of folding saved in `calls` of an agent: tokens, and their price in thousand-millionths.

    `saved` is what they would have cost, `cost` what was written to the provider's cache again for it; both are null
    where no price is known. `ruleName` and `ruleLink` say which rule it is.
    """

    agent: str
    rule: str
    ruleName: str | None
    ruleLink: str | None
    calls: int
    tokens: int
    saved: int | None
    cost: int | None


class PrefixBreaks(TypedDict):
    """How often pages of an agent broke a cached prefix for a cause, the tokens sent again, and what that cost."""

    agent: str
    cause: str
    breaks: int
    tokens: int
    cost: int | None


class SavingsShape(TypedDict):
    """What folding saved you from one day to another, in UTC. Prices are in thousand-millionths of the currency."""

    since: str
    until: str
    currency: str
    rules: Sequence[RuleSavings]
    breaks: Sequence[PrefixBreaks]


SAVINGS_EXAMPLE: SavingsShape = {
    "since": "2026-10-20",
    "until": "2026-11-18",
    "currency": "USD",
    "rules": [
        {
            "agent": "coder",
            "rule": "X2",
            "ruleName": "folding by cost",
            "ruleLink": "docs/rules.md#x2",
            "calls": 212,
            "tokens": 4_120_000,
            "saved": 2_060_000_000,
            "cost": 310_000_000,
        }
    ],
    "breaks": [{"agent": "coder", "cause": "fold_step", "breaks": 4, "tokens": 54_000, "cost": 310_000_000}],
}


async def get_savings(
    request: Request,
    since: Annotated[str | None, in_query("The first day, YYYY-MM-DD; 30 days ago where none is given.")] = None,
    until: Annotated[str | None, in_query("The last day, YYYY-MM-DD; today where none is given.")] = None,
    agent: Annotated[str | None, in_query("Of this agent only.", max_length=64)] = None,
) -> Response:
    """What folding saved you: tokens and price by rule and agent, and breaks of the prompt cache by their cause."""
    backend = backend_of(request)
    last = day_of(until, "until") if until is not None else backend.clock().astimezone(UTC).date()
    first = day_of(since, "since") if since is not None else max(last, date.min + USUAL_DAYS) - USUAL_DAYS
    found = await backend.store.saved(user_of(request).name, first, last, agent)
    answer: SavingsShape = {
        "since": first.isoformat(),
        "until": last.isoformat(),
        "currency": backend.prices.currency,
        "rules": [_rule_row(one) for one in found if one.kind == FOLD],
        "breaks": [_break_row(one) for one in found if one.kind != FOLD],
    }
    return json_answer(answer)


def _rule_row(one: Saved) -> RuleSavings:
    named = NAMED_RULES.get(one.name)
    return {
        "agent": one.agent,
        "rule": one.name,
        "ruleName": named.name if named else None,
        "ruleLink": link_of(one.name) if named else None,
        "calls": one.calls,
        "tokens": one.tokens,
        "saved": one.saved,
        "cost": one.cost,
    }


def _break_row(one: Saved) -> PrefixBreaks:
    return {"agent": one.agent, "cause": one.name, "breaks": one.calls, "tokens": one.tokens, "cost": one.cost}


ROUTES = (
    Route(
        method="GET",
        path=SAVINGS,
        handler=get_savings,
        tag="calls",
        answer=SavingsShape,
        refusals=(422,),
        examples={"answer": SAVINGS_EXAMPLE},
    ),
)
