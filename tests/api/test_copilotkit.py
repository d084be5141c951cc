"""CopilotKit without its runtime (P15): info, stop, threads and the single endpoint, over HTTP as its client asks."""

from collections.abc import Mapping, Sequence
from typing import cast
from urllib.parse import quote

import pytest

from recto.api.copilotkit.agent_routes import KINDS
from recto.conversation.json import Json
from recto.ids import new_id
from tests.api.copilotkit_client import events_of, send
from tests.api.scripted_server import BOB, LOOKER, PLAIN, Scripted, page_messages
from tests.support.client import HttpReply, ask, request, start

ENDPOINTS = {"list": True, "inspect": True, "mutations": True, "realtimeMetadata": False}


def talk(server: Scripted, agent: str = "chat", words: str = "Plan my week") -> str:
    """A thread with one answer."""
    body = ask(words, forwardedProps={"agent": agent})
    server.reader(start(server.url, body, token=server.token)).wait()
    return str(body["threadId"])


def list_threads(server: Scripted, query: str = "") -> list[Mapping[str, Json]]:
    reply = send(server, "GET", f"/threads?limit=100{query}")
    assert reply.status == 200, reply.body
    return list(cast("list[Mapping[str, Json]]", reply.json["threads"]))


def ids(server: Scripted, query: str = "") -> list[Json]:
    return [row["id"] for row in list_threads(server, query)]


def assert_message(reply: HttpReply, status: int, words: str) -> None:
    assert (reply.status, words in str(reply.json.get("message"))) == (status, True), reply.body


# Info


def test_P15_info_names_every_agent_and_default_is_the_one_that_answers(server: Scripted):
    info = send(server, "GET", "/info")
    agents = cast("Mapping[str, Mapping[str, Json]]", info.json["agents"])
    agents_by_name = {str(row["name"]): row for row in server.rows("/agents", "agents")}
    assert agents.keys() == {"default", *agents_by_name}
    assert {name: agents[name]["description"] for name in agents_by_name} == {
        name: row["description"] for name, row in agents_by_name.items()
    }
    assert agents["default"] == {**agents["chat"], "name": "default"}
    assert info.json["threadEndpoints"] == ENDPOINTS
    assert (info.json["mode"], info.json["suggestions"]) == ("sse", True)


def test_P15_without_a_credential_info_tells_the_reason_where_the_client_looks_for_it(server: Scripted):
    assert single(server, "info").body == send(server, "GET", "/info").body
    for reply in (send(server, "GET", "/info", token=None), single(server, "info", None)):
        assert_message(reply, 401, "Authorization: Bearer")


# Run


def chat(words: str, thread: str, history: Sequence[Json] = (), **rest: Json) -> dict[str, Json]:
    """What the chat sends: all it shows, and what its user says now."""
    messages: list[Json] = [*history, {"id": new_id(), "role": "user", "content": words}]
    body: dict[str, Json] = {"threadId": thread, "runId": new_id(), "messages": messages, "tools": [], "context": []}
    return {**body, "state": {}, "forwardedProps": {}, **rest}


