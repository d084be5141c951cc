"""Suggestions over HTTP (P15): one call of the model that nobody remembers, within what a user may cost."""

import json
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json, dump, load_object
from recto.testing.model_server import Answer, Call, Request, failure
from tests.api.copilotkit_client import BASE, SUGGEST, SUGGESTED, SUGGESTS, events_of, send, types_of, wish
from tests.api.scripted_server import Scripted, scripted_server
from tests.api.wrong_inputs import answer_of, connect
from tests.support.client import HttpReply, ask, bearer, request
from tests.waiting import wait_for

PATH = "/agent/default/suggest"
EMPTY = ["RUN_STARTED", "RUN_FINISHED"]
WHOLE = ["RUN_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "RUN_FINISHED"]
SPENDING = "spending"


def suggest(server: Scripted, *answers: Answer, path: str = PATH) -> HttpReply:
    server.answers[:] = answers
    return send(server, "POST", path, wish(), accept="text/event-stream")


def list_runs(server: Scripted) -> list[Mapping[str, Json]]:
    """All that is kept of a user."""
    export = request(server.url, "GET", "/api/v1/agent/me/export", token=server.token)
    return [load_object(line) or {} for line in export.body.splitlines()]


def read_usage(server: Scripted) -> dict[str, int]:
    days = [cast("Mapping[str, int]", line) for line in list_runs(server) if line["type"] == SPENDING]
    return {name: sum(day[name] for day in days) for name in ("input", "output", "calls")}


def hold_request(server: Scripted) -> tuple[HTTPConnection, Request]:
    """A wish on a connection of its own, whose model stands in the middle of its answer."""
    before = len(server.model.requests)
    server.go.clear()
    server.answers[:] = [Answer(calls=(Call(name=SUGGEST, arguments=SUGGESTED),), hold=server.go, hold_after=3)]
    connection = connect(server.url)
    headers = {"content-type": "application/json", **bearer(server.token)}
    connection.request("POST", BASE + PATH, dump(wish()), headers)
    model_request = server.model.wait_requests(before + 1)[before]
    assert model_request.wait_held()
    return connection, model_request


def test_P15_a_suggestion_is_the_forced_call_and_nothing_else(server: Scripted):
    suggestion_body = wish()
    server.answers[:] = [SUGGESTS]
    reply = send(server, "POST", PATH, suggestion_body, accept="text/event-stream")
    assert types_of(reply) == WHOLE
    events = events_of(reply)
    assert {name: events[0][name] for name in ("threadId", "runId")} == {
        "threadId": suggestion_body["threadId"],
        "runId": suggestion_body["runId"],
    }
    assert events[1]["toolCallName"] == SUGGEST
    arguments = "".join(str(event["delta"]) for event in events if event["type"] == "TOOL_CALL_ARGS")
    assert json.loads(arguments) == json.loads(SUGGESTED)
    assert "recto-task-id" not in reply.headers


def test_P15_a_suggestion_leaves_nothing_but_what_it_cost(server: Scripted):
    suggest(server, SUGGESTS)
    assert [line["type"] for line in list_runs(server)] == [SPENDING]
    assert read_usage(server) == {"input": 10, "output": 5, "calls": 1}


@pytest.mark.parametrize(
    "answer",
    [
        Answer(text="I cannot call tools."),
        Answer(calls=(Call(name="another"),)),
        failure(400, "tool_choice is not supported"),
        failure(500),
        failure(429, retry_after="60"),
        Answer(cut_at=10),
    ],
    ids=["words", "another tool", "refused", "broken", "busy", "cut off"],
)
def test_P15_a_model_that_cannot_be_made_to_call_a_tool_suggests_nothing(server: Scripted, answer: Answer):
    reply = suggest(server, answer)
    assert (types_of(reply), server.answers) == (EMPTY, [])


def test_P15_a_call_that_breaks_off_is_told_as_far_as_it_came_and_paid_for(server: Scripted):
    before = read_usage(server)
    reply = suggest(server, Answer(calls=(Call(name=SUGGEST, arguments=SUGGESTED),), done=False, cut_at=1_000))
    assert types_of(reply)[:2] == ["RUN_STARTED", "TOOL_CALL_START"]
    assert types_of(reply)[-2:] == ["TOOL_CALL_END", "RUN_FINISHED"]
    assert read_usage(server)["calls"] == before["calls"] + 1


def test_P15_who_leaves_ends_the_call_of_the_model_and_pays_for_what_was_said(server: Scripted):
    before = read_usage(server)
    connection, model_request = hold_request(server)
    connection.getresponse().close()
    connection.close()
    assert model_request.wait_disconnected()
    wait_for(lambda: read_usage(server)["calls"] > before["calls"], "the cost of the call")
    assert read_usage(server)["input"] > before["input"]


def test_P15_a_newer_wish_ends_the_oldest_which_has_no_error(server: Scripted):
    oldest, model_request = hold_request(server)
    other, other_made = hold_request(server)
    newest, _ = hold_request(server)
    assert model_request.wait_disconnected()
    assert types_of(answer_of(oldest))[-1] == "RUN_FINISHED"
    assert not other_made.disconnected
    server.go.set()
    assert [types_of(answer_of(one))[-1] for one in (other, newest)] == ["RUN_FINISHED"] * 2


def test_P15_an_agent_whose_model_has_no_calls_of_its_own_suggests_nothing(server: Scripted):
    count_before = len(server.model.requests)
    assert types_of(suggest(server, path="/agent/prompted/suggest")) == EMPTY
    assert len(server.model.requests) == count_before


@pytest.mark.full
def test_P15_P6_what_suggestions_cost_counts_as_what_runs_do(tmp_path: Path):
    settings = {"RECTO_SUGGESTION_PAUSE_SECONDS": "0", "RECTO_USER_TOKENS": "15"}
    with scripted_server(tmp_path, settings) as server:
        assert types_of(suggest(server, SUGGESTS)) == WHOLE
        rejection, run = suggest(server, SUGGESTS), server.post(ask("Hi"))
        assert (rejection.status, "15 of 15 tokens today" in str(rejection.json["message"])) == (429, True)
        assert (run.status, run.json["message"]) == (429, rejection.json["message"])


@pytest.mark.parametrize("is_single", [True, False])
def test_P15_a_wish_that_comes_as_a_run_makes_no_thread(server: Scripted, is_single: bool):
    server.answers[:] = [SUGGESTS]
    envelope = {"method": "agent/run", "params": {"agentId": "default"}, "body": wish()}
    path, body = ("", envelope) if is_single else ("/agent/default/run", wish())
    reply = send(server, "POST", path, body, accept="text/event-stream")
    assert types_of(reply) == WHOLE
    assert [line["type"] for line in list_runs(server)] == [SPENDING]


def test_P15_a_wish_that_is_none_is_refused_before_any_model_is_asked(server: Scripted):
    count_before = len(server.model.requests)
    reply = send(server, "POST", PATH, {**wish(), "forwardedProps": {}}, accept="text/event-stream")
    assert (reply.status, reply.headers["content-type"]) == (422, "application/json")
    errors = cast("list[Mapping[str, str]]", reply.json["errors"])
    assert errors[0]["field"].startswith("forwardedProps.toolChoice")
    assert len(server.model.requests) == count_before
    assert send(server, "POST", PATH, b"{").status == 422
