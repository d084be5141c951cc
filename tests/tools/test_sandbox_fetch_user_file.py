"""F9: an upload of any kind is put into the thread's workspace."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from recto.conversation.input_files import InputFile
from recto.conversation.messages import ToolCall
from recto.errors import FileRefused, StorageDown
from recto.tools.call import call_tool
from recto.tools.function import tool_from
from recto.tools.ports import ToolResult
from recto.tools.registry import Registry
from recto.tools.workspace.sandbox_fetch_user_file import sandbox_fetch_user_file
from recto.tools.workspace.workspaces import Workspace
from tests.tools.files_at_hand import AtHand, a_file, at_hand, run
from tests.tools.runs import context, text_of
from tests.tools.test_workspace import tree

IMAGE = AtHand(turns=[[a_file("r-0", "cat.png", "image")]], holds={"r-0": b"\x89PNG" * 50_000})


def fetch(
    files: AtHand | None, place: Path | Workspace | None, path: str = "in/cat.png", id: str = "r-0", most: int = 0
) -> ToolResult:
    arguments = {"file_index": id, "target_path": path}
    return run(sandbox_fetch_user_file, files, arguments, workspace=place, workspace_bytes=most)


def test_F9_the_tool_takes_a_file_id_and_a_path_and_is_safe_to_repeat():
    tool = tool_from(sandbox_fetch_user_file)
    schema = json.loads(tool.offer.parameters)
    assert schema["required"] == list(schema["properties"]) == ["file_index", "target_path"]
    assert (tool.mark.safe_to_repeat, tool.mark.external) == (True, False)


def test_F9_a_file_of_any_kind_is_written_and_its_path_and_bytes_are_told(tmp_path: Path):
    for is_replaced in (False, True):
        result = fetch(IMAGE, tmp_path / "w", "./in//cat.png")
        assert json.loads(text_of(result)) == {"path": "in/cat.png", "bytes": 200_000, "replaced": is_replaced}
        assert (tmp_path / "w/in/cat.png").read_bytes() == IMAGE.holds["r-0"]
        assert tree(tmp_path / "w") == ["in", "in/cat.png"]


@pytest.mark.parametrize("path", ["/etc/x", "a/../../x", ""])
def test_F9_a_path_outside_the_workspace_is_refused_before_the_file_is_read(tmp_path: Path, path: str):
    files = replace(IMAGE, closed=[])
    result = fetch(files, tmp_path / "w", path)
    assert (result.error, text_of(result)[:9]) == ("error", "The path ")
    assert (files.closed, tree(tmp_path)) == ([], [])


def test_F9_an_unknown_id_is_told_with_the_newest_ones_and_where_there_are_no_files_or_no_workspace(tmp_path: Path):
    assert text_of(fetch(IMAGE, tmp_path, id="r-9")) == "There is no file 'r-9' here. The newest are: r-0."
    assert text_of(fetch(at_hand(), tmp_path, id="r-9")) == "There is no file 'r-9' here. The newest are: none."
    assert text_of(fetch(None, tmp_path)) == "This server keeps no files, so there are none to read."
    said = "This server gives threads no workspace, so there is nowhere to put a file."
    assert text_of(fetch(IMAGE, None)) == said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileRefused("it was deleted.", code="deleted"), "a.txt cannot be read: it was deleted."),
        (StorageDown(problem="10.0.0.1"), "a.txt cannot be read: the storage of files cannot be used at present. Try "),
    ],
)
def test_F9_a_file_that_cannot_be_read_to_its_end_leaves_nothing(tmp_path: Path, error: Exception, said: str):
    result = fetch(at_hand(a=error), tmp_path, id="a")
    assert (result.error, text_of(result)[: len(said)]) == ("error", said)
    assert tree(tmp_path) == []


@dataclass(frozen=True, kw_only=True)
class Stuck(AtHand):
    """Files that come to a stop after the first piece."""

    half_read: asyncio.Event

    async def read(self, file: InputFile) -> AsyncGenerator[bytes]:
        yield b"half of it"
        self.half_read.set()
        await asyncio.Event().wait()


async def fetch_async(files: AtHand, workspace: Path, path: str, workspace_bytes: int = 0) -> ToolResult:
    """As several calls of one reply do it."""
    place = Workspace(folder=workspace, most_bytes=workspace_bytes)
    given = replace(context(), files=files, workspace=place)
    arguments = json.dumps({"file_index": "r-0", "target_path": path})
    call = ToolCall(id="c1", name="sandbox_fetch_user_file", arguments=arguments)
    return await call_tool(Registry([tool_from(sandbox_fetch_user_file)]), call, given)


async def test_F9_a_call_that_is_cancelled_leaves_nothing_and_makes_nobody_wait(tmp_path: Path):
    files = Stuck(turns=IMAGE.turns, holds={}, half_read=asyncio.Event())
    acting = asyncio.create_task(fetch_async(files, tmp_path, "in/cat.png"))
    await files.half_read.wait()
    assert len(tree(tmp_path)) == 1
    acting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await acting
    assert tree(tmp_path) == []
    assert (await fetch_async(IMAGE, tmp_path, "cat.png")).error is None


def test_F9_a_file_that_does_not_fit_into_the_workspace_is_refused_and_leaves_nothing(tmp_path: Path):
    assert fetch(IMAGE, tmp_path, "a.png", most=200_000).error is None
    refused = fetch(IMAGE, tmp_path, "b.png", most=399_999)
    assert refused.error == "error"
    said = "b.png does not fit: the workspace holds 200,000 bytes besides it and may hold 399,999, so 199,999 are left"
    assert text_of(refused).startswith(said)
    assert tree(tmp_path) == ["a.png"]
    assert Workspace(folder=Path()).most_bytes == 2**30


async def test_F9_calls_at_the_same_time_do_not_get_round_the_limit(tmp_path: Path):
    files = replace(IMAGE, piece=20_000)
    results = await asyncio.gather(*[fetch_async(files, tmp_path, f"{number}.png", 1_000_000) for number in range(12)])
    assert [result.error for result in results].count(None) == 5
    assert [(tmp_path / name).stat().st_size for name in tree(tmp_path)] == [200_000] * 5


@pytest.mark.parametrize("path", ["data/recto.db", "recto.toml", "agents/a/tools.py", ".git/hooks/x", "link/recto.db"])
def test_F9_R15_nothing_that_is_hidden_or_guarded_is_replaced(tmp_path: Path, path: str):
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    guarded = ("recto.toml", "agents", ".git/hooks")
    workspace = Workspace(folder=tmp_path, is_own=False, most_bytes=0, hidden=("data",), guarded=guarded)
    result = fetch(IMAGE, workspace, path)
    assert (result.error, "kept as it is" in text_of(result)) == ("error", True)
    assert tree(tmp_path) == ["data", "link"]


def test_F9_R15_what_is_replaced_in_a_given_folder_can_be_run_as_before(tmp_path: Path):
    (tmp_path / "run.sh").touch(0o755)
    workspace = Workspace(folder=tmp_path, is_own=False, most_bytes=0)
    for path in ("run.sh", "new.sh"):
        fetch(IMAGE, workspace, path)
    (tmp_path / "made").touch()
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("run.sh", "new.sh", "made")}
    assert (modes["run.sh"], modes["new.sh"]) == (0o755, modes["made"])
