"""Suggestions over HTTP (P15): one call of the model that nobody remembers, within what a user may cost."""

import json
import socket
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from typing import cast
from urllib.parse import urlsplit

import pytest

from recto.conversation.json import Json, dump, load_object
from recto.models.ports import Usage
from recto.testing.client import RUNS, HttpReply, bearer, request
from recto.testing.model_server import Answer, Call, Request, failure
from tests.api.copilotkit_client import BASE, HISTORY, SUGGEST, SUGGESTED, SUGGESTS, events_of, send, types_of, wish
from tests.api.scripted_server import ALICE, BOB, Scripted, page_messages, scripted_server

PATH = "/agent/default/suggest"
EMPTY = ["RUN_STARTED", "RUN_FINISHED"]
WHOLE = ["RUN_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "RUN_FINISHED"]
SPENDING = "spending"
QUICK = {"RECTO_SUGGESTION_PAUSE_SECONDS": "0", "RECTO_USER_SUGGESTIONS": "0"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    with scripted_server(tmp_path_factory.mktemp("suggest"), QUICK) as made:
        yield made


def suggest(server: Scripted, *answers: Answer, token: str = ALICE, path: str = PATH, **rest: Json) -> HttpReply:
    server.answers[:] = answers
    return send(server.url, "POST", path, wish(**rest), token, accept="text/event-stream")


def left(server: Scripted, token: str = ALICE) -> list[Mapping[str, Json]]:
    """All that is kept of a user."""
    export = request(server.url, "GET", "/api/v1/agent/me/export", token=token)
    return [load_object(line) or {} for line in export.body.splitlines()]


def spent(server: Scripted, token: str = ALICE) -> dict[str, int]:
    days = [cast("Mapping[str, int]", line) for line in left(server, token) if line["type"] == SPENDING]
    return {name: sum(day[name] for day in days) for name in ("input", "output", "calls")}


def spent_by(server: Scripted, calls: int) -> dict[str, int]:
    """What was spent once so many calls are written down."""
    until = time.monotonic() + 10
    while (found := spent(server))["calls"] < calls and time.monotonic() < until:
        time.sleep(0.01)
    assert found["calls"] == calls
    return found


class Waiting:
    """A wish that is sent and read in a thread of its own, and can be given up."""

    def __init__(self, server: Scripted, token: str = ALICE) -> None:
        address, body = urlsplit(server.url), dump(wish())
        fields = {"host": address.netloc, "content-type": "application/json", "connection": "close", **bearer(token)}
        head = [f"POST {BASE}{PATH} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        self._socket = socket.create_connection((address.hostname, address.port), timeout=30)
        self._socket.sendall("\r\n".join([*head, f"content-length: {len(body)}", "", ""]).encode() + body)
        self.body = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError):
            while piece := self._socket.recv(65_536):
                self.body += piece

    def wait(self) -> bytes:
        self._thread.join(30)
        self._socket.close()
        return self.body

    def give_up(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self.wait()


def held(server: Scripted) -> tuple[Waiting, Request]:
    """A wish whose model stands in the middle of its answer."""
    before = len(server.model.requests)
    server.go.clear()
    server.answers[:] = [Answer(calls=(Call(name=SUGGEST, arguments=SUGGESTED),), hold=server.go, hold_after=3)]
    waiting = Waiting(server)
    made = server.model.wait_requests(before + 1)[before]
    assert made.wait_held()
    return waiting, made


def test_P15_a_suggestion_is_the_forced_call_and_nothing_else(server: Scripted):
    sent = wish()
    server.answers[:] = [SUGGESTS]
    reply = send(server.url, "POST", PATH, sent, accept="text/event-stream")
    assert types_of(reply) == WHOLE
    events = events_of(reply)
    assert {name: events[0][name] for name in ("threadId", "runId")} == {
        "threadId": sent["threadId"],
        "runId": sent["runId"],
    }
    assert events[1]["toolCallName"] == SUGGEST
    arguments = "".join(str(event["delta"]) for event in events if event["type"] == "TOOL_CALL_ARGS")
    assert json.loads(arguments) == json.loads(SUGGESTED)
    assert "recto-task-id" not in reply.headers


def test_P15_the_model_gets_the_clients_words_the_tool_it_has_to_call_and_a_limit(server: Scripted):
    suggest(server, SUGGESTS, context=[{"description": "page", "value": "orders"}])
    page = server.model.requests[-1].page
    assert page["tool_choice"] == {"type": "function", "function": {"name": SUGGEST}}
    assert 1_000 in (page.get("max_tokens"), page.get("max_completion_tokens"))
    tools = cast("list[Mapping[str, Mapping[str, Json]]]", page["tools"])
    assert [tool["function"]["name"] for tool in tools] == [SUGGEST]
    words = [str(message["content"]) for message in page_messages(server.model.requests[-1])]
    history = [str(cast("Mapping[str, Json]", message)["content"]) for message in HISTORY]
    assert words[-3:-1] == history
    assert words[-1].endswith("Suggest what the user could say next.")
    assert "orders" in words[-1]


def test_P15_a_suggestion_leaves_nothing_but_what_it_cost(server: Scripted):
    before, kept = spent(server), [line for line in left(server) if line["type"] != SPENDING]
    suggest(server, SUGGESTS)
    assert [line for line in left(server) if line["type"] != SPENDING] == kept
    more = {"input": 10, "output": 5, "calls": 1}
    assert spent(server) == {name: before[name] + more[name] for name in more}
    assert spent(server, BOB) == {"input": 0, "output": 0, "calls": 0}


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
    before = spent(server)
    reply = suggest(server, Answer(calls=(Call(name=SUGGEST, arguments=SUGGESTED),), done=False, cut_at=1_000))
    assert types_of(reply)[:2] == ["RUN_STARTED", "TOOL_CALL_START"]
    assert types_of(reply)[-2:] == ["TOOL_CALL_END", "RUN_FINISHED"]
    assert spent(server)["calls"] == before["calls"] + 1


def test_P15_who_leaves_ends_the_call_of_the_model_and_pays_for_what_was_said(server: Scripted):
    before = spent(server)
    waiting, made = held(server)
    waiting.give_up()
    assert made.wait_disconnected()
    assert spent_by(server, before["calls"] + 1)["input"] > before["input"]


def test_P15_a_newer_wish_ends_the_oldest_which_has_no_error(server: Scripted):
    oldest, made = held(server)
    other, other_made = held(server)
    newest, _ = held(server)
    assert made.wait_disconnected()
    assert b"RUN_ERROR" not in oldest.wait()
    assert b"RUN_FINISHED" in oldest.wait()
    assert not other_made.disconnected
    server.go.set()
    assert b"RUN_FINISHED" in other.wait() and b"RUN_FINISHED" in newest.wait()


def test_P15_wishes_of_two_users_are_in_nobodys_way(server: Scripted):
    waiting = [held(server)[0] for _ in range(2)]
    assert types_of(suggest(server, SUGGESTS, token=BOB)) == WHOLE
    server.go.set()
    assert all(b"TOOL_CALL_END" in one.wait() for one in waiting)


@pytest.mark.parametrize("is_single", [True, False])
def test_P15_a_wish_that_comes_as_a_run_makes_no_thread(server: Scripted, is_single: bool):
    kept = [line for line in left(server) if line["type"] != SPENDING]
    server.answers[:] = [SUGGESTS]
    envelope = {"method": "agent/run", "params": {"agentId": "default"}, "body": wish()}
    path, body = ("", envelope) if is_single else ("/agent/default/run", wish())
    reply = send(server.url, "POST", path, body, accept="text/event-stream")
    assert types_of(reply) == WHOLE
    assert [line for line in left(server) if line["type"] != SPENDING] == kept


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"forwardedProps": {}}, "forwardedProps.toolChoice"),
        ({"messages": []}, "messages"),
        ({"tools": [{"name": SUGGEST, "parameters": {"type": 7}}]}, "tools[0].parameters"),
    ],
)
def test_P15_a_wish_that_is_none_is_refused_before_any_model_is_asked(
    server: Scripted, change: dict[str, Json], field: str
):
    asked = len(server.model.requests)
    reply = send(server.url, "POST", PATH, {**wish(), **change}, accept="text/event-stream")
    assert (reply.status, reply.headers["content-type"]) == (422, "application/json")
    errors = cast("list[Mapping[str, str]]", reply.json["errors"])
    assert errors[0]["field"].startswith(field)
    assert len(server.model.requests) == asked
    assert send(server.url, "POST", PATH, b"{").status == 422


