"""P1, P15: the state a thread shares with its clients, over the API: sent, read and changed by tools, told, kept."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest
from ag_ui.core import events as official
from pydantic import TypeAdapter

from recto.conversation.json import Json, dump
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.flow.in_process import STREAM, InProcess, events_of, in_process, types_of
from tests.support.client import RUNS, ReceivedEvent, ask

THREADS = "/api/v1/agent/threads"
PARSER: TypeAdapter[official.Event] = TypeAdapter(official.Event)
TOOLS = '''
import asyncio

from recto import tool
from recto.errors import ToolError
from recto.tools.ports import ToolContext

TURN = asyncio.Event()


@tool
def put(path: str, value: str, context: ToolContext) -> str:
    """Put a value somewhere."""
    before = context.state.get(path)
    context.state.put(path, value)
    return f"{before} became {context.state.get(path)}"


@tool
async def put_together(path: str, value: str, is_last: bool, context: ToolContext) -> str:
    """Put a value somewhere while another does."""
    context.state.put(path, value)
    if is_last:
        TURN.set()
    await TURN.wait()
    return "put"


@tool
def put_and_fail(path: str, context: ToolContext) -> str:
    """Change something, and fail."""
    context.state.put(path, "never")
    raise ToolError("It went wrong.")
'''


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[InProcess]:
    async with in_process(tmp_path, monkeypatch, tools=TOOLS, state_bytes=2_000) as server:
        yield server


def calling(name: str, **arguments: Json) -> Call:
    return Call(name=name, arguments=dump(arguments).decode(), id=new_id())


async def say(server: InProcess, thread: str, *answers: Answer, **rest: Json) -> Sequence[ReceivedEvent]:
    server.answers += [*answers, Answer(text="Done.")]
    reply = await server.send("POST", RUNS, {**ask("go", thread=thread), **rest}, headers=STREAM)
    assert reply.status == 200, reply.body
    events = events_of(reply)
    for received in events:
        PARSER.validate_json(received.body)
    return events


def state_events(events: Sequence[ReceivedEvent]) -> list[Json]:
    """What a client hears of the state."""
    kinds = {"STATE_SNAPSHOT": "snapshot", "STATE_DELTA": "delta"}
    return [one.event[kinds[kind]] for one in events if (kind := str(one.event["type"])) in kinds]


async def state_of(server: InProcess, thread: str) -> Json:
    return (await server.send("GET", f"{THREADS}/{thread}")).json["state"]


def results(events: Sequence[ReceivedEvent]) -> list[Json]:
    return [one.event["content"] for one in events if one.event["type"] == "TOOL_CALL_RESULT"]


async def test_P1_a_state_that_was_sent_is_kept_told_and_read_by_tools(server: InProcess):
    thread = new_id()
    oslo = Answer(calls=(calling("put", path="/city", value="Oslo"),))
    events = await say(server, thread, oslo, state={"city": "Rome"})
    assert types_of(events)[:2] == ["RUN_STARTED", "STATE_SNAPSHOT"]
    assert results(events) == ["Rome became Oslo"]
    assert state_events(events) == [{"city": "Rome"}, [{"op": "replace", "path": "/city", "value": "Oslo"}]]
    assert types_of(events).index("STATE_DELTA") == types_of(events).index("TOOL_CALL_RESULT") + 1
    assert await state_of(server, thread) == {"city": "Oslo"}


async def test_P1_the_first_state_is_told_whole_and_the_next_run_begins_with_it(server: InProcess):
    thread = new_id()
    calls = (calling("put", path="/todo/-", value="x"),)
    events = await say(server, thread, Answer(calls=(calling("put", path="/todo", value="y"),)))
    assert state_events(events) == [{"todo": "y"}]
    assert results(events) == ["None became y"]
    # Whatever the client has: nothing, as an older one, an old copy, or the very same.
    for received in (None, {}, {"todo": "y"}):
        assert state_events(await say(server, thread, state=received)) == [{"todo": "y"}]
    (failed,) = results(await say(server, thread, Answer(calls=calls)))
    assert "there is no place '-' in \"y\"" in str(failed)


async def test_P1_both_of_two_tools_at_once_change_the_state(server: InProcess):
    thread = new_id()
    calls = [calling("put_together", path=f"/{name}", value=name, is_last=name == "b") for name in ("a", "b")]
    events = await say(server, thread, Answer(calls=tuple(calls)), state={"c": 1})
    assert await state_of(server, thread) == {"c": 1, "a": "a", "b": "b"}
    changes = cast("list[list[Mapping[str, Json]]]", state_events(events)[1:])
    assert sorted(str(one["path"]) for some in changes for one in some) == ["/a", "/b"]


async def test_P1_a_state_that_is_too_long_is_refused_or_told_to_the_model(server: InProcess):
    thread = new_id()
    body = ask("go", thread=thread, state={"a": "x" * 2_000})
    reply = await server.send("POST", RUNS, body)
    assert reply.status == 422
    assert "state: has 2008 bytes; the limit is 2000" in str(reply.json["detail"])
    calls = (calling("put", path="/b", value="x" * 2_000), calling("put_and_fail", path="/a"))
    events = await say(server, thread, Answer(calls=calls), state={"a": 1})
    assert str(results(events)[0]).startswith("The shared state cannot be changed: it would have")
    # A tool that fails changes nothing either.
    assert state_events(events) == [{"a": 1}]
    assert await state_of(server, thread) == {"a": 1}


async def test_P1_what_a_client_changes_is_taken_over_in_a_turn_that_goes_on(server: InProcess):
    thread = new_id()
    tool = {"name": "pick", "description": "Pick one.", "parameters": {"type": "object"}}
    first = ask("pick", thread=thread, state={"a": 1}, tools=[tool])
    server.answers += [Answer(calls=(Call(name="pick", arguments="{}", id="c1"),)), Answer(text="Done.")]
    await server.send("POST", RUNS, first, headers=STREAM)
    client_result = {"id": new_id(), "role": "tool", "toolCallId": "c1", "content": "mine"}
    messages = [*cast("list[Json]", first["messages"]), client_result]
    again = {**first, "runId": new_id(), "messages": messages, "state": {"a": 2}}
    events = events_of(await server.send("POST", RUNS, again, headers=STREAM))
    assert state_events(events) == [{"a": 2}]
    assert "TEXT_MESSAGE_START" in types_of(events)
