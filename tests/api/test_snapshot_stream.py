"""P15: a thread told as a run that stores nothing, and a run joined under the name its client has for the thread."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
from starlette.requests import Request
from starlette.responses import Response

from recto.api.route import Route
from recto.api.runs.stream_join import join_stream, snapshot_stream
from recto.conversation.events import RunFinished, RunStarted, TextStarted, encode_event
from recto.conversation.json import Json
from recto.conversation.messages import AssistantMessage, Text, ToolCall, UserMessage
from recto.store.ports import RunChange, RunEnding
from tests.api.local_api import Answer, LocalApi, local_api
from tests.store.suite.samples import at, begin
from tests.support.client import ReceivedEvent, parse_events

THREAD, NAME = "550e8400-e29b-41d4-a716-44665544000a", "the client's own"
QUESTION = UserMessage(id="u", time=at(0), parts=(Text(text="Pick"),))
PICKING = AssistantMessage(id="a", time=at(0), parts=(ToolCall(id="c", name="pick", arguments="{}", runner="client"),))


async def snapshot(request: Request) -> Response:
    protocol = request.query_params.get("protocol")
    return await snapshot_stream(request, THREAD, "r9", thread_name=NAME, protocol=protocol)


async def join(request: Request) -> Response:
    (run,) = (await request.app.state.backend.store.runs.list_page("ann", THREAD, None, 1)).runs
    return await join_stream(request, run, thread_name=NAME, protocol="1.0")


ROUTES = (
    Route(method="GET", path="/snapshot", handler=snapshot, tag=""),
    Route(method="GET", path="/join", handler=join, tag=""),
)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, ROUTES) as server:
        yield server


def events(answer: Answer) -> list[ReceivedEvent]:
    assert answer.headers["content-type"] == "text/event-stream"
    return list(parse_events(line + b"\n" for line in answer.body.split(b"\n")))


WAITING: Json = {"type": "success", "pendingToolCallIds": ["c"]}


@pytest.mark.parametrize(("protocol", "outcome"), [("1.0", WAITING), ("", None)])
async def test_P15_a_thread_is_told_as_a_run_under_the_names_the_client_sent(
    api: LocalApi, protocol: str, outcome: Json
):
    lease = await begin(api.store, "r1", THREAD)
    change = RunChange(entries=[QUESTION, PICKING], entered=True, ending=RunEnding(outcome="waiting"))
    await api.store.runs.record(lease, change, at(1))
    start, snapshot, end = events(await api.ask("GET", f"/snapshot?protocol={protocol}"))
    assert start.event == {"type": "RUN_STARTED", "threadId": NAME, "runId": "r9"}
    assert [row["id"] for row in cast("list[dict[str, Json]]", snapshot.event["messages"])] == ["u", "a"]
    assert (end.event["threadId"], end.event["runId"], end.event.get("outcome")) == (NAME, "r9", outcome)
    assert [received.number for received in (start, snapshot, end)] == [0, 0, 0]
    assert len((await api.store.runs.list_page("ann", THREAD, None, 5)).runs) == 1


async def test_P15_a_run_is_joined_under_the_name_the_client_has_for_the_thread(api: LocalApi):
    lease = await begin(api.store, "r1", THREAD)
    run_events = [RunStarted(thread=THREAD, run="r1"), TextStarted(message="a"), RunFinished(thread=THREAD, run="r1")]
    bodies = [body for event in run_events for body in encode_event(event)]
    change = RunChange(entries=[QUESTION], entered=True, events=bodies, ending=RunEnding(outcome="done"))
    await api.store.runs.record(lease, change, at(1))
    start, snapshot, end = events(await api.ask("GET", "/join"))
    assert [received.event.get("threadId") for received in (start, snapshot, end)] == [NAME, None, NAME]
    assert (start.number, snapshot.number, end.number) == (0, 0, 3)
