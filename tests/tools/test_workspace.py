"""F9: no path leads out of a workspace, a file is there whole or not at all, and uploads are put into it."""

import asyncio
import json
import os
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recto.conversation.message_files import InputFile
from recto.conversation.messages import ToolCall
from recto.errors import FileRefused, StorageDown, ToolError
from recto.tools.call import call_tool
from recto.tools.function import make_tool
from recto.tools.ports import ToolResult
from recto.tools.registry import Registry
from recto.tools.workspace.open_path import LONGEST_ABSOLUTE, names_of_file
from recto.tools.workspace.sandbox_fetch_user_file import sandbox_fetch_user_file
from recto.tools.workspace.workspace_files import (
    FOLDER,
    LONGEST_NAME,
    MOST_FOLDERS,
    NewFile,
    Workspace,
    WrittenFile,
    bytes_in,
)
from tests.tools.runs import context, repeated, text_of
from tests.tools.thread_files import FakeFiles, a_file, make_files, run

NAMES = st.sampled_from(
    ("a", "b", "..", ".", "", "~", "\0", "\\", "C:", "con", "...", " ", "中", "🙂", "\n", "x" * 300)
)
HOSTILE = st.one_of(st.text(max_size=40), st.lists(NAMES, max_size=40).map("/".join))


def write(root: Path, path: str, *pieces: bytes, most: int = 0) -> WrittenFile:
    """Take every step of a new file and return the result."""
    workspace = Workspace(folder=root, most_bytes=most)
    new = NewFile(workspace, names_of_file(path, workspace))
    try:
        new.begin()
        for piece in pieces:
            new.write(piece)
        return new.finish()
    finally:
        new.abandon()


def tree(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def two_folders(place: Path) -> tuple[Path, Path]:
    """Create a workspace and a folder outside it."""
    folders = place / "root", place / "outside"
    for folder in folders:
        folder.mkdir()
    return folders


# Paths


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a/b/c.txt", ("a", "b", "c.txt")),
        ("./a//./b", ("a", "b")),
        ("~/x", ("~", "x")),
        ("..a/b../...", ("..a", "b..", "...")),
        ("C:x", ("C:x",)),
        ("文件 1.csv", ("文件 1.csv",)),
        ("x" * LONGEST_NAME, ("x" * LONGEST_NAME,)),
    ],
)
def test_F9_a_path_is_the_names_on_it(path: str, parts: tuple[str, ...]):
    assert names_of_file(path, Workspace(folder=Path("/project"))) == parts


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/etc/passwd", "leads out of the workspace"),
        ("//x", "leads out of the workspace"),
        ("../x", "leads out of the workspace"),
        ("a/../../x", "leads out of the workspace"),
        ("a/..", "names no file"),
        ("..\\x", "leads out of the workspace"),
        ("C:\\x", "leads out of the workspace"),
        ("", "is empty"),
        (".", "names no file"),
        ("a/", "names no file"),
        ("a/.", "names no file"),
        ("a\0b", "has control characters"),
        ("a\nb", "has control characters"),
        ("a\ud800b", "half a character"),
        ("x" * (LONGEST_NAME + 1), "a name that is too long"),
        ("文" * (LONGEST_NAME // 3 + 1), "a name that is too long"),
        ("a/" * LONGEST_ABSOLUTE + "x", "is too long"),
        ("a/" * (MOST_FOLDERS + 1) + "x", "is 33 folders deep, 32 are allowed"),
    ],
)
def test_F9_a_path_that_is_none_says_why(path: str, reason: str):
    with pytest.raises(ToolError) as caught_error:
        names_of_file(path, Workspace(folder=Path("/project")))
    assert reason in str(caught_error.value)
    assert len(str(caught_error.value)) < 400


@settings(max_examples=60, deadline=None)
@given(path=HOSTILE)
def test_F9_whatever_the_path_nothing_is_written_outside(path: str, tmp_path_factory: pytest.TempPathFactory):
    outside = tmp_path_factory.mktemp("outside")
    root = outside / "root"
    try:
        created_path = write(root, path, b"x")
    except ToolError:
        assert tree(outside) in ([], ["root"])
        return
    assert (root / created_path.path).read_bytes() == b"x"
    assert [one for one in outside.iterdir() if one != root] == []


# Files


