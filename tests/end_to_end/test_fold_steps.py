"""X2, X4: an agent that folds by cost, over HTTP: its steps are in the log, and a crash beside one changes no page."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.conversation.log import FoldStep
from recto.testing.model_server import Answer, Call, Request
from tests.end_to_end.harness import Harness, without_clock
from tests.end_to_end.test_crash import assert_whole
from tests.support.client import ask, request, run, start

pytestmark = pytest.mark.full

AGENT = """---
tools: [recall]
locale: en
fold:
  mode: cost
  terminal: {tools: [look]}
  cost: {window: 1, least_page: 10, least_step: 10, least_result: 5, horizon: 100, payback: 100}
---
You look.
"""
TOOLS = '''
from recto import tool


@tool(safe_to_repeat=True)
def look(text: str) -> str:
    """Look at something."""
    return f"saw {text} " * 50
'''
PLACEHOLDER = "[An old result, taken out of view; the recall tool gets it back]"
LOOKS = 5


def looking(request: Request) -> Answer:
    """Look five times, then answer."""
    results = results_of(request.page)
    if len(results) == LOOKS:
        return Answer(text="Looked.")
    return Answer(calls=(Call(name="look", arguments=f'{{"text": "{len(results)}"}}', id=f"c{len(results)}"),))


def results_of(page: Mapping[str, Json]) -> list[str]:
    messages = cast("list[Mapping[str, Json]]", page["messages"])
    return [str(message["content"]) for message in messages if message["role"] == "tool"]


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with Harness(tmp_path, looking) as harness:
        (harness.agent / "AGENT.md").write_text(AGENT, encoding="utf-8")
        (harness.agent / "tools.py").write_text(TOOLS, encoding="utf-8")
        yield harness


def test_X2_R11_steps_are_kept_in_the_log_told_with_their_call_and_known_to_the_next_server(harness: Harness):
    body = ask("Look around.")
    with harness.serve():
        run(harness.url, body)
        steps = [entry for entry in harness.log(str(body["threadId"])) if isinstance(entry, FoldStep)]
        assert [len(step.results) for step in steps] == [1, 1, 1]
        folded_flags = [[text == PLACEHOLDER for text in results_of(one.page)] for one in harness.model.requests]
        assert folded_flags[-1] == [True, True, True, False, False]
        # A result that one page folds stays folded in all later pages.
        assert all(now[: len(before)] >= before for before, now in pairwise(folded_flags))
        calls = rows(harness, f"runs/{body['runId']}/calls", "calls")
        last = request(harness.url, "GET", f"/api/v1/agent/runs/{body['runId']}/calls/{len(calls)}")
        manifest = cast("Mapping[str, Mapping[str, Json]]", last.json["manifest"])
        assert manifest["step"]["cause"] == "pays"
        assert manifest["step"]["freed"] == steps[-1].freed > 0
        assert breaks_of(harness) == {"fold_step": 3}
        (rule,) = rows(harness, "savings", "rules")
        savings = [cast("int", call["saved"]) for call in rows(harness, f"threads/{body['threadId']}/calls", "calls")]
        assert (rule["rule"], rule["tokens"]) == ("X2", sum(savings))
    with harness.serve():
        run(harness.url, ask("Thank you.", thread=str(body["threadId"])))
        assert breaks_of(harness) == {"fold_step": 3, "turn_closed": 1}


def rows(harness: Harness, path: str, field: str) -> Sequence[Mapping[str, Json]]:
    return cast("Sequence[Mapping[str, Json]]", request(harness.url, "GET", f"/api/v1/agent/{path}").json[field])


def breaks_of(harness: Harness) -> Mapping[str, Json]:
    return {str(row["cause"]): row["breaks"] for row in rows(harness, "savings", "breaks")}


@pytest.mark.parametrize("point", ["call_begun", "replied", "tool_ended"])
def test_X4_X2_a_server_killed_beside_a_step_sends_the_same_pages_and_folds_nothing_twice(harness: Harness, point: str):
    body = ask("Look around.")
    reader = harness.killed(body, point, 3)
    with harness.serve():
        start(harness.url, body)
        log = assert_whole(harness, body, reader.wait())
    folded_ids = [name for entry in log if isinstance(entry, FoldStep) for name in entry.results]
    assert len(folded_ids) == len(set(folded_ids)) == 3
    pages = [cast("Mapping[str, Sequence[Json]]", without_clock(one.body)) for one in harness.model.requests]
    by_length = {len(page["messages"]): page for page in pages}
    assert all(page == by_length[len(page["messages"])] for page in pages)
