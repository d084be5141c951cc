"""Savings over HTTP (R11, X2): by rule and agent, and breaks by their cause, of some days, and of the one who asks."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from recto.api.threads import routes
from recto.page.savings import Saving
from recto.store.ports import CallEnd
from tests.api.local_api import NOW, LocalApi, assert_problem, local_api
from tests.store.suite.samples import begin
from tests.store.suite.users import spend

SAVINGS = "/api/v1/agent/savings"
FOLD = Saving(kind="fold", name="X2", tokens=100, benefit=7, cost=2)
PLUGIN = Saving(kind="fold", name="mine", tokens=1)
BROKEN = Saving(kind="break", name="fold_step", tokens=30, cost=2)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, routes.ROUTES) as server:
        lease = await begin(server.store, "r1")
        for number, day in enumerate((1, 2, 3), start=1):
            end = datetime(2026, 3, day, tzinfo=UTC)
            call = CallEnd(number=number, ended=end, usage=b"{}", savings=(FOLD, BROKEN, PLUGIN)[: 4 - number])
            await spend(server.store, lease, number, call)
        yield server


async def test_R11_savings_are_told_by_rule_and_agent_and_breaks_by_their_cause(api: LocalApi):
    answer = await api.ask("GET", f"{SAVINGS}?since=2026-03-01&until=2026-03-02")
    labels = {"rule": "X2", "ruleName": "folding by cost", "ruleLink": "docs/rules.md#x2"}
    unknown = {"rule": "mine", "ruleName": None, "ruleLink": None}
    assert answer.json == {
        "since": "2026-03-01",
        "until": "2026-03-02",
        "currency": "USD",
        "rules": [
            {"agent": "vibe", **labels, "calls": 2, "tokens": 200, "saved": 14, "cost": 4},
            {"agent": "vibe", **unknown, "calls": 1, "tokens": 1, "saved": None, "cost": None},
        ],
        "breaks": [{"agent": "vibe", "cause": "fold_step", "breaks": 2, "tokens": 60, "cost": 4}],
    }


@pytest.mark.parametrize(
    ("query", "user", "calls"),
    [
        ("?since=2026-03-02&until=2026-03-09", "ann", 2),
        ("?until=2026-03-03", "ann", 3),
        ("?until=2026-04-01", "ann", 1),
        ("?since=2026-03-01&until=2026-03-09&agent=vibe", "ann", 3),
        ("?since=2026-03-01&until=2026-03-09&agent=other", "ann", 0),
        ("?since=2026-03-01&until=2026-03-09", "bob", 0),
    ],
)
async def test_R11_P5_savings_are_of_the_days_and_the_agent_asked_for_and_of_nobody_else(
    api: LocalApi, *, query: str, user: str, calls: int
):
    rows = (await api.ask("GET", f"{SAVINGS}{query}", user=user)).rows("rules")
    assert sum(cast("int", row["calls"]) for row in rows if row["rule"] == "X2") == calls


async def test_R11_without_days_the_last_thirty_are_told(api: LocalApi):
    answer = await api.ask("GET", SAVINGS)
    days = [datetime.fromisoformat(str(answer.json[name])).date() for name in ("since", "until")]
    assert (days[1], (days[1] - days[0]).days) == (NOW.date(), 29)


@pytest.mark.parametrize("query", ["since=yesterday", "until=20260301", "since=2026-02-30", "until="])
async def test_R11_a_day_that_is_none_is_refused(api: LocalApi, query: str):
    assert_problem(await api.ask("GET", f"{SAVINGS}?{query}"), 422, "YYYY-MM-DD")
