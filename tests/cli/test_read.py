"""`recto read` as people run it: a real process, real files, real exit codes."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
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


@pytest.mark.full
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
def test_D9_pages_that_a_document_does_not_have_are_told():
    file = DOCUMENTS / "long.pdf"
    words = "there is no page 301 in what was read of it, which ends with page 300; name others"
    done = run(file, "--pages", "301-400", code=1)
    assert (done.stdout, done.stderr.decode()) == (b"", f"recto read: {file}: {words}\n")
    assert orjson.loads(run(file, "--pages", "301", "--json", code=1).stdout) == {"name": str(file), "error": words}
    assert b"[page 300]" in run(file, "--pages", "300-400").stdout


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
    # Tests that run in the background ignore interrupts, and who is started by somebody who ignores them does so too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen([*COMMAND, *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        signal.signal(signal.SIGINT, before)
        assert process.stdout
        assert process.stdout.read(5) == b"File:"
        children = descendants(process.pid)
        assert children
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=40)
    assert process.returncode != 0
    # In a sandbox they end with the one that was ended, a moment later.
    asyncio.run(until(lambda: not any(map(lives, children))))


@pytest.mark.full
def test_C1_told_to_end_it_leaves_no_folder_and_no_children(tmp_path: Path):
    files = [DOCUMENTS / "long.pdf"] * 500
    with begun(tmp_path, *files) as process:
        children = descendants(process.pid)
        assert list(tmp_path.glob("recto-parsing-*"))
        # Nobody reads what it prints: it may wait for that just now.
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 128 + signal.SIGTERM
        assert process.stderr
        assert process.stderr.read() == b""
    assert list(tmp_path.iterdir()) == []
    asyncio.run(until(lambda: not any(map(lives, children))))


@pytest.mark.full
def test_C1_what_a_killed_one_left_is_removed_by_the_next_and_nothing_that_is_in_use(tmp_path: Path):
    note = tmp_path / "note.txt"
    note.write_text("words")
    with begun(tmp_path, *[DOCUMENTS / "long.pdf"] * 500) as killed:
        killed.kill()
    with begun(tmp_path, *[DOCUMENTS / "long.pdf"] * 500) as living:
        made = sorted(tmp_path.glob("recto-parsing-*"))
        assert len(made) == 2
        for folder in made:
            os.utime(folder, (0, 0))
        (tmp_path / "recto-parsing-young").mkdir()
        (tmp_path / "recto-parsing-link").symlink_to(DOCUMENTS)
        subprocess.run([*COMMAND, note], env={**os.environ, "TMPDIR": str(tmp_path)}, check=True, capture_output=True)
        left = sorted(tmp_path.glob("recto-parsing-*"))
        living.terminate()
        living.wait(timeout=20)
    assert [folder.name for folder in left if folder not in made] == ["recto-parsing-link", "recto-parsing-young"]
    assert len(left) == 3
    assert (DOCUMENTS / "long.pdf").exists()


@contextmanager
def begun(temporary: Path, *files: Path) -> Generator[subprocess.Popen[bytes]]:
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
    found = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [*found, *[below for child in found for below in descendants(child)]]


@pytest.mark.full
def test_C1_seconds_are_those_of_the_document_and_none_are_added_for_scans_it_does_not_have(tmp_path: Path):
    drawing = "0 0 9 9 re f\n" * 1_000_000
    file = tmp_path / "a.pdf"
    file.write_text(
        "%PDF-1.7\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n"
        "2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n"
        "3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>\nendobj\n"
        f"4 0 obj\n<</Length {len(drawing)}>>stream\n{drawing}endstream\nendobj\ntrailer\n<</Root 1 0 R>>\n"
    )
    done = run(file, "--seconds", "0.1", "--ocr", "eng", code=1)
    assert b"it took longer than 0.1 seconds to read" in done.stderr
