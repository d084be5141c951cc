"""R12: files of a workspace are kept before a turn changes them, and put back as they were."""

import os
import random
import signal
import stat
import subprocess
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.config.run_settings import SearchSettings, SnapshotSettings
from recto.errors import Conflict, TooLarge
from recto.tools.workspace.restore_files import RestorePlan, RestoreResult, copy_folder, restore
from recto.tools.workspace.snapshots import FileState, FolderState, Snapshots, SnapshotTurn, difference
from recto.tools.workspace.workspaces import Workspace
from tests.tools.commands.test_git_guards import git

OLD, NEW = (FileState(0o644, (3, number, number, 1), digest=str(number)) for number in (1, 2))
UNKEPT = FileState(0o644, (9, 9, 9, 9))
TURN = SnapshotTurn(message="m1", admission_time=datetime(2026, 3, 1, tzinfo=UTC))
LINK = FileState(0, (0, 0, 0, 0), target="a")
# What a tree is: bytes of a file with its mode, where a link leads, or the mode of a folder.
Tree = Mapping[str, tuple[bytes, int] | str | int]


def tree_of(folder: Path) -> Tree:
    contents: dict[str, tuple[bytes, int] | str | int] = {}
    for path in sorted(folder.rglob("*")):
        mode, name = stat.S_IMODE(path.lstat().st_mode), path.relative_to(folder).as_posix()
        if path.is_symlink():
            contents[name] = str(path.readlink())
        else:
            contents[name] = mode if path.is_dir() else (path.read_bytes(), mode)
    return contents


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def list_stored(place: Path) -> list[Path]:
    """Return the stored contents of a thread."""
    return [path for path in (place / "snapshots/t/objects").rglob("*") if path.is_file()]


def make_snapshots(place: Path, settings: SnapshotSettings | None = None) -> tuple[Snapshots, Workspace]:
    workspace = Workspace(folder=place / "work")
    return Snapshots(root=place / "snapshots", settings=settings or SnapshotSettings()), workspace


def after_turn(
    place: Path, files: Mapping[str, bytes], settings: SnapshotSettings | None = None
) -> tuple[Snapshots, Workspace, FolderState]:
    """Return the snapshots of a workspace with these files."""
    snapshots, workspace = make_snapshots(place, settings)
    write(workspace.folder, files)
    return snapshots, workspace, snapshots.save_turn(workspace, "t", TURN)


def turns_of(count: int) -> list[SnapshotTurn]:
    return [
        SnapshotTurn(message=f"m{n}", admission_time=TURN.admission_time + timedelta(minutes=n)) for n in range(count)
    ]


def put_back(
    snapshots: Snapshots, workspace: Workspace, before: FolderState, paths: list[str] | None = None
) -> RestoreResult:
    _, now = snapshots.save_undo(workspace, "t", before)
    content = partial(snapshots.content, "t")
    return restore(workspace, RestorePlan(before=before, now=now, content=content, paths=paths))


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({}, {"a": OLD}, ("created", True)),
        ({"a": OLD}, {}, ("deleted", True)),
        ({"a": OLD}, {"a": NEW}, ("changed", True)),
        ({"a": OLD}, {"a": OLD._replace(mode=0o755)}, ("changed", True)),
        ({"a": OLD}, {"a": LINK}, ("changed", True)),
        ({"a": UNKEPT}, {}, ("deleted", False)),
        ({"a": OLD}, {"a": OLD._replace(stamp=(3, 5, 5, 5))}, None),
        ({"a": UNKEPT}, {"a": UNKEPT}, None),
    ],
)
def test_R12_what_became_of_a_file(before: dict[str, FileState], after: dict[str, FileState], change: object):
    changes = difference(FolderState(files=before), FolderState(files=after))
    assert [(one.change, one.is_kept) for one in changes] == ([change] if change else [])


