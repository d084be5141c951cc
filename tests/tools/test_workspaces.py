"""F9: a thread's workspace ends with the thread, and what was left half-written in it after an hour."""

import asyncio
import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from recto.config.run_settings import CommandSettings
from recto.errors import Conflict, SettingsError, ToolError
from recto.tools.commands.confinement import Confinement
from recto.tools.commands.terminal import Terminal
from recto.tools.workspace.restore_files import RestorePlan, restore
from recto.tools.workspace.snapshots import FolderState, Snapshots
from recto.tools.workspace.workspace_files import MISSING_FOLDER, NewFile, Workspace
from recto.tools.workspace.workspaces import (
    ABANDONED_SECONDS,
    INCOMPLETE,
    Workspaces,
    check_given,
    drop_workspace,
    incomplete_folder,
    sweep_workspaces,
)
from tests.tools.runs import context, text_of
from tests.tools.test_workspace import tree
from tests.tools.workspace.calls import built_in

PART = f".recto-{'0123456789abcdef' * 2}.part"


async def only_one(ids: Sequence[str]) -> frozenset[str]:
    return frozenset(ids) & {"one"}


def lay_out(place: Path) -> Path:
    root, outside = place / "workspaces", place / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")
    for thread in ("one", "two", "three"):
        folder = (root / thread) / "deep"
        folder.mkdir(parents=True)
        (folder / "file.txt").write_text("x")
        (folder / "link").symlink_to(outside)
    (root / "a file").write_text("not a folder")
    return root


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


async def test_F9_workspaces_of_threads_that_are_gone_are_swept_and_links_are_not_followed(tmp_path: Path):
    assert await sweep_workspaces(tmp_path / "workspaces", only_one) == 0
    root = lay_out(tmp_path)
    assert await sweep_workspaces(root, only_one) == 2
    assert names(root) == ["a file", "one"]
    assert (tmp_path / "outside" / "kept.txt").read_text() == "kept"
    assert await sweep_workspaces(root, only_one) == 0


def made_long_ago(path: Path, seconds: float) -> None:
    path.write_text("half")
    long_ago = time.time() - seconds
    os.utime(path, (long_ago, long_ago))


async def test_F9_a_file_that_a_process_left_half_written_is_swept_after_an_hour(tmp_path: Path):
    workspace = tmp_path / "one"
    new = NewFile(Workspace(folder=workspace), ("a.txt",))
    new.begin()
    (on_its_way,) = tree(workspace)
    made_long_ago(workspace / PART, ABANDONED_SECONDS + 60)
    made_long_ago(workspace / PART.replace("0", "f"), ABANDONED_SECONDS - 60)
    assert await sweep_workspaces(tmp_path, only_one) == 1
    assert tree(workspace) == sorted([PART.replace("0", "f"), on_its_way])
    new.finish()
    new.abandon()


async def test_F9_only_what_is_called_as_ours_and_is_a_file_at_the_top_is_swept(tmp_path: Path):
    workspace, outside = (tmp_path / "one"), tmp_path.parent / f"{tmp_path.name}-outside"
    (workspace / "in").mkdir(parents=True)
    theirs = ("notes.part", ".recto-notes.part", f"{PART}.txt", f"in/{PART}")
    for name in theirs:
        made_long_ago(workspace / name, ABANDONED_SECONDS + 60)
    made_long_ago(outside, ABANDONED_SECONDS + 60)
    (workspace / PART).symlink_to(outside)
    os.utime(workspace / PART, (0, 0), follow_symlinks=False)
    before = tree(workspace)
    assert await sweep_workspaces(tmp_path, only_one) == 0
    assert (tree(workspace), outside.read_text()) == (before, "half")


# Folders that the operator gave


def given_folder(root: Path) -> Path:
    for folder in ("project/data/workspaces", "project/agents/shop", "project/.git/hooks", "elsewhere"):
        (root / folder).mkdir(parents=True)
    return root / "project"


def test_R15_a_thread_works_in_the_folder_of_its_agent_else_of_the_server_else_in_its_own(tmp_path: Path):
    project, other = given_folder(tmp_path), tmp_path / "elsewhere"
    own = Workspaces(root=project / "data" / "workspaces", most_bytes=9)
    assert own.of("t1") == Workspace(folder=own.root / "t1", most_bytes=9)
    workspace = Workspaces(root=own.root, given_folder=project, most_bytes=9).of("t1")
    assert (workspace.folder, workspace.is_own, workspace.most_bytes) == (project, False, 0)
    assert Workspaces(root=own.root, given_folder=project).of("t1", other).folder == other
    assert Workspaces(root=Path("data")).of("t1").folder == Path.cwd() / "data" / "t1"


