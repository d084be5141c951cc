"""P7, P15 over real HTTP: a run that is joined in its middle, and replies that are lost, as stock clients see them."""

import http.client
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import cast
from urllib.parse import urlsplit

import pytest
from ag_ui.core import events as official
from pydantic import TypeAdapter

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.client import RUNS, SentEvent, ask, bearer, parse_events, request, run
from recto.testing.model_server import Answer, Call, render
from tests.api.forms import FORM, file, form_of
from tests.api.scripted_server import HOLD, Scripted
from tests.conversation.stock_client import Row, StockClient

PARSER: TypeAdapter[official.Event] = TypeAdapter(official.Event)
PICK: dict[str, Json] = {"name": "pick", "description": "Pick one.", "parameters": {"type": "object"}}
PICKING = Answer(text="Let me ask.", calls=(Call(name="pick", arguments='{"of": ["red", "blue"]}', id="p1"),))
DIALECTS = ["1.0", "0.0.59"]


@contextmanager
def joined(server: Scripted, run: str, query: str = "", **headers: str) -> Generator[Iterator[SentEvent]]:
    """The events that come to who joins, as they come."""
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", f"{RUNS}/{run}/events?join=1{query}", headers=bearer(server.token) | named)
        yield parse_events(connection.getresponse())
    finally:
        connection.close()


def kinds(events: Sequence[SentEvent]) -> list[Json]:
    return [sent.event["type"] for sent in events]


def read(*events: SentEvent, known: Sequence[Row] = ()) -> StockClient:
    for sent in events:
        PARSER.validate_json(sent.body)
    return StockClient(known).read([sent.body for sent in events])


def messages(server: Scripted, thread: Json) -> list[Row]:
    return [dict(row) for row in server.rows(f"/threads/{thread}/messages", "messages")]


def known_to(body: Mapping[str, Json]) -> list[Row]:
    """What a client has that sent this."""
    return [dict(row) for row in cast("list[Mapping[str, Json]]", body["messages"])]


@pytest.mark.parametrize("protocol", DIALECTS)
def test_P15_who_joins_in_the_middle_of_an_answer_gets_the_rest_of_it(server: Scripted, protocol: str):
    body = ask(HOLD)
    id, _ = server.begin(body)
    with joined(server, id, f"&protocolVersion={protocol}") as coming:
        first = [next(coming), next(coming), next(coming)]
        assert kinds(first) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "TEXT_MESSAGE_START"]
        user, partial = cast("list[Row]", first[1].event["messages"])
        assert (user["content"], partial["role"]) == (HOLD, "assistant")
        assert "one two three four five six".startswith(str(partial["content"]))
        server.go.set()
        events = [*first, *coming]
    assert read(*events).messages == messages(server, body["threadId"])
    numbers = [sent.number for sent in events]
    assert numbers[:2] == [0, 0]
    assert numbers[2:] == list(range(numbers[2], numbers[-1] + 1))
    assert ("outcome" in events[-1].event) == (protocol == "1.0")


def test_P7_who_joined_goes_on_from_the_last_number_without_gap_or_repeat(server: Scripted):
    body = ask(HOLD)
    id, _ = server.begin(body)
    with joined(server, id) as coming:
        first = [next(coming), next(coming), next(coming)]
    # As a browser does: the same address, with the number of the last event.
    with joined(server, id, last_event_id=str(first[-1].number)) as coming:
        server.go.set()
        rest = list(coming)
    assert "RUN_STARTED" not in kinds(rest)
    assert read(*first, *rest).messages == messages(server, body["threadId"])


def test_P15_a_run_that_has_ended_is_told_by_its_start_the_conversation_and_its_end(server: Scripted):
    body = ask("Hello")
    whole = run(server.url, body, token=server.token)
    later = ask("And later", thread=str(body["threadId"]))
    run(server.url, later, token=server.token)
    with joined(server, str(body["runId"])) as coming:
        events = list(coming)
    assert kinds(events) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
    assert events[-1] == whole[-1]
    # As it left it.
    assert read(*events).messages == messages(server, body["threadId"])[:2]


def test_P15_a_run_that_waits_is_told_the_conversation_and_once_it_begins_its_own_words(server: Scripted):
    first = ask(HOLD)
    server.begin(first)
    second = ask("And me?", thread=str(first["threadId"]))
    assert server.post(second).status == 202
    with joined(server, str(second["runId"])) as coming:
        before = [next(coming), next(coming)]
        assert [row["content"] for row in cast("list[Row]", before[1].event["messages"])] == [HOLD]
        assert [sent.number for sent in before] == [0, 0]
        server.go.set()
        rest = list(coming)
    assert "RUN_STARTED" not in kinds(rest)
    assert read(*before, *rest).messages == messages(server, first["threadId"])


# Lost replies (F2, F3 of clients)


def cut(answer: Answer, end: bytes) -> Answer:
    """The answer, lost behind the event that has these bytes."""
    rendered = render(answer)
    return replace(answer, cut_at=rendered.index(b"\n\n", rendered.index(end)) + 2)


@pytest.mark.parametrize("protocol", DIALECTS)
def test_P15_a_lost_call_is_neither_shown_nor_run_by_a_stock_client(server: Scripted, protocol: str):
    body: dict[str, Json] = {**ask("Pick one."), "tools": [PICK], "protocolVersion": protocol}
    lost = cut(PICKING, b'{\\"of\\": ')
    server.answers[:] = [lost, lost, Answer(text="I pick for you.")]
    events = run(server.url, body, token=server.token)
    taken_back = ["TOOL_CALL_END", "TOOL_CALL_RESULT", "CUSTOM", "MESSAGES_SNAPSHOT"]
    assert [kind for kind in kinds(events) if kind in taken_back] == taken_back * 2
    client = read(*events, known=known_to(body))
    assert client.messages == messages(server, body["threadId"])
    assert [row.get("content") for row in client.messages] == ["Pick one.", "I pick for you."]
    assert client.to_run == set()


def test_P10_the_view_after_a_lost_reply_names_files_by_urls_that_can_be_read(server: Scripted):
    form = form_of(file("notes.txt", b"milk and bread"))
    reply = request(server.url, "POST", "/api/v1/agent/attachments", form, token=server.token, content_type=FORM)
    (one,) = cast("list[Mapping[str, str]]", reply.json["attachments"])
    part = {"type": "document", "source": {"type": "url", "value": one["url"], "mimeType": "text/plain"}}
    message: Json = {"id": new_id(), "role": "user", "content": [{"type": "text", "text": "Read it."}, part]}
    body: dict[str, Json] = {**ask(""), "messages": [message]}
    server.answers[:] = [cut(Answer(text="partial words and more"), b"words"), Answer(text="Milk.")]
    events = run(server.url, body, token=server.token)
    (snapshot,) = [sent.event for sent in events if sent.event["type"] == "MESSAGES_SNAPSHOT"]
    assert "rectoView" not in snapshot
    (user,) = cast("list[dict[str, list[dict[str, dict[str, str]]]]]", snapshot["messages"])
    url = urlsplit(user["content"][1]["source"]["value"])
    found = request(server.url, "GET", f"{url.path}?{url.query}", token=None)
    assert (found.status, found.body) == (200, b"milk and bread")