NAMES = st.sampled_from(["a", "b", "c.log", "x.py", "ü", "d e"])
LINKS = st.sampled_from(["a", "../b", "/nowhere"])
CONTENTS = st.tuples(st.binary(max_size=6), st.sampled_from([0o644, 0o755])) | LINKS
FILES = st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map("/".join), CONTENTS, max_size=8)


def build(folder: Path, files: Mapping[str, tuple[bytes, int] | str]) -> None:
    """Create the files; the later of two with one name wins."""
    folder.mkdir(exist_ok=True)
    for path, what in files.items():
        parents = [folder / parent for parent in Path(path).parents]
        if (folder / path).is_dir() or any(one.is_symlink() or one.is_file() for one in parents):
            continue
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).unlink(missing_ok=True)
        if isinstance(what, str):
            (folder / path).symlink_to(what)
        else:
            (folder / path).write_bytes(what[0])
            (folder / path).chmod(what[1])


@pytest.mark.full
@given(first=FILES, removed=st.lists(NAMES), second=FILES)
def test_R12_whatever_was_changed_is_put_back_and_can_be_undone(
    first: dict[str, tuple[bytes, int] | str], removed: list[str], second: dict[str, tuple[bytes, int] | str]
):
    with TemporaryDirectory() as place:
        snapshots, workspace = make_snapshots(Path(place))
        build(workspace.folder, first)
        (workspace.folder / ".gitignore").write_text("*.log\n")
        then = tree_of(workspace.folder)
        before = snapshots.save_turn(workspace, "t", TURN)
        for name in removed:
            subprocess.run(["rm", "-rf", str(workspace.folder / name)], check=True)
        build(workspace.folder, second)
        changed = tree_of(workspace.folder)
        undo, now = snapshots.save_undo(workspace, "t")
        done = put_back(snapshots, workspace, before)
        logs = {path for path in {*then, *changed} if "c.log" in path}
        if not logs:
            assert (done.failed_paths, tree_of(workspace.folder), snapshots.of_undo("t", undo)) == ((), then, now)
            put_back(snapshots, workspace, now)
            assert tree_of(workspace.folder) == changed
        there = tree_of(workspace.folder)
        assert [changed.get(path) for path in logs] == [there.get(path) for path in logs]


def test_R12_what_became_ignored_or_was_is_not_touched(tmp_path: Path):
    files = {".gitignore": b"*.log\n", "a.log": b"mine", "b.txt": b"one"}
    snapshots, workspace, before = after_turn(tmp_path, files)
    write(workspace.folder, {".gitignore": b"*.txt\n", "a.log": b"still mine", "b.txt": b"two"})
    done = put_back(snapshots, workspace, before)
    assert (workspace.folder / ".gitignore").read_bytes() == b"*.log\n"
    # It was ignored, so it was not kept; and it is ignored, so nothing of it could be had again.
    assert (workspace.folder / "a.log").read_bytes() == b"still mine"
    assert (workspace.folder / "b.txt").read_bytes() == b"two"
    assert done == RestoreResult(restored=(".gitignore",), failed_paths=("a.log", "b.txt"))


def test_R12_what_was_ignored_then_is_not_removed_by_its_path_either(tmp_path: Path):
    files = {".gitignore": b"/a/keys/\n", "a/.gitignore": b"*.env\n", "a/mine.env": b"key", "a/keys/mine": b"key"}
    snapshots, workspace, before = after_turn(tmp_path, files)
    write(workspace.folder, {".gitignore": b"", "a/.gitignore": b"", "a/new.txt": b"new"})
    done = put_back(snapshots, workspace, before, ["a/mine.env", "a/keys/mine", "a/new.txt"])
    assert done == RestoreResult(restored=("a/new.txt",), failed_paths=("a/keys/mine", "a/mine.env"))
    assert (workspace.folder / "a/mine.env").exists()