def test_R15_what_the_server_keeps_is_hidden_in_a_folder_that_was_given_and_what_it_runs_is_guarded(tmp_path: Path):
    project = given_folder(tmp_path)
    (tmp_path / "linked").symlink_to(project)
    places = Workspaces(
        root=project / "data" / "workspaces",
        given_folder=tmp_path / "linked",
        private=(project / "data",),
        guarded=(tmp_path / "linked" / "agents", tmp_path / "recto.toml"),
    )
    guarded = ("agents", ".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir")
    expected = Workspace(folder=project, is_own=False, most_bytes=0, hidden=("data",), guarded=guarded)
    assert places.of("t1") == replace(expected, private=(project / "data",))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("filesystem-read", {"filePath": "."}),
        ("filesystem-create", {"filePath": "a.txt", "content": "x"}),
        ("filesystem-edit", {"filePath": "a.txt", "searchContent": "a", "replaceContent": "b"}),
        ("ace-text_search", {"pattern": "a"}),
        ("terminal-execute", {"command": "ls", "background": True}),
    ],
)
async def test_R15_a_given_folder_that_is_gone_is_told_and_not_made_again(
    tmp_path: Path, name: str, arguments: dict[str, object]
):
    missing_folder = Workspace(folder=tmp_path / "gone", is_own=False)
    terminal = Terminal(CommandSettings(), Confinement(settings=CommandSettings(), program=None, server_environment={}))
    own_context = replace(context(), workspace=missing_folder, terminal=terminal)
    result = await built_in()[name].act(json.dumps(arguments), own_context)
    assert (result.error, text_of(result).removeprefix("Error: ")) == ("error", MISSING_FOLDER)
    assert tree(tmp_path) == []


def test_R12_files_of_a_given_folder_that_is_gone_are_neither_kept_nor_put_back(tmp_path: Path):
    missing_folder, snapshots = (
        Workspace(folder=tmp_path / "gone", is_own=False),
        Snapshots(root=tmp_path / "snapshots"),
    )
    with pytest.raises(Conflict, match=MISSING_FOLDER):
        snapshots.save_undo(missing_folder, "t1")
    with pytest.raises(ToolError, match=MISSING_FOLDER):
        restore(missing_folder, RestorePlan(before=FolderState(), now=FolderState(), content=lambda _: b""))
    assert tree(tmp_path) == []


@pytest.mark.parametrize("folder", ["missing", "project/data", "project/data/workspaces", "/"])
def test_R15_a_folder_that_nobody_can_work_in_is_refused(tmp_path: Path, folder: str):
    project = given_folder(tmp_path)
    with pytest.raises(SettingsError, match=r"workspace is .*(Make it first|Name the folder of a project)"):
        check_given(tmp_path / folder, (project / "data",))
    check_given(project, (project / "data",))


async def test_F9_a_workspace_goes_whatever_a_command_has_left_in_it(tmp_path: Path):
    root = lay_out(tmp_path)
    top = os.open((root / "two"), os.O_RDONLY)
    for _ in range(1_100):
        os.mkdir("d", dir_fd=top)
        inner = os.open("d", os.O_RDONLY, dir_fd=top)
        os.close(top)
        top = inner
    os.close(top)
    ((root / "two") / "deep").chmod(0)
    await asyncio.gather(drop_workspace(root, "two"), drop_workspace(root, "two"), drop_workspace(root, "never"))
    assert names(root) == ["a file", "one", "three"]
    assert (tmp_path / "outside" / "kept.txt").read_text() == "kept"


async def test_R12_a_folder_that_arrives_is_swept_only_once_nobody_fills_it(tmp_path: Path):
    with incomplete_folder(tmp_path / "one") as part:
        (part / "a.txt").write_text("a")
        assert not (tmp_path / "one").exists()
        assert await sweep_workspaces(tmp_path, only_one) == 0
    assert names(tmp_path) == ["one"]
    # Left by a process that was killed.
    (tmp_path / f"t2{INCOMPLETE}/deep").mkdir(parents=True)
    assert await sweep_workspaces(tmp_path, only_one) == 1
    with pytest.raises(ZeroDivisionError), incomplete_folder(tmp_path / "t3"):
        raise ZeroDivisionError
    assert names(tmp_path) == ["one"]
