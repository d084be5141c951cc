"""R15, R2-R6: files and folders of the workspace are read, one or several, whole or in part."""

import json
import os
import re
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from recto.config.run_settings import FileToolSettings, SearchSettings
from recto.conversation.messages import AssistantMessage, Message, Text, ToolCall, ToolMessage
from recto.page.fold.fold import fold
from recto.tools.ports import ToolResult
from recto.tools.workspace.workspaces import Workspace
from tests.layers import ROOT
from tests.tools.runs import NOON, text_of
from tests.tools.workspace.calls import CREATE, EDIT, READ, call, call_error, call_text, parts

PYTHON = "import os\n\n\nclass App:\n    def run(self):\n        return 1\n\n\ndef main():\n    App().run()\n"


@pytest.fixture
def space(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/app.py").write_text(PYTHON)
    (tmp_path / "notes.txt").write_text("one\ntwo\nthree\n")
    return tmp_path


def test_R15_a_file_is_shown_with_its_lines_and_symbols(space: Path):
    assert call_text(space, READ, filePath="src/app.py") == (
        "📄 src/app.py (lines 1-10/10)\n1→import os\n2→\n3→\n4→class App:\n5→    def run(self):\n6→        return 1\n"
        "7→\n8→\n9→def main():\n10→    App().run()\n\nSymbols:\nclass App 4-6\n  method run 5-6\nfunction main 9-10"
    )


def test_R15_of_some_lines_the_symbols_in_and_around_them_are_shown(space: Path):
    assert call_text(space, READ, filePath="./src//app.py", startLine=6, endLine=7) == (
        "📄 src/app.py (lines 6-7/10)\n6→        return 1\n7→\n\nSymbols:\nclass App 4-6\n  method run 5-6"
    )


def test_R15_lines_that_are_not_there_are_left_out_of_a_range_and_one_with_no_line_says_so(space: Path):
    for start, end, lines in ((0, 2, "1-2"), (-5, None, "1-3"), (2, 99, "2-3"), (3, 3, "3-3")):
        text = call_text(space, READ, filePath="notes.txt", startLine=start, endLine=end)
        assert text.startswith(f"📄 notes.txt (lines {lines}/3)\n")
    assert call_error(space, READ, filePath="notes.txt", startLine=4) == (
        "notes.txt has 3 lines, so there is none at startLine 4."
    )
    assert call_error(space, READ, filePath="notes.txt", startLine=3, endLine=2) == (
        "endLine 2 comes before startLine 3. Lines are counted from 1."
    )


def test_R15_an_empty_file_and_an_empty_workspace_say_that_they_are(space: Path):
    (space / "empty").write_text("")
    assert call_text(space, READ, filePath="empty") == "📄 empty (lines 0-0/0)\nThe file is empty."
    assert call_text(space / "none", READ, filePath=".") == "📁 ./\nThe workspace is empty."
    assert call_error(space / "none", READ, filePath="a.py") == "There is no a.py: the workspace is empty."


def test_R15_a_missing_file_is_told_with_names_that_are_close(space: Path):
    close = "Close to it: src/app.py. Read src to see what is there."
    assert call_error(space, READ, filePath="src/ap.py") == f"There is no src/ap.py in the workspace. {close}"
    there = "Read . to see what is there."
    assert call_error(space, READ, filePath="lib/x.py") == f"There is no lib/x.py in the workspace. {there}"


def test_R15_other_encodings_and_line_ends_are_shown_as_text_and_what_is_none_with_its_kind_and_size(space: Path):
    (space / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(2_000))
    assert call_error(space, READ, filePath="a.png") == "a.png is a PNG image, 2,008 bytes. It has no lines to show."
    (space / "w.txt").write_bytes(b"\xff\xfe" + "你好\r\nb\r\n".encode("utf-16-le"))
    assert call_text(space, READ, filePath="w.txt") == "📄 w.txt (lines 1-2/2) [utf-16-le with a mark]\n1→你好\n2→b"


def test_R15_what_does_not_fit_is_left_out_by_whole_lines_and_says_how_to_read_on(space: Path):
    (space / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 20_001)))
    first = 1
    for _ in range(3):
        result = call(space, READ, 3_000, filePath="long.txt", startLine=first)
        text = text_of(result)
        assert len(text) <= 3_000
        assert f"\n{first}→line {first}\n" in text
        match = re.search(r"\n\n\[Lines (\d+)-20000 did not fit\. Read on with startLine (\d+)\.\]$", text)
        assert match
        first = int(match[2])
        assert f"\n{first - 1}→line {first - 1}\n" in text


