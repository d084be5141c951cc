"""R15: commands in the background: started, looked at and ended by their thread, gone with it and with the server."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from recto.config.run_settings import CommandSettings
from recto.conversation.json import Json
from recto.tools.commands.running_command import Ending
from recto.tools.commands.terminal import JOBS_KNOWN, Order
from tests.tools.commands.terminals import Console, console
from tests.tools.commands.test_terminal_execute import none_left
from tests.waiting import wait_until

BEGUN = "echo begun; sleep 71.5; echo never"


@pytest.fixture
def made(tmp_path: Path) -> Console:
    return console(tmp_path / "work")


async def test_R15_a_job_answers_at_once_and_can_be_looked_at_and_ended(made: Console):
    told = await made.execute(BEGUN, background=True)
    assert told == {"stdout": "begun\n", "stderr": "", "job": "job-1", "output": ".recto/output/job-1.txt"}
    looked = await made.jobs("look", "job-1")
    assert (looked["state"], looked["newest"]) == ("running", "begun\n")
    [row] = cast("list[dict[str, Json]]", (await made.jobs("list"))["jobs"])
    assert [row[name] for name in ("job", "state", "command")] == ["job-1", "running", BEGUN]
    ended = await made.jobs("end", "job-1")
    assert (ended["state"], ended["exitCode"], ended["ended"]) == ("ended", 137, "It was ended as asked.")
    await none_left("71.5")


@pytest.mark.full
async def test_R15_a_job_that_ends_by_itself_is_told_with_its_code_and_its_output(made: Console):
    told = await made.execute("no-such-program", background=True)
    assert (told["exitCode"], "not found" in str(told["stderr"])) == (127, True)
    started = await made.execute("until [ -e stop ]; do sleep 0.1; done; seq 1 3; echo oh >&2; exit 5", background=True)
    # Two processes of one project work side by side.
    await made.execute("touch stop")
    ended = await made.ended(started["job"])
    assert (ended["exitCode"], ended["newest"]) == (5, "1\n2\n3\noh\n")
    assert (made.folder / str(ended["output"])).read_text() == ended["newest"]


@pytest.mark.full
async def test_R15_jobs_are_limited_for_a_thread_and_for_all(tmp_path: Path):
    made = console(tmp_path, CommandSettings(thread_jobs=1, jobs=2))
    others = [made.with_context(lambda context, name=name: replace(context, thread=name)) for name in ("t2", "t3")]
    await made.execute("sleep 60", background=True)
    assert "1 job is at work in this thread, and" in await made.say("sleep 60", background=True)
    await others[0].execute("sleep 60", background=True)
    assert "2 jobs are at work on this server" in await others[1].say("sleep 60", background=True)
    await made.terminal.close()
    assert "job" in await others[1].execute("true", background=True)


async def test_R15_a_running_job_is_known_however_many_others_have_ended(tmp_path: Path):
    made = console(tmp_path, CommandSettings(thread_jobs=1))
    await made.execute("sleep 75.5", background=True)
    other = made.with_context(lambda context: replace(context, thread="t2"))
    for _ in range(JOBS_KNOWN + 2):
        # It ends before a process is started.
        await other.say("\0", background=True)
    assert len(other.terminal.jobs(other.context.owner, "t2")) == JOBS_KNOWN + 1
    assert "at work in this thread" in await made.say("sleep 60", background=True)
    await made.terminal.end_threads(["t1"])
    await none_left("75.5")


async def test_R15_a_job_that_fails_in_the_server_is_not_running_for_ever(made: Console):
    assert made.context.workspace
    # Half a character, which no process can be given.
    limits = {"seconds": 5, "characters": 100}
    asked = Order(command="\ud800", workspace=made.context.workspace, folder="", owner="ann", thread="t1", **limits)
    job = await made.terminal.begin(asked)
    assert job.ending == Ending(code=1, why="It was ended because something went wrong in the server.")


async def test_P5_a_job_of_another_thread_is_not_there(made: Console):
    await made.execute("sleep 60", background=True)
    other = made.with_context(lambda context: replace(context, owner="bob", thread="t2"))
    assert await other.jobs("list") == {"jobs": []}
    for action in ("look", "end"):
        assert await other.jobs(action, "job-1") == {"error": "There is no job 'job-1' in this thread. Known: none."}
    assert (await made.jobs("look", "job-1"))["state"] == "running"
    await made.terminal.close()


@pytest.mark.full
async def test_R15_jobs_end_after_their_time_with_their_thread_and_with_the_server(tmp_path: Path):
    made = console(tmp_path, CommandSettings(job_seconds=0.4))
    await made.execute("sleep 72.5", background=True)
    said = "It was ended: it took longer than 0.4 seconds. Ask for less, or give it more time."
    assert (await made.ended("job-1"))["ended"] == said
    other = console(tmp_path)
    await other.execute("sleep 73.5", background=True)
    assert other.terminal.threads() == ["t1"]
    await other.terminal.end_threads(["t1"])
    await other.execute("sleep 74.5", background=True)
    await other.terminal.close()
    assert (await other.jobs("look", "job-3"))["ended"] == "It ended with the server."
    await none_left("72.5", "73.5", "74.5")


async def test_X4_a_job_of_before_a_restart_is_told_as_ended_with_what_it_printed(tmp_path: Path):
    first = console(tmp_path)
    await first.execute("echo before; sleep 60", background=True)
    output = tmp_path / ".recto/output/job-1.txt"
    await wait_until(lambda: output.exists() and output.read_text() == "before\n")
    await first.terminal.close()
    told = await console(tmp_path).jobs("look", "job-1")
    why = "It ended with the server it ran in, which was started again since; its exit code is not known."
    found = {"job": "job-1", "state": "ended", "ended": why, "output": ".recto/output/job-1.txt", "newest": "before\n"}
    assert told == found


async def test_R15_a_job_that_never_was_is_refused_and_who_names_none_hears_which_there_are(made: Console):
    (made.folder.parent / "secret.txt").write_text("SECRET")
    for name in ("job-9", "../../secret", "job-1/../job-1", "1"):
        assert "There is no job" in str((await made.jobs("look", name))["error"])
    said = "`job` is missing: say which one. In this thread there are: "
    assert await made.jobs("look", None) == {"error": f"{said}none."}
    await made.execute("true", background=True)
    assert await made.jobs("end", "") == {"error": f"{said}job-1."}


@pytest.mark.full
async def test_R15_only_the_newest_whole_outputs_are_kept_and_that_of_a_running_job(tmp_path: Path):
    made = console(tmp_path, CommandSettings(outputs=2)).with_context(lambda context: replace(context, characters=300))
    await made.execute("echo begun; sleep 60", background=True)
    for _ in range(4):
        await made.execute("seq 1 1000")
    names = sorted(path.name for path in (tmp_path / ".recto/output").glob("*.txt"))
    assert names == ["4.txt", "5.txt", "job-1.txt"]
    await made.terminal.close()


@pytest.mark.full
async def test_R15_a_job_that_prints_much_is_written_on_while_it_is_looked_at(made: Console):
    short = made.with_context(lambda context: replace(context, characters=400))
    told = await short.execute("seq 1 100000; until [ -e stop ]; do sleep 0.1; done; echo last", background=True)
    assert told["cut"] is True
    (made.folder / "stop").touch()
    ended = await short.ended("job-1")
    assert str(ended["newest"]).endswith("100000\nlast\n")
    assert len((made.folder / ".recto/output/job-1.txt").read_text().splitlines()) == 100_001
