"""R15: files of the workspace are made and changed whole or not at all, and nobody's change is lost."""

import fcntl
import os
import random
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from recto.errors import ToolError
from recto.tools.ports import ToolResult
from recto.tools.text.replacement import TextEdit
from recto.tools.workspace.filesystem_create import write_file
from recto.tools.workspace.filesystem_edit import MEANWHILE, edit_file
from recto.tools.workspace.workspaces import Workspace
from tests.tools.runs import text_of
from tests.tools.workspace.calls import CREATE, EDIT, READ, built_in, call, call_error, call_text
from tests.waiting import wait_for

CODE, CHINESE = "def go():\n    return 1\n", "你好世界，函数返回用户的信息"


def edit(space: Path | Workspace, search: str, replace: str, path: str = "a.py", **more: object) -> ToolResult:
    return call(space, EDIT, filePath=path, searchContent=search, replaceContent=replace, **more)


@pytest.fixture
def space(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text(CODE)
    return tmp_path


# Making


def test_R15_a_file_is_made_with_its_folders_and_its_lines_and_bytes_are_told(tmp_path: Path):
    assert [built_in()[name].mark.changes for name in (READ, CREATE, EDIT)] == [None, "files", "files"]
    space = tmp_path / "new"
    assert call_text(space, CREATE, filePath="src/a.py", content="é\nb") == "Created src/a.py: 2 lines, 4 bytes."
    assert (space / "src/a.py").read_text() == "é\nb"
    assert call_text(space, CREATE, filePath="empty", content="") == "Created empty: 0 lines, 0 bytes."


def test_R15_a_file_that_is_there_is_not_replaced(space: Path):
    (space / "dir").mkdir()
    assert call_error(space, CREATE, filePath="a.py", content="x") == (
        "a.py is there already, and was not changed. Change it with filesystem-edit, or choose another path."
    )
    assert call_error(space, CREATE, filePath="dir", content="x") == "dir is a folder. Choose another path."
    assert (space / "a.py").read_text() == CODE


def test_R15_a_workspace_holds_no_more_than_it_may(tmp_path: Path):
    workspace = Workspace(folder=tmp_path, most_bytes=100)
    call_text(workspace, CREATE, filePath="a", content="x" * 80)
    assert "so 20 are left, and the file has more" in call_error(workspace, CREATE, filePath="b", content="y" * 21)
    assert "so 100 are left" in text_of(edit(workspace, "x" * 80, "y" * 101, "a"))
    assert edit(workspace, "x" * 80, "y" * 100, "a").error is None
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a"]


def test_R15_what_is_made_is_for_its_owner_alone_in_a_folder_of_the_threads_own_only(tmp_path: Path):
    old = os.umask(0o022)
    try:
        call_text(Workspace(folder=tmp_path / "own"), CREATE, filePath="d/a", content="x")
        (tmp_path / "given").mkdir()
        call_text(Workspace(folder=tmp_path / "given", is_own=False, most_bytes=0), CREATE, filePath="d/a", content="x")
    finally:
        os.umask(old)
    modes = [stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("own/d", "own/d/a", "given/d", "given/d/a")]
    assert modes == [0o700, 0o600, 0o755, 0o644]


def test_R15_what_a_killed_process_left_is_swept_by_the_next_write(tmp_path: Path):
    leftover, fresh = tmp_path / f".recto-{'0' * 32}.part", tmp_path / f".recto-{'1' * 32}.part"
    for part in (leftover, fresh):
        part.write_text("half")
    os.utime(leftover, (0, 0))
    workspace = Workspace(folder=tmp_path, is_own=False, most_bytes=0)
    assert ".part" not in call_text(workspace, READ, filePath=".")
    call_text(workspace, CREATE, filePath="a", content="x")
    assert (leftover.exists(), fresh.exists()) == (False, True)


# Changing


def test_R15_an_edit_answers_with_a_diff_and_permissions_stay(space: Path):
    (space / "a.py").chmod(0o755)
    assert text_of(edit(space, "return 1", "return 2")) == (
        "Changed a.py.\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n def go():\n-    return 1\n+    return 2"
    )
    assert (space / "a.py").read_text() == CODE.replace("1", "2")
    assert stat.S_IMODE((space / "a.py").stat().st_mode) == 0o755
    text = text_of(edit(space, "  def go():\n      return 2", "  def go():\n      return 3"))
    assert text.startswith("Changed a.py. Found with other blanks or another indentation, to which the replacement was")


def test_R15_several_edits_are_one_call_and_all_or_nothing(space: Path):
    one, two = {"searchContent": "go", "replaceContent": "run"}, {"searchContent": "return 1", "replaceContent": "pass"}
    wrong = {"searchContent": "gone", "replaceContent": "x", "occurrence": 1}
    assert "edit 2 of 2: searchContent is not in it" in call_error(space, EDIT, filePath="a.py", edits=[one, wrong])
    assert (space / "a.py").read_text() == CODE
    call_text(space, EDIT, filePath="a.py", edits=[one, two])
    assert (space / "a.py").read_text() == "def run():\n    pass\n"


def test_R15_an_edit_without_words_is_refused(space: Path):
    one: dict[str, object] = {"searchContent": "go", "replaceContent": "x"}
    more: list[dict[str, object]] = [{}, {"edits": []}, {**one, "edits": [one]}, {**one, "occurrence": 0}]
    for wrong in (*more, {"searchContent": "go"}):
        assert call(space, EDIT, filePath="a.py", **wrong).error in {"error", "invalid_arguments"}
    assert (space / "a.py").read_text() == CODE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\r\nb\r\n", b"a\r\nx\r\ny\r\n"),
        (b"a\nb", b"a\nx\ny"),
        (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfa\nx\ny\n"),
        ("\ufeffa\nb\n".encode("utf-16-le"), "\ufeffa\nx\ny\n".encode("utf-16-le")),
        (f"{CHINESE}\nb\n".encode("gb18030"), f"{CHINESE}\nx\ny\n".encode("gb18030")),
        ("你好".encode() * 9 + b"\xff\nb\n", "你好".encode() * 9 + b"\xff\nx\ny\n"),
    ],
)
def test_R15_encodings_line_ends_and_a_missing_last_one_are_kept(space: Path, before: bytes, after: bytes):
    (space / "a.py").write_bytes(before)
    assert edit(space, "b", "x\ny").error is None
    assert (space / "a.py").read_bytes() == after