def test_R12_where_the_rules_of_then_cannot_be_read_nothing_new_under_them_is_removed(tmp_path: Path):
    snapshots, workspace, before = after_turn(tmp_path, {"a/.gitignore": b"*.env\n", "a/mine.env": b"key"})
    for path in list_stored(tmp_path):
        path.unlink()
    write(workspace.folder, {"a/.gitignore": b"", "b.txt": b"new"})
    done = put_back(snapshots, workspace, before)
    assert done == RestoreResult(restored=("b.txt",), failed_paths=("a/.gitignore", "a/mine.env"))


def test_R12_a_folder_with_rules_that_became_a_file_is_restored(tmp_path: Path):
    files = {
        ".gitignore": b"*.log\n",
        "a/.gitignore": b"*\n!.gitignore\n!x.txt\n",
        "a/x.txt": b"one",
        "b.txt/.gitignore": b"",
    }
    snapshots, workspace, before = after_turn(tmp_path, files)
    then = tree_of(workspace.folder)
    for name in ("a", "b.txt"):
        subprocess.run(["rm", "-rf", str(workspace.folder / name)], check=True)
    write(workspace.folder, {"a": b"a file", "b.txt": b"b", "c.txt": b"new"})
    done = put_back(snapshots, workspace, before)
    assert done.failed_paths == ()
    assert tree_of(workspace.folder) == then


def test_R12_a_file_with_rules_that_became_a_folder_is_restored(tmp_path: Path):
    snapshots, workspace, before = after_turn(tmp_path, {"a/.gitignore": b"*.log\n"})
    (workspace.folder / "a/.gitignore").unlink()
    write(workspace.folder, {"a/.gitignore/x.txt": b"new"})
    done = put_back(snapshots, workspace, before)
    assert done == RestoreResult(restored=("a/.gitignore", "a/.gitignore/x.txt"))


def test_R12_nothing_new_is_removed_under_rules_that_fit_in_no_folder(tmp_path: Path):
    snapshots, workspace, before = after_turn(tmp_path, {"a.txt": b"one"})
    long = "/".join(["n" * 200] * 21)
    before = replace(before, files={**before.files, f"{long}/.gitignore": OLD})
    write(workspace.folder, {"b.txt": b"new"})
    _, now = snapshots.save_undo(workspace, "t", before)
    now = replace(now, files={**now.files, f"{long}/x": OLD})
    done = restore(workspace, RestorePlan(before=before, now=now, content=partial(snapshots.content, "t")))
    assert done.restored == ("b.txt",)
    assert f"{long}/x" in done.failed_paths


def test_R12_files_that_cannot_be_listed_are_a_conflict(tmp_path: Path):
    snapshots, workspace = make_snapshots(tmp_path)
    workspace = replace(workspace, search=SearchSettings(seconds=0.1))
    workspace.folder.mkdir()
    os.mkfifo(workspace.folder / ".gitignore")
    with pytest.raises(Conflict, match=r"could not be listed in 0\.1 seconds"):
        snapshots.state(workspace, "t")


def test_R12_ignored_links_are_neither_stored_nor_touched(tmp_path: Path):
    snapshots, workspace = make_snapshots(tmp_path)
    write(workspace.folder, {".gitignore": b"*.log\n", "a/x.txt": b"one"})
    (workspace.folder / "a/x.log").symlink_to("one")
    (workspace.folder / "a/link").symlink_to("one")
    before = snapshots.save_turn(workspace, "t", TURN)
    assert list(before.files) == [".gitignore", "a/link", "a/x.txt"]
    (workspace.folder / "a/x.log").unlink()
    (workspace.folder / "a/x.log").symlink_to("two")
    assert put_back(snapshots, workspace, before) == RestoreResult()


