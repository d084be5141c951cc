"""R15: commands run in the workspace and in the background, within their time, with the whole output in a file."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from recto.config.run_settings import CommandSettings
from recto.conversation.json import Json
from recto.tools.commands.running_command import Ending
from recto.tools.commands.terminal import JOBS_KNOWN, Order
from recto.tools.workspace.workspaces import Workspace
from tests.tools.commands.terminals import Console, console
from tests.waiting import wait_until


@pytest.fixture
def terminal(tmp_path: Path) -> Console:
    return console(tmp_path / "work")


async def test_R15_a_command_answers_with_both_streams_apart_and_its_code_or_signal_and_leaves_no_file(
    terminal: Console,
):
    answer = await terminal.execute("seq 1 1000; echo err >&2; exit 3")
    assert answer == {"stdout": "".join(f"{n}\n" for n in range(1, 1_001)), "stderr": "err\n", "exitCode": 3}
    assert await terminal.execute("kill -TERM $$") == {"stdout": "", "stderr": "", "exitCode": 143}
    # An undecodable byte is replaced, and nobody answers questions.
    answer = await terminal.execute(r"printf 'a\377b\033[31mc\033[0m\n'; read x || echo no input")
    assert answer["stdout"] == "a\ufffdbc\nno input\n"
    assert list(terminal.folder.iterdir()) == []


async def test_R15_commands_leave_files_in_the_workspace_and_work_in_a_folder_as_file_tools_name_it(terminal: Console):
    await terminal.execute("mkdir -p sub/deep && ln -s sub/deep link && echo kept > sub/deep/file")
    for path in (f"{terminal.folder}/sub/deep/", "sub\\deep", "link"):
        answer = await terminal.execute("cat file; pwd", workingDirectory=path)
        assert answer["stdout"] == f"kept\n{terminal.folder}/sub/deep\n"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc", "The path '/etc' leads out of the workspace."),
        ("sub/../..", "The path 'sub/../..' leads out of the workspace."),
        ("link", "link is, or lies behind, a link that leads out of the workspace."),
        ("missing", "There is no folder 'missing' in the workspace."),
        ("file", "There is no folder 'file' in the workspace."),
    ],
)
async def test_R15_a_folder_outside_the_workspace_is_refused(terminal: Console, path: str, text: str):
    (terminal.folder / "link").symlink_to("/")
    (terminal.folder / "file").write_text("no folder")
    assert (await terminal.say("pwd", workingDirectory=path)).startswith(text)


@pytest.mark.full
async def test_R15_a_command_has_what_development_needs(terminal: Console):
    code = "import ssl; print(len(ssl.create_default_context().get_ca_certs()) >= 0)"
    answer = await terminal.execute(
        "set -e; git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m x;"
        "git log --oneline | wc -l;"
        f"python3 -c '{code}'; node -e 'console.log(1+1)';"
        "whoami; touch ~/x /tmp/y; getent hosts localhost > /dev/null && echo found"
    )
    assert (answer["stdout"], answer["exitCode"]) == ("1\nTrue\n2\nuser\nfound\n", 0), answer


async def test_R15_output_that_does_not_fit_is_cut_and_the_whole_is_in_a_file_that_git_does_not_see(terminal: Console):
    short = terminal.with_context(lambda context: replace(context, characters=1_000))
    answer = await short.say("git init -q .; seq 1 5000; echo oh >&2")
    assert len(answer) <= 1_000
    command_answer = await short.execute("seq 1 5000; echo oh >&2")
    assert command_answer["output"] == ".recto/output/2.txt"
    whole = (terminal.folder / str(command_answer["output"])).read_text()
    assert whole.replace("oh\n", "") == "".join(f"{n}\n" for n in range(1, 5_001))
    assert (await short.execute("git status --porcelain"))["stdout"] == ""


async def test_R15_the_newest_lines_are_reported_while_it_runs(terminal: Console):
    command = "echo one\nuntil [ -e a ]; do sleep 0.02; done; echo two; until [ -e b ]; do sleep 0.02; done"
    running = asyncio.create_task(terminal.execute(command))
    for file, text in (("a", "one\n"), ("b", "one\ntwo\n")):
        await wait_until(lambda text=text: any(progress.text == text for progress in terminal.reports))
        (terminal.folder / file).touch()
    await running
    assert terminal.reports[0].label == "echo one"
    assert (terminal.reports[-1].done, terminal.reports[-1].unit) == (2, "lines")


async def test_R15_after_its_time_it_is_ended_and_what_it_printed_is_told(terminal: Console):
    answer = await terminal.execute("trap '' TERM INT HUP; echo first; sleep 60 & wait", timeout=300)
    end_text = (
        "It was ended: it took longer than 0.3 seconds. Ask for less, give it more time, or run it in background."
    )
    assert answer == {"stdout": "first\n", "stderr": "", "exitCode": 137, "ended": end_text}
    # No command takes longer than its call may.
    hurried = terminal.with_context(lambda context: replace(context, seconds=0.8))
    assert "longer than 0.4 seconds" in str((await hurried.execute("sleep 60", timeout=60_000))["ended"])


# One that has left its parent is found in a sandbox only.
@pytest.mark.parametrize(("is_confined", "start"), [(True, "(setsid sleep 61.25 &)"), (False, "setsid sleep 61.25 &")])
async def test_P8_a_cancel_ends_it_with_all_that_it_started(tmp_path: Path, is_confined: bool, start: str):
    shell = console(tmp_path, is_confined=is_confined)
    running = asyncio.create_task(shell.execute(f"{start}\necho up; sleep 62.25"))
    await wait_until(lambda: any(progress.text for progress in shell.reports))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await none_left("61.25", "62.25")


async def none_left(*words: str) -> None:
    """Wait until no process has these words."""
    await wait_until(lambda: not any(word.encode() in line for word in words for line in command_lines()))


def command_lines() -> list[bytes]:
    lines = list[bytes]()
    for path in Path("/proc").iterdir():
        with suppress(OSError):
            lines += [(path / "cmdline").read_bytes()] if path.name.isdecimal() else []
    return lines


async def test_R15_a_command_that_prints_without_end_is_ended(tmp_path: Path):
    shell = console(tmp_path, CommandSettings(output_bytes=100_000))
    answer = await shell.execute("yes")
    assert (
        answer["ended"] == "It was ended: it printed more than 100,000 bytes. Have it print less, or write to a file."
    )
    assert (tmp_path / ".recto/output/1.txt").stat().st_size < 400_000


@pytest.mark.full
async def test_R15_without_a_sandbox_the_environment_is_clean_all_the_same(tmp_path: Path):
    environment = {"OPENAI_API_KEY": "sk-secret", "HOME": str(tmp_path), "WANTED": "yes", "RECTO_TOKEN": "t"}
    for is_confined in (True, False):
        shell = console(
            tmp_path, CommandSettings(environment="WANTED, MISSING"), is_confined=is_confined, environment=environment
        )
        answer = await shell.execute("env; exit 4")
        names = {line.partition("=")[0] for line in str(answer["stdout"]).splitlines()}
        assert names == {"PATH", "LANG", "HOME", "TMPDIR", "TERM", "WANTED", "PWD", "SHLVL", "_"}
        assert answer["exitCode"] == 4


@pytest.mark.full
async def test_R15_folders_that_the_operator_names_can_be_read_and_their_programs_found(tmp_path: Path):
    hello = tmp_path / "opt/bin/hello"
    hello.parent.mkdir(parents=True)
    hello.write_text("#!/bin/sh\necho hello\n")
    hello.chmod(0o755)
    shell = console(tmp_path / "work", CommandSettings(readable=f"{tmp_path}/opt, /missing"))
    answer = await shell.execute(f"hello; touch {hello}x 2>/dev/null || echo read-only")
    assert answer["stdout"] == "hello\nread-only\n"


async def test_R15_what_a_link_in_place_of_its_folder_leads_to_is_not_written(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    shell = console(tmp_path / "work").with_context(lambda context: replace(context, characters=300))
    (shell.folder / ".recto").symlink_to(outside)
    answer = await shell.execute("seq 1 1000")
    assert ("output" in answer, answer["cut"], list(outside.iterdir())) == (False, True, [])


async def test_R15_a_server_without_commands_and_a_command_that_no_system_takes_are_told(terminal: Console):
    none = terminal.with_context(lambda context: replace(context, terminal=None))
    assert await none.say("true") == "This server runs no commands."
    assert "null character" in await terminal.say("a\x00b")
    assert "100,000 bytes" in await terminal.say("#" * 100_001)


async def test_R15_guarded_places_can_be_read_only_and_missing_ones_are_not_made(tmp_path: Path):
    for path, text in ((".git/config", "safe"), ("data/deep/secret", "SECRET")):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    guarded = (".git/hooks", ".git/config", "recto.toml")
    workspace = Workspace(folder=tmp_path, is_own=False, most_bytes=0, hidden=("data/deep",), guarded=guarded)
    shell = console(tmp_path, workspace=workspace)
    answer = await shell.execute(
        "cat .git/config; echo x > .git/config; echo x > recto.toml; rm -f recto.toml; touch .git/hooks/pre-commit;"
        "mv .git moved; mv data moved; ls -A data/deep; touch data/deep/x; touch .git/other data/other; cat */*/secret"
    )
    assert answer["stdout"] == "safe"
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert files == [".git/config", ".git/other", "data/deep/secret", "data/other"]
    assert (tmp_path / ".git/config").read_text() == "safe"


async def test_R15_what_is_private_is_not_seen_in_what_can_be_read_but_the_own_folder_in_it_is(tmp_path: Path):
    place, link = tmp_path / "place", tmp_path / "link"
    for path in ("data/token", "data/own/t2/secret", "settings.toml", "open.txt"):
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(path)
    link.symlink_to(place)
    workspace = Workspace(folder=place / "data/own/t1", private=(place / "data", place / "settings.toml"))
    shell = console(workspace.folder, CommandSettings(readable=f"{place},{link}"), workspace=workspace)
    for folder in (place, link):
        answer = await shell.execute(
            f"cd {folder}; cat open.txt settings.toml data/token data/own/t2/secret; touch data/x; echo > settings.toml"
        )
        assert answer["stdout"] == "open.txt"
    assert (await shell.execute("echo mine > a.txt; cat a.txt; ls -A ../.."))["stdout"] == "mine\nown\n"
    assert (workspace.folder / "a.txt").read_text() == "mine\n"


async def test_R15_settings_are_hidden_from_commands_and_where_a_hidden_place_is_gone_none_is_run(tmp_path: Path):
    workspace = Workspace(folder=tmp_path, is_own=False, most_bytes=0, hidden=("recto.toml",), guarded=("recto.toml",))
    shell = console(tmp_path, workspace=workspace)
    await shell.execute("echo x > recto.toml; rm -f recto.toml; mv recto.toml other")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "recto.toml").write_text("SECRET")
    answer = await shell.execute("cat recto.toml && wc -c < recto.toml; echo x > recto.toml")
    assert answer["stdout"] == "0\n"
    assert (tmp_path / "recto.toml").read_text() == "SECRET"
    without_folder = replace(workspace, hidden=("data",))
    assert "not where it was" in await console(tmp_path, workspace=without_folder).say("echo x > ran")
    assert list(tmp_path.iterdir()) == [tmp_path / "recto.toml"]


# Jobs in the background


LONG_COMMAND = "echo begun; sleep 71.5; echo never"


async def test_R15_a_job_answers_at_once_and_can_be_looked_at_and_ended(terminal: Console):
    answer = await terminal.execute(LONG_COMMAND, background=True)
    assert answer == {"stdout": "begun\n", "stderr": "", "job": "job-1", "output": ".recto/output/job-1.txt"}
    looked = await terminal.jobs("look", "job-1")
    assert (looked["state"], looked["newest"]) == ("running", "begun\n")
    [row] = cast("list[dict[str, Json]]", (await terminal.jobs("list"))["jobs"])
    assert [row[name] for name in ("job", "state", "command")] == ["job-1", "running", LONG_COMMAND]
    end = await terminal.jobs("end", "job-1")
    assert (end["state"], end["exitCode"], end["ended"]) == ("ended", 137, "It was ended as asked.")
    await none_left("71.5")


@pytest.mark.full
async def test_R15_a_job_that_ends_by_itself_is_told_with_its_code_and_its_output(terminal: Console):
    answer = await terminal.execute("no-such-program", background=True)
    assert (answer["exitCode"], "not found" in str(answer["stderr"])) == (127, True)
    started = await terminal.execute(
        "until [ -e stop ]; do sleep 0.1; done; seq 1 3; echo oh >&2; exit 5", background=True
    )
    # Two processes of one project work side by side.
    await terminal.execute("touch stop")
    end = await terminal.end(started["job"])
    assert (end["exitCode"], end["newest"]) == (5, "1\n2\n3\noh\n")
    assert (terminal.folder / str(end["output"])).read_text() == end["newest"]


@pytest.mark.full
async def test_R15_jobs_are_limited_for_a_thread_and_for_all(tmp_path: Path):
    shell = console(tmp_path, CommandSettings(thread_jobs=1, jobs=2))
    others = [shell.with_context(lambda context, name=name: replace(context, thread=name)) for name in ("t2", "t3")]
    await shell.execute("sleep 60", background=True)
    assert "1 job is at work in this thread, and" in await shell.say("sleep 60", background=True)
    await others[0].execute("sleep 60", background=True)
    assert "2 jobs are at work on this server" in await others[1].say("sleep 60", background=True)
    await shell.terminal.close()
    assert "job" in await others[1].execute("true", background=True)


async def test_R15_a_running_job_is_known_however_many_others_have_ended(tmp_path: Path):
    shell = console(tmp_path, CommandSettings(thread_jobs=1))
    await shell.execute("sleep 75.5", background=True)
    other = shell.with_context(lambda context: replace(context, thread="t2"))
    for _ in range(JOBS_KNOWN + 2):
        # It ends before a process is started.
        await other.say("\0", background=True)
    assert len(other.terminal.jobs(other.context.owner, "t2")) == JOBS_KNOWN + 1
    assert "at work in this thread" in await shell.say("sleep 60", background=True)
    await shell.terminal.end_threads(["t1"])
    await none_left("75.5")


async def test_R15_a_job_that_fails_in_the_server_is_not_running_for_ever(terminal: Console):
    assert terminal.context.workspace
    # Half a character, which no process can be given.
    limits = {"seconds": 5, "characters": 100}
    order = Order(command="\ud800", workspace=terminal.context.workspace, folder="", owner="ann", thread="t1", **limits)
    job = await terminal.terminal.begin(order)
    assert job.ending == Ending(code=1, why="It was ended because something went wrong in the server.")


async def test_P5_a_job_of_another_thread_is_not_there(terminal: Console):
    await terminal.execute("sleep 60", background=True)
    other = terminal.with_context(lambda context: replace(context, owner="bob", thread="t2"))
    assert await other.jobs("list") == {"jobs": []}
    for action in ("look", "end"):
        assert await other.jobs(action, "job-1") == {"error": "There is no job 'job-1' in this thread. Known: none."}
    assert (await terminal.jobs("look", "job-1"))["state"] == "running"
    await terminal.terminal.close()


@pytest.mark.full
async def test_R15_jobs_end_after_their_time_with_their_thread_and_with_the_server(tmp_path: Path):
    shell = console(tmp_path, CommandSettings(job_seconds=0.4))
    await shell.execute("sleep 72.5", background=True)
    text = "It was ended: it took longer than 0.4 seconds. Ask for less, or give it more time."
    assert (await shell.end("job-1"))["ended"] == text
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
    answer = await console(tmp_path).jobs("look", "job-1")
    why = "It ended with the server it ran in, which was started again since; its exit code is not known."
    job_row = {
        "job": "job-1",
        "state": "ended",
        "ended": why,
        "output": ".recto/output/job-1.txt",
        "newest": "before\n",
    }
    assert answer == job_row


async def test_R15_a_job_that_never_was_is_refused_and_who_names_none_hears_which_there_are(terminal: Console):
    (terminal.folder.parent / "secret.txt").write_text("SECRET")
    for name in ("job-9", "../../secret", "job-1/../job-1", "1"):
        assert "There is no job" in str((await terminal.jobs("look", name))["error"])
    text = "`job` is missing: say which one. In this thread there are: "
    assert await terminal.jobs("look", None) == {"error": f"{text}none."}
    await terminal.execute("true", background=True)
    assert await terminal.jobs("end", "") == {"error": f"{text}job-1."}


@pytest.mark.full
async def test_R15_only_the_newest_whole_outputs_are_kept_and_that_of_a_running_job(tmp_path: Path):
    shell = console(tmp_path, CommandSettings(outputs=2)).with_context(lambda context: replace(context, characters=300))
    await shell.execute("echo begun; sleep 60", background=True)
    for _ in range(4):
        await shell.execute("seq 1 1000")
    names = sorted(path.name for path in (tmp_path / ".recto/output").glob("*.txt"))
    assert names == ["4.txt", "5.txt", "job-1.txt"]
    await shell.terminal.close()


@pytest.mark.full
async def test_R15_a_job_that_prints_much_is_written_on_while_it_is_looked_at(terminal: Console):
    short = terminal.with_context(lambda context: replace(context, characters=400))
    answer = await short.execute("seq 1 100000; until [ -e stop ]; do sleep 0.1; done; echo last", background=True)
    assert answer["cut"] is True
    (terminal.folder / "stop").touch()
    end = await short.end("job-1")
    assert str(end["newest"]).endswith("100000\nlast\n")
    assert len((terminal.folder / ".recto/output/job-1.txt").read_text().splitlines()) == 100_001