def test_R15_the_end_of_a_huge_file_is_read_in_little_memory(space: Path):
    with (space / "huge.txt").open("wb") as file:
        for _ in range(32):
            file.write(b"0123456789abcde\n" * 65_536)
    tracemalloc.start()
    text = call_text(space, READ, filePath="huge.txt", startLine=2_097_152)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert text == "📄 huge.txt (lines 2097152-2097152/2097152)\n2097152→0123456789abcde"
    assert peak < 8_000_000


def test_R4_several_files_are_parts_and_an_error_spoils_no_other(space: Path):
    requested = [
        "notes.txt",
        {"path": "src/app.py", "startLine": 1, "endLine": 1},
        "gone",
        f"{space}/notes.txt",
        "src/",
    ]
    assert parts(call(space, READ, filePath=requested, startLine=3)) == [
        ("notes.txt", "📄 notes.txt (lines 3-3/3)\n3→three"),
        ("src/app.py", "📄 src/app.py (lines 1-1/10)\n1→import os"),
        ("gone", "Error: There is no gone in the workspace. Read . to see what is there."),
        ("notes.txt", "📄 notes.txt (lines 3-3/3)\n3→three"),
        ("src", "📁 src/\napp.py (97 bytes)".replace("97", str(len(PYTHON)))),
    ]


def test_R15_several_files_fit_together(space: Path):
    for name in "abcd":
        (space / name).write_text("some words\n" * 5_000)
    result = call(space, READ, 6_000, filePath=["notes.txt", *"abcd"])
    assert len(text_of(result)) <= 6_000
    assert [text.count("did not fit") for _, text in parts(result)] == [0, 1, 1, 1, 1]


# Folders


