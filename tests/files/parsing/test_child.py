"""The parser process (D7): its pipes are private, it ends with its parent, and it runs in a sandbox if possible."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from recto.config.file_settings import BUBBLEWRAP, MEBIBYTE, PoolSettings
from recto.conversation.document import Element
from recto.files.parsing import child
from recto.files.parsing.child import private_bytes
from recto.files.parsing.child_process import confinement, in_words, prefix_of
from recto.files.parsing.parser_pool import Parsers
from recto.files.parsing.ports import FoundElements
from tests.files.parsing.a_pool import frames_of, lives, text_from, until

HERE = Path(__file__).parent
# Writes the arguments of a sandbox to a file and runs the command after them.
WILLING = '#!/bin/sh\necho "$@" >> "$0.log"\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'
UNWILLING = "#!/bin/sh\necho 'No permissions to create a new namespace' >&2\nexit 1\n"


def program(folder: Path, script: str) -> str:
    path = folder / "bwrap"
    path.write_text(script)
    path.chmod(0o755)
    return str(path)


async def test_D7_what_libraries_print_and_cannot_be_written_does_not_disturb_the_wire():
    pool = Parsers(PoolSettings(sandbox=""), command=[sys.executable, str(HERE / "a_noisy_child.py")])
    frames = await frames_of(pool, "a.ipynb")
    await pool.close()
    assert frames[1:-1] == [
        FoundElements(elements=(Element(kind="table", text="half \ufffd of one", rows=(("cell \ufffd",),)),))
    ]


async def test_D7_without_a_sandbox_children_run_without_one_and_people_are_told(tmp_path: Path):
    for sandbox in ("", str(tmp_path / "missing"), program(tmp_path, UNWILLING)):
        assert await confinement(sandbox) == ()
    assert in_words(()).endswith("Install bubblewrap and allow user namespaces to have one.")


def test_D7_a_sandbox_has_no_network_nothing_to_write_and_no_files_but_those_of_python():
    words = prefix_of("/usr/bin/bwrap")
    assert {"--unshare-all", "--die-with-parent", "--remount-ro", "--disable-userns"} <= set(words)
    assert not {"--share-net", "--bind", "--dev-bind"} & set(words)
    readable = [words[place + 1] for place, word in enumerate(words) if word == "--ro-bind"]
    assert sys.prefix in readable
    assert not {"/", "/etc", "/var", str(Path.home()), str(Path.cwd())} & set(readable)
    assert in_words(words).startswith("Documents are parsed in a sandbox (/usr/bin/bwrap)")


LOOKING = """
import os, socket
print(socket.socket().connect_ex(("127.0.0.1", {port})) == 0)
print(os.path.exists({secret!r}))
try:
    open("/tmp/../written", "w")
    print(True)
except OSError:
    print(False)
"""


@pytest.mark.full
async def test_D7_in_the_sandbox_there_is_no_network_no_file_of_ours_and_nothing_to_write(tmp_path: Path):
    prefix = await confinement(BUBBLEWRAP)
    (tmp_path / "secret").write_text("ours")
    listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    looking = LOOKING.format(port=port, secret=str(tmp_path / "secret"))

    async def probe(*words: str) -> list[str]:
        process = await asyncio.create_subprocess_exec(*words, sys.executable, "-c", looking, stdout=PIPE)
        return (await process.communicate())[0].decode().split()

    async with listener:
        assert (await probe())[:2] == ["True", "True"]
        # Without user namespaces there is no sandbox, and the log says so.
        assert await probe(*prefix) == ["False"] * 3 if prefix else "without a sandbox" in in_words(prefix)


@pytest.mark.full
async def test_D7_children_run_in_the_sandbox_that_works(tmp_path: Path):
    path = program(tmp_path, WILLING)
    pool = Parsers(PoolSettings(sandbox=path))
    assert await text_from(pool, "a.ipynb", b"hello") == "hello"
    assert await pool.confinement() == prefix_of(path)
    await pool.close()
    test_line, started = (tmp_path / "bwrap.log").read_text().splitlines()
    assert (test_line.split(" -- ")[0], started.split(" -- ")[0]) == (" ".join(prefix_of(path)[1:-1]),) * 2
    assert started.endswith("-m recto.files.parsing.child")


def test_D7_a_child_that_grew_makes_room_for_another():
    assert not child.is_too_large(size=600, size_at_start=200, most=1_000)
    assert child.is_too_large(size=601, size_at_start=200, most=1_000)
    assert private_bytes() > MEBIBYTE


@pytest.mark.full
@pytest.mark.parametrize("command", [["-m", "recto.files.parsing.child"], [str(HERE / "a_deaf_child.py")]])
async def test_D7_a_child_ends_when_its_parent_is_killed(tmp_path: Path, command: list[str]):
    words = ("-m", "tests.files.parsing.a_short_lived_parent", str(tmp_path / "children"), *command)
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, *words), stdout=asyncio.subprocess.PIPE, cwd=HERE.parents[2]
    )
    assert parent.stdout
    await parent.stdout.readline()
    (pid,) = map(int, (tmp_path / "children").read_text().split())
    assert lives(pid)
    os.kill(parent.pid, signal.SIGKILL)
    await parent.communicate()
    await until(lambda: not lives(pid))