@pytest.mark.full
def test_P15_an_agent_whose_model_has_no_calls_of_its_own_suggests_nothing(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("agents")
    (folder / "worded").mkdir()
    (folder / "worded" / "AGENT.md").write_text("---\nname: worded\ntool_calling: prompt\n---\nYou are worded.\n")
    settings = {**QUICK, "RECTO_AGENTS": str(folder), "RECTO_USER_TOKENS": "15"}
    with scripted_server(tmp_path_factory.mktemp("prompted"), settings) as server:
        assert types_of(suggest(server, path="/agent/worded/suggest")) == EMPTY
        assert server.model.requests == []
        # Spent here is spent everywhere (P6), and the other way round.
        assert types_of(suggest(server, SUGGESTS)) == WHOLE
        refused = suggest(server, SUGGESTS)
        assert (refused.status, "15 of 15 tokens today" in str(refused.json["message"])) == (429, True)
        run = request(server.url, "POST", RUNS, wish_as_run(), token=ALICE)
        assert (run.status, run.json["message"]) == (429, refused.json["message"])


def wish_as_run() -> dict[str, Json]:
    return {**wish(tools=[]), "messages": [{"id": "m", "role": "user", "content": "Hi"}]}


@pytest.mark.full
def test_P15_a_page_that_asks_often_costs_little(tmp_path_factory: pytest.TempPathFactory):
    settings = {"RECTO_USER_SUGGESTIONS": "2", "RECTO_SUGGESTION_PAUSE_SECONDS": "0.5"}
    with scripted_server(tmp_path_factory.mktemp("often"), settings) as server:
        server.answers[:] = [Answer(calls=SUGGESTS.calls, usage=Usage(input=1, output=1))] * 9
        given_up = [Waiting(server) for _ in range(4)]
        for waiting in given_up:
            waiting.give_up()
        assert server.model.requests == []
        # Those count that the model was asked for.
        assert [types_of(send(server.url, "POST", PATH, wish())) for _ in range(2)] == [WHOLE] * 2
        limited = send(server.url, "POST", PATH, wish())
        assert (limited.status, "2 suggestions within a minute" in str(limited.json["message"])) == (429, True)
        assert int(limited.headers["retry-after"]) > 0
        assert send(server.url, "POST", PATH, wish(), BOB).status == 200
        assert len(server.model.requests) == 3


@pytest.mark.full
def test_P15_where_suggestions_are_off_info_says_so_and_none_are_made(tmp_path_factory: pytest.TempPathFactory):
    with scripted_server(tmp_path_factory.mktemp("off"), {"RECTO_SUGGESTIONS": "false"}) as server:
        assert send(server.url, "GET", "/info").json["suggestions"] is False
        assert types_of(suggest(server, SUGGESTS)) == EMPTY
        assert server.model.requests == []
