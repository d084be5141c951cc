"""Tools that do not do as they are told, through a real server: stuck ones, stubborn ones, badly called ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from recto.conversation.json import Json
from recto.conversation.messages import ToolMessage, texts_of
from recto.conversation.next_step import INVALID_ARGUMENTS
from recto.testing.client import RUNS, Reader, SentEvent, ask, request, run, start
from recto.testing.model_server import Answer, Call, Script
from recto.testing.process import ServerProcess
from recto.worker.tools.run_tools import INTERRUPTED, STOPPED
from tests.end_to_end.harness import Harness, log_texts, stream_texts
from tests.waiting import wait_for

pytestmark = pytest.mark.full

TOOLS = '''
import asyncio
import threading
from contextlib import suppress
from pathlib import Path

from recto import tool

FOLDER = Path(__file__).parent


@tool
def block() -> str:
    """Block a thread for ever."""
    (FOLDER / "begun").touch()
    threading.Event().wait()
    return "blocked"


@tool
async def persist() -> str:
    """Go on until a file is there, whoever wants it to end."""
    (FOLDER / "begun").touch()
    while not (FOLDER / "end").exists():
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.01)
    (FOLDER / "ended").touch()
    return "persisted"


@tool
def quick() -> str:
    """Answer at once."""
    return "quick"
'''
COLOUR = {
    "name": "pick_colour",
    "description": "Have the user pick a colour.",
    "parameters": {
        "type": "object",
        "properties": {"colours": {"type": "array", "items": {"type": "string"}}},
        "required": ["colours"],
    },
}
# The server alone takes some of it to come to its end.
STOP_SECONDS = 10.0


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Callable[[Script], Harness]]:
    """Makes the harness a script is played on, with the tools of this file."""
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


def using(name: str) -> Call:
    return Call(name=name, arguments="{}", id="c1")


def pick(arguments: str, id: str) -> Call:
    return Call(name="pick_colour", arguments=arguments, id=id)


def last(events: Sequence[SentEvent]) -> Mapping[str, Json]:
    return events[-1].event


def results(harness: Harness, thread: Json) -> list[tuple[str, str | None, str]]:
    """Each result of the log: the call's id, its error, its words."""
    found = [entry for entry in harness.log(str(thread)) if isinstance(entry, ToolMessage)]
    return [(entry.tool_call_id, entry.error, "".join(texts_of(entry))) for entry in found]


@pytest.mark.parametrize("tool", ["block", "persist"])
def test_P8_a_server_stops_though_a_tool_does_not(tool: str, play: Callable[[Script], Harness]):
    harness = play([Answer(calls=(using(tool),))])
    with harness.serve(grace_seconds=1) as server:
        start(harness.url, ask("go"))
        wait_for_file(harness.agent / "begun")
        assert server.stop(STOP_SECONDS) == 0


def test_P8_cancel_leaves_a_tool_behind_that_does_not_heed_it_and_the_model_is_told(play: Callable[[Script], Harness]):
    harness = play([Answer(calls=(using("persist"),)), Answer(text="Stopped.")])
    with harness.serve() as server:
        body = ask("go")
        events = cancelled(harness, body)
        assert not (harness.agent / "ended").exists()
        (harness.agent / "end").touch()
        assert last(events)["outcome"] == {"type": "cancelled"}
        assert "Tool persist was cancelled and does not end" in server.output
        stopped = [("c1", INTERRUPTED, STOPPED.format(name="persist"))]
        assert results(harness, body["threadId"]) == stopped
        assert stream_texts(events) == log_texts(harness.log(str(body["threadId"])))
        wait_for_file(harness.agent / "ended")
        run(harness.url, ask("and now?", thread=str(body["threadId"])))
        # What it answered in the end is not in the log.
        assert results(harness, body["threadId"]) == stopped
        assert server.stop(STOP_SECONDS) == 0


def cancelled(harness: Harness, body: Mapping[str, Json]) -> Sequence[SentEvent]:
    """A run that is cancelled once its tool is at work: what was heard."""
    start(harness.url, body)
    wait_for_file(harness.agent / "begun")
    reader = Reader(lambda: harness.url, str(body["runId"]))
    assert request(harness.url, "POST", f"{RUNS}/{body['runId']}/cancel").status == 200
    return reader.wait()


def test_a_tool_that_does_not_heed_its_time_limit_does_not_hold_the_run(
    tmp_path: Path, play: Callable[[Script], Harness]
):
    harness = play([Answer(calls=(using("persist"),)), Answer(text="Too slow.")])
    config = tmp_path / "recto.toml"
    config.write_text("[limits]\ntool_seconds = 0.2\n", encoding="utf-8")
    command = ["recto", "serve", "--port", str(harness.port), "--data", str(harness.data), "--config", str(config)]
    with ServerProcess(command, harness.environment()):
        body = ask("go")
        events = run(harness.url, body)
        assert stream_texts(events)["words"] == ["Too slow."]
        assert [error for _, error, _ in results(harness, body["threadId"])] == ["timeout"]


def test_P11_of_several_calls_only_those_well_written_are_left_to_the_client(play: Callable[[Script], Harness]):
    calls = (pick("{}", "p1"), pick('{"colours": []}', "p2"), Call(name="quick", id="q1"), pick("[", "p3"))
    harness = play([Answer(calls=calls)])
    with harness.serve():
        body = ask("which?", tools=[COLOUR])
        events = run(harness.url, body)
        assert last(events)["outcome"] == {"type": "success", "pendingToolCallIds": ["p2"]}
        found = [(call, error) for call, error, _ in results(harness, body["threadId"])]
        assert found == [("q1", None), ("p1", INVALID_ARGUMENTS), ("p3", INVALID_ARGUMENTS)]
        assert stream_texts(events) == log_texts(harness.log(str(body["threadId"])))


def test_P11_a_model_that_never_learns_to_call_a_clients_tool_ends_the_run(play: Callable[[Script], Harness]):
    harness = play([Answer(calls=(pick("{}", f"p{number}"),)) for number in range(9)])
    with harness.serve():
        events = run(harness.url, ask("which?", tools=[COLOUR]))
        assert last(events)["code"] == "bad_arguments"
        assert len(harness.received) == 4
