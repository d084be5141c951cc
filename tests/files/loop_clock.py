"""The clock of the event loop in a test's hands: deadlines pass without waiting for them."""

import asyncio

import pytest


class LoopClock:
    """Adds to the time of the running loop what a test tells it to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self._real = loop.time
        self._ahead = 0.0
        monkeypatch.setattr(loop, "time", lambda: self._real() + self._ahead)

    def advance(self, seconds: float) -> None:
        self._ahead += seconds
