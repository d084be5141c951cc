"""P8: tools that ignore a cancel or a stop, through a real server."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from recto.conversation.json import Json
from recto.conversation.messages import ToolMessage, texts_of
from recto.testing.model_server import Answer, Call, Script
from recto.worker.tools.run_tools import INTERRUPTED, STOPPED
from tests.end_to_end.harness import Harness, log_texts, stream_texts
from tests.support.client import RUNS, Reader, ReceivedEvent, ask, request, run, start
from tests.waiting import wait_for

pytestmark = pytest.mark.full

TOOLS = '''
import asyncio
import threading
from contextlib import suppress
from pathlib import Path

from recto import tool

FOLDER = Path(__file__).parent
END = asyncio.Event()


@tool
def block() -> str:
    """Block a thread forever."""
    (FOLDER / "begun").touch()
    threading.Event().wait()
    return "blocked"


@tool
async def persist() -> str:
    """Go on until `release` is called, whoever cancels it."""
    (FOLDER / "begun").touch()
    while not END.is_set():
        with suppress(asyncio.CancelledError):
            await END.wait()
    (FOLDER / "ended").touch()
    return "persisted"


@tool
async def release() -> str:
    """Let `persist` end."""
    END.set()
    return "released"
'''
# The server alone takes some of it to come to its end.
STOP_SECONDS = 10.0


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Callable[[Script], Harness]]:
    """Return a function that makes a harness with the tools of this file."""
    stages: list[Harness] = []

    def make(script: Script) -> Harness:
        harness = Harness(tmp_path, script).__enter__()
        stages.append(harness)
        (harness.agent / "tools.py").write_text(TOOLS, encoding="utf-8")
        return harness

    yield make
    for harness in stages:
        harness.__exit__(None, None, None)


def wait_for_file(file: Path) -> None:
    wait_for(file.exists, f"{file.name}")


def using(name: str, id: str = "c1") -> Answer:
    return Answer(calls=(Call(name=name, id=id),))


def last(events: Sequence[ReceivedEvent]) -> Mapping[str, Json]:
    return events[-1].event


def results(harness: Harness, thread: Json) -> list[tuple[str, str | None, str]]:
    """Return the call id, the error and the text of each result in the log."""
    results = [entry for entry in harness.log(str(thread)) if isinstance(entry, ToolMessage)]
    return [(entry.tool_call_id, entry.error, "".join(texts_of(entry))) for entry in results]


@pytest.mark.parametrize("tool", ["block", "persist"])
def test_P8_a_server_stops_though_a_tool_does_not(tool: str, play: Callable[[Script], Harness]):
    harness = play([using(tool)])
    with harness.serve(grace_seconds=1) as server:
        start(harness.url, ask("go"))
        wait_for_file(harness.agent / "begun")
        assert server.stop(STOP_SECONDS) == 0


def test_P8_cancel_leaves_a_tool_behind_that_does_not_heed_it_and_the_model_is_told(play: Callable[[Script], Harness]):
    harness = play([using("persist"), using("release", "c2"), Answer(text="Stopped.")])
    with harness.serve() as server:
        body = ask("go")
        events = cancelled(harness, body)
        assert not (harness.agent / "ended").exists()
        assert last(events)["outcome"] == {"type": "cancelled"}
        assert "Tool persist was cancelled and does not end" in server.output
        stopped = [("c1", INTERRUPTED, STOPPED.format(name="persist"))]
        assert results(harness, body["threadId"]) == stopped
        assert stream_texts(events) == log_texts(harness.log(str(body["threadId"])))
        run(harness.url, ask("and now?", thread=str(body["threadId"])))
        wait_for_file(harness.agent / "ended")
        # What it answered in the end is not in the log.
        assert results(harness, body["threadId"]) == [*stopped, ("c2", None, "released")]
        assert server.stop(STOP_SECONDS) == 0


def cancelled(harness: Harness, body: Mapping[str, Json]) -> Sequence[ReceivedEvent]:
    """Cancel a run while its tool works. Return the events."""
    start(harness.url, body)
    wait_for_file(harness.agent / "begun")
    reader = Reader(lambda: harness.url, str(body["runId"]))
    assert request(harness.url, "POST", f"{RUNS}/{body['runId']}/cancel").status == 200
    return reader.wait()
