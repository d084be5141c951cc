"""F9: a thread's workspace ends with the thread."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from recto.tools.workspaces import drop_workspace, sweep_workspaces, workspace_of


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
