"""R15: commands that want too much are ended, soon, and cost the server little."""

import asyncio
import resource
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from recto.config.run_settings import CommandSettings
from recto.tools.workspace.workspaces import Workspace
from tests.tools.commands.terminals import console
from tests.tools.commands.test_terminal_execute import none_left
from tests.waiting import wait_until

pytestmark = pytest.mark.full

MIB = 2**20
SETTINGS = CommandSettings(memory_bytes=200 * MIB, processes=60, scratch_bytes=20 * MIB, file_bytes=30 * MIB)
MEMORY = "It was ended: it had more than 209,715,200 bytes in memory."
PROCESSES = "It was ended: it had more than 60 processes."


def python(code: str) -> str:
    """Return a command that runs this code."""
    begin = "import ctypes, mmap, os, signal, sys\nlibc = ctypes.CDLL(None, use_errno=True)"
    return f"python3 - <<'E'\n{begin}\n{code}\nE"


# What is wanted, and how it ends: with a reason of ours, or by itself.
WANTING = {
    "processes": ("f() { f | f; }; f", PROCESSES),
    "processes in the background": ("f() { f | f & }; f; sleep 60", PROCESSES),
    "processes one in another": ("exec python3 -c 'import os\nwhile os.fork() == 0: pass\nos.wait()'", PROCESSES),
    "processes that leave": ("while :; do (setsid sleep 60 &); done", PROCESSES),
    "memory": ("tail /dev/zero", MEMORY),
    "memory in many processes": (
        "for n in 1 2 3 4 5 6; do python3 -c 'import signal; x = bytearray(50 << 20); signal.pause()' & done; wait",
        MEMORY,
    ),
    "memory that is shared": (python("m = mmap.mmap(-1, 1 << 30)\nwhile m.write(bytes(4096)): pass"), MEMORY),
    "memory without a name": (python("sys.exit(7 if libc.memfd_create(b'x', 0) < 0 else 0)"), 7),
    "memory of the old kind": (python("sys.exit(7 if libc.shmget(0, 2**30, 0o1600) < 0 else 0)"), 7),
    "its own temporary folder": ("dd if=/dev/zero of=/tmp/x bs=1M count=200 2>/dev/null", 1),
    "shared memory": ("dd if=/dev/zero of=/dev/shm/x bs=1M count=200 2>/dev/null", 1),
    "one large file": ("dd if=/dev/zero of=large bs=1M count=200 2>/dev/null", 153),
    "open files": ("exec python3 -c 'import os\nwhile True: os.dup(1)' 2>/dev/null", 1),
}


@pytest.mark.parametrize("name", WANTING)
async def test_R15_a_command_that_wants_too_much_is_ended_and_nothing_of_it_stays(tmp_path: Path, name: str):
    command, how = WANTING[name]
    shell = console(tmp_path, SETTINGS)
    answer = await shell.execute(command, timeout=20_000)
    assert (answer.get("ended") or answer["exitCode"]) == how, answer
    await none_left(str(tmp_path))
    assert await shell.execute("echo still here") == {"stdout": "still here\n", "stderr": "", "exitCode": 0}


async def test_R15_a_command_opens_as_many_files_as_it_may_and_cannot_allow_itself_more(tmp_path: Path):
    shell = console(tmp_path, CommandSettings(open_files=40))
    code = "import os\ntry:\n  while True: last = os.dup(1)\nexcept OSError: print(last + 1)"
    answer = await shell.execute(f"ulimit -n 80 2>/dev/null; python3 -c '{code}'")
    assert answer == {"stdout": "40\n", "stderr": "", "exitCode": 0}


async def test_R15_a_command_that_fills_a_workspace_is_ended(tmp_path: Path):
    shell = console(tmp_path, SETTINGS, workspace=Workspace(folder=tmp_path, most_bytes=25 * MIB))
    answer = await shell.execute("for n in 1 2 3; do head -c 10M /dev/zero > $n; done; sleep 60", timeout=20_000)
    assert answer["ended"] == "It was ended: the workspace holds more than 26,214,400 bytes. Delete what is not needed."


@pytest.mark.parametrize(
    "command",
    [
        "trap '' TERM INT HUP QUIT; while :; do sleep 1; done",
        "exec >&- 2>&- <&-; sleep 60",
        "kill -STOP $$",
        python("libc.ptrace(16, 1, 0, 0); signal.pause()"),
        "while :; do :; done",
        "cat",
        "setsid sleep 60 & setsid sleep 60 & wait",
    ],
)
async def test_R15_a_command_that_will_not_end_is_ended_after_its_time(tmp_path: Path, command: str):
    shell = console(tmp_path)
    answer = await shell.execute(command, timeout=700)
    assert answer["exitCode"] == (0 if command == "cat" else 137)
    await none_left(str(tmp_path))


async def test_R15_ten_million_lines_cost_little_memory_and_are_all_in_the_file(tmp_path: Path):
    shell = console(tmp_path, CommandSettings(output_bytes=200 * MIB))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    waiting = asyncio.create_task(shell.execute("seq 1 10000000", timeout=60_000))
    rounds = count()
    await wait_until(lambda: next(rounds) < 0 or waiting.done())
    answer = await waiting
    assert str(answer["stdout"]).startswith("1\n2\n3\n") and str(answer["stdout"]).endswith("9999999\n10000000\n")
    assert (tmp_path / str(answer["output"])).stat().st_size == 78_888_897
    # The loop goes on meanwhile.
    assert next(rounds) > 10
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1_024 < 60 * MIB


async def test_R15_only_so_many_commands_run_at_a_time(tmp_path: Path):
    shell = console(tmp_path, CommandSettings(at_once=2))
    quick = shell.with_context(lambda context: replace(context, seconds=60))
    command = "mkdir running-$$-$RANDOM; ls -d running-* | wc -l >> seen; sleep 0.3; rmdir running-$$-*"
    await asyncio.gather(*[quick.execute(command) for _ in range(5)])
    assert max(map(int, (tmp_path / "seen").read_text().split())) <= 2
