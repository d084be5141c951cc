"""Commands end with a server that stops or is killed (R15, X4)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json, dump
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, Request, Script
from tests.end_to_end.harness import Harness
from tests.end_to_end.test_interrupts_crash import results
from tests.support.client import Reader, ReceivedEvent, ask, start
from tests.tools.commands.test_git_guards import git
from tests.tools.commands.test_terminal_execute import command_lines
from tests.waiting import wait_for

pytestmark = pytest.mark.full

AGENT = "---\ntools: [terminal-execute, terminal-jobs]\n---\n\nYou work on code.\n"


def calling(**calls: tuple[str, Mapping[str, Json]]) -> Script:
    """Return a model that makes the call of the last word in the message."""

    def script(model_request: Request) -> Answer:
        last = cast("list[Mapping[str, Json]]", model_request.page["messages"])[-1]
        if last["role"] == "tool":
            return Answer(text="It is done.")
        name, arguments = calls[str(last["content"]).split()[-1]]
        return Answer(calls=(Call(name=name, arguments=dump(arguments).decode(), id=new_id()),))

    return script


def coder(harness: Harness) -> None:
    (harness.agent / "AGENT.md").write_text(AGENT, encoding="utf-8")


def is_running(word: bytes) -> bool:
    return any(word in line for line in command_lines())


def wait_until(running: bool, word: bytes) -> None:
    wait_for(lambda: is_running(word) is running, f"{word!r} {'to run' if running else 'to end'}")


def read(harness: Harness, body: Mapping[str, Json]) -> Sequence[ReceivedEvent]:
    return Reader(lambda: harness.url, start(harness.url, body)).wait()


@pytest.mark.parametrize("is_at_work", [True, False])
def test_X4_a_command_dies_with_a_server_that_is_killed_and_is_not_run_twice(tmp_path: Path, is_at_work: bool):
    with Harness(tmp_path, calling(run=("terminal-execute", {"command": "echo x >> ran; sleep 91.5"}))) as harness:
        coder(harness)
        body = ask("run")
        with harness.serve() as server:
            start(harness.url, body)
            # In its command line, the sandbox has it before it is set up.
            wait_until(True, b"sleep\x0091.5" if is_at_work else b"91.5")
            server.kill()
            wait_until(False, b"91.5")
        with harness.serve():
            [result] = results(read(harness, body))
            assert result.startswith("terminal-execute was started and then interrupted")
        ran = [path.read_text() for path in (harness.data / "workspaces").glob("*/ran")]
        assert ran in ([["x\n"]] if is_at_work else [[], ["x\n"]])


def test_X4_a_server_killed_over_a_command_leaves_nothing_in_the_repository_of_its_user(tmp_path: Path):
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    before = sorted(path.name for path in (project / ".git").iterdir())
    with Harness(tmp_path, calling(run=("terminal-execute", {"command": "sleep 93.5"}))) as harness:
        coder(harness)
        body = ask("run")
        settings = {"workspace": project, "mode": "full"}
        with harness.serve(**settings) as server:
            start(harness.url, body)
            wait_until(True, b"sleep\x0093.5")
            server.kill()
            wait_until(False, b"93.5")
        # What it was killed over is there: else this would prove nothing.
        assert (project / ".git/commondir").exists()
        with harness.serve(**settings):
            assert git(project, "status", "--porcelain") == ""
            assert sorted(path.name for path in (project / ".git").iterdir()) == before
            assert [path.name for path in project.iterdir()] == [".git"]
            read(harness, body)


def test_X4_jobs_end_with_the_server_and_are_told_as_ended_after_it(tmp_path: Path):
    job: Mapping[str, Json] = {"command": "echo begun; sleep 92.5", "background": True}
    look: Mapping[str, Json] = {"action": "look", "job": "job-1"}
    with Harness(tmp_path, calling(run=("terminal-execute", job), look=("terminal-jobs", look))) as harness:
        coder(harness)
        body = ask("run")
        thread = str(body["threadId"])
        with harness.serve() as server:
            assert '"job":"job-1"' in results(read(harness, body))[0]
            assert '"state":"running"' in results(read(harness, ask("look", thread=thread)))[0]
            assert is_running(b"92.5")
            assert server.stop() == 0
            wait_until(False, b"92.5")
        with harness.serve():
            [result] = results(read(harness, ask("look", thread=thread)))
            assert "It ended with the server it ran in" in result
            assert '"newest":"begun\\n"' in result
