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
from recto.files.parsing import frames
from recto.files.parsing.child import resident_bytes
from recto.files.parsing.frames import ParseOrder, Ready
from recto.files.parsing.ports import Frame
from recto.sandbox.bubblewrap import isolation_words, program_path, readable_words, succeeds

_PREFIX = "recto-parsing-"
# A younger folder may not be locked yet.
_YOUNG_SECONDS = 60
LOGGER = logging.getLogger("recto.files")
END_SECONDS = 10
# Seconds to wait for the end of a process after the end of its pipe.
LEAVE_SECONDS = 0.5
LAST_WORDS = 4_096
# Seconds between two checks of the memory in use.
LOOK_SECONDS = 0.1
# SIGKILL, which a system out of memory sends.
KILLED = 9
# Messages of Rust, C++ and Python for exhausted memory.
OUT_OF_MEMORY = (b"memory allocation of", b"bad_alloc", b"MemoryError", b"out of memory", b"Cannot allocate memory")
# Environment variables that Python and system programs need. Recto's settings and secrets are not inherited.
INHERITED = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "TESSDATA_PREFIX", "SYSTEMROOT")
ENVIRONMENT = {
    "LANG": "C.UTF-8",
    "PYTHONUTF8": "1",
    # Memory arenas and threads reserve address space, which is limited.
    "MALLOC_ARENA_MAX": "2",
    "RAYON_NUM_THREADS": "2",
    "TOKIO_WORKER_THREADS": "2",
    "OMP_THREAD_LIMIT": "1",
}


class ChildGone(Exception):
    """A parser process ended before it had sent its complete answer."""


class ChildProcess:
    """A parser process with its pipes and its folder."""

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
        """Start a process, which first sends a `Ready` frame. Raise OSError if it cannot be started."""
        folder.mkdir()
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env={**inherited, **ENVIRONMENT, "HOME": str(folder), "TMPDIR": str(folder)},
            # A process group, so that its children end with it.
            start_new_session=True,
        )
        return cls(process, folder)

    @property
    def is_gone(self) -> bool:
        return self._process.returncode is not None

    @property
    def pid(self) -> int:
        return self._process.pid

    async def limit_memory(self, most: int) -> None:
        """Kill the process once it and its children use more than `most` bytes.

        System limits do not include everything.
        """
        while (used_bytes := resident_bytes(self.pid)) <= most:
            self._was_large = self._was_large or used_bytes > most / 2
            await asyncio.sleep(LOOK_SECONDS)
        self._kill_group()

    async def send(self, order: ParseOrder, data: AsyncIterable[bytes]) -> None:
        """Send an order and its data. If the process does not read them, `read` raises the reason."""
        # Event loops report a closed pipe in different ways.
        with suppress(BrokenPipeError, ConnectionResetError, RuntimeError):
            self._stdin.write(frames.framed(frames.order_row(order)))
            async for piece in data:
                self._stdin.write(piece)
                await self._stdin.drain()

    async def read(self) -> tuple[Frame | Ready, int]:
        """Return the next frame and its size in bytes. Raise ChildGone, or WireError for an invalid frame."""
        try:
            async with self._reading:
                length = frames.frame_length(await self._stdout.readexactly(frames.LENGTH_BYTES))
                return frames.frame_from(await self._stdout.readexactly(length)), length
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise WireError(where=frames.CHILD, problem="half a frame") from error
            raise ChildGone from error

    async def had_too_little_memory(self) -> bool:
        """Return True if a process that ended probably lacked memory."""
        await asyncio.wait([self._ending, self._listening], timeout=LEAVE_SECONDS)
        # Kill its children, which may keep the pipes open.
        self._kill_group()
        await asyncio.wait([self._ending, self._listening], timeout=END_SECONDS)
        code = self._process.returncode or 0
        # A sandbox reports 128 plus the signal, as shells do.
        is_killed = not self._was_killed and code in {-KILLED, 128 + KILLED}
        # Some libraries end the process silently if they get no memory.
        is_broken = self._was_large and code != 0
        return is_killed or is_broken or any(words in self._last_words for words in OUT_OF_MEMORY)

    def kill(self) -> None:
        """Kill the process and its children."""
        if self._ending.done():
            return
        self._was_killed = True
        self._kill_group()

    async def end(self) -> None:
        """Kill the process, close its pipes and delete its folder."""
        self.kill()
        self._stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS), self._reading:
                # Read to the end, because the pipe closes only then.
                while await self._stdout.read(LAST_WORDS):
                    pass
                await asyncio.wait([self._ending, self._listening])
        self._listening.cancel()
        self._ending.cancel()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _listen(self) -> None:
        while words := await self._stderr.read(LAST_WORDS):
            # At debug level only, because it may quote the document.
            LOGGER.debug("child %d says: %s", self.pid, words.decode("utf-8", "replace").rstrip())
            self._last_words = (self._last_words + words)[-LAST_WORDS:]

    async def _watch(self) -> None:
        await self._process.wait()
        self._kill_group()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)


# Empty working folder of a sandboxed process. The system's temporary folder may contain Python itself.
SCRATCH = "/scratch"
# Test command that imports a dependency and a module of ours. If both are found, all are.
TRIAL = (sys.executable, "-P", "-c", "import orjson, recto.errors")


async def confinement(program: str) -> tuple[str, ...]:
    """Return the command prefix of the sandbox, after a test; empty if bubblewrap is missing or fails."""
    path = program_path(program) if program else None
    prefix = prefix_of(path) if path is not None else ()
    if prefix and not await asyncio.to_thread(succeeds, (*prefix, *TRIAL)):
        prefix = ()
    LOGGER.info("%s", in_words(prefix))
    return prefix


def prefix_of(path: str) -> tuple[str, ...]:
    """Return the command prefix of a sandbox in which Python, its packages and Recto run."""
    package = str(Path(__file__).parents[3])
    return (
        *(*isolation_words(path), "--tmpfs", "/tmp"),  # noqa: S108 - inside of the sandbox
        *readable_words((package, os.environ.get("TESSDATA_PREFIX", ""))),
        *("--tmpfs", SCRATCH, "--remount-ro", "/", "--chdir", SCRATCH),
        *("--setenv", "HOME", SCRATCH, "--setenv", "TMPDIR", SCRATCH),
        "--",
    )


def in_words(prefix: Sequence[str]) -> str:
    """Describe the sandbox for the log."""
    if prefix:
        return f"Documents are parsed in a sandbox ({prefix[0]}): no network, and no files but those of Python."
    return (
        "Documents are parsed in child processes with limits on time and memory, without a sandbox. "
        "Install bubblewrap and allow user namespaces to have one."
    )


class ScratchFolder:
    """A temporary folder of this process. The system releases its lock when the process ends in any way."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._lock = _locked(self.path)

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sweep() -> None:
    """Delete the folders of processes that have ended."""
    before = time.time() - _YOUNG_SECONDS
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_mtime < before and (lock := _locked(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """Open and lock a folder. Return None if another process has the lock, or if the system has no such locks."""
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