def test_F9_a_file_is_written_with_its_folders_and_replaced_and_that_is_told(tmp_path: Path):
    root = tmp_path / "all" / "mine"
    assert write(root, "a/b/c.bin", b"one", b"two") == WrittenFile(path="a/b/c.bin", size=6, is_replaced=False)
    assert (root / "a/b/c.bin").read_bytes() == b"onetwo"
    assert write(root, "a/b/c.bin", b"new") == WrittenFile(path="a/b/c.bin", size=3, is_replaced=True)
    assert (root / "a/b/c.bin").read_bytes() == b"new"
    assert tree(tmp_path) == ["all", "all/mine", "all/mine/a", "all/mine/a/b", "all/mine/a/b/c.bin"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("folder", r"^folder is a folder\. Choose another path\.$"),
        ("file/b", r"^file is no folder, or only a link to one\."),
        ("pipe", r"^pipe is no plain file\."),
        ("way/x", "or only a link to one"),
        ("way/new/x", "or only a link to one"),
        ("up/outside/x", "or only a link to one"),
        ("link", "is no plain file"),
        ("gone", "is no plain file"),
    ],
)
def test_F9_neither_a_link_nor_what_is_no_plain_file_is_followed_or_replaced(tmp_path: Path, path: str, reason: str):
    root, outside = two_folders(tmp_path)
    (root / "folder").mkdir()
    for file in (root / "file", outside / "secret"):
        file.write_text("mine")
    os.mkfifo(root / "pipe")
    for name, target in (("way", "../outside"), ("up", ".."), ("link", "../outside/secret"), ("gone", "nowhere")):
        (root / name).symlink_to(target)
    before, new = tree(root), NewFile(Workspace(folder=root), tuple(path.split("/")))
    with pytest.raises(ToolError, match=reason):
        new.begin()
    new.abandon()
    assert (tree(root), tree(outside)) == (before, ["secret"])
    assert [(root / "file").read_text(), (outside / "secret").read_text()] == ["mine", "mine"]


# Links


@pytest.mark.parametrize("root", ["file/root", "link"])
def test_F9_a_workspace_that_is_a_link_or_cannot_be_made_is_refused_without_its_path(tmp_path: Path, root: str):
    (tmp_path / "outside").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match=r"^a\.txt cannot be written: Not a directory\.$"):
        write(tmp_path / root, "a.txt", b"x")
    assert tree(tmp_path / "outside") == []


def test_F9_a_folder_that_becomes_a_link_while_a_file_is_written_leads_nowhere(tmp_path: Path):
    root, outside = two_folders(tmp_path)
    (root / "way").mkdir()
    new = NewFile(Workspace(folder=root), ("way", "x"))
    new.begin()
    new.write(b"x")
    (root / "way").rmdir()
    (root / "way").symlink_to(outside)
    with pytest.raises(ToolError, match="or only a link to one"):
        new.finish()
    new.abandon()
    assert (tree(outside), tree(root)) == ([], ["way"])


def test_F9_in_a_race_with_links_nothing_gets_out(tmp_path: Path):
    (root, outside), numbers = two_folders(tmp_path), count()

    def swap() -> None:
        """Make the folder a link, remove it, and move a folder of somebody else away."""
        with suppress(OSError):
            (root / "way").symlink_to(outside)
        with suppress(OSError):
            (root / "way").unlink()
        with suppress(OSError):
            (root / "way").rename(tmp_path / f"aside-{next(numbers)}")

    with repeated(swap):
        for _ in range(300):
            with suppress(ToolError):
                write(root, "way/x", b"x")
    assert tree(outside) == []
    assert [one for one in tree(root) if one.endswith(".part")] == []


# How much


def held_in(folder: Path) -> int:
    top = os.open(folder, FOLDER)
    try:
        return bytes_in(top)
    finally:
        os.close(top)


@pytest.mark.parametrize("pieces", [[401], [400, 1], [1, 1_000_000]])
def test_F9_one_too_many_bytes_leave_nothing_and_say_what_is_there_and_allowed(tmp_path: Path, pieces: list[int]):
    write(tmp_path, "old.bin", b"x" * 1_200)
    assert write(tmp_path, "new.bin", b"y" * 300, b"y" * 100, most=1_600).size == 400
    assert (held_in(tmp_path), write(tmp_path, "empty", most=1_600).size) == (1_600, 0)
    with pytest.raises(ToolError) as caught_error:
        write(tmp_path, "in/more.bin", *[b"y" * size for size in pieces], most=2_000)
    assert str(caught_error.value) == (
        "in/more.bin does not fit: the workspace holds 1,600 bytes besides it and may hold 2,000, so 400 are left, and "
        "the file has more. Put it in the place of a file that is not needed any more, or tell the user."
    )
    assert tree(tmp_path) == ["empty", "new.bin", "old.bin"]


def test_F9_what_is_replaced_is_given_back_and_one_that_holds_too_much_takes_nothing_more(tmp_path: Path):
    write(tmp_path, "in/a.bin", b"x" * 900)
    assert write(tmp_path, "in/a.bin", b"y" * 1_000, most=1_000).is_replaced
    with pytest.raises(ToolError, match=re.escape("holds 0 bytes besides it and may hold 1,000, so 1,000 are left")):
        write(tmp_path, "in/a.bin", b"z" * 1_001, most=1_000)
    assert (tmp_path / "in/a.bin").read_bytes() == b"y" * 1_000
    with pytest.raises(ToolError, match=re.escape("holds 1,000 bytes besides it and may hold 100, so 0 are left")):
        write(tmp_path, "b.bin", b"y", most=100)


