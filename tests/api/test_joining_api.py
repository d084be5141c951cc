"""P7, P15 over real HTTP: a run that is joined in its middle, and replies that are lost, read by a stock client."""

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
from recto.testing.model_server import Answer, render
from tests.api.forms import FORM, file, form_of
from tests.api.scripted_server import HOLD, Scripted
from tests.conversation.stock_client import Row, StockClient
from tests.support.client import RUNS, ReceivedEvent, ask, bearer, parse_events, request, run

PARSER: TypeAdapter[official.Event] = TypeAdapter(official.Event)
DIALECTS = ["1.0", "0.0.59"]


@contextmanager
def join_run(server: Scripted, run: str, query: str = "", **headers: str) -> Generator[Iterator[ReceivedEvent]]:
    """The events that come to who joins, as they come."""
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    try:
        header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", f"{RUNS}/{run}/events?join=1{query}", headers=bearer(server.token) | header_fields)
        yield parse_events(connection.getresponse())
    finally:
        connection.close()


def kinds(events: Sequence[ReceivedEvent]) -> list[Json]:
    return [received.event["type"] for received in events]


def read(*events: ReceivedEvent) -> Sequence[Row]:
    """The messages a stock client shows after these."""
    for received in events:
        PARSER.validate_json(received.body)
    return StockClient().read([received.body for received in events]).messages


def messages(server: Scripted, thread: Json) -> list[Row]:
    return [dict(row) for row in server.rows(f"/threads/{thread}/messages", "messages")]


@pytest.mark.parametrize("protocol", DIALECTS)
def test_P7_P15_who_joins_in_the_middle_gets_the_rest_and_goes_on_from_the_last_number(server: Scripted, protocol: str):
    body, query = ask(HOLD), f"&protocolVersion={protocol}"
    id, _ = server.begin(body)
    with join_run(server, id, query) as coming:
        first = [next(coming), next(coming), next(coming)]
    assert kinds(first) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "TEXT_MESSAGE_START"]
    user, partial = cast("list[Row]", first[1].event["messages"])
    assert (user["content"], partial["role"]) == (HOLD, "assistant")
    assert "one two three four five six".startswith(str(partial["content"]))
    # As a browser does: the same address, with the number of the last event.
    with join_run(server, id, query, last_event_id=str(first[-1].number)) as coming:
        server.go.set()
        events = [*first, *coming]
    assert read(*events) == messages(server, body["threadId"])
    numbers = [received.number for received in events]
    assert numbers[:2] == [0, 0]
    assert numbers[2:] == list(range(numbers[2], numbers[-1] + 1))
    assert ("outcome" in events[-1].event) == (protocol == "1.0")


def test_P15_a_run_that_waits_is_told_the_conversation_and_once_it_begins_its_own_words(server: Scripted):
    first = ask(HOLD)
    server.begin(first)
    second = ask("And me?", thread=str(first["threadId"]))
    assert server.post(second).status == 202
    with join_run(server, str(second["runId"])) as coming:
        before = [next(coming), next(coming)]
        assert [row["content"] for row in cast("list[Row]", before[1].event["messages"])] == [HOLD]
        assert [received.number for received in before] == [0, 0]
        server.go.set()
        rest = list(coming)
    assert "RUN_STARTED" not in kinds(rest)
    assert read(*before, *rest) == messages(server, first["threadId"])


def test_P10_the_view_after_a_lost_reply_names_files_by_urls_that_can_be_read(server: Scripted):
    form = form_of(file("notes.txt", b"milk and bread"))
    reply = request(server.url, "POST", "/api/v1/agent/attachments", form, token=server.token, content_type=FORM)
    (one,) = cast("list[Mapping[str, str]]", reply.json["attachments"])
    part = {"type": "document", "source": {"type": "url", "value": one["url"], "mimeType": "text/plain"}}
    message: Json = {"id": new_id(), "role": "user", "content": [{"type": "text", "text": "Read it."}, part]}
    body: dict[str, Json] = {**ask(""), "messages": [message]}
    cut_answer = Answer(text="partial words and more")
    rendered = render(cut_answer)
    end = rendered.index(b"\n\n", rendered.index(b"words")) + 2
    server.answers[:] = [replace(cut_answer, cut_at=end), Answer(text="Milk.")]
    events = run(server.url, body, token=server.token)
    (snapshot,) = [received.event for received in events if received.event["type"] == "MESSAGES_SNAPSHOT"]
    assert "rectoView" not in snapshot
    (user,) = cast("list[dict[str, list[dict[str, dict[str, str]]]]]", snapshot["messages"])
    url = urlsplit(user["content"][1]["source"]["value"])
    response = request(server.url, "GET", f"{url.path}?{url.query}", token=None)
    assert (response.status, response.body) == (200, b"milk and bread")
