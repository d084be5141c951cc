"""A manual clock for the event loop, so that deadlines pass without waiting."""

import asyncio

import pytest


class LoopClock:
    """Adds time to the clock of the running loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self._real = loop.time
        self._ahead = 0.0
        monkeypatch.setattr(loop, "time", lambda: self._real() + self._ahead)

    def advance(self, seconds: float) -> None:
        self._ahead += seconds
