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

import orjson

from recto.config.file_settings import ParseLimits
from recto.files.parsing.frames import (
    LENGTH_BYTES,
    MEMORY_CODE,
    ParseOrder,
    Ready,
    frame_row,
    framed,
    order_from,
    pieces_of,
    seconds_for,
)
from recto.files.parsing.ports import DAMAGED, Failed, FoundElements, Frame, Task

_PROCESSES = Path("/proc")
# Places in `statm`, which counts pages.
_RESIDENT, _PRIVATE = 1, 5
# The number of PR_SET_PDEATHSIG in Linux.
END_WITH_PARENT = 1
OPEN_FILES = 128
CPU_SPARE_SECONDS = 10
SPARE_BYTES = 64 * 2**20
# Of the memory of a child, for code: what it has for itself is limited to the rest.
CODE_BYTES = 64 * 2**20
# Of addresses more are taken than of memory: by libraries as they lie on the disk, and for threads.
ADDRESS_BYTES = 512 * 2**20
# What takes long to load is loaded before the first document comes.
HEAVY = ("charset_normalizer", "pypdfium2", "xberg")

MEMORY = Failed(
    code=MEMORY_CODE,
    reason="it takes more memory to read than a document may. Ask the user for a part of it, or for another format.",
)


def main() -> None:
    """Answer one document after the other, until the parent closes the wire."""
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
    """Ask the system to stop us where we would take more. Where it cannot, only the parent's clock does."""
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
        # Not every system takes each of them.
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def forbid_writing() -> None:
    """For good. Before the first document, and after Python may have kept what it compiled."""
    if sys.platform == "win32":
        return
    import resource

    for kind, most in ((resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, OPEN_FILES)):
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))


def end_with_parent() -> None:
    """A parent that is killed closes the wire, which nobody looks at while a document is parsed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)


def claim_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for ourselves: what a library prints goes to standard error, what it reads is empty."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return questions, answers


def load_libraries() -> None:
    """Load all that parsers need."""
    from recto.files.parsing.formats.parse import parse

    for name in HEAVY:
        importlib.import_module(name)
    list(parse(b"warm", Task(format="txt", name="warm.txt")))
    # What is loaded stays, so that looking for garbage after a document is quick.
    gc.freeze()


def read_order(questions: BinaryIO) -> ParseOrder | None:
    """What is asked next, or None once the parent has gone."""
    head = questions.read(LENGTH_BYTES)
    return order_from(questions.read(int.from_bytes(head, "big"))) if len(head) == LENGTH_BYTES else None


def answer_order(order: ParseOrder, questions: BinaryIO, answers: BinaryIO) -> bool:
    """Read the data and say what it holds. False: this child is of no use any more."""
    limits, seconds = order.task.limits, seconds_for(order.task)
    limit_resources(limits, seconds)
    try:
        data = questions.read(order.size)
        return len(data) == order.size and send_frames(data, order.task, answers)
    except MemoryError:
        failed = MEMORY
    # A panic in a library of Rust is no Exception.
    except BaseException as error:
        failed = DAMAGED
        sys.stderr.write(f"{type(error).__name__}: {error}\n"[:1_000])
    # Words about having no memory take some.
    limit_resources(replace(limits, memory_bytes=limits.memory_bytes + SPARE_BYTES), seconds)
    return send(answers, failed) and failed is not MEMORY


def send_frames(data: bytes, task: Task, answers: BinaryIO) -> bool:
    """Parse, and say each frame as it is found. False once nobody listens."""
    from recto.files.parsing.formats.parse import parse

    pages = 0
    for frame in parse(data, task):
        if not isinstance(frame, FoundElements):
            is_sent = send(answers, frame)
        else:
            is_sent = all(send(answers, piece) for piece in pieces_of(frame, pages))
            pages = frame.pages
        if not is_sent:
            return False
    return True


def send(answers: BinaryIO, frame: Frame | Ready) -> bool:
    """Write a frame. False once nobody listens."""
    try:
        body = framed(frame_row(frame))
    except orjson.JSONEncodeError:
        if not isinstance(frame, FoundElements):
            raise
        body = framed(frame_row(readable(frame)))
    try:
        answers.write(body)
        answers.flush()
    except BrokenPipeError:
        return False
    return True


def readable(frame: FoundElements) -> FoundElements:
    """Without halves of characters, which no text can be written with."""

    def whole(text: str) -> str:
        return text.encode("utf-8", "replace").decode("utf-8")

    return replace(
        frame,
        elements=tuple(
            [
                replace(element, text=whole(element.text), rows=tuple([tuple(map(whole, row)) for row in element.rows]))
                for element in frame.elements
            ]
        ),
    )


def is_too_large(size: int, size_at_start: int, most: int) -> bool:
    """Whether libraries kept so much memory of a document that it would be missing for others."""
    return size - size_at_start > (most - size_at_start) / 2


def private_bytes() -> int:
    """The bytes that this process has for itself, used or not: what its limit is on; 0 where that is not known."""
    return _read_pages(_PROCESSES / "self", _PRIVATE)


def resident_bytes(pid: int) -> int:
    """The bytes in memory of a process and of all it started; 0 where that is not known."""
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
