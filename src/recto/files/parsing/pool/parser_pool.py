"""A pool of warm children that documents are parsed in (D7). One that hangs or breaks costs its document only."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, Coroutine, Sequence
from contextlib import aclosing
from itertools import count
from typing import TypeVar

from recto.config.file_settings import PoolSettings
from recto.errors import FileRefused, WireError
from recto.files.parsing.pool.child import MEMORY
from recto.files.parsing.pool.child_process import ChildGone, ChildProcess
from recto.files.parsing.pool.confine import confinement, in_words
from recto.files.parsing.pool.fair_queue import BUSY, CLOSED, FairQueue
from recto.files.parsing.pool.frames import ParseOrder, Ready
from recto.files.parsing.pool.parsed_frames import ParsedFrames
from recto.files.parsing.pool.scratch import ScratchFolder, Spool, sweep
from recto.files.parsing.ports import Frame, Task

LOGGER = logging.getLogger("recto.files")
COMMAND = (sys.executable, "-P", "-m", "recto.files.parsing.pool.child")

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
