"""A thread for each piece of work that blocks. It refuses to share them: stuck work holds up nothing but itself."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Answer = TypeVar("Answer")


async def in_thread(work: Callable[[], Answer], *, name: str) -> Answer:
    """What the work returns or raises. A thread cannot be stopped: after a cancel it runs on, and nobody reads it.

    Threads of a pool are joined when the interpreter ends; these are daemons, so a stuck one does not keep it alive.
    """
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    answer: asyncio.Future[Answer] = loop.create_future()

    def answer_with(settle: Callable[[], None]) -> None:
        # A loop that is closed has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if answer.done() else settle())

    def act() -> None:
        try:
            value = context.run(work)
        # An exit too: it is the caller's to answer, and would end no more than this thread.
        except BaseException as error:
            problem = error
            answer_with(lambda: answer.set_exception(problem))
        else:
            answer_with(lambda: answer.set_result(value))

    threading.Thread(target=act, name=name, daemon=True).start()
    return await answer
