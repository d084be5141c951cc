"""R15: commands use git in a folder that was given, and change nothing that git would run for others."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from recto.config.run_settings import CommandSettings
from recto.tools.commands.confinement import TOO_OLD, Confinement
from recto.tools.commands.placeholders import Placeholders, remove_leftovers
from recto.tools.commands.terminal import Terminal
from recto.tools.workspace.workspaces import Workspace, Workspaces
from tests.tools.commands.terminals import Console, console

EVIL = "[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch {mark}; false\\n"
COMMIT = "git add . && git commit -qm next && git status --short --branch && git log --format=%s"


def git(folder: Path, *words: str) -> str:
    whole = ("git", "-c", "user.name=a", "-c", "user.email=a@b", *words)
    return subprocess.run(whole, cwd=folder, check=True, capture_output=True, text=True).stdout


def make_console(folder: Path) -> Console:
    who = {f"GIT_{name}_{field}": "a@b" for name in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}
    settings = CommandSettings(environment=",".join(who))
    workspace = Workspaces(root=folder.parent / "own", given_folder=folder).of("t1")
    return console(folder, settings, workspace=workspace, environment={**os.environ, **who})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("a")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


async def test_R15_a_command_commits_and_leaves_no_trace_of_what_was_guarded(project: Path):
    before = sorted((project / ".git").iterdir())
    (project / "b.txt").write_text("b")
    answer = await make_console(project).execute(COMMIT)
    assert answer["stdout"] == "## main\nnext\nfirst\n", answer
    assert sorted((project / ".git").iterdir()) == before
    assert git(project, "status", "--short", "--branch") == "## main\n"


@pytest.mark.parametrize("way", ["commondir", "config.worktree", "config", "hooks/post-index-change"])
async def test_R15_a_command_does_not_have_git_run_anything_for_others(project: Path, tmp_path: Path, way: str):
    mark = tmp_path / "mark"
    text = "../other\\n" if way == "commondir" else EVIL.format(mark=mark)
    await make_console(project).execute(
        f"mkdir other; cp -r .git/objects .git/refs other; printf '{EVIL.format(mark=mark)}' > other/config;"
        f"rm -f .git/{way}; printf '{text}' > .git/{way}; mv other/config .git/{way}"
    )
    git(project, "status", "--short")
    assert not mark.exists()
    assert way != "commondir" or not (project / ".git" / way).exists()


async def test_R15_commands_run_in_a_worktree_whose_git_is_a_file(project: Path, tmp_path: Path):
    tree = tmp_path / "tree"
    git(project, "worktree", "add", "-q", str(tree))
    answer = await make_console(tree).execute("cat a.txt; touch b.txt; rm .git; mv .git moved; echo x > .git")
    assert answer["stdout"] == "a"
    assert git(tree, "status", "--short") == "?? b.txt\n"


async def test_R15_a_command_makes_a_repository_where_its_folder_is_empty(tmp_path: Path):
    (tmp_path / "project/.git").mkdir(parents=True)
    shell = make_console(tmp_path / "project")
    answer = await shell.execute("git init -q -b main && git commit -q --allow-empty -m first && git log --format=%s")
    assert answer["stdout"] == "first\n", answer
    assert (await shell.execute("echo x >> .git/config"))["exitCode"] == 1


@pytest.mark.parametrize("target", ["../shared", "{outside}", "hooks", "nowhere"])
async def test_R15_hooks_that_are_a_link_are_replaced_by_no_command(project: Path, tmp_path: Path, target: str):
    """Guard the folder of a link that cannot be guarded itself."""
    mark, hooks = tmp_path / "mark", project / ".git/hooks"
    for folder in (project / "shared", tmp_path / "outside"):
        folder.mkdir()
    hooks.rename(tmp_path / "aside")
    hooks.symlink_to(target.format(outside=tmp_path / "outside"))
    shell = make_console(project)
    evil = f"printf '#!/bin/sh\\ntouch {mark}\\n' > $at/post-index-change; chmod +x $at/post-index-change"
    answer = await shell.execute(
        f"for at in shared {tmp_path}/outside .git/hooks; do {evil}; done; rm .git/hooks; mkdir .git/hooks; "
        f"at=.git/hooks; {evil}; mv .git moved; git log --format=%s; echo made > b.txt"
    )
    assert answer["stdout"] == "first\n"
    git(project, "add", ".")
    assert (mark.exists(), hooks.is_symlink(), (project / "b.txt").read_text()) == (False, True, "made\n")
    assert not [*(tmp_path / "outside").iterdir()]
    # In the workspace only what it leads to is guarded with it.
    assert [path.name for path in (project / "shared").iterdir()] == ["post-index-change"] * (target != "../shared")


async def test_R15_links_on_the_way_to_what_is_guarded_are_guarded_themselves(tmp_path: Path):
    folder = tmp_path / "project"
    (folder / "real/agents").mkdir(parents=True)
    (folder / "deep").mkdir()
    (folder / "deep/conf").symlink_to("../real")
    (folder / "store").symlink_to(tmp_path)
    private, guarded = (folder / "store/data",), (folder / "deep/conf/agents",)
    places = Workspaces(root=tmp_path / "own", given_folder=folder, private=private, guarded=guarded)
    assert places.of("t1").guarded[:3] == ("deep/conf", "real/agents", "store")
    assert "is a link" in await console(folder, workspace=places.of("t1")).say("true")


async def test_R15_git_works_where_its_folder_has_no_settings_or_a_link_that_goes_round(project: Path):
    (project / "round").symlink_to("round")
    (project / ".git/config.worktree").symlink_to("config.worktree")
    (project / ".git/config").unlink()
    answer = await make_console(project).execute("git log --format=%s; echo x >> .git/config")
    assert (answer["stdout"], (project / ".git/config").exists()) == ("first\n", False)


# What stands in the place of what is missing


PLACES = (".git/commondir", ".git/config.worktree", "recto.toml")


def test_R15_what_a_killed_server_left_is_taken_away_by_the_next_and_nothing_else(project: Path, tmp_path: Path):
    notes, folder = (
        tmp_path / "notes",
        Workspaces(root=tmp_path, given_folder=project, guarded=(project / "recto.toml",)),
    )
    killed = Placeholders(notes)
    standing = killed.create_missing(folder.of("t1"))
    standing.__enter__()
    assert [(project / place).exists() for place in PLACES] == [True, True, True]
    # Its process lives, so it is not asked.
    assert remove_leftovers(notes) == 0
    note, leftover = next(notes.iterdir()).read_bytes(), notes / "of-one-that-is-no-more.json"
    leftover.write_bytes(note)
    (project / "recto.toml").write_text("by the user")
    assert remove_leftovers(notes) == len(PLACES)
    assert [(project / place).exists() for place in PLACES] == [False, False, True]
    assert not leftover.exists()
    # Somebody's own, empty and for all to read, as an editor makes it.
    leftover.write_bytes(note)
    (project / "recto.toml").write_text("")
    (project / "recto.toml").chmod(0o644)
    assert remove_leftovers(notes) == len(PLACES)
    assert (project / "recto.toml").exists()
    standing.__exit__(None, None, None)


async def test_R15_after_a_command_nothing_is_noted(project: Path, tmp_path: Path):
    notes = tmp_path / "notes"
    with Placeholders(notes).create_missing(Workspaces(root=tmp_path, given_folder=project).of("t1")):
        assert ".git/commondir" in next(notes.iterdir()).read_text()
    assert [path.read_text() for path in notes.iterdir()] == ["{}\n"]
    # What a killed one wrote when a folder was gone is kept for when it is there again.
    missing = notes / "gone.json"
    missing.write_text('{"/gone": ["a"]}\n of an older note')
    (notes / "torn.json").write_text('{"/gon')
    assert (remove_leftovers(notes), missing.exists()) == (0, True)


async def test_R15_a_bubblewrap_that_cannot_bind_what_is_open_runs_nothing_where_something_is_guarded(
    project: Path, tmp_path: Path
):
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho --ro-bind SRC DEST\n")
    old.chmod(0o755)
    command_settings = CommandSettings()
    terminal = Terminal(
        command_settings, Confinement(settings=command_settings, program=str(old), server_environment={})
    )
    shell = make_console(project).with_context(lambda context: replace(context, terminal=terminal))
    assert await shell.say("touch made") == TOO_OLD.format(program=old)
    # In a thread's own folder nothing is.
    own = Workspace(folder=tmp_path / "own")
    assert '"exitCode":0' in await shell.with_context(lambda context: replace(context, workspace=own)).say("true")
