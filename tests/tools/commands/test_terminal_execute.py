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
def made(tmp_path: Path) -> Console:
    return console(tmp_path / "work")


async def test_R15_a_command_answers_with_both_streams_apart_and_its_code_or_signal_and_leaves_no_file(made: Console):
    told = await made.execute("seq 1 1000; echo err >&2; exit 3")
    assert told == {"stdout": "".join(f"{n}\n" for n in range(1, 1_001)), "stderr": "err\n", "exitCode": 3}
    assert await made.execute("kill -TERM $$") == {"stdout": "", "stderr": "", "exitCode": 143}
    # An undecodable byte is replaced, and nobody answers questions.
    told = await made.execute(r"printf 'a\377b\033[31mc\033[0m\n'; read x || echo no input")
    assert told["stdout"] == "a\ufffdbc\nno input\n"
    assert list(made.folder.iterdir()) == []


async def test_R15_commands_leave_files_in_the_workspace_and_work_in_a_folder_as_file_tools_name_it(
    made: Console,
):
    await made.execute("mkdir -p sub/deep && ln -s sub/deep link && echo kept > sub/deep/file")
    for path in (f"{made.folder}/sub/deep/", "sub\\deep", "link"):
        told = await made.execute("cat file; pwd", workingDirectory=path)
        assert told["stdout"] == f"kept\n{made.folder}/sub/deep\n"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/etc", "The path '/etc' leads out of the workspace."),
        ("sub/../..", "The path 'sub/../..' leads out of the workspace."),
        ("link", "link is, or lies behind, a link that leads out of the workspace."),
        ("missing", "There is no folder 'missing' in the workspace."),
        ("file", "There is no folder 'file' in the workspace."),
    ],
)
async def test_R15_a_folder_outside_the_workspace_is_refused(made: Console, path: str, said: str):
    (made.folder / "link").symlink_to("/")
    (made.folder / "file").write_text("no folder")
    assert (await made.say("pwd", workingDirectory=path)).startswith(said)


@pytest.mark.full
async def test_R15_a_command_has_what_development_needs(made: Console):
    code = "import ssl; print(len(ssl.create_default_context().get_ca_certs()) >= 0)"
    told = await made.execute(
        "set -e; git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m x;"
        "git log --oneline | wc -l;"
        f"python3 -c '{code}'; node -e 'console.log(1+1)';"
        "whoami; touch ~/x /tmp/y; getent hosts localhost > /dev/null && echo found"
    )
    assert (told["stdout"], told["exitCode"]) == ("1\nTrue\n2\nuser\nfound\n", 0), told


async def test_R15_output_that_does_not_fit_is_cut_and_the_whole_is_in_a_file_that_git_does_not_see(made: Console):
    short = made.with_context(lambda context: replace(context, characters=1_000))
    answer = await short.say("git init -q .; seq 1 5000; echo oh >&2")
    assert len(answer) <= 1_000
    told = await short.execute("seq 1 5000; echo oh >&2")
    assert told["output"] == ".recto/output/2.txt"
    whole = (made.folder / str(told["output"])).read_text()
    assert whole.replace("oh\n", "") == "".join(f"{n}\n" for n in range(1, 5_001))
    assert (await short.execute("git status --porcelain"))["stdout"] == ""


async def test_R15_the_newest_lines_are_reported_while_it_runs(made: Console):
    command = "echo one\nuntil [ -e a ]; do sleep 0.02; done; echo two; until [ -e b ]; do sleep 0.02; done"
    running = asyncio.create_task(made.execute(command))
    for file, text in (("a", "one\n"), ("b", "one\ntwo\n")):
        await wait_until(lambda text=text: any(progress.text == text for progress in made.shown))
        (made.folder / file).touch()
    await running
    assert made.shown[0].label == "echo one"
    assert (made.shown[-1].done, made.shown[-1].unit) == (2, "lines")


async def test_R15_after_its_time_it_is_ended_and_what_it_printed_is_told(made: Console):
    told = await made.execute("trap '' TERM INT HUP; echo first; sleep 60 & wait", timeout=300)
    ended = "It was ended: it took longer than 0.3 seconds. Ask for less, give it more time, or run it in background."
    assert told == {"stdout": "first\n", "stderr": "", "exitCode": 137, "ended": ended}
    # No command takes longer than its call may.
    hurried = made.with_context(lambda context: replace(context, seconds=0.8))
    assert "longer than 0.4 seconds" in str((await hurried.execute("sleep 60", timeout=60_000))["ended"])


