"""The route of folding savings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, timedelta
from typing import Annotated

from starlette.requests import Request
from typing_extensions import TypedDict

from recto.api.backend import backend_of, user_of
from recto.api.parameters import day_of, in_query
from recto.api.route import Route
from recto.page.manifest_rows import NAMED_RULES, link_of
from recto.page.savings import FOLD
from recto.store.runs.daily_savings import DailySaving

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


async def get_savings(
    request: Request,
    since: Annotated[str | None, in_query("The first day, YYYY-MM-DD; by default 30 days ago.")] = None,
    until: Annotated[str | None, in_query("The last day, YYYY-MM-DD; by default today.")] = None,
    agent: Annotated[str | None, in_query("Return only savings of this agent.", max_length=64)] = None,
) -> SavingsShape:
    """Return your folding savings by rule and agent, and the prompt-cache breaks by cause."""
    backend = backend_of(request)
    last = day_of(until, "until") if until is not None else backend.clock().astimezone(UTC).date()
    first = day_of(since, "since") if since is not None else max(last, date.min + USUAL_DAYS) - USUAL_DAYS
    savings = await backend.store.users.read_savings(user_of(request).name, first, last, agent)
    return {
        "since": first.isoformat(),
        "until": last.isoformat(),
        "currency": backend.models.prices.currency,
        "rules": [_rule_row(one) for one in savings if one.kind == FOLD],
        "breaks": [
            {"agent": one.agent, "cause": one.name, "breaks": one.calls, "tokens": one.tokens, "cost": one.cost}
            for one in savings
            if one.kind != FOLD
        ],
    }


def _rule_row(one: DailySaving) -> RuleSavings:
    rule = NAMED_RULES.get(one.name)
    return {
        "agent": one.agent,
        "rule": one.name,
        "ruleName": rule.name if rule else None,
        "ruleLink": link_of(one.name) if rule else None,
        "calls": one.calls,
        "tokens": one.tokens,
        "saved": one.saved,
        "cost": one.cost,
    }


ROUTES = (Route("GET", SAVINGS, get_savings, "calls", errors=(422,)),)