@pytest.mark.parametrize("damage", [b"", b"no zlib", zlib.compress(b"something else")])
def test_R12_a_content_that_is_damaged_is_left_and_the_others_are_put_back(tmp_path: Path, damage: bytes):
    snapshots, workspace, before = after_turn(tmp_path, {"a.txt": b"one", "b.txt": b"two"})
    write(workspace.folder, {"a.txt": b"three", "b.txt": b"four"})
    digest = before.files["a.txt"].digest
    next(path for path in list_stored(tmp_path) if path.name == digest).write_bytes(damage)
    assert put_back(snapshots, workspace, before) == RestoreResult(restored=("b.txt",), failed_paths=("a.txt",))
    # It is stored again once it is there again.
    write(workspace.folder, {"a.txt": b"one"})
    snapshots.save_undo(workspace, "t")
    assert digest and snapshots.content("t", digest) == b"one"


def test_R12_whatever_stops_a_restore_what_was_done_is_told(tmp_path: Path):
    snapshots, workspace, before = after_turn(tmp_path, {"a.txt": b"one", "b.txt": b"two"})
    write(workspace.folder, {"a.txt": b"three", "b.txt": b"four"})
    _, now = snapshots.save_undo(workspace, "t", before)

    def content(digest: str) -> bytes:
        if digest == before.files["b.txt"].digest:
            raise ValueError(digest)
        return snapshots.content("t", digest)

    done = restore(workspace, RestorePlan(before=before, now=now, content=content))
    assert done == RestoreResult(restored=("a.txt",), failed_paths=("b.txt",))


def test_R12_what_is_hidden_or_guarded_and_a_users_git_is_neither_kept_nor_touched(tmp_path: Path):
    snapshots, workspace = make_snapshots(tmp_path)
    workspace = Workspace(folder=workspace.folder, is_own=False, hidden=("data",), guarded=("agents/x",))
    workspace.folder.mkdir()
    git(workspace.folder, "init", "-q")
    git(workspace.folder, "commit", "-q", "--allow-empty", "-m", "first")
    write(workspace.folder, {"a.txt": b"one", "data/secret": b"s", "agents/x/AGENT.md": b"x"})
    repository = tree_of(workspace.folder / ".git")
    before = snapshots.save_turn(workspace, "t", TURN)
    assert list(before.files) == ["a.txt"]
    write(workspace.folder, {"a.txt": b"two", "data/more": b"s", "agents/x/tools.py": b"x"})
    assert put_back(snapshots, workspace, before) == RestoreResult(restored=("a.txt",))
    assert [(workspace.folder / path).exists() for path in ("data/more", "agents/x/tools.py")] == [True, True]
    assert tree_of(workspace.folder / ".git") == repository


def test_R12_a_link_in_the_place_of_a_folder_leads_nowhere(tmp_path: Path):
    snapshots, workspace, before = after_turn(tmp_path, {"src/a.txt": b"one"})
    write(tmp_path, {"outside/a.txt": b"theirs"})
    assert snapshots.state(workspace, "t").files == before.files
    write(workspace.folder, {"src/a.txt": b"two"})
    changed = snapshots.state(workspace, "t")
    (workspace.folder / "src").rename(workspace.folder / "gone")
    (workspace.folder / "src").symlink_to(tmp_path / "outside")
    done = restore(workspace, RestorePlan(before=before, now=changed, content=partial(snapshots.content, "t")))
    assert done == RestoreResult(failed_paths=("src/a.txt",))
    assert tree_of(tmp_path / "outside") == {"a.txt": (b"theirs", 0o644)}


def test_R12_what_is_too_large_or_too_much_is_not_kept_and_named(tmp_path: Path):
    files = {"a.txt": b"one", "b.bin": b"x" * 101, "c.txt": bytes(range(90))}
    snapshots, workspace, before = after_turn(tmp_path, files, SnapshotSettings(file_bytes=100, thread_bytes=60))
    assert [path for path, state in before.files.items() if state.is_stored] == ["a.txt"]
    write(workspace.folder, {"a.txt": b"two", "b.bin": b"y" * 101, "c.txt": b"three"})
    assert put_back(snapshots, workspace, before).failed_paths == ("b.bin", "c.txt")


