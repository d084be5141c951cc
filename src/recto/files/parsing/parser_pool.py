"""A pool of warm parser processes (D7), each with one document at a time. Threads parse small plain texts."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TypeVar

from recto.config.file_settings import PoolSettings
from recto.errors import FileRefused, WireError
from recto.files.parsing.child import MEMORY
from recto.files.parsing.child_process import ChildGone, ChildProcess, ScratchFolder, confinement, sweep
from recto.files.parsing.formats.plain_text import THREAD_BYTES, is_plain, parse_small
from recto.files.parsing.frames import FrameFilter, ParseOrder, Ready
from recto.files.parsing.ports import Frame, Task

LOGGER = logging.getLogger("recto.files")
COMMAND = (sys.executable, "-P", "-m", "recto.files.parsing.child")
PIECE_BYTES = 2**18
# More threads would not be faster, because the interpreter lock lets one run at a time.
THREADS = 2
BUSY = (
    "it was not read, because too many documents are waiting to be read at present. "
    "Try again in a minute, or go on without it."
)
CLOSED = "it was not read, because the server is being stopped. Try again in a minute."
CRASHED = "the program that reads such files crashed on it. Ask the user to save it again, or for another format."
NOT_STARTED = "the program that reads files could not be started. Tell the user that the server needs repair."
TOO_LONG = "it took longer than {seconds:g} seconds to read, so it was stopped. {instead}"
TOO_LARGE = "it has more than {size:,} bytes, and larger files are not read. {instead}"
INSTEAD = "Ask the user for a part of it, or for another format."

T = TypeVar("T")


class Parsers:
    """A pool of parser processes that start on demand and stay warm. Belongs to one event loop."""

    def __init__(self, settings: PoolSettings | None = None, *, command: Sequence[str] | None = None) -> None:
        self._settings = settings or PoolSettings()
        self._command = tuple(command or COMMAND)
        self._queue = FairQueue(
            places=self._settings.places,
            of_owner=self._settings.places_of_user,
            waiting=self._settings.waiting,
            slow_seconds=self._settings.slow_seconds,
        )
        self._threads = FairQueue(places=THREADS, of_owner=THREADS, waiting=self._settings.waiting)
        self._waiting_bytes: Counter[str] = Counter()
        self._children: set[ChildProcess] = set()
        self._spare: dict[ChildProcess, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[object]] = set()
        self._folder_names = count(1)
        self._folder: ScratchFolder | None = None
        self._prefix: asyncio.Task[tuple[str, ...]] | None = None
        self._is_closed = False

    async def parse(self, owner: str, task: Task, pieces: AsyncIterable[bytes]) -> AsyncGenerator[Frame]:
        """Yield frames as soon as they are parsed. Raise FileRefused. Close the generator to stop early."""
        spool, size = Spool(self._settings.folder), 0
        try:
            # Receive all bytes before taking a process, so that a slow storage does not block it.
            async for piece in pieces:
                size += len(piece)
                self._waiting_bytes[owner] += len(piece)
                if size > task.limits.file_bytes:
                    text = TOO_LARGE.format(size=task.limits.file_bytes, instead=INSTEAD)
                    raise FileRefused(text, code="too_large")
                most, total = self._settings.waiting_bytes, self._waiting_bytes.total()
                of_owner = self._waiting_bytes[owner]
                # Accept a document that is the only one. Otherwise limit the waiting bytes of all users, and those of a
                # user to half.
                if (total > most and total > size) or (of_owner > most / 2 and of_owner > size):
                    raise FileRefused(BUSY, code="busy")
                await spool.add(piece)
            if size <= THREAD_BYTES and is_plain(task.format):
                small = await self._thread_frames(owner, task, spool)
                for frame in small or ():
                    yield frame
                if small is not None:
                    return
            async with self._queue.turn(owner), aclosing(self._child_frames(task, spool, size)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            spool.close()
            self._waiting_bytes[owner] -= size
            if not self._waiting_bytes[owner]:
                del self._waiting_bytes[owner]

    async def close(self) -> None:
        """End all processes. Waiting readers get an error."""
        self._is_closed = True
        self._queue.close()
        self._threads.close()
        for child in list(self._children):
            self._discard(child)
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._folder:
            self._folder.remove()

    async def confinement(self) -> tuple[str, ...]:
        """Return the command prefix of the sandbox; empty without a sandbox. Tests the sandbox only once."""
        if self._prefix is None:
            self._prefix = self._create_task(confinement(self._settings.sandbox))
        return await asyncio.shield(self._prefix)

    # One document

    async def _thread_frames(self, owner: str, task: Task, spool: Spool) -> list[Frame] | None:
        data = b"".join([piece async for piece in spool.pieces()])
        async with self._threads.turn(owner):
            frames = await asyncio.to_thread(parse_small, data, task)
        if frames is None:
            return None
        allowed, frame_filter = list[Frame](), FrameFilter(task)
        for frame in frames:
            if not frame_filter.is_ended:
                allowed += frame_filter.accept(frame, 0)
        return allowed

    async def _child_frames(self, task: Task, spool: Spool, size: int) -> AsyncGenerator[Frame]:
        child = await self._ready_child()
        frame_filter = FrameFilter(task)
        watch = self._create_task(child.limit_memory(task.limits.memory_bytes))
        try:
            try:
                async with asyncio.timeout(self._settings.start_seconds), aclosing(spool.pieces()) as pieces:
                    await child.send(ParseOrder(task=task, size=size), pieces)
            except TimeoutError as error:
                raise FileRefused(CRASHED, code="crashed") from error
            spool.close()
            async with aclosing(self._receive(child, frame_filter)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            watch.cancel()
            child.documents += 1
            if frame_filter.is_child_ready and child.documents < self._settings.documents:
                self._make_spare(child)
            else:
                self._discard(child)
                if not self._is_closed and not self._spare and len(self._children) < self._settings.places:
                    self._create_task(self._start()).add_done_callback(self._make_started_spare)

    async def _receive(self, child: ChildProcess, frame_filter: FrameFilter) -> AsyncGenerator[Frame]:
        """Yield frames until the time limit. Only time spent waiting for the process counts."""
        seconds = 0.0
        loop = asyncio.get_running_loop()
        while not frame_filter.is_ended:
            start = loop.time()
            try:
                async with asyncio.timeout(frame_filter.seconds - seconds):
                    frame, size = await child.read()
                seconds += loop.time() - start
                allowed = frame_filter.accept(frame, size)
            except TimeoutError as error:
                text = TOO_LONG.format(seconds=frame_filter.seconds, instead=INSTEAD)
                raise FileRefused(text, code="too_long") from error
            except (ChildGone, WireError) as error:
                if self._is_closed:
                    raise FileRefused(CLOSED, code="busy") from error
                if isinstance(error, ChildGone) and await child.had_too_little_memory():
                    raise FileRefused(MEMORY.reason, code=MEMORY.code) from error
                # Log the error, because the document may not be its cause.
                LOGGER.warning("a parser process failed: %s", str(error) or type(error).__name__)
                raise FileRefused(CRASHED, code="crashed") from error
            for one in allowed:
                yield one

    # Processes

    async def _ready_child(self) -> ChildProcess:
        while self._spare:
            child, timer = self._spare.popitem()
            timer.cancel()
            # A process that ended while idle may have sent `Ready` before.
            if child.is_gone:
                self._discard(child)
            elif await self._is_ready(child):
                return child
        start = self._create_task(self._start())
        try:
            child = await asyncio.shield(start)
        except asyncio.CancelledError:
            start.add_done_callback(self._make_started_spare)
            raise
        except OSError as error:
            raise FileRefused(NOT_STARTED, code="not_started") from error
        if await self._is_ready(child):
            return child
        raise FileRefused(CLOSED, code="busy") if self._is_closed else FileRefused(NOT_STARTED, code="not_started")

    async def _is_ready(self, child: ChildProcess) -> bool:
        is_ready = False
        try:
            async with asyncio.timeout(self._settings.start_seconds):
                is_ready = isinstance((await child.read())[0], Ready)
        except (TimeoutError, ChildGone, WireError):
            pass
        finally:
            if not is_ready:
                self._discard(child)
        return is_ready

    async def _start(self) -> ChildProcess:
        prefix = await self.confinement()
        # The system may have cleaned its temporary folder.
        if self._folder is None or not self._folder.path.is_dir():
            self._folder = ScratchFolder()
            self._create_task(asyncio.to_thread(sweep))
        child = await ChildProcess.start([*prefix, *self._command], self._folder.path / str(next(self._folder_names)))
        self._children.add(child)
        if self._is_closed:
            self._discard(child)
        return child

    def _make_spare(self, child: ChildProcess) -> None:
        if not self._is_closed:
            loop = asyncio.get_running_loop()
            self._spare[child] = loop.call_later(self._settings.idle_seconds, self._discard_idle, child)

    def _make_started_spare(self, start: asyncio.Task[ChildProcess]) -> None:
        if not start.cancelled() and start.exception() is None and start.result() in self._children:
            self._make_spare(start.result())

    def _discard_idle(self, child: ChildProcess) -> None:
        # Keep one spare process.
        if len(self._spare) > 1 and self._spare.pop(child, None):
            self._discard(child)

    def _discard(self, child: ChildProcess) -> None:
        if timer := self._spare.pop(child, None):
            timer.cancel()
        if child in self._children:
            self._children.discard(child)
            child.kill()
            self._create_task(child.end())

    def _create_task(self, work: Coroutine[object, object, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class FairQueue:
    """A queue for a limited number of places. Owners take turns; documents of an owner keep their order.

    The next place goes to the owner with the fewest places, who may hold at most `of_owner`. A tie goes to the owner
    whose last turn is longest ago. If more than `waiting` documents wait, the queue rejects the newest document of the
    owner with the most waiting ones. A document that takes longer than `slow_seconds` moves to an extra place; there
    are as many extra places as places.
    """

    def __init__(self, *, places: int, of_owner: int, waiting: int, slow_seconds: float = 5.0) -> None:
        self._free = places
        self._free_extra = places
        self._of_owner = of_owner
        self._most_waiting = waiting
        self._slow_seconds = slow_seconds
        self._places: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        # Number of the last turn, for each owner with a place or a waiting document.
        self._last_turn: dict[str, int] = {}
        self._turn = 0
        self._is_closed = False

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncGenerator[None]:
        """Wait for a place and hold it.

        Raise FileRefused (`busy`) if too many documents wait, at once or while this one waits.
        """
        await self._acquire(owner)
        move = asyncio.create_task(self._move_to_extra())
        try:
            yield
        finally:
            if move.done():
                self._free_extra += 1
                self._free -= 1
            move.cancel()
            self._release(owner)

    def close(self) -> None:
        """Reject waiting and future documents."""
        self._is_closed = True
        for waiter in [waiter for waiters in self._waiting.values() for waiter in waiters]:
            if not waiter.done():
                waiter.set_exception(FileRefused(CLOSED, code="busy"))
        self._waiting.clear()

    async def _move_to_extra(self) -> None:
        """Free the place of a slow document once an extra place is free."""
        await asyncio.sleep(self._slow_seconds)
        while not self._free_extra:
            await asyncio.sleep(self._slow_seconds)
        self._free_extra -= 1
        self._free += 1
        self._assign()

    async def _acquire(self, owner: str) -> None:
        if self._is_closed:
            raise FileRefused(CLOSED, code="busy")
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(waiter)
        self._assign()
        waiting = {name: [one for one in waiters if not one.done()] for name, waiters in self._waiting.items()}
        if sum(map(len, waiting.values())) > self._most_waiting:
            # On a tie, reject the new document, so that no other owner loses one.
            largest = max(waiting, key=lambda name: (len(waiting[name]), name == owner))
            newest = waiting[largest][-1]
            self._leave(largest, newest)
            newest.set_exception(FileRefused(BUSY, code="busy"))
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._release(owner)
            self._leave(owner, waiter)
            raise

    def _release(self, owner: str) -> None:
        self._free += 1
        self._places[owner] -= 1
        if not self._places[owner]:
            del self._places[owner]
        self._forget(owner)
        self._assign()

    def _leave(self, owner: str, waiter: asyncio.Future[None]) -> None:
        waiters = self._waiting.get(owner)
        if waiters and waiter in waiters:
            waiters.remove(waiter)
        if waiters is not None and not waiters:
            del self._waiting[owner]
        self._forget(owner)

    def _forget(self, owner: str) -> None:
        if owner not in self._places and owner not in self._waiting:
            self._last_turn.pop(owner, None)

    def _assign(self) -> None:
        while self._free > 0:
            owners = [owner for owner in self._waiting if self._places[owner] < self._of_owner]
            if not owners:
                return
            owner = min(owners, key=lambda owner: (self._places[owner], self._last_turn.get(owner, 0)))
            waiters = self._waiting.pop(owner)
            waiter = waiters.popleft()
            if waiters:
                self._waiting[owner] = waiters
            if not waiter.done():
                self._free -= 1
                self._places[owner] += 1
                self._turn += 1
                self._last_turn[owner] = self._turn
                waiter.set_result(None)


class Spool:
    """Bytes that wait to be parsed: small ones in memory, others in a file without a name."""

    def __init__(self, folder: Path | None) -> None:
        self._file = SpooledTemporaryFile(THREAD_BYTES, dir=str(folder) if folder else None)  # noqa: SIM115 - `close` closes it
        self._size = 0

    async def add(self, piece: bytes) -> None:
        """Append bytes. Raise OSError if the disk is full."""
        self._size += len(piece)
        await self._run(partial(self._file.write, piece))

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yield all bytes from the start."""
        self._file.seek(0)
        while piece := await self._run(partial(self._file.read, PIECE_BYTES)):
            yield piece

    async def _run(self, work: Callable[[], T]) -> T:
        return work() if self._size <= THREAD_BYTES else await asyncio.to_thread(work)

    def close(self) -> None:
        """Delete the bytes."""
        self._file.close()