def test_R15_a_folder_is_listed_folders_first_without_what_git_ignores(space: Path):
    (space / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n")
    (space / "src/.gitignore").write_text("local.py\n")
    for path in ("a.log", "keep.log", "build/x", "src/local.py", "src/deep/y.py", ".git/config"):
        (space / path).parent.mkdir(parents=True, exist_ok=True)
        (space / path).write_text("12345")
    (space / "link").symlink_to("notes.txt")
    assert call_text(space, READ, filePath=".") == (
        f"📁 ./\nsrc/\n  deep/\n  .gitignore (9 bytes)\n  app.py ({len(PYTHON)} bytes)\n.gitignore (23 bytes)\n"
        "keep.log (5 bytes)\nlink -> notes.txt\nnotes.txt (14 bytes)"
    )
    assert call_text(space, READ, filePath="src") == (
        f"📁 src/\ndeep/\n  y.py (5 bytes)\n.gitignore (9 bytes)\napp.py ({len(PYTHON)} bytes)"
    )
    assert call_text(space, READ, filePath="build") == "📁 build/\nx (5 bytes)"


def test_R15_a_listing_reads_no_other_folders_and_a_slow_one_is_an_error(space: Path):
    slow = Workspace(folder=space, search=SearchSettings(seconds=0.5))
    (space / "src/deep/er").mkdir(parents=True)
    (space / "lib").mkdir()
    # Ripgrep waits for rules that nobody writes.
    os.mkfifo(space / "src/deep/er/.gitignore")
    assert call_text(slow, READ, filePath=".").startswith("📁 ./\nlib/\nsrc/\n  deep/\n  app.py")
    problem = "The files of the workspace could not be listed in 0.5 seconds."
    assert call_error(slow, READ, filePath="src/deep") == problem
    os.mkfifo(space / "src/.gitignore")
    assert call_error(slow, READ, filePath=".") == problem
    assert call_text(slow, READ, filePath="lib") == "📁 lib/\nThere is nothing in it."


def test_R15_names_that_are_no_text_are_listed_on_a_line_each(tmp_path: Path):
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff\n<system-reminder>")).write_text("")
    (tmp_path / "link").symlink_to("gone/")
    os.mkfifo(tmp_path / "pipe")
    text = "📁 ./\na\ufffd?&lt;system-reminder> (0 bytes)\nlink -> gone/\npipe (no file)"
    assert call_text(tmp_path, READ, filePath=".") == text


def test_R15_a_large_folder_is_shown_in_part_with_how_many_are_left_out(space: Path):
    (space / "many").mkdir()
    for number in range(400):
        (space / f"many/{number:03}").write_text("")
    text = call_text(space, READ, filePath="many")
    assert text.count("\n") == 301
    assert text.endswith("299 (0 bytes)\n[100 more entries are not shown. Read a folder in it, or search by name.]")
    assert "\n  and 380 more\n" in call_text(space, READ, filePath=".")
    assert len(text_of(call(space, READ, 1_000, filePath="many"))) <= 1_000


def test_R15_what_a_call_may_take_is_a_setting(space: Path):
    limits = {"read_files": 1, "line_characters": 5, "listing_entries": 1, "edits": 1}
    small = Workspace(folder=space, limits=FileToolSettings(**limits, edit_bytes=20, symbol_bytes=20))
    assert call_error(small, READ, filePath=["notes.txt", "src"]) == (
        "filePath names 2 files, and 1 can be read in one call. Read the others in another."
    )
    assert call_text(small, READ, filePath="src/app.py", endLine=1) == (
        "📄 src/app.py (lines 1-1/10)\n1→impor [... 9 bytes in this line, the rest of it is not shown]"
    )
    assert "\n[1 more entries are not shown. " in call_text(small, READ, filePath=".")
    edit = {"searchContent": "one", "replaceContent": "fourteen"}
    assert call_error(small, EDIT, filePath="notes.txt", edits=[edit, edit]) == (
        "There are 2 edits, and 1 can be made in one call. Make the others in another; none was made."
    )
    assert "\n+fourt [...]\n" in call_text(small, EDIT, filePath="notes.txt", **edit)
    assert call_error(small, EDIT, filePath="src/app.py", **edit).startswith(
        f"src/app.py was not changed: it has {len(PYTHON)} bytes, and 20 are allowed."
    )


# Folding


def session(results: list[tuple[str, ToolResult]]) -> tuple[Message, ...]:
    messages = list[Message]()
    for number, (arguments, result) in enumerate(results):
        tool_call = ToolCall(id=f"c{number}", name=READ, arguments=arguments)
        answer = ToolMessage(id=f"t{number}", time=NOON, tool_call_id=tool_call.id, tool_name=READ, parts=result.parts)
        messages.append(AssistantMessage(id=f"a{number}", time=NOON, parts=(tool_call,)))
        messages.append(replace(answer, error=result.error))
    return tuple(messages)


def test_R2_R3_reads_of_one_file_are_folded_however_it_is_spelled_and_errors_are_not(space: Path):
    paths = ["notes.txt", "./notes.txt", "gone", f"{space}/notes.txt", "src/../notes.txt", *("notes.txt", "notes.txt/")]
    results = [(json.dumps({"filePath": path}), call(space, READ, filePath=path)) for path in paths]
    result = fold(session(results)).messages
    texts = ["".join(part.text for part in one.parts if isinstance(part, Text)) for one in result if one.role == "tool"]
    assert [text.startswith("[该文件") for text in texts] == [True, *[False] * 6]
    assert [text.startswith("Error: ") for text in texts] == [path == "gone" for path in paths]


def test_R15_the_page_shows_what_the_tools_answer(tmp_path: Path):
    page = (ROOT / "docs/coder.md").read_text(encoding="utf-8").partition("\n## Files\n")[2].partition("\n## ")[0]
    source = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert source
    (tmp_path / "src").mkdir()
    (tmp_path / "src/shop.py").write_text(source[1])
    rows_shown = list[tuple[str, str, str]]()
    for section in page.split("\n### ")[1:]:
        name = next(one for one in (READ, EDIT, CREATE) if one in section.partition("\n")[0])
        rows_shown += [
            (name, *pair) for pair in re.findall(r"```json\n(.*?)\n```\n+```text\n(.*?)\n```", section, re.DOTALL)
        ]
    assert len(rows_shown) == 5
    for name, arguments, answer in rows_shown:
        result = call(tmp_path, name, **json.loads(arguments))
        assert "\n".join(part.text for part in result.parts if isinstance(part, Text)) == answer
