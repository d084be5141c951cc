"""F9: a thread's workspace ends with the thread, and what was left half-written in it after an hour."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

from recto.tools.workspace.workspace_files import NewFile
from recto.tools.workspace.workspaces import LEFT_SECONDS, drop_workspace, lock_of, sweep_workspaces, workspace_of
from tests.tools.test_workspace import tree

PART = f".recto-{'0123456789abcdef' * 2}.part"


async def only_one(ids: Sequence[str]) -> frozenset[str]:
    return frozenset(ids) & {"one"}


def lay_out(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir(parents=True)
    (outside / "kept.txt").write_text("kept")
    for thread in ("one", "two", "three"):
        folder = workspace_of(root, thread) / "deep"
        folder.mkdir(parents=True)
        (folder / "file.txt").write_text("x")
        (folder / "link").symlink_to(outside)
    (root / "a file").write_text("not a folder")


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


async def test_F9_workspaces_of_threads_that_are_gone_are_swept_and_links_are_not_followed(tmp_path: Path):
    root = tmp_path / "workspaces"
    lay_out(root)
    assert await sweep_workspaces(root, only_one) == 2
    assert names(root) == ["a file", "one"]
    assert (tmp_path / "outside" / "kept.txt").read_text() == "kept"
    assert await sweep_workspaces(root, only_one) == 0


async def test_F9_dropping_one_leaves_the_others(tmp_path: Path):
    root = tmp_path / "workspaces"
    lay_out(root)
    await asyncio.gather(drop_workspace(root, "two"), drop_workspace(root, "two"), drop_workspace(root, "never"))
    assert names(root) == ["a file", "one", "three"]


async def test_F9_without_any_workspace_there_is_nothing_to_sweep(tmp_path: Path):
    assert await sweep_workspaces(tmp_path / "none", only_one) == 0


def made_long_ago(path: Path, seconds: float) -> None:
    path.write_text("half")
    long_ago = time.time() - seconds
    os.utime(path, (long_ago, long_ago))


async def test_F9_a_file_that_a_process_left_half_written_is_swept_after_an_hour(tmp_path: Path):
    workspace = workspace_of(tmp_path, "one")
    new = NewFile(workspace, ("a.txt",))
    new.begin()
    (on_its_way,) = tree(workspace)
    made_long_ago(workspace / PART, LEFT_SECONDS + 60)
    made_long_ago(workspace / PART.replace("0", "f"), LEFT_SECONDS - 60)
    assert await sweep_workspaces(tmp_path, only_one) == 1
    assert tree(workspace) == sorted([PART.replace("0", "f"), on_its_way])
    new.finish()
    new.abandon()


async def test_F9_only_what_is_called_as_ours_and_is_a_file_at_the_top_is_swept(tmp_path: Path):
    workspace, outside = workspace_of(tmp_path, "one"), tmp_path.parent / f"{tmp_path.name}-outside"
    (workspace / "in").mkdir(parents=True)
    theirs = ("notes.part", ".recto-notes.part", f"{PART}.txt", f"in/{PART}")
    for name in theirs:
        made_long_ago(workspace / name, LEFT_SECONDS + 60)
    made_long_ago(outside, LEFT_SECONDS + 60)
    (workspace / PART).symlink_to(outside)
    os.utime(workspace / PART, (0, 0), follow_symlinks=False)
    before = tree(workspace)
    assert await sweep_workspaces(tmp_path, only_one) == 0
    assert (tree(workspace), outside.read_text()) == (before, "half")


async def test_F9_a_workspace_has_one_lock_for_all_who_add_to_it(tmp_path: Path):
    mine = lock_of(tmp_path / "a")
    assert lock_of(tmp_path / "a") is mine
    assert lock_of(tmp_path / "b") is not mine
