"""A parser process, its sandbox and its end, as the server sees them."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections.abc import AsyncIterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from recto.errors import WireError
from recto.files.parsing.child import resident_bytes
from recto.files.parsing.frames import (
    CHILD,
    LENGTH_BYTES,
    ParseOrder,
    Ready,
    frame_from,
    frame_length,
    framed,
    order_row,
)
from recto.files.parsing.ports import Frame
from recto.sandbox.bubblewrap import isolated, program_path, readable, succeeds

_PREFIX = "recto-parsing-"
# A folder is locked within this time after it was made.
_YOUNG_SECONDS = 60
LOGGER = logging.getLogger("recto.files")
END_SECONDS = 10
# From closing its wire to being gone.
LEAVE_SECONDS = 0.5
LAST_WORDS = 4_096
# From one look at its memory to the next.
LOOK_SECONDS = 0.1
# The signal of a system that has no memory left.
KILLED = 9
# What says that memory ran out, in the words of Rust, C++ and Python.
OUT_OF_MEMORY = (b"memory allocation of", b"bad_alloc", b"MemoryError", b"out of memory", b"Cannot allocate memory")
# Python and programs of the system do not run without these; our own settings and secrets are not passed on.
INHERITED = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "TESSDATA_PREFIX", "SYSTEMROOT")
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PYTHONUTF8": "1",
    # Each arena and each thread takes addresses, which are what is limited.
    "MALLOC_ARENA_MAX": "2",
    "RAYON_NUM_THREADS": "2",
    "TOKIO_WORKER_THREADS": "2",
    "OMP_THREAD_LIMIT": "1",
}


class ChildGone(Exception):
    """The child ended in the middle of what it was asked."""


class ChildProcess:
    """A child, the wire to it, and a folder of its own."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.documents = 0
        self._process = process
        self._stdin = cast("asyncio.StreamWriter", process.stdin)
        self._stdout = cast("asyncio.StreamReader", process.stdout)
        self._stderr = cast("asyncio.StreamReader", process.stderr)
        self._folder = folder
        self._was_killed = False
        self._was_large = False
        self._reading = asyncio.Lock()
        self._last_words = b""
        self._listening = asyncio.create_task(self._listen())
        self._ending = asyncio.create_task(self._watch())

    @classmethod
    async def start(cls, command: Sequence[str], folder: Path) -> ChildProcess:
        """Raises OSError where it cannot be started. It is warm once it says so."""
        folder.mkdir()
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env={**inherited, **ENVIRONMENT, "HOME": str(folder), "TMPDIR": str(folder)},
            # A group of its own, so that what it starts ends with it.
            start_new_session=True,
        )
        return cls(process, folder)

    @property
    def is_gone(self) -> bool:
        """Whether it has ended, as far as was noticed by now."""
        return self._process.returncode is not None

    @property
    def pid(self) -> int:
        """The number the system gave it."""
        return self._process.pid

    async def limit_memory(self, most: int) -> None:
        """End it once it and what it started take more memory: what it is limited to itself is not all there is."""
        while (used_bytes := resident_bytes(self.pid)) <= most:
            self._was_large = self._was_large or used_bytes > most / 2
            await asyncio.sleep(LOOK_SECONDS)
        self._kill_group()

    async def send(self, order: ParseOrder, data: AsyncIterable[bytes]) -> None:
        """Hand over a task. A child that takes it no more has said why, or is gone: what it says next tells."""
        # That its end of the wire is closed, each kind of event loop says in its own way.
        with suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
            self._stdin.write(framed(order_row(order)))
            async for piece in data:
                self._stdin.write(piece)
                await self._stdin.drain()

    async def read(self) -> tuple[Frame | Ready, int]:
        """The next frame, and its bytes. Raises ChildGone, or WireError for what is none."""
        try:
            async with self._reading:
                length = frame_length(await self._stdout.readexactly(LENGTH_BYTES))
                return frame_from(await self._stdout.readexactly(length)), length
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise WireError(where=CHILD, problem="half a frame") from error
            raise ChildGone from error

    async def had_too_little_memory(self) -> bool:
        """Of a child that is gone: whether it was for want of memory, as far as is known."""
        await asyncio.wait([self._ending, self._listening], timeout=LEAVE_SECONDS)
        # What it started may still hold its pipes.
        self._kill_group()
        await asyncio.wait([self._ending, self._listening], timeout=END_SECONDS)
        code = self._process.returncode or 0
        # A sandbox says 128 and the signal, as shells do.
        is_killed = not self._was_killed and code in {-KILLED, 128 + KILLED}
        # Some libraries end without a word where they get none. What they wanted is not seen, but what they had.
        is_broken = self._was_large and code != 0
        return is_killed or is_broken or any(words in self._last_words for words in OUT_OF_MEMORY)

    def kill(self) -> None:
        """End it and what it started, at once."""
        if self._ending.done():
            return
        self._was_killed = True
        self._kill_group()

    async def end(self) -> None:
        """Kill it and leave nothing behind: no process, no open pipe, no folder."""
        self.kill()
        self._stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS), self._reading:
                # A pipe that is not read to its end is not closed.
                while await self._stdout.read(LAST_WORDS):
                    pass
                await asyncio.wait([self._ending, self._listening])
        self._listening.cancel()
        self._ending.cancel()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _listen(self) -> None:
        """Keep the end of what it prints."""
        while words := await self._stderr.read(LAST_WORDS):
            # It may quote the document, so it is for who looks for a fault only.
            LOGGER.debug("child %d says: %s", self.pid, words.decode("utf-8", "replace").rstrip())
            self._last_words = (self._last_words + words)[-LAST_WORDS:]

    async def _watch(self) -> None:
        await self._process.wait()
        self._kill_group()

    def _kill_group(self) -> None:
        """What a child started may live on without it."""
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)


