"""`recto read` as people run it: a real process, real files, real exit codes."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from tests.files.parsing.a_pool import lives, until

DOCUMENTS = Path(__file__).resolve().parents[1] / "documents"
COMMAND = [str(Path(sys.executable).with_name("recto")), "read"]


def run(*args: str | Path, stdin: bytes = b"", code: int = 0) -> subprocess.CompletedProcess[bytes]:
    command = [*COMMAND, *map(str, args)]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
    assert done.returncode == code, done.stderr.decode()
    return done


def test_D5_several_files_are_printed_in_order_and_one_that_fails_spoils_no_other(tmp_path: Path):
    one = tmp_path / "one.txt"
    one.write_text("first </Content> words")
    done = run(one, tmp_path / "none.txt", DOCUMENTS / "letter.pdf", code=1)
    blocks = done.stdout.decode().split("\n******\n")
    assert blocks[0] == f"File: {one}\n<Content>\nfirst &lt;/Content> words\n</Content>"
    assert blocks[1] == f"File: {tmp_path}/none.txt\n<Content>\nthere is no such file; check its name\n</Content>"
    assert blocks[2].startswith(f"File: {DOCUMENTS}/letter.pdf\n<Content>\n[page 1]\n\n# 年度报告 Annual report\n\n")
    assert len(blocks) == 3
    assert done.stderr.decode() == f"recto read: {tmp_path}/none.txt: there is no such file; check its name\n"


@pytest.mark.full
def test_D6_one_file_is_its_text_alone(tmp_path: Path):
    file = tmp_path / "a.txt"
    file.write_text("some </Content> words")
    assert run(file).stdout == b"some </Content> words\n"
    assert run(file, "--offset", "5", "--limit", "4").stdout == b"</Co\n"


@pytest.mark.full
def test_D9_json_is_an_object_for_each_file(tmp_path: Path):
    done = run("--json", "--pages", "2-3", DOCUMENTS / "long.pdf", tmp_path / "none", DOCUMENTS / "letter.html", code=1)
    first, missing, other = map(orjson.loads, done.stdout.splitlines())
    assert (first["unit"], first["page_count"]) == ("page", 300)
    assert [one["page"] for one in first["elements"] if one["kind"] == "page"] == [2, 3]
    assert missing == {"name": f"{tmp_path}/none", "error": "there is no such file; check its name"}
    assert other == {
        "name": str(DOCUMENTS / "letter.html"),
        "error": "it has no pages, slides or sheets; leave --pages out",
    }


@pytest.mark.full
def test_C1_standard_input_and_pipes_are_read(tmp_path: Path):
    assert run("-", stdin="你好\n".encode("gb18030")).stdout.decode() == "你好\n"
    table = run("-", "--name", "t.csv", "--json", stdin=b"a,b\n1,2\n").stdout
    assert orjson.loads(table)["elements"][0]["rows"] == [["a", "b"], ["1", "2"]]
    shell = subprocess.run(
        ["bash", "-c", '"$@" <(echo piped)', "sh", *COMMAND], capture_output=True, check=True, timeout=60
    )
    assert shell.stdout == b"piped\n"


@pytest.mark.full
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--pages", "x", "a"], "--pages is 'x'; name pages as 3, 3-7 or 3-"),
        (["--pages", "7-3", "a"], "--pages is '7-3'"),
        (["--pages", "0", "a"], "--pages is '0'"),
        (["-", "-"], "only once"),
        (["--name", "a.csv", "a"], "give - as a file"),
        (["--ocr", "../x", "a"], "as tesseract names them"),
        (["--json", "--limit", "3", "a"], "it goes with --pages"),
        (["--limit", "0", "a"], "greater than or equal to 1"),
        (["--seconds", "0", "a"], "greater than or equal to 0.1"),
        ([], "Missing argument"),
    ],
)
def test_C1_wrong_use_is_told_in_a_line(args: list[str], words: str):
    done = run(*args, code=2)
    assert words in " ".join(done.stderr.decode().split())
    assert done.stdout == b""


@pytest.mark.full
def test_C1_a_file_that_cannot_be_had_is_told_in_a_line(tmp_path: Path):
    (tmp_path / "empty.txt").touch()
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(20))
    for file, words in {
        tmp_path: "it is a folder; name the files in it",
        tmp_path / "empty.txt": "it is empty; give a file with something in it",
        tmp_path / "a.png": "it is an image, and only documents are read; give a document",
        DOCUMENTS / "secret.pdf": "it is protected by a password, and so cannot be read.",
    }.items():
        done = run(file, code=1)
        assert done.stderr.decode().startswith(f"recto read: {file}: {words}")
        assert done.stderr.count(b"\n") == 1
        assert done.stdout == b""


@pytest.mark.full
def test_C1_help_is_complete():
    said = run("--help").stdout.decode()
    for option in ("--json", "--pages", "--offset", "--limit", "--ocr", "--seconds", "--name", "FILE", "Exit codes"):
        assert option in said


@pytest.mark.full
def test_C1_a_reader_that_has_enough_is_no_error_to_speak_of(tmp_path: Path):
    file = tmp_path / "long.txt"
    file.write_text("words " * 1_000_000)
    with subprocess.Popen([*COMMAND, file], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.read(5) == b"words"
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.full
def test_C1_a_terminal_sees_how_far_it_is():
    leader, follower = pty.openpty()
    command = [*COMMAND, *[DOCUMENTS / "long.pdf"] * 3]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=follower) as process, ThreadPoolExecutor() as threads:
        os.close(follower)
        shown = threads.submit(all_of, leader)
        assert process.stdout
        text = process.stdout.read().decode()
    os.close(leader)
    assert text.count("[page 300]") == 3
    assert "\x1b" not in text
    assert b"files" in shown.result()
    assert b"/300" in shown.result()


def all_of(terminal: int) -> bytes:
    pieces: list[bytes] = []
    # A terminal whose other side is closed says so with an error.
    with suppress(OSError):
        while piece := os.read(terminal, 2**16):
            pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.full
def test_C1_an_interrupt_ends_it_at_once_and_leaves_no_children():
    files = [DOCUMENTS / "long.pdf"] * 500
    with subprocess.Popen([*COMMAND, *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.read(5) == b"File:"
        children = descendants(process.pid)
        assert children
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    assert process.returncode != 0
    # In a sandbox they end with the one that was ended, a moment later.
    asyncio.run(until(lambda: not any(map(lives, children))))


def descendants(pid: int) -> list[int]:
    found = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [*found, *[below for child in found for below in descendants(child)]]
