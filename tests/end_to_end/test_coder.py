"""R15: the demo model replays its coding session over HTTP, with the real tools of the shipped coder."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.process import ServerProcess
from tests.support.client import RUNS, ReceivedEvent, ask, read_events, request, start

pytestmark = pytest.mark.full

CALLS = [
    *("ace-text_search", "filesystem-create", "filesystem-create", "filesystem-read", "terminal-execute"),
    *("filesystem-read", "filesystem-edit", "terminal-execute"),
]
WORDS = "The tests fail. Fix the bug, please."


def calls_in(events: Sequence[ReceivedEvent]) -> list[str]:
    return [str(received.event["toolCallName"]) for received in events if received.event["type"] == "TOOL_CALL_START"]


def text_in(events: Sequence[ReceivedEvent]) -> str:
    return "".join(
        str(received.event["delta"]) for received in events if received.event["type"] == "TEXT_MESSAGE_CONTENT"
    )


def outcome_of(events: Sequence[ReceivedEvent]) -> Mapping[str, Json]:
    last = events[-1].event
    assert last["type"] == "RUN_FINISHED", last
    outcome = last.get("outcome")
    return outcome if isinstance(outcome, dict) else {}


def play(server: ServerProcess, words: str, thread: str) -> list[ReceivedEvent]:
    task = start(server.url, ask(words, thread=thread, forwardedProps={"agent": "coder"}))
    return list(read_events(server.url, task))


def check_repaired(folder: Path) -> None:
    """Check that the demo project exists in its subfolder and that its tests pass."""
    assert "    if count >= 10:\n" in (folder / "recto-demo/shop.py").read_text(encoding="utf-8")
    command = [sys.executable, "-B", "-m", "unittest", "-q"]
    subprocess.run(command, cwd=folder / "recto-demo", check=True, capture_output=True)


def test_R15_C1_in_a_folder_of_the_threads_own_the_session_repairs_a_project_once(tmp_path: Path):
    thread = new_id()
    with ServerProcess.serve(tmp_path / "data", {}) as server:
        events = play(server, "请修复失败的测试", thread)
        again = play(server, "Fix the failing tests.", thread)
    check_repaired(tmp_path / "data" / "workspaces" / thread)
    assert calls_in(events) == CALLS
    assert "修好了，测试全部通过。" in text_in(events)
    assert calls_in(again) == ["ace-text_search", "terminal-execute", "filesystem-read"]
    assert "I always replay the same session" in text_in(again)


def approved(server: ServerProcess, events: Sequence[ReceivedEvent], approvals: list[str]) -> Iterator[ReceivedEvent]:
    """Yield the events of a run and its continuations; approve each waiting call, one after the other."""
    yield from events
    while outcome_of(events).get("type") == "interrupt":
        (interrupt,) = json.loads(json.dumps(outcome_of(events)["interrupts"]))
        approvals.append(interrupt["message"])
        answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}
        run = events[-1].event["runId"]
        reply = request(server.url, "POST", f"{RUNS}/{run}/resume", {"resume": [answer]})
        assert reply.status == 202, reply.body
        events = list(read_events(server.url, str(reply.json["taskId"])))
        yield from events


def test_R15_in_a_given_folder_each_edit_and_command_waits_for_a_person_and_other_files_stay(tmp_path: Path):
    folder, approvals = tmp_path / "project", list[str]()
    folder.mkdir()
    (folder / "shop.py").write_text("def price_of(): ...\n", encoding="utf-8")
    # A given folder has the mode `ask` unless a setting names another.
    with ServerProcess.serve(tmp_path / "data", {}, "--workspace", str(folder)) as server:
        events = list(approved(server, play(server, WORDS, new_id()), approvals))
    check_repaired(folder)
    assert {file.name for file in folder.iterdir()} == {"shop.py", "recto-demo"}
    assert calls_in(events) == CALLS
    changing = [name for name in CALLS if name not in ("ace-text_search", "filesystem-read")]
    assert [message.split()[1] for message in approvals] == changing