# One that has left its parent is found in a sandbox only.
@pytest.mark.parametrize(("is_confined", "start"), [(True, "(setsid sleep 61.25 &)"), (False, "setsid sleep 61.25 &")])
async def test_P8_a_cancel_ends_it_with_all_that_it_started(tmp_path: Path, is_confined: bool, start: str):
    made = console(tmp_path, is_confined=is_confined)
    running = asyncio.create_task(made.execute(f"{start}\necho up; sleep 62.25"))
    await wait_until(lambda: any(progress.text for progress in made.shown))
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
    made = console(tmp_path, CommandSettings(output_bytes=100_000))
    told = await made.execute("yes")
    assert told["ended"] == "It was ended: it printed more than 100,000 bytes. Have it print less, or write to a file."
    assert (tmp_path / ".recto/output/1.txt").stat().st_size < 400_000


@pytest.mark.full
async def test_R15_without_a_sandbox_the_environment_is_clean_all_the_same(tmp_path: Path):
    given = {"OPENAI_API_KEY": "sk-secret", "HOME": str(tmp_path), "WANTED": "yes", "RECTO_TOKEN": "t"}
    for is_confined in (True, False):
        made = console(tmp_path, CommandSettings(environment="WANTED, MISSING"), is_confined=is_confined, given=given)
        told = await made.execute("env; exit 4")
        names = {line.partition("=")[0] for line in str(told["stdout"]).splitlines()}
        assert names == {"PATH", "LANG", "HOME", "TMPDIR", "TERM", "WANTED", "PWD", "SHLVL", "_"}
        assert told["exitCode"] == 4


@pytest.mark.full
async def test_R15_folders_that_the_operator_names_can_be_read_and_their_programs_found(tmp_path: Path):
    hello = tmp_path / "opt/bin/hello"
    hello.parent.mkdir(parents=True)
    hello.write_text("#!/bin/sh\necho hello\n")
    hello.chmod(0o755)
    made = console(tmp_path / "work", CommandSettings(readable=f"{tmp_path}/opt, /missing"))
    told = await made.execute(f"hello; touch {hello}x 2>/dev/null || echo read-only")
    assert told["stdout"] == "hello\nread-only\n"


async def test_R15_what_a_link_in_place_of_its_folder_leads_to_is_not_written(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    made = console(tmp_path / "work").with_context(lambda context: replace(context, characters=300))
    (made.folder / ".recto").symlink_to(outside)
    told = await made.execute("seq 1 1000")
    assert ("output" in told, told["cut"], list(outside.iterdir())) == (False, True, [])


async def test_R15_a_server_without_commands_and_a_command_that_no_system_takes_are_told(made: Console):
    none = made.with_context(lambda context: replace(context, terminal=None))
    assert await none.say("true") == "This server runs no commands."
    assert "null character" in await made.say("a\x00b")
    assert "100,000 bytes" in await made.say("#" * 100_001)


async def test_R15_guarded_places_can_be_read_only_and_missing_ones_are_not_made(tmp_path: Path):
    for path, text in ((".git/config", "safe"), ("data/deep/secret", "SECRET")):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    guarded = (".git/hooks", ".git/config", "recto.toml")
    workspace = Workspace(folder=tmp_path, is_own=False, most_bytes=0, hidden=("data/deep",), guarded=guarded)
    made = console(tmp_path, workspace=workspace)
    told = await made.execute(
        "cat .git/config; echo x > .git/config; echo x > recto.toml; rm -f recto.toml; touch .git/hooks/pre-commit;"
        "mv .git moved; mv data moved; ls -A data/deep; touch data/deep/x; touch .git/other data/other; cat */*/secret"
    )
    assert told["stdout"] == "safe"
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
    made = console(workspace.folder, CommandSettings(readable=f"{place},{link}"), workspace=workspace)
    for seen in (place, link):
        told = await made.execute(
            f"cd {seen}; cat open.txt settings.toml data/token data/own/t2/secret; touch data/x; echo > settings.toml"
        )
        assert told["stdout"] == "open.txt"
    assert (await made.execute("echo mine > a.txt; cat a.txt; ls -A ../.."))["stdout"] == "mine\nown\n"
    assert (workspace.folder / "a.txt").read_text() == "mine\n"


async def test_R15_settings_are_hidden_from_commands_and_where_a_hidden_place_is_gone_none_is_run(tmp_path: Path):
    workspace = Workspace(folder=tmp_path, is_own=False, most_bytes=0, hidden=("recto.toml",), guarded=("recto.toml",))
    made = console(tmp_path, workspace=workspace)
    await made.execute("echo x > recto.toml; rm -f recto.toml; mv recto.toml other")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "recto.toml").write_text("SECRET")
    told = await made.execute("cat recto.toml && wc -c < recto.toml; echo x > recto.toml")
    assert told["stdout"] == "0\n"
    assert (tmp_path / "recto.toml").read_text() == "SECRET"
    gone = replace(workspace, hidden=("data",))
    assert "not where it was" in await console(tmp_path, workspace=gone).say("echo x > ran")
    assert list(tmp_path.iterdir()) == [tmp_path / "recto.toml"]


# Jobs in the background


BEGUN = "echo begun; sleep 71.5; echo never"


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
