"""R15: a real small repository is repaired over HTTP by the demo model, with the tools of the shipped coder."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.models.demo.demo_coder import PROJECT
from recto.testing.process import ServerProcess
from tests.support.client import RUNS, ReceivedEvent, ask, read_events, request, start

pytestmark = pytest.mark.full

FILES = {
    "shop/__init__.py": '"""A shop."""\n',
    "shop/money.py": '''"""Money, in cents."""


def share(amount, percent):
    """A part of an amount."""
    return amount * percent // 100


def rounded(amount, step=5):
    """To the nearest step; halves go up."""
    rest = amount % step
    if rest * 2 >= step:
        return amount - rest - step
    return amount - rest
''',
    "shop/orders.py": '''"""Orders of a shop."""

from shop.money import rounded, share


def due(lines, percent=0):
    """Return the price of all lines, after a discount."""
    whole = sum(count * price for count, price in lines)
    return rounded(whole - share(whole, percent))
''',
    "tests/test_orders.py": """import unittest

from shop.orders import due


class OrdersTest(unittest.TestCase):
    def test_what_is_nearer_to_the_next_step_goes_up(self):
        self.assertEqual(due([(1, 103)]), 105)

    def test_a_discount_is_taken_off_first(self):
        self.assertEqual(due([(1, 220)], 12), 195)

    def test_what_is_nearer_to_the_last_step_goes_down(self):
        self.assertEqual(due([(1, 102)]), 100)
""",
}
BUG, REPAIRED = "        return amount - rest - step", "        return amount - rest + step"
WORDS = "Two tests fail. Fix the bug, please."


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def run_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", "-m", "unittest", "-q", "tests/test_orders.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "A shop")
    assert "failures=2" in run_tests(folder).stderr
    return folder


def calls_in(events: Sequence[ReceivedEvent]) -> list[str]:
    return [str(sent.event["toolCallName"]) for sent in events if sent.event["type"] == "TOOL_CALL_START"]


def said_in(events: Sequence[ReceivedEvent]) -> str:
    return "".join(str(sent.event["delta"]) for sent in events if sent.event["type"] == "TEXT_MESSAGE_CONTENT")


def outcome_of(events: Sequence[ReceivedEvent]) -> Mapping[str, Json]:
    last = events[-1].event
    assert last["type"] == "RUN_FINISHED", last
    outcome = last.get("outcome")
    return outcome if isinstance(outcome, dict) else {}


def repair(server: ServerProcess, words: str, thread: str) -> list[ReceivedEvent]:
    task = start(server.url, ask(words, thread=thread, forwardedProps={"agent": "coder"}))
    return list(read_events(server.url, task))


def check_repaired(folder: Path) -> None:
    """The tests pass, one line is another, and nothing else is, in the history neither."""
    assert run_tests(folder).returncode == 0
    assert git(folder, "status", "--porcelain") == " M shop/money.py\n"
    changed = [line for line in git(folder, "diff", "-U0").splitlines() if line[:1] in "+-" and line[1:2] not in "+-"]
    assert changed == [f"-{BUG}", f"+{REPAIRED}"]
    assert git(folder, "log", "--format=%s") == "A shop\n"


def test_R15_C1_a_repository_with_failing_tests_is_repaired_in_one_run(repository: Path, tmp_path: Path):
    flags = ("--workspace", str(repository), "--mode", "full")
    with ServerProcess.serve(tmp_path / "data", {}, *flags) as server:
        events = repair(server, WORDS, new_id())
    check_repaired(repository)
    called = calls_in(events)
    assert called[:3] == ["ace-text_search", "terminal-execute", "filesystem-read"]
    assert called[-2:] == ["terminal-execute", "filesystem-read"]
    assert f"-{BUG}\n+{REPAIRED}\n" in said_in(events)


def test_R15_in_a_folder_of_the_threads_own_it_makes_a_project_and_repairs_that(tmp_path: Path):
    thread = new_id()
    with ServerProcess.serve(tmp_path / "data", {}) as server:
        events = repair(server, "请修复失败的测试", thread)
        again = repair(server, "Fix the failing tests.", thread)
    folder = tmp_path / "data" / "workspaces" / thread
    assert {path: (folder / path).read_text(encoding="utf-8") for path in PROJECT} == {
        path: text.replace("count > 10", "count >= 10") for path, text in PROJECT.items()
    }
    assert calls_in(events).count("filesystem-create") == len(PROJECT)
    assert "修好了，测试全部通过。" in said_in(events)
    # The next turn finds what the last one left.
    assert calls_in(again) == ["ace-text_search", "terminal-execute"]
    assert said_in(again).endswith("All tests pass: there is nothing to fix.")


def approved(server: ServerProcess, events: Sequence[ReceivedEvent], approvals: list[str]) -> Iterator[ReceivedEvent]:
    """A run, and those that go on with it: every call that waits is approved, one after the other."""
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


def test_R15_in_the_mode_ask_each_edit_and_command_waits_for_a_person(repository: Path, tmp_path: Path):
    approvals: list[str] = []
    # A folder that was given asks, unless somebody says otherwise.
    with ServerProcess.serve(tmp_path / "data", {}, "--workspace", str(repository)) as server:
        events = list(approved(server, repair(server, WORDS, new_id()), approvals))
    check_repaired(repository)
    waiting = [name for name in calls_in(events) if name in ("filesystem-edit", "terminal-execute")]
    assert [one.split()[1] for one in approvals] == waiting
