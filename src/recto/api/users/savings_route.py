"""Route of folding savings."""

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
    """Savings of one fold rule in `calls` of an agent, in tokens and in billionths of the currency.

    `saved` is the price of the saved tokens, `cost` the price of rewriting the provider's cache for it; both are null
    without a known price. `ruleName` and `ruleLink` describe the rule.
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
    """Prompt-cache prefix breaks of an agent by cause, with the tokens sent again and their price."""

    agent: str
    cause: str
    breaks: int
    tokens: int
    cost: int | None


class SavingsShape(TypedDict):
    """Your folding savings between two days (UTC). Prices are in billionths of the currency."""

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
    """Return your folding savings by rule and agent, and the prompt-cache breaks by cause."""
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