def test_F9_files_in_all_folders_count_and_links_are_not_followed(tmp_path: Path):
    root, outside = two_folders(tmp_path)
    (outside / "large").write_bytes(b"x" * 10_000)
    deep = root / "/".join(["d"] * 100)
    deep.mkdir(parents=True)
    for folder, size in ((root, 1), (root / "d", 20), (deep, 300)):
        (folder / "file").write_bytes(b"x" * size)
        (folder / "link").symlink_to(outside)
        (folder / "linked").symlink_to(outside / "large")
        (folder / "round").symlink_to(root)
    os.mkfifo(root / "pipe")
    assert held_in(root) == 321


def test_F9_counting_goes_on_where_folders_come_and_go(tmp_path: Path):
    root, outside = two_folders(tmp_path)
    for folder in (root, outside):
        (folder / "kept").write_bytes(b"x" * 100)

    def swap() -> None:
        (root / "way").mkdir()
        (root / "way").rmdir()
        (root / "way").symlink_to(outside)
        (root / "way").unlink()

    with repeated(swap):
        assert {held_in(root) for _ in range(300)} == {100}


# Breaking off


def test_F9_what_is_broken_off_leaves_no_folder_and_an_older_file_as_it_was(tmp_path: Path):
    write(tmp_path, "a.txt", b"old")
    for parts in (("in", "b.txt"), ("a.txt",)):
        new = NewFile(Workspace(folder=tmp_path), parts)
        new.begin()
        new.write(b"half")
        assert len(tree(tmp_path)) == 2
        new.abandon()
        assert (tree(tmp_path), (tmp_path / "a.txt").read_bytes()) == (["a.txt"], b"old")


def test_F9_steps_of_a_thread_that_comes_too_late_do_nothing(tmp_path: Path):
    new = NewFile(Workspace(folder=tmp_path / "root"), ("a.txt",))
    new.abandon()
    new.begin()
    new.write(b"late")
    with pytest.raises(ToolError, match="was broken off"):
        new.finish()
    assert tree(tmp_path) == []


def test_F9_no_descriptor_stays_open(tmp_path: Path):
    own = Path("/proc/self/fd")
    before = len([*own.iterdir()])
    for path in ("a/b/c.txt", "a/b", "a/b/c.txt/d", "x"):
        with suppress(ToolError):
            write(tmp_path, path, b"x")
    assert len([*own.iterdir()]) == before


# Uploads that are fetched into it


IMAGE = FakeFiles(turns=[[a_file("r-0", "cat.png", "image")]], holds={"r-0": b"\x89PNG" * 50_000})


def fetch(
    files: FakeFiles | None, place: Path | Workspace | None, path: str = "in/cat.png", id: str = "r-0", most: int = 0
) -> ToolResult:
    arguments = {"file_index": id, "target_path": path}
    return run(sandbox_fetch_user_file, files, arguments, workspace=place, workspace_bytes=most)


def test_F9_the_tool_takes_a_file_id_and_a_path_and_is_safe_to_repeat():
    tool = make_tool(sandbox_fetch_user_file)
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
    assert text_of(fetch(make_files(), tmp_path, id="r-9")) == "There is no file 'r-9' here. The newest are: none."
    assert text_of(fetch(None, tmp_path)) == "This server keeps no files, so there are none to read."
    problem = "This server gives threads no workspace, so there is nowhere to put a file."
    assert text_of(fetch(IMAGE, None)) == problem


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (FileRefused("it was deleted.", code="deleted"), "a.txt cannot be read: it was deleted."),
        (StorageDown(problem="10.0.0.1"), "a.txt cannot be read: the storage of files cannot be used at present. Try "),
    ],
)
def test_F9_a_file_that_cannot_be_read_to_its_end_leaves_nothing(tmp_path: Path, error: Exception, problem: str):
    result = fetch(make_files(a=error), tmp_path, id="a")
    assert (result.error, text_of(result)[: len(problem)]) == ("error", problem)
    assert tree(tmp_path) == []


@dataclass(frozen=True, kw_only=True)
class Stuck(FakeFiles):
    """Fake files that stop after the first piece."""

    half_read: asyncio.Event

    async def read(self, file: InputFile) -> AsyncGenerator[bytes]:
        yield b"half of it"
        self.half_read.set()
        await asyncio.Event().wait()


async def fetch_async(files: FakeFiles, workspace: Path, path: str, workspace_bytes: int = 0) -> ToolResult:
    """Write as several calls of one reply do."""
    place = Workspace(folder=workspace, most_bytes=workspace_bytes)
    own_context = replace(context(), files=files, workspace=place)
    arguments = json.dumps({"file_index": "r-0", "target_path": path})
    call = ToolCall(id="c1", name="sandbox_fetch_user_file", arguments=arguments)
    return await call_tool(Registry([make_tool(sandbox_fetch_user_file)]), call, own_context)


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
    rejection = fetch(IMAGE, tmp_path, "b.png", most=399_999)
    assert (rejection.error, text_of(rejection)[:20]) == ("error", "b.png does not fit: ")
    assert (tree(tmp_path), Workspace(folder=Path()).most_bytes) == (["a.png"], 2**30)


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
