"""Requests to a parser pool, and access to its processes."""

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from recto.config.file_settings import ParseLimits, PoolSettings
from recto.conversation.document import text_of
from recto.errors import FileRefused
from recto.files.parsing.parser_pool import Parsers
from recto.files.parsing.ports import DocumentEnd, DocumentStart, FoundElements, Frame, Task
from tests.waiting import wait_until

BAD_CHILD = Path(__file__).with_name("a_bad_child.py")


async def in_pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def bad_pool(way: str, *words: str, settings: PoolSettings | None = None) -> Parsers:
    command = (sys.executable, "-S", "-E", str(BAD_CHILD), way, *words)
    return Parsers(settings or PoolSettings(sandbox="", start_seconds=20), command=command)


async def frames_of(
    parsers: Parsers, name: str, data: bytes = b"data", *, owner: str = "a", limits: ParseLimits | None = None
) -> list[Frame]:
    # Not plain text, which needs no process, unless the name says so.
    format = name.rpartition(".")[2] if "." in name else "ipynb"
    task = Task(format=format, name=name, limits=limits or ParseLimits())
    return [frame async for frame in parsers.parse(owner, task, in_pieces(data))]


async def text_from(
    parsers: Parsers, name: str, data: bytes = b"data", *, owner: str = "a", limits: ParseLimits | None = None
) -> str:
    frames = await frames_of(parsers, name, data, owner=owner, limits=limits)
    assert isinstance(frames[0], DocumentStart)
    assert isinstance(frames[-1], DocumentEnd)
    return text_of([element for frame in frames if isinstance(frame, FoundElements) for element in frame.elements])


async def refusal_of(
    parsers: Parsers, name: str, data: bytes = b"data", *, owner: str = "a", limits: ParseLimits | None = None
) -> FileRefused:
    try:
        await frames_of(parsers, name, data, owner=owner, limits=limits)
    except FileRefused as refused:
        return refused
    raise AssertionError(f"{name} was read")


async def until(is_so: Callable[[], bool]) -> None:
    await wait_until(is_so)


def children() -> set[int]:
    """Return the child processes of this process that have not been waited for."""
    lists = [path.read_text() for path in Path("/proc/self/task").glob("*/children")]
    return {int(pid) for pids in lists for pid in pids.split()}


def newest_child() -> int:
    """Return the child that was started last. Its process id may be lower than others: ids wrap around."""
    return max(children(), key=_started)


def _started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])


def innermost(pid: int) -> int:
    """Return the parser inside of a sandbox."""
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return innermost(int(below[0])) if below else pid


def lives(pid: int) -> bool:
    try:
        return state_of(pid) != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def state_of(pid: int) -> str:
    """Return the state of a process: R running, S sleeping, Z ended."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
