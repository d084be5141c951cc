"""X2, X4: an agent that folds by cost, over HTTP: its steps are in the log, and a crash beside one changes no page."""

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.conversation.log import FoldStep
from recto.testing.client import Reader, ask, request, run, start
from recto.testing.model_server import Answer, Call, Request
from tests.end_to_end.harness import Harness, without_clock
from tests.end_to_end.test_crash import KILLED, assert_whole, try_to_start

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
GONE = "[An old result, taken out of view; the recall tool gets it back]"
LOOKS = 5


def looking(request: Request) -> Answer:
    """The model: it looks five times, then says so."""
    results = results_of(request.page)
    if len(results) == LOOKS:
        return Answer(text="Looked.")
    return Answer(calls=(Call(name="look", arguments=f'{{"text": "{len(results)}"}}', id=f"c{len(results)}"),))


def results_of(page: Mapping[str, Json]) -> list[str]:
    messages = cast("list[Mapping[str, Json]]", page["messages"])
    return [str(message["content"]) for message in messages if message["role"] == "tool"]


def looker(folder: Path) -> Harness:
    return Harness(folder, looking)


def set_up(harness: Harness) -> None:
    (harness.agent / "AGENT.md").write_text(AGENT, encoding="utf-8")
    (harness.agent / "tools.py").write_text(TOOLS, encoding="utf-8")


def test_X2_steps_are_kept_in_the_log_and_told_with_the_call_they_were_made_for(tmp_path: Path):
    with looker(tmp_path) as harness:
        set_up(harness)
        with harness.serve():
            body = ask("Look around.")
            reader = Reader(lambda: harness.url, str(body["runId"]))
            task = start(harness.url, body)
            reader.wait()
            steps = [entry for entry in harness.log(str(body["threadId"])) if isinstance(entry, FoldStep)]
            assert [len(step.results) for step in steps] == [1, 1, 1]
            shown = [[text == GONE for text in results_of(one.page)] for one in harness.model.requests]
            assert shown[-1] == [True, True, True, False, False]
            # What is folded in a page is folded in all that follow.
            assert all(now[: len(before)] >= before for before, now in pairwise(shown))
            calls = request(harness.url, "GET", f"/api/v1/agent/runs/{task}/calls").json["calls"]
            last = request(harness.url, "GET", f"/api/v1/agent/runs/{task}/calls/{len(cast('list[Json]', calls))}")
            manifest = cast("Mapping[str, Mapping[str, Json]]", last.json["manifest"])
            assert manifest["step"]["cause"] == "pays"
            assert manifest["step"]["freed"] == steps[-1].freed > 0


def breaks_of(url: str) -> Mapping[str, int]:
    found = cast("list[Mapping[str, Json]]", request(url, "GET", "/api/v1/agent/savings").json["breaks"])
    return {str(row["cause"]): cast("int", row["breaks"]) for row in found}


@pytest.mark.full
def test_R11_what_broke_a_prefix_is_known_to_a_server_that_did_not_send_the_page_before(tmp_path: Path):
    with looker(tmp_path) as harness:
        set_up(harness)
        first = ask("Look around.")
        with harness.serve():
            run(harness.url, first)
            assert breaks_of(harness.url) == {"fold_step": 3}
            assert saved_tokens(harness.url) == saved_in(harness.url, first)
        with harness.serve():
            run(harness.url, ask("Thank you.", thread=str(first["threadId"])))
            assert breaks_of(harness.url) == {"fold_step": 3, "turn_closed": 1}


def saved_tokens(url: str) -> Json:
    (row,) = cast("list[Mapping[str, Json]]", request(url, "GET", "/api/v1/agent/savings").json["rules"])
    assert row["rule"] == "X2"
    return row["tokens"]


def saved_in(url: str, body: Mapping[str, Json]) -> int:
    """What each call of a run saved, as the list of them tells it."""
    calls = request(url, "GET", f"/api/v1/agent/threads/{body['threadId']}/calls").json["calls"]
    return sum(cast("int", call["saved"]) for call in cast("list[Mapping[str, Json]]", calls))


@pytest.mark.full
@pytest.mark.parametrize(("point", "times"), [("call_begun", 3), ("replied", 3), ("tool_ended", 3)])
def test_X4_X2_a_server_killed_beside_a_step_sends_the_same_pages_and_folds_nothing_twice(
    point: str, times: int, tmp_path: Path
):
    with looker(tmp_path) as harness:
        set_up(harness)
        body = ask("Look around.")
        with harness.crash(point, times) as server:
            reader = Reader(lambda: harness.url, str(body["runId"]))
            answered = try_to_start(harness.url, body)
            assert server.wait() == KILLED
        with harness.serve():
            assert answered or start(harness.url, body)
            log = assert_whole(harness, body, reader.wait())
        steps = [entry for entry in log if isinstance(entry, FoldStep)]
        folded = [name for step in steps for name in step.results]
        assert len(folded) == len(set(folded)) == 3
        pages = [without_clock(one.body) for one in harness.model.requests]
        by_length = {len(cast("list[Json]", cast("Mapping[str, Json]", page)["messages"])): page for page in pages}
        assert all(
            page == by_length[len(cast("list[Json]", cast("Mapping[str, Json]", page)["messages"]))] for page in pages
        )
