"""Wait for a condition instead of sleeping: the only place where tests poll."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

DEADLINE_SECONDS = 60.0
PAUSE_SECONDS = 0.005


def wait_for(read: Callable[[], T], what: str = "the condition", seconds: float = DEADLINE_SECONDS) -> T:
    """Return the first truthy value that `read` returns; fail after a generous deadline."""
    end = time.monotonic() + seconds
    while not (value := read()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s in vain for {what}"
        time.sleep(PAUSE_SECONDS)
    return value


async def wait_until(read: Callable[[], T], what: str = "the condition", seconds: float = DEADLINE_SECONDS) -> T:
    """Like `wait_for`, while other tasks of the event loop go on."""
    end = time.monotonic() + seconds
    while not (value := read()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s in vain for {what}"
        await asyncio.sleep(PAUSE_SECONDS)
    return value


async def settle(rounds: int = 20) -> None:
    """Let every task that is ready run until it waits for something from outside."""
    for _ in range(rounds):
        await asyncio.sleep(0)