@pytest.mark.parametrize("is_single", [True, False])
def test_P15_a_chat_goes_on_over_several_runs_under_the_name_its_client_gave_it(server: Scripted, is_single: bool):
    name, history = f"my thread/{is_single}", list[Json]()
    for words in ("First", "Second"):
        body = chat(words, name, history)
        envelope: dict[str, Json] = {"method": "agent/run", "params": {"agentId": "default"}, "body": body}
        path, sent_value = ("", envelope) if is_single else ("/agent/default/run", body)
        events = events_of(send(server, "POST", path, sent_value, accept="text/event-stream"))
        assert [events[place]["threadId"] for place in (0, -1)] == [name, name]
        assert (events[0]["type"], events[-1]["type"]) == ("RUN_STARTED", "RUN_FINISHED")
        # As older clients take it.
        assert events[-1].keys() == {"type", "threadId", "runId"}
        answer = "".join(str(event["delta"]) for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")
        replied = str(next(event["messageId"] for event in events if event["type"] == "TEXT_MESSAGE_START"))
        messages = cast("list[Json]", body["messages"])
        history = [*messages, {"id": replied, "role": "assistant", "content": answer}]
    page_texts = [str(message["content"]) for message in page_messages(server.model.requests[-1])]
    assert [any(words in one for one in page_texts) for words in ("First", PLAIN.text, "Second")] == [True] * 3
    thread = list_threads(server)[0]
    assert (thread["name"], thread["agentId"]) == ("First", "default")
    # The thread goes by either name.
    assert send(server, "DELETE", f"/threads/{quote(name, safe='')}", {"agentId": "default"}).status == 200
    assert thread["id"] not in ids(server)


# Stop


@pytest.mark.parametrize("is_single", [True, False])
def test_P15_stop_ends_the_run_of_the_thread_and_what_it_said_stays(server: Scripted, is_single: bool):
    body = ask("hold on")
    run, model_request = server.begin(body)
    scope: Json = {"runId": body["runId"]} if is_single else None
    params: Json = {"agentId": "default", "threadId": body["threadId"]}

    def stop() -> HttpReply:
        if is_single:
            return single(server, "agent/stop", params=params, body=scope)
        return send(server, "POST", f"/agent/default/stop/{body['threadId']}", scope)

    interrupt = {"type": "RUN_ERROR", "message": "Run stopped by user", "code": "STOPPED"}
    assert stop().json == {"stopped": True, "interrupt": interrupt}
    assert model_request.wait_disconnected()
    assert server.reader(run).wait()[-1].event["outcome"] == {"type": "cancelled"}
    again, thread = stop(), body["threadId"]
    words = f"Run '{body['runId']}' is not the active" if is_single else f"No active run for thread '{thread}'"
    assert (again.status, again.json["stopped"], words in str(again.json["message"])) == (200, False, True)


def test_P15_a_run_that_waits_is_stopped_by_its_name_and_the_one_at_work_goes_on(server: Scripted):
    body = ask("hold on")
    run, _ = server.begin(body)
    waiting = ask("next", thread=str(body["threadId"]))
    queued = start(server.url, waiting, token=server.token)
    send(server, "POST", f"/agent/chat/stop/{body['threadId']}", {"runId": waiting["runId"]})
    server.go.set()
    outcomes = [server.reader(one).wait()[-1].event["outcome"] for one in (queued, run)]
    assert outcomes == [{"type": "cancelled"}, {"type": "success"}]


@pytest.mark.parametrize("body", [{"runId": "r", "more": 1}, {"run": "r"}, {"runId": 7}, {"runId": " "}, [], "r"])
def test_P15_stop_takes_the_name_of_a_run_and_nothing_else(server: Scripted, body: Json):
    assert_message(send(server, "POST", f"/agent/default/stop/{new_id()}", body), 400, '{"runId": "..."}')


@pytest.mark.parametrize("path", ["/agent/nobody/stop/some-thread", "/agent/nobody/suggest", "/threads?agentId=nobody"])
def test_P15_an_agent_that_is_not_there_is_not_found(server: Scripted, path: str):
    method = "GET" if path.startswith("/threads") else "POST"
    assert_message(send(server, method, path), 404, "There is no agent 'nobody'.")


# Threads


def test_P15_threads_are_listed_for_their_agent_page_by_page(server: Scripted):
    older, of_default, of_vibe = talk(server), talk(server), talk(server, "vibe")
    assert ids(server) == ids(server, "&agentId=chat") == [of_default, older]
    (row,) = list_threads(server, "&agentId=vibe")
    thread_row = {
        "id": of_vibe,
        "name": "Plan my week",
        "agentId": "vibe",
        "archived": False,
        "createdById": server.user,
    }
    assert set(row.items()) >= set(thread_row.items())
    first = send(server, "GET", "/threads?agentId=default&limit=1").json
    following = send(server, "GET", f"/threads?agentId=default&limit=1000&cursor={first['nextCursor']}").json
    rest = cast("list[Mapping[str, Json]]", following["threads"])
    assert [of_default, *(row["id"] for row in rest)] == ids(server)
    assert following["nextCursor"] is None


def test_P15_a_thread_is_renamed_archived_brought_back_and_deleted(server: Scripted):
    thread = talk(server)
    renamed = send(server, "PATCH", f"/threads/{thread}", {"agentId": "default", "name": "Mine"})
    assert (renamed.status, renamed.json["name"]) == (200, "Mine")
    archived = send(server, "POST", f"/threads/{thread}/archive", {"agentId": "default"})
    assert archived.json == {"threadId": thread, "archived": True}
    assert thread not in ids(server)
    assert [row["archived"] for row in list_threads(server, "&includeArchived=true") if row["id"] == thread] == [True]
    back = send(server, "PATCH", f"/threads/{thread}", {"agentId": "default", "archived": False})
    assert (back.json["archived"], ids(server)[0], list_threads(server)[0]["name"]) == (False, thread, "Mine")
    deleted = send(server, "DELETE", f"/threads/{thread}", {"agentId": "default"})
    assert deleted.json == {"threadId": thread, "deleted": True}
    assert thread not in ids(server, "&includeArchived=true")
    assert request(server.url, "GET", f"/api/v1/agent/threads/{thread}", token=server.token).status == 404


# The single endpoint


def single(server: Scripted, method: str, token: str | None = "", **rest: Json) -> HttpReply:
    return send(server, "POST", "", {"method": method, **rest}, token)


def test_P5_an_envelope_opens_no_thread_of_somebody_else(server: Scripted):
    thread = talk(server)
    path: Json = {"path": f"/threads/{thread}", "httpMethod": "PATCH"}
    foreign = single(server, "resource/request", BOB, params=path, body={"name": "taken"})
    assert_message(foreign, 404, f"There is no thread '{thread}'.")
    assert single(server, "resource/request", LOOKER, params=path, body={"name": "taken"}).status == 403
    assert single(server, "resource/request", params=path, body={"name": "One"}).json["name"] == "One"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "must be a JSON object"),
        ([], "must be a JSON object"),
        ({}, f"must be one of: {', '.join(KINDS)}"),
        ({"method": "transcribe"}, "must be one of"),
        ({"method": "agent/run", "params": {"agentId": "default"}}, "`body` is missing"),
        ({"method": "agent/run", "body": {}}, "`params.agentId` is missing"),
        ({"method": "agent/stop", "params": {"agentId": "default"}}, "`params.threadId` is missing"),
        ({"method": "resource/request", "params": {"path": "/info", "httpMethod": "GET"}}, "begin with /threads"),
        (
            {"method": "resource/request", "params": {"path": "/threads/\n", "httpMethod": "GET"}},
            "must be valid in an HTTP request",
        ),
    ],
)
def test_P15_an_envelope_that_means_nothing_is_told_why(server: Scripted, body: Json | bytes, words: str):
    assert_message(send(server, "POST", "", body), 400, words)


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [("/threads/../info", "GET", 404), ("/threads", "BREW", 405), ("/threads/%2e%2e%2finfo", "DELETE", 404)],
)
def test_P15_an_envelope_leads_to_no_other_route(server: Scripted, path: str, method: str, status: int):
    assert single(server, "resource/request", params={"path": path, "httpMethod": method}).status == status


def test_P15_an_id_in_an_envelope_is_one_part_of_a_path(server: Scripted):
    params: Json = {"agentId": "chat/stop", "threadId": "a/b?c#d"}
    assert_message(single(server, "agent/stop", params=params), 404, "There is no agent 'chat/stop'.")
    params = {"agentId": "chat", "threadId": "a/b?c#d"}
    assert "No active run for thread 'a/b?c#d'." in str(single(server, "agent/stop", params=params).json["message"])
