"""The process that parses documents: bytes in, frames out."""

from __future__ import annotations

import ctypes
import gc
import importlib
import math
import os
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from recto.config.file_settings import ParseLimits
from recto.files.parsing import frames
from recto.files.parsing.frames import ParseOrder, Ready
from recto.files.parsing.ports import DAMAGED, Failed, FoundElements, Frame, Task

_PROCESSES = Path("/proc")
# Positions in `statm`, which counts memory pages.
_RESIDENT, _PRIVATE = 1, 5
# PR_SET_PDEATHSIG of Linux.
END_WITH_PARENT = 1
OPEN_FILES = 128
CPU_SPARE_SECONDS = 10
SPARE_BYTES = 64 * 2**20
# Part of the memory limit that is reserved for code. Private memory is limited to the remainder.
CODE_BYTES = 64 * 2**20
# Address space beyond the memory limit, because libraries and threads reserve more than they use.
ADDRESS_BYTES = 512 * 2**20
# Slow imports, done before the first document.
HEAVY = ("charset_normalizer", "pypdfium2", "xberg")

MEMORY = Failed(
    code=frames.MEMORY_CODE,
    reason="it takes more memory to read than a document may. Ask the user for a part of it, or for another format.",
)


def main() -> None:
    """Parse documents until the server closes the pipe."""
    limit_resources(ParseLimits(), ParseLimits().seconds)
    end_with_parent()
    questions, answers = claim_pipes()
    load_libraries()
    forbid_writing()
    size_at_start = private_bytes()
    for _ in iter(lambda: send(answers, Ready()), False):
        order = read_order(questions)
        if order is None or not answer_order(order, questions, answers):
            return
        gc.collect()
        if is_too_large(private_bytes(), size_at_start, order.task.limits.memory_bytes):
            return


def limit_resources(limits: ParseLimits, seconds: float) -> None:
    """Set system limits on memory and CPU time.

    Where the system has no such limits, only the server's time limit stops the process.
    """
    if sys.platform == "win32":
        return
    import resource

    usage = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(usage.ru_utime + usage.ru_stime + seconds * (os.cpu_count() or 1)) + CPU_SPARE_SECONDS
    wanted_limits = (
        (resource.RLIMIT_DATA, limits.memory_bytes - CODE_BYTES),
        (resource.RLIMIT_AS, limits.memory_bytes + ADDRESS_BYTES),
        (resource.RLIMIT_CPU, most),
    )
    for kind, limit in wanted_limits:
        hard = resource.getrlimit(kind)[1]
        # Some systems lack some of these limits.
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def forbid_writing() -> None:
    """Forbid writing files and limit open files. Called after the imports, which may write compiled modules."""
    if sys.platform == "win32":
        return
    import resource

    for kind, most in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, OPEN_FILES)):
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))


def end_with_parent() -> None:
    """Let the system kill this process when the server ends. A busy parser would not notice the closed pipe."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)


def claim_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return standard input and output. Redirect output of libraries to standard error and give them an empty input."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return questions, answers


def load_libraries() -> None:
    """Import everything that parsers need."""
    from recto.files.parsing.formats.parse import parse

    for name in HEAVY:
        importlib.import_module(name)
    list(parse(b"warm", Task(format="txt", name="warm.txt")))
    # Exclude imported objects from garbage collection, so that collecting after a document is fast.
    gc.freeze()


def read_order(questions: BinaryIO) -> ParseOrder | None:
    """Read the next order; return None after the server has ended."""
    head = questions.read(frames.LENGTH_BYTES)
    return frames.order_from(questions.read(int.from_bytes(head, "big"))) if len(head) == frames.LENGTH_BYTES else None


def answer_order(order: ParseOrder, questions: BinaryIO, answers: BinaryIO) -> bool:
    """Parse the data of an order. Return False if this process is no longer usable."""
    limits, seconds = order.task.limits, frames.seconds_for(order.task)
    limit_resources(limits, seconds)
    try:
        data = questions.read(order.size)
        return len(data) == order.size and send_frames(data, order.task, answers)
    except MemoryError:
        failed = MEMORY
    # A panic of a Rust library is not an Exception.
    except BaseException as error:
        failed = DAMAGED
        sys.stderr.write(f"{type(error).__name__}: {error}\n"[:1_000])
    # Raise the limit a little, because sending the error needs memory.
    limit_resources(replace(limits, memory_bytes=limits.memory_bytes + SPARE_BYTES), seconds)
    return send(answers, failed) and failed is not MEMORY


def send_frames(data: bytes, task: Task, answers: BinaryIO) -> bool:
    """Parse and send each frame. Return False after the server has ended."""
    from recto.files.parsing.formats.parse import parse

    pages = 0
    for frame in parse(data, task):
        pieces = frames.pieces_of(frame, pages) if isinstance(frame, FoundElements) else (frame,)
        if not all(send(answers, piece) for piece in pieces):
            return False
        pages = frame.pages if isinstance(frame, FoundElements) else pages
    return True


def send(answers: BinaryIO, frame: Frame | Ready) -> bool:
    """Write a frame. Return False after the server has ended."""
    try:
        answers.write(frames.framed(frames.frame_row(frame)))
        answers.flush()
    except BrokenPipeError:
        return False
    return True


def is_too_large(size: int, size_at_start: int, most: int) -> bool:
    """Return True if libraries still hold so much memory that later documents would lack it."""
    return size - size_at_start > (most - size_at_start) / 2


def private_bytes() -> int:
    """Return the private memory of this process in bytes, to which its limit applies; 0 if it is unknown."""
    return _read_pages(_PROCESSES / "self", _PRIVATE)


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process and its children in bytes; 0 if it is unknown."""
    folder = _PROCESSES / str(pid)
    below = 0
    with suppress(OSError):
        lists = [path.read_text(encoding="ascii") for path in folder.glob("task/*/children")]
        below = sum(resident_bytes(int(child)) for pids in lists for child in pids.split())
    return _read_pages(folder, _RESIDENT) + below


def _read_pages(folder: Path, place: int) -> int:
    with suppress(OSError):
        return int((folder / "statm").read_text(encoding="ascii").split()[place]) * os.sysconf("SC_PAGESIZE")
    return 0


if __name__ == "__main__":
    main()