def test_R12_a_state_is_of_the_folder_it_was_kept_of(tmp_path: Path):
    snapshots, own = make_snapshots(tmp_path)
    one, other = (replace(own, folder=tmp_path / name, is_own=False) for name in ("one", "other"))
    for workspace in (own, one):
        write(workspace.folder, {"a.txt": b"text"})
        state = snapshots.of_undo("t", snapshots.save_undo(workspace, "t")[0])
        assert state
        assert [state.is_of(folder) for folder in (own, one, other)] == [workspace == own, workspace == one, False]
    # The folder of a thread is the same one wherever the server's data is moved to.
    assert snapshots.save_undo(own, "t")[1].is_of(replace(own, folder=tmp_path / "moved"))


def test_R12_what_did_not_fit_is_kept_again_once_old_contents_are_gone(tmp_path: Path):
    snapshots, workspace = make_snapshots(tmp_path, SnapshotSettings(turns=1, thread_bytes=4_000))
    for number, turn in enumerate(turns_of(30)):
        write(workspace.folder, {"a.bin": random.Random(number).randbytes(1_000)})
        assert snapshots.save_turn(workspace, "t", turn).files["a.bin"].is_stored
    assert sum(path.stat().st_size for path in list_stored(tmp_path)) <= 4_000


def test_R12_making_room_takes_nothing_of_what_is_put_back_just_then(tmp_path: Path):
    snapshots, workspace = make_snapshots(tmp_path, SnapshotSettings(turns=1, thread_bytes=2_500))
    for turn, number in zip(turns_of(2), (1, 2), strict=True):
        write(workspace.folder, {"a.bin": random.Random(number).randbytes(1_000)})
        snapshots.save_turn(workspace, "t", turn)
    before = snapshots.of_turn("t", turns_of(1)[0])
    write(workspace.folder, {"a.bin": b"small", "b.bin": random.Random(3).randbytes(1_000)})
    assert before
    put_back(snapshots, workspace, before)
    assert (workspace.folder / "a.bin").read_bytes() == random.Random(1).randbytes(1_000)


def test_R12_for_a_turn_that_changed_nothing_the_next_stands_in_and_for_one_that_could_not_be_kept_none(tmp_path: Path):
    snapshots, workspace = make_snapshots(tmp_path, SnapshotSettings(files=1, thread_bytes=20))
    first, second, quiet, third, last = turns_of(5)
    write(workspace.folder, {"a.txt": b"one"})
    stored_bytes = snapshots.save_turn(workspace, "t", first).stored_bytes
    write(workspace.folder, {"b.txt": b"two"})
    with pytest.raises(Conflict, match="more than 1 files and folders, so none is kept"):
        snapshots.save_turn(workspace, "t", second)
    assert len(list_stored(tmp_path)) == 1
    # To try again would be to keep what the turn itself has changed by now.
    assert snapshots.has_turn("t", second.message)
    (workspace.folder / "b.txt").unlink()
    assert snapshots.save_turn(workspace, "t", third).stored_bytes == stored_bytes
    states = [snapshots.of_turn("t", turn) for turn in (first, second, quiet, third, last)]
    assert [state and list(state.files) for state in states] == [["a.txt"], None, ["a.txt"], ["a.txt"], None]


def test_R12_of_many_turns_the_newest_are_kept_and_what_only_others_had_is_gone(tmp_path: Path):
    snapshots, workspace = make_snapshots(tmp_path, SnapshotSettings(turns=2))
    turns = turns_of(25)
    for turn in turns:
        write(workspace.folder, {"a.txt": turn.message.encode()})
        snapshots.save_turn(workspace, "t", turn)
    states = [snapshots.of_turn("t", turn) for turn in turns]
    texts = [state and snapshots.content("t", str(state.files["a.txt"].digest)).decode() for state in states]
    oldest = next(place for place, words in enumerate(texts) if words)
    assert texts == [None] * oldest + [turn.message for turn in turns[oldest:]]
    assert 2 <= len(turns) - oldest <= 12
    assert len(list_stored(tmp_path)) == len(turns) - oldest


