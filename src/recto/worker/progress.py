"""How far a tool is, told to whoever watches the run: AG-UI activities, few of them. Nothing of it is in the log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from recto.page.canonical import Json
from recto.page.events import ActivityTold, Event
from recto.tools.ports import Progress

ACTIVITY = "recto.progress"
# Each is an event that is stored; more often nobody can look.
APART = timedelta(milliseconds=300)


class Teller:
    """Tells of one thing under one message id. It may be told of as often as it likes; readers hear some of it."""

    def __init__(self, mention: Callable[[Event], None], message: str, clock: Callable[[], datetime]) -> None:
        self._mention = mention
        self._message = message
        self._clock = clock
        self._told: datetime | None = None
        self._last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Tell how far it is, unless that was told a moment ago."""
        now = self._clock()
        self._last = progress
        if self._told is None or now - self._told >= APART:
            self._told = now
            self._say(progress, "running")

    def end(self) -> None:
        """It is over, whether it went well or not. Who was told nothing is not told this either."""
        if self._last is not None and self._told is not None:
            self._say(self._last, "ended")
            self._told = None

    def _say(self, progress: Progress, status: Literal["running", "ended"]) -> None:
        content: dict[str, Json] = {"label": progress.label, "status": status, "done": progress.done}
        if progress.total is not None:
            content["total"] = progress.total
        content["unit"] = progress.unit
        self._mention(ActivityTold(message=self._message, activity=ACTIVITY, content=content))