def test_R15_folders_missing_files_what_is_no_text_and_what_an_encoding_cannot_write_are_refused(space: Path):
    data = ("déjà vu, naïve café, über\n" * 5 + "end").encode("cp1252")
    (space / "a.py").write_bytes(data)
    assert "which has no '你'" in text_of(edit(space, "end", "你"))
    assert (space / "a.py").read_bytes() == data
    (space / "bin").write_bytes(bytes(10))
    (space / "dir").mkdir()
    assert "There is no b.py in the workspace. Close to it: a.py." in text_of(edit(space, "x", "y", "b.py"))
    assert "dir is a folder." in text_of(edit(space, "x", "y", "dir"))
    assert "it is of an unknown binary kind, and no text." in text_of(edit(space, "x", "y", "bin"))


# Together


def test_R15_edits_by_others_who_share_no_lock_are_never_lost(tmp_path: Path):
    """Count up a line of one's own by the file alone, as threads of other servers do."""
    workspace = Workspace(folder=tmp_path, is_own=False, most_bytes=0)
    (tmp_path / "a.txt").write_text("".join(f"{who}: 0\n" for who in range(4)) + "filler\n" * 2_000)
    counts, problems = [0] * 4, list[str]()

    def count(who: int) -> None:
        for _ in range(40):
            one = TextEdit(search=f"{who}: {counts[who]}\n", replace=f"{who}: {counts[who] + 1}\n")
            try:
                edit_file(workspace, "a.txt", [one], 1_000)
                counts[who] += 1
            except ToolError as error:
                problems.append(str(error))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))
    assert (tmp_path / "a.txt").read_text().startswith("".join(f"{who}: {counts[who]}\n" for who in range(4)))
    assert sum(counts) + len(problems) == 160
    # What is told is what was there: the lines as others have left them.
    head = MEANWHILE.format(path="a.txt", now="What comes nearest is there now, in lines ")
    assert [problem for problem in problems if not problem.startswith(head)] == []
    assert all(problem.endswith("\nEdit what is there now.") for problem in problems)


def test_R15_a_file_that_changed_between_read_and_write_is_told_as_it_is_now(tmp_path: Path):
    file, problems = tmp_path / "a.txt", list[str]()
    file.write_text("first\nx = 1\nlast\n")

    def change() -> None:
        try:
            edit_file(Workspace(folder=tmp_path), "a.txt", [TextEdit(search="x = 1", replace="x = 3")], 1_000)
        except ToolError as error:
            problems.append(str(error))

    turn = os.open(tmp_path, os.O_RDONLY)
    # Whoever puts a file in its place waits for this, and has read it by then.
    fcntl.flock(turn, fcntl.LOCK_EX)
    changing = threading.Thread(target=change)
    changing.start()
    wait_for(lambda: list(tmp_path.glob(".recto-*.part")))
    file.write_text("first\nx = 2  # theirs\nlast\n")
    os.close(turn)
    changing.join()
    assert problems == [
        "a.txt was not changed: somebody else changed it meanwhile. What comes nearest is there now, in lines 1-3:\n"
        "1→first\n2→x = 2  # theirs\n3→last\nEdit what is there now."
    ]


def test_R15_a_file_that_somebody_makes_in_the_last_moment_is_not_replaced(tmp_path: Path):
    def make_another(_: int, there: os.stat_result | None) -> None:
        assert there is None
        (tmp_path / "new.txt").write_text("theirs")

    with pytest.raises(ToolError, match=r"new\.txt is there already, and was not changed"):
        write_file(Workspace(folder=tmp_path), ("new.txt",), b"ours", make_another)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"new.txt": "theirs"}


KILLED = """
import sys
from pathlib import Path
from recto.tools.text.replacement import TextEdit
from recto.tools.workspace.filesystem_edit import edit_file
from recto.tools.workspace.workspaces import Workspace
workspace = Workspace(folder=Path(sys.argv[1]), is_own=False, most_bytes=0)
print("ready", flush=True)
while True:
    edit_file(workspace, "a.txt", [TextEdit(search="old", replace="new")], 1_000)
    edit_file(workspace, "a.txt", [TextEdit(search="new", replace="old")], 1_000)
"""


@pytest.mark.full
def test_R15_whoever_is_killed_in_an_edit_leaves_the_old_file_or_the_new_one(tmp_path: Path):
    body = "x" * 79 + "\n"
    old, new = f"old\n{body * 50_000}", f"new\n{body * 50_000}"
    (tmp_path / "a.txt").write_text(old)
    for _ in range(8):
        child = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE)
        assert child.stdout and child.stdout.readline() == b"ready\n"
        with suppress(subprocess.TimeoutExpired):
            child.wait(random.uniform(0, 0.15))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        text = (tmp_path / "a.txt").read_text()
        assert text in (old, new)
    call_text(tmp_path, READ, filePath="a.txt", endLine=1)
