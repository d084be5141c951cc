"""Crashes around a change of the shared state (X4, P1)."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.conversation.log import StateChanged
from recto.testing.model_server import Answer, Call, Request
from tests.conversation.test_json_patch import patched
from tests.end_to_end.harness import Harness
from tests.end_to_end.test_crash import assert_whole
from tests.support.client import ReceivedEvent, ask, request, start

pytestmark = pytest.mark.full

TOOLS = '''
from recto import tool
from recto.tools.ports import ToolContext


@tool(safe_to_repeat=True)
def count(context: ToolContext) -> str:
    """Count one more."""
    context.state.put("/count", context.state.get("/count") + 1)
    return "counted"
'''
SENT_BODY = {"count": 1, "of": "sheep"}


def counting(request: Request) -> Answer:
    """Count once, then answer."""
    messages = cast("list[Mapping[str, Json]]", request.page["messages"])
    done = messages[-1]["role"] == "tool"
    return Answer(text="Counted.") if done else Answer(calls=(Call(name="count", arguments="{}", id="c1"),))


def state_heard(events: list[ReceivedEvent]) -> Json:
    """Return the state of a client after these events."""
    state: Json = {}
    for received in events:
        match received.event:
            case {"type": "STATE_SNAPSHOT", "snapshot": whole}:
                state = whole
            case {"type": "STATE_DELTA", "delta": delta}:
                state = patched(state, cast("list[Mapping[str, Json]]", delta))
            case _:
                pass
    return state


@pytest.mark.parametrize(
    ("point", "times"), [("entered", 1), ("tools_started", 1), ("tool_acted", 1), ("tool_ended", 1)]
)
def test_X4_P1_a_server_killed_around_a_change_of_state_changes_it_once(point: str, times: int, tmp_path: Path):
    with Harness(tmp_path, counting) as harness:
        (harness.agent / "tools.py").write_text(TOOLS)
        body = ask("Count.", state=cast("Json", SENT_BODY))
        reader = harness.killed(body, point, times)
        with harness.serve():
            start(harness.url, body)
            events = reader.wait()
            log = assert_whole(harness, body, events)
            changes = [entry.value for entry in log if isinstance(entry, StateChanged)]
            assert changes == ['{"count":1,"of":"sheep"}', '{"count":2,"of":"sheep"}']
            assert state_heard(list(events)) == {"count": 2, "of": "sheep"}
            thread = request(harness.url, "GET", f"/api/v1/agent/threads/{body['threadId']}").json
            assert thread["state"] == {"count": 2, "of": "sheep"}
