"""Blocking work on its own daemon thread, so that stuck work delays nothing else."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

Answer = TypeVar("Answer")


async def run_in_thread(work: Callable[[], Answer], *, name: str) -> Answer:
    """Run the work on a daemon thread and return its result or raise its exception.

    A thread cannot be stopped: after a cancel it runs on, and its result is dropped. Unlike a pool thread, a stuck
    daemon thread does not keep the interpreter alive at exit.
    """
    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    answer: asyncio.Future[Answer] = loop.create_future()

    def set_answer(settle: Callable[[], None]) -> None:
        # The loop may be closed by now.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if answer.done() else settle())

    def act() -> None:
        try:
            value = context.run(work)
        # Pass on SystemExit too, because it would end only this thread.
        except BaseException as error:
            problem = error
            set_answer(lambda: answer.set_exception(problem))
        else:
            set_answer(lambda: answer.set_result(value))

    threading.Thread(target=act, name=name, daemon=True).start()
    return await answer