# Where the child is: a folder of its own, in which nothing is. Python itself may be in the system's temporary one.
SCRATCH = "/scratch"
# A package beside the parsers and one of ours: whoever finds these finds all, and they are quick to load.
TRIAL = (sys.executable, "-P", "-c", "import orjson, recto.errors")


async def confinement(program: str) -> tuple[str, ...]:
    """The words before a command that confine it, after trying them out; none where there is no such program."""
    path = program_path(program) if program else None
    if path is None:
        return ()
    prefix = prefix_of(path)
    return prefix if await asyncio.to_thread(succeeds, (*prefix, *TRIAL)) else ()


def prefix_of(path: str) -> tuple[str, ...]:
    """How bubblewrap is asked for a sandbox in which Python, its packages and this one run."""
    package = str(Path(__file__).parents[3])
    return (
        *(*isolated(path), "--tmpfs", "/tmp"),  # noqa: S108 - its own
        *readable((package, os.environ.get("TESSDATA_PREFIX", ""))),
        *("--tmpfs", SCRATCH, "--remount-ro", "/", "--chdir", SCRATCH),
        *("--setenv", "HOME", SCRATCH, "--setenv", "TMPDIR", SCRATCH),
        "--",
    )


def in_words(prefix: Sequence[str]) -> str:
    """What is logged for operators."""
    if prefix:
        return f"Documents are parsed in a sandbox ({prefix[0]}): no network, and no files but those of Python."
    return (
        "Documents are parsed in child processes with limits on time and memory, without a sandbox. "
        "Install bubblewrap and allow user namespaces to have one."
    )


class ScratchFolder:
    """A folder of this process, until it is removed."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = _locked(self.path)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sweep() -> None:
    """Remove the folders of processes that are gone."""
    before = time.time() - _YOUNG_SECONDS
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_mtime < before and (lock := _locked(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """An open folder that nobody else has locked; None where somebody has, or where there are no such locks."""
    if sys.platform == "win32":
        return None
    from fcntl import LOCK_EX, LOCK_NB, flock

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
