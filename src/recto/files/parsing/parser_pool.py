"""A pool of parser processes (D7). A process that hangs or crashes costs only its document."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import stat
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

from recto.config.file_settings import PoolSettings
from recto.errors import FileRefused, WireError
from recto.files.parsing.child import MEMORY
from recto.files.parsing.child_process import ChildGone, ChildProcess, confinement, in_words
from recto.files.parsing.frames import ParsedFrames, ParseOrder, Ready
from recto.files.parsing.ports import Frame, Task

LOGGER = logging.getLogger("recto.files")
COMMAND = (sys.executable, "-P", "-m", "recto.files.parsing.child")

CRASHED = "the program that reads such files broke down on it. Ask the user to save it anew, or for another format."
NOT_STARTED = "the program that reads files could not be started. Tell the user that the server has to be looked at."
TOO_LONG = "it took longer than {seconds:g} seconds to read, so it was stopped. {instead}"
TOO_LARGE = "it has more than {size:,} bytes, and larger files are not read. {instead}"
INSTEAD = "Ask the user for a part of it, or for another format."

Work = TypeVar("Work")


class Parsers:
    """Reads documents in children, which are started when needed and kept warm. Belongs to one event loop."""

    def __init__(self, settings: PoolSettings | None = None, *, command: Sequence[str] | None = None) -> None:
        self._settings = settings or PoolSettings()
        self._command = tuple(command or COMMAND)
        self._queue = FairQueue(
            places=self._settings.places,
            of_owner=self._settings.places_of_user,
            waiting=self._settings.waiting,
            slow_seconds=self._settings.slow_seconds,
        )
        self._held: Counter[str] = Counter()
        self._children: set[ChildProcess] = set()
        self._spare: dict[ChildProcess, asyncio.TimerHandle] = {}
        self._work: set[asyncio.Task[object]] = set()
        self._names = count(1)
        self._folder: ScratchFolder | None = None
        self._prefix: asyncio.Task[tuple[str, ...]] | None = None
        self._is_closed = False

    async def parse(self, owner: str, task: Task, pieces: AsyncIterable[bytes]) -> AsyncGenerator[Frame]:
        """What a document holds, as it is found: Opened, FoundElements ..., DocumentEnd. Raises FileRefused.

        Its bytes are collected first, on disk: a storage that is slow holds up no child. Close it (`aclosing`) to stop
        early.
        """
        spool, size = Spool(self._settings.folder), 0
        try:
            async for piece in pieces:
                size += len(piece)
                self._held[owner] += len(piece)
                self._check_size(owner, task, size)
                await spool.add(piece)
            async with self._queue.turn(owner), aclosing(self._frames(task, spool, size)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            spool.close()
            self._held[owner] -= size
            if not self._held[owner]:
                del self._held[owner]

    async def close(self) -> None:
        """End all children. Who waits or reads is refused."""
        self._is_closed = True
        self._queue.close()
        for child in list(self._children):
            self._let_go(child)
        while self._work:
            await asyncio.wait(self._work)
        if self._folder:
            self._folder.remove()

    async def confinement(self) -> tuple[str, ...]:
        """The sandbox around children, as `confine.in_words` says it; tried once."""
        if self._prefix is None:
            self._prefix = self._begin(_confined(self._settings.sandbox))
        return await asyncio.shield(self._prefix)

    # One document

    def _check_size(self, owner: str, task: Task, size: int) -> None:
        if size > task.limits.file_bytes:
            words = TOO_LARGE.format(size=task.limits.file_bytes, instead=INSTEAD)
            raise FileRefused(words, code="too_large")
        most, of_owner, of_all = self._settings.waiting_bytes, self._held[owner], self._held.total()
        # A document that is alone is never too much; one user's have half of the room, others the rest.
        if (of_all > most and of_all > size) or (of_owner > most / 2 and of_owner > size):
            raise FileRefused(BUSY, code="busy")

    async def _frames(self, task: Task, spool: Spool, size: int) -> AsyncGenerator[Frame]:
        child = await self._ready_child()
        answer = ParsedFrames(task)
        holding = self._begin(child.hold_to(task.limits.memory_bytes))
        try:
            await self._hand_over(child, ParseOrder(task=task, size=size), spool)
            async with aclosing(self._read(child, answer)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            holding.cancel()
            child.documents += 1
            if answer.child_waits and child.documents < self._settings.documents:
                self._keep(child)
            else:
                self._let_go(child)
                self._keep_one_warm()

    async def _hand_over(self, child: ChildProcess, order: ParseOrder, spool: Spool) -> None:
        try:
            async with asyncio.timeout(self._settings.start_seconds), aclosing(spool.pieces()) as pieces:
                await child.send(order, pieces)
        except TimeoutError as error:
            raise FileRefused(CRASHED, code="crashed") from error
        spool.close()

    async def _read(self, child: ChildProcess, answer: ParsedFrames) -> AsyncGenerator[Frame]:
        """Frames, up to the deadline. The clock stands while nobody asks for the next: the child may have to wait."""
        used = 0.0
        loop = asyncio.get_running_loop()
        while not answer.is_ended:
            asked = loop.time()
            try:
                async with asyncio.timeout(answer.seconds - used):
                    frame, size = await child.read()
            except TimeoutError as error:
                raise FileRefused(TOO_LONG.format(seconds=answer.seconds, instead=INSTEAD), code="too_long") from error
            except (ChildGone, WireError) as error:
                raise await self._refusal(child, error) from error
            used += loop.time() - asked
            try:
                let_through = answer.take(frame, size)
            except WireError as error:
                raise await self._refusal(child, error) from error
            for part in let_through:
                yield part

    async def _refusal(self, child: ChildProcess, error: Exception) -> FileRefused:
        if self._is_closed:
            return FileRefused(CLOSED, code="busy")
        if isinstance(error, ChildGone) and await child.had_too_little_memory():
            return FileRefused(MEMORY.reason, code=MEMORY.code)
        # Documents are not to blame for every breakdown: somebody should know of it.
        LOGGER.warning("a child that reads documents broke down: %s", str(error) or type(error).__name__)
        return FileRefused(CRASHED, code="crashed")

    # The children

    async def _ready_child(self) -> ChildProcess:
        """One that waits for a task: a spare one, or else a new one."""
        while self._spare:
            child, timer = self._spare.popitem()
            timer.cancel()
            # One that ended while it was idle may have said before that it is ready.
            if child.is_gone:
                self._let_go(child)
            elif await self._is_ready(child):
                return child
        starting = self._begin(self._start())
        try:
            child = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._keep_started)
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
                self._let_go(child)
        return is_ready

    async def _start(self) -> ChildProcess:
        prefix = await self.confinement()
        # Who tidies up what lies about in temporary folders may have taken it away.
        if self._folder is None or not self._folder.path.is_dir():
            self._folder = ScratchFolder()
            self._begin(asyncio.to_thread(sweep))
        child = await ChildProcess.start([*prefix, *self._command], self._folder.path / str(next(self._names)))
        self._children.add(child)
        if self._is_closed:
            self._let_go(child)
        return child

    def _keep(self, child: ChildProcess) -> None:
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        self._spare[child] = loop.call_later(self._settings.idle_seconds, self._let_go_unless_last, child)

    def _keep_one_warm(self) -> None:
        if not self._is_closed and not self._spare and len(self._children) < self._settings.places:
            self._begin(self._start()).add_done_callback(self._keep_started)

    def _keep_started(self, start: asyncio.Task[ChildProcess]) -> None:
        if not start.cancelled() and start.exception() is None and start.result() in self._children:
            self._keep(start.result())

    def _let_go_unless_last(self, child: ChildProcess) -> None:
        if len(self._spare) > 1 and self._spare.pop(child, None):
            self._let_go(child)

    def _let_go(self, child: ChildProcess) -> None:
        if timer := self._spare.pop(child, None):
            timer.cancel()
        if child in self._children:
            self._children.discard(child)
            child.kill()
            self._begin(child.end())

    def _begin(self, work: Coroutine[object, object, Work]) -> asyncio.Task[Work]:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return task


async def _confined(sandbox: str) -> tuple[str, ...]:
    prefix = await confinement(sandbox)
    LOGGER.info("%s", in_words(prefix))
    return prefix


BUSY = (
    "it was not read, because too many documents are waiting to be read at present. "
    "Try again in a minute, or go on without it."
)
CLOSED = "it was not read, because the server is being stopped. Try again in a minute."


class FairQueue:
    """Places, and who waits for one: each owner in turn, the documents of an owner in order.

    Next is whoever has the fewest places, of these whose last turn is longest ago. An owner who has `of_owner` places
    is passed over, and holds up nobody. Where more than `waiting` wait, the owner of the most gives way with the newest
    of them. A document that takes more than `slow_seconds` has a place beside the others, of which there are as many.
    """

    def __init__(self, *, places: int, of_owner: int, waiting: int, slow_seconds: float = 5.0) -> None:
        self._free = places
        self._beside = places
        self._of_owner = of_owner
        self._most_waiting = waiting
        self._slow_seconds = slow_seconds
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        # The number of the last turn of each owner who has a place or waits for one.
        self._last_turn: dict[str, int] = {}
        self._turn = 0
        self._is_closed = False

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncGenerator[None]:
        """A place, once it is there. Raises FileRefused (`busy`) where too many wait, now or later."""
        await self._take(owner)
        moving = asyncio.create_task(self._move_beside())
        try:
            yield
        finally:
            if moving.done():
                self._beside += 1
                self._free -= 1
            moving.cancel()
            self._give_back(owner)

    async def _move_beside(self) -> None:
        """Make the place of a slow document free for others, as soon as there is one beside."""
        await asyncio.sleep(self._slow_seconds)
        while not self._beside:
            await asyncio.sleep(self._slow_seconds)
        self._beside -= 1
        self._free += 1
        self._hand_out()

    def close(self) -> None:
        """Whoever waits is refused, and whoever comes."""
        self._is_closed = True
        for waiter in [waiter for waiters in self._waiting.values() for waiter in waiters]:
            if not waiter.done():
                waiter.set_exception(FileRefused(CLOSED, code="busy"))
        self._waiting.clear()

    async def _take(self, owner: str) -> None:
        if self._is_closed:
            raise FileRefused(CLOSED, code="busy")
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(waiter)
        self._hand_out()
        self._refuse_one_too_many(owner)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._give_back(owner)
            self._leave(owner, waiter)
            raise

    def _refuse_one_too_many(self, comer: str) -> None:
        waiting = {owner: [one for one in waiters if not one.done()] for owner, waiters in self._waiting.items()}
        if sum(map(len, waiting.values())) <= self._most_waiting:
            return
        # Of those who have equally many waiting it is the one who comes, so that nobody loses a place to an equal.
        owner = max(waiting, key=lambda name: (len(waiting[name]), name == comer))
        newest = waiting[owner][-1]
        self._leave(owner, newest)
        newest.set_exception(FileRefused(BUSY, code="busy"))

    def _give_back(self, owner: str) -> None:
        self._free += 1
        self._taken[owner] -= 1
        if not self._taken[owner]:
            del self._taken[owner]
        self._forget(owner)
        self._hand_out()

    def _leave(self, owner: str, waiter: asyncio.Future[None]) -> None:
        waiters = self._waiting.get(owner)
        if waiters and waiter in waiters:
            waiters.remove(waiter)
        if waiters is not None and not waiters:
            del self._waiting[owner]
        self._forget(owner)

    def _forget(self, owner: str) -> None:
        if owner not in self._taken and owner not in self._waiting:
            self._last_turn.pop(owner, None)

    def _hand_out(self) -> None:
        while self._free > 0 and (owner := self._next_owner()) is not None:
            waiters = self._waiting.pop(owner)
            waiter = waiters.popleft()
            if waiters:
                self._waiting[owner] = waiters
            if not waiter.done():
                self._free -= 1
                self._taken[owner] += 1
                self._turn += 1
                self._last_turn[owner] = self._turn
                waiter.set_result(None)

    def _next_owner(self) -> str | None:
        able = [owner for owner in self._waiting if self._taken[owner] < self._of_owner]
        return min(able, key=lambda owner: (self._taken[owner], self._last_turn.get(owner, 0)), default=None)


# Of each document so much is in memory at most, and a shorter one takes no wait for the disk.
MEMORY_BYTES = 2**18
PIECE_BYTES = 2**18
T = TypeVar("T")
PREFIX = "recto-parsing-"
# From being made to being locked it takes no time to speak of.
YOUNG_SECONDS = 60


class Spool:
    """Filled with `add`, then given out in pieces. The file has no name, so that nothing is left of it."""

    def __init__(self, folder: Path | None) -> None:
        self._file = TemporaryFile(buffering=MEMORY_BYTES, dir=folder)  # noqa: SIM115 - closed by `close`
        self._size = 0

    async def add(self, piece: bytes) -> None:
        """Add bytes at the end. Raises OSError where the disk is full."""
        self._size += len(piece)
        await self._do(partial(self._file.write, piece))

    async def pieces(self) -> AsyncGenerator[bytes]:
        """All of it, from the beginning."""
        self._file.seek(0)
        while piece := await self._do(partial(self._file.read, PIECE_BYTES)):
            yield piece

    async def _do(self, work: Callable[[], T]) -> T:
        return work() if self._size <= MEMORY_BYTES else await asyncio.to_thread(work)

    def close(self) -> None:
        """Keep nothing."""
        self._file.close()


class ScratchFolder:
    """A folder of this process, until it is removed."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _locked(self.path)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sweep() -> None:
    """Remove the folders of processes that are gone."""
    before = time.time() - YOUNG_SECONDS
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_mtime < before and (lock := _locked(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """An open folder that nobody else has locked; None where somebody has, or where there are no such locks."""
    if sys.platform == "win32":
        return None
    from fcntl import LOCK_EX, LOCK_NB, flock

    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        flock(opened, LOCK_EX | LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened
