"""Tools that do not do as they are told, through a real server: stuck ones, stubborn ones, badly called ones."""

import time
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

pytestmark = pytest.mark.full

TOOLS = '''
import asyncio
import time
from pathlib import Path

from recto import tool

FOLDER = Path(__file__).parent


@tool
def block(seconds: float) -> str:
    """Block a thread."""
    (FOLDER / "begun").touch()
    time.sleep(seconds)
    return "blocked"


@tool
async def persist(seconds: float) -> str:
    """Go on for so long, whoever wants it to end."""
    (FOLDER / "begun").touch()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            await asyncio.sleep(until - time.monotonic())
        except asyncio.CancelledError:
            (FOLDER / "cancelled").touch()
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


def wait_for(file: Path) -> None:
    until = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < until, f"{file.name} never came"
        time.sleep(0.01)


def using(name: str, seconds: float) -> Call:
    return Call(name=name, arguments=f'{{"seconds": {seconds}}}', id="c1")


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
    harness = play([Answer(calls=(using(tool, 60),))])
    with harness.serve(grace_seconds=1) as server:
        start(harness.url, ask("go"))
        wait_for(harness.agent / "begun")
        begun = time.monotonic()
        assert server.stop(STOP_SECONDS) == 0
        assert time.monotonic() - begun < STOP_SECONDS


def test_P8_cancel_leaves_a_tool_behind_that_does_not_heed_it_and_the_model_is_told(play: Callable[[Script], Harness]):
    harness = play([Answer(calls=(using("persist", 4),)), Answer(text="Stopped.")])
    with harness.serve() as server:
        body = ask("go")
        events, seconds = cancelled(harness, body)
        assert seconds < 3
        assert last(events)["outcome"] == {"type": "cancelled"}
        assert "Tool persist was cancelled and does not end" in server.output
        stopped = [("c1", INTERRUPTED, STOPPED.format(name="persist"))]
        assert results(harness, body["threadId"]) == stopped
        assert stream_texts(events) == log_texts(harness.log(str(body["threadId"])))
        wait_for(harness.agent / "ended")
        run(harness.url, ask("and now?", thread=str(body["threadId"])))
        # What it answered in the end is not in the log.
        assert results(harness, body["threadId"]) == stopped
        assert server.stop(STOP_SECONDS) == 0


def cancelled(harness: Harness, body: Mapping[str, Json]) -> tuple[Sequence[SentEvent], float]:
    """A run that is cancelled once its tool is at work: what was heard, and how long the end took."""
    start(harness.url, body)
    wait_for(harness.agent / "begun")
    reader = Reader(lambda: harness.url, str(body["runId"]))
    begun = time.monotonic()
    assert request(harness.url, "POST", f"{RUNS}/{body['runId']}/cancel").status == 200
    return reader.wait(), time.monotonic() - begun


def test_a_tool_that_does_not_heed_its_time_limit_does_not_hold_the_run(
    tmp_path: Path, play: Callable[[Script], Harness]
):
    harness = play([Answer(calls=(using("persist", 60),)), Answer(text="Too slow.")])
    config = tmp_path / "recto.toml"
    config.write_text("[limits]\ntool_seconds = 0.2\n", encoding="utf-8")
    command = ["recto", "serve", "--port", str(harness.port), "--data", str(harness.data), "--config", str(config)]
    with ServerProcess(command, harness.environment()):
        body = ask("go")
        begun = time.monotonic()
        events = run(harness.url, body)
        assert time.monotonic() - begun < 10
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
