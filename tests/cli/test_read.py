"""`recto read`: what it prints, what it refuses, and what it leaves behind when it is ended."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from tests.cli.in_process import Done, recto
from tests.files.parsing.a_pool import lives, until
from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.full

DOCUMENTS = Path(__file__).resolve().parents[1] / "documents"
COMMAND = [str(Path(sys.executable).with_name("recto")), "read"]


def run(*args: str | Path, stdin: bytes = b"", code: int = 0) -> Done:
    done = recto(DOCUMENTS, "read", *map(str, args), stdin=stdin)
    assert done.code == code, done.err
    return done


def test_D5_several_files_are_printed_in_order_despite_a_failed_one(tmp_path: Path):
    one = tmp_path / "one.txt"
    one.write_text("first </Content> words")
    done = run(one, tmp_path / "none.txt", DOCUMENTS / "letter.pdf", code=1)
    blocks = done.out.split("\n******\n")
    assert blocks[0] == f"File: {one}\n<Content>\nfirst &lt;/Content> words\n</Content>"
    assert blocks[1] == f"File: {tmp_path}/none.txt\n<Content>\nthere is no such file; check its name\n</Content>"
    assert blocks[2].startswith(f"File: {DOCUMENTS}/letter.pdf\n<Content>\n[page 1]\n\n# 年度报告 Annual report\n\n")
    assert len(blocks) == 3
    assert done.err == f"recto read: {tmp_path}/none.txt: there is no such file; check its name\n"


def test_D9_json_is_an_object_for_each_file(tmp_path: Path):
    done = run("--json", "--pages", "2-3", DOCUMENTS / "long.pdf", tmp_path / "none", DOCUMENTS / "letter.html", code=1)
    first, missing, other = map(orjson.loads, done.out.splitlines())
    assert (first["unit"], first["page_count"]) == ("page", 300)
    assert [one["page"] for one in first["elements"] if one["kind"] == "page"] == [2, 3]
    assert missing == {"name": f"{tmp_path}/none", "error": "there is no such file; check its name"}
    assert other == {"name": str(DOCUMENTS / "letter.html"), "error": "it has no pages, slides or sheets. Omit --pages"}


def test_D9_missing_pages_are_reported():
    file = DOCUMENTS / "long.pdf"
    words = "there is no page 301: the text ends with page 300. Choose others"
    done = run(file, "--pages", "301-400", code=1)
    assert (done.out, done.err) == ("", f"recto read: {file}: {words}\n")
    assert orjson.loads(run(file, "--pages", "301", "--json", code=1).out) == {"name": str(file), "error": words}
    assert "[page 300]" in run(file, "--pages", "300-400").out


def test_C1_standard_input_and_pipes_are_read(tmp_path: Path):
    assert run("-", stdin="你好\n".encode("gb18030")).out == "你好\n"
    table = run("-", "--name", "t.csv", "--json", stdin=b"a,b\n1,2\n").out
    assert orjson.loads(table)["elements"][0]["rows"] == [["a", "b"], ["1", "2"]]
    shell = subprocess.run(
        ["bash", "-c", '"$@" <(echo piped)', "sh", *COMMAND], capture_output=True, check=True, timeout=60
    )
    assert shell.stdout == b"piped\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--pages", "x", "a"], "--pages is 'x'; use 3, 3-7 or 3-, counted from 1."),
        (["--pages", "7-3", "a"], "--pages is '7-3'"),
        (["--pages", "0", "a"], "--pages is '0'"),
        (["-", "-"], "only once"),
        (["--name", "a.csv", "a"], "add - to the files"),
        (["--ocr", "../x", "a"], "use names of tesseract"),
        (["--json", "--limit", "3", "a"], "combine it with --pages, not with"),
        (["--limit", "0", "a"], "greater than or equal to 1"),
        (["--seconds", "0", "a"], "greater than or equal to 0.1"),
        ([], "Missing argument"),
    ],
)
def test_C1_a_usage_error_is_one_line(args: list[str], words: str):
    done = run(*args, code=2)
    assert words in " ".join(done.err.split())
    assert done.out == ""


def test_C1_an_unreadable_file_is_reported_in_one_line(tmp_path: Path):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(20))
    for file, words in {
        tmp_path: "it is a folder; name the files in it",
        tmp_path / "empty.txt": "it is empty; give a file with something in it",
        tmp_path / "a.png": "it is an image, and only documents are read; give a document",
        DOCUMENTS / "secret.pdf": "it is protected by a password, and so cannot be read.",
    }.items():
        done = run(file, code=1)
        assert done.err.startswith(f"recto read: {file}: {words}")
        assert done.err.count("\n") == 1
        assert done.out == ""


def test_C1_a_terminated_read_leaves_no_folder_and_no_children(tmp_path: Path):
    files = [DOCUMENTS / "long.pdf"] * 100
    with start_reading(tmp_path, *files) as process:
        children = descendants(process.pid)
        assert list(tmp_path.glob("recto-parsing-*"))
        # Nobody reads what it prints: it may wait for that just now.
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 128 + signal.SIGTERM
        assert process.stderr
        assert process.stderr.read() == b""
    assert list(tmp_path.iterdir()) == []
    asyncio.run(until(lambda: not any(map(lives, children))))


def test_C1_a_read_removes_folders_of_killed_ones_but_none_in_use(tmp_path: Path):
    with start_reading(tmp_path, *[DOCUMENTS / "long.pdf"] * 100) as killed:
        killed.kill()
    with start_reading(tmp_path, *[DOCUMENTS / "long.pdf"] * 100) as living:
        folders = sorted(tmp_path.glob("recto-parsing-*"))
        assert len(folders) == 2
        for folder in folders:
            os.utime(folder, (0, 0))
        (tmp_path / "recto-parsing-young").mkdir()
        (tmp_path / "recto-parsing-link").symlink_to(DOCUMENTS)
        # A thread parses small texts; only processes have folders and remove old ones.
        command, environment = [*COMMAND, DOCUMENTS / "letter.pdf"], {**os.environ, "TMPDIR": str(tmp_path)}
        subprocess.run(command, env=environment, check=True, capture_output=True)
        folders_left = sorted(tmp_path.glob("recto-parsing-*"))
        living.terminate()
        living.wait(timeout=20)
    assert [folder.name for folder in folders_left if folder not in folders] == [
        "recto-parsing-link",
        "recto-parsing-young",
    ]
    assert len(folders_left) == 3
    assert (DOCUMENTS / "long.pdf").exists()


def test_C1_an_interrupt_ends_it_at_once_and_leaves_no_folder_and_no_children(tmp_path: Path):
    # Tests that run in the background ignore interrupts, and who is started by somebody who ignores them does so too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with start_reading(tmp_path, *[DOCUMENTS / "long.pdf"] * 100) as process:
        signal.signal(signal.SIGINT, before)
        children = descendants(process.pid)
        assert children
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=40)
        assert process.returncode == 128 + signal.SIGINT
    assert list(tmp_path.iterdir()) == []
    asyncio.run(until(lambda: not any(map(lives, children))))


def test_C1_a_terminal_sees_how_far_it_is(tmp_path: Path):
    command = ["sh", "-c", '"$@" > out.txt', "sh", *COMMAND, *map(str, [DOCUMENTS / "long.pdf"] * 2)]
    with Terminal(command, folder=tmp_path) as terminal:
        assert terminal.wait_end() == 0
        assert b"files" in terminal.received
        assert b"/300" in terminal.received
    text = (tmp_path / "out.txt").read_text(encoding="utf-8")
    assert (text.count("[page 300]"), "\x1b" in text) == (2, False)


def test_C1_seconds_are_those_of_the_document_and_none_are_added_for_scans_it_does_not_have(tmp_path: Path):
    drawing = "0 0 9 9 re f\n" * 1_000_000
    file = tmp_path / "a.pdf"
    file.write_text(
        "%PDF-1.7\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n"
        "2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n"
        "3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>\nendobj\n"
        f"4 0 obj\n<</Length {len(drawing)}>>stream\n{drawing}endstream\nendobj\ntrailer\n<</Root 1 0 R>>\n"
    )
    assert "it took longer than 0.1 seconds to read" in run(file, "--seconds", "0.1", "--ocr", "eng", code=1).err


@contextmanager
def start_reading(temporary: Path, *files: Path) -> Generator[subprocess.Popen[bytes]]:
    """A command in the middle of its files, with its temporary folders in this one."""
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command, pipe = [*COMMAND, *files], subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stdout
            assert process.stdout.read(5) == b"File:"
            yield process
        finally:
            process.kill()


def descendants(pid: int) -> list[int]:
    files_found = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [*files_found, *[below for child in files_found for below in descendants(child)]]
