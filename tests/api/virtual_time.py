"""An event loop whose clock is the test's: where nothing is ready, it jumps to the next timer instead of waiting."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Adds to `now` the seconds for which it was asked to wait."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select()
        ready = super().select(0)
        self.now += 0 if ready else max(timeout, 0)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that begins at second 0."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_virtually(coroutine: Coroutine[None, None, T]) -> tuple[T, float]:
    """Run something that waits for timers alone: its result, and the second of the clock at which it ended."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        result = runner.run(coroutine)
        return result, runner.get_loop().time()


async def at(second: float) -> None:
    """Wait until the clock of the loop has come to a second."""
    loop = asyncio.get_running_loop()
    is_reached = loop.create_future()
    loop.call_at(second, is_reached.set_result, None)
    await is_reached