def test_R12_a_copy_has_all_but_what_is_no_file_and_its_links_lead_where_they_did(tmp_path: Path):
    write(tmp_path / "a", {"x/y.txt": b"one", "node_modules/z.js": b"two", ".gitignore": b"node_modules\n"})
    (tmp_path / "a" / "link").symlink_to("x/y.txt")
    (tmp_path / "a" / "x" / "y.txt").chmod(0o755)
    os.mkfifo(tmp_path / "a" / "pipe")
    copy_folder(tmp_path / "a", tmp_path / "b" / "c")
    (tmp_path / "a" / "pipe").unlink()
    assert tree_of(tmp_path / "b" / "c") == tree_of(tmp_path / "a")


def test_R12_a_folder_is_not_copied_beyond_its_bytes_holes_included(tmp_path: Path):
    write(tmp_path / "a", {"x/y.txt": b"one", "sparse": b""})
    os.truncate(tmp_path / "a" / "sparse", 1_000_000)
    with pytest.raises(TooLarge, match="1,000,003 bytes"):
        copy_folder(tmp_path / "a", tmp_path / "b", most=1_000_000)
    assert not (tmp_path / "b").exists()
    copy_folder(tmp_path / "a", tmp_path / "b", most=1_000_003)
    assert tree_of(tmp_path / "b") == tree_of(tmp_path / "a")


KILLED = """
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from recto.tools.workspace.restore_files import RestorePlan, restore
from recto.tools.workspace.snapshots import SnapshotTurn, Snapshots
from recto.tools.workspace.workspaces import Workspace

place = Path(sys.argv[1])
snapshots, workspace = Snapshots(root=place / "snapshots"), Workspace(folder=place / "work")
turn = SnapshotTurn(message="m1", admission_time=datetime(2026, 3, 1, tzinfo=UTC))
print("ready", flush=True)
if sys.argv[2] == "keep":
    snapshots.save_turn(workspace, "t", turn)
else:
    before, (_, now) = snapshots.of_turn("t", turn), snapshots.save_undo(workspace, "t")
    print("ready", flush=True)
    restore(workspace, RestorePlan(before=before, now=now, content=partial(snapshots.content, "t")))
"""


def kill_after(place: Path, what: str, lines: int, seconds: float) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(place), what], stdout=subprocess.PIPE)
    assert process.stdout
    with process:
        for _ in range(lines):
            assert process.stdout.readline() == b"ready\n"
        # Anywhere in the middle of it: wherever it is, the same has to hold.
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        process.send_signal(signal.SIGKILL)


@pytest.mark.full
@pytest.mark.parametrize("seconds", [0.0, 0.03])
def test_R12_killed_anywhere_a_snapshot_is_whole_or_not_there_and_so_is_every_file(tmp_path: Path, seconds: float):
    snapshots, workspace = make_snapshots(tmp_path)
    old = {f"{number % 20}/{number}.txt": b"old %d\n" % number * 500 for number in range(600)}
    new = dict.fromkeys(old, b"new\n" * 700)
    write(workspace.folder, old)
    kill_after(tmp_path, "keep", 1, seconds)
    if not snapshots.has_turn("t", "m1"):
        snapshots.save_turn(workspace, "t", TURN)
    before = snapshots.of_turn("t", TURN)
    assert before and all(state.is_stored for state in before.files.values())
    write(workspace.folder, new)
    kill_after(tmp_path, "restore", 2, seconds)
    contents = {path: (workspace.folder / path).read_bytes() for path in old}
    assert all(contents[path] in (old[path], new[path]) for path in old)
    put_back(snapshots, workspace, before)
    assert {path: (workspace.folder / path).read_bytes() for path in old} == old
