"""R15: commands use git in a folder that was given, and change nothing that git would run for others."""

import os
import subprocess
from pathlib import Path

import pytest

from recto.config.run_settings import CommandSettings
from recto.tools.workspace.workspaces import Workspaces
from tests.tools.commands.terminals import Console, console

EVIL = "[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch {mark}; false\\n"
COMMIT = "git add . && git commit -qm next && git status --short --branch && git log --format=%s"


def git(folder: Path, *words: str) -> str:
    whole = ("git", "-c", "user.name=a", "-c", "user.email=a@b", *words)
    return subprocess.run(whole, cwd=folder, check=True, capture_output=True, text=True).stdout


def given(folder: Path) -> Console:
    who = {f"GIT_{name}_{field}": "a@b" for name in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")}
    settings = CommandSettings(environment=",".join(who))
    workspace = Workspaces(root=folder.parent / "own", given=folder).of("t1")
    return console(folder, settings, workspace=workspace, given={**os.environ, **who})


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
    answer = await given(project).execute(COMMIT)
    assert answer["stdout"] == "## main\nnext\nfirst\n", answer
    assert sorted((project / ".git").iterdir()) == before
    assert git(project, "status", "--short", "--branch") == "## main\n"


@pytest.mark.parametrize("way", ["commondir", "config.worktree", "config", "hooks/post-index-change"])
async def test_R15_a_command_does_not_have_git_run_anything_for_others(project: Path, tmp_path: Path, way: str):
    mark = tmp_path / "mark"
    text = "../other\\n" if way == "commondir" else EVIL.format(mark=mark)
    await given(project).execute(
        f"mkdir other; cp -r .git/objects .git/refs other; printf '{EVIL.format(mark=mark)}' > other/config;"
        f"rm -f .git/{way}; printf '{text}' > .git/{way}; mv other/config .git/{way}"
    )
    git(project, "status", "--short")
    assert not mark.exists()
    assert way != "commondir" or not (project / ".git" / way).exists()


async def test_R15_commands_run_in_a_worktree_whose_git_is_a_file(project: Path, tmp_path: Path):
    tree = tmp_path / "tree"
    git(project, "worktree", "add", "-q", str(tree))
    answer = await given(tree).execute("cat a.txt; touch b.txt; rm .git; mv .git moved; echo x > .git")
    assert answer["stdout"] == "a"
    assert git(tree, "status", "--short") == "?? b.txt\n"


async def test_R15_git_works_where_its_folder_has_no_settings(project: Path):
    (project / ".git/config").unlink()
    answer = await given(project).execute("git status --short --branch; echo x >> .git/config")
    assert answer["stdout"] == "## main\n"
    assert not (project / ".git/config").exists()


async def test_R15_a_command_makes_a_repository_where_its_folder_is_empty(tmp_path: Path):
    (tmp_path / "project/.git").mkdir(parents=True)
    made = given(tmp_path / "project")
    answer = await made.execute("git init -q -b main && git commit -q --allow-empty -m first && git log --format=%s")
    assert answer["stdout"] == "first\n", answer
    assert (await made.execute("echo x >> .git/config"))["exitCode"] == 1
