"""Progress of tools for readers of the run, as a few AG-UI activities. The log does not have it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from recto.conversation.events import ActivityUpdate, Event
from recto.conversation.json import Json
from recto.tools.ports import Progress

ACTIVITY = "recto.progress"
# Each update is a stored event, and readers cannot follow faster ones.
MIN_INTERVAL = timedelta(milliseconds=300)


class ProgressReporter:
    """Reports the progress of one call. Each of its tasks has an id. Readers get only some of the updates."""

    def __init__(self, emit: Callable[[Event], None], message: str, clock: Callable[[], datetime]) -> None:
        self._emit = emit
        self._message = message
        self._clock = clock
        self._emitted: dict[str, tuple[datetime, Progress]] = {}
        self._latest: dict[str, Progress] = {}

    def __call__(self, progress: Progress) -> None:
        """Report progress, unless it is unchanged or the last update was a moment ago."""
        now, last = self._clock(), self._emitted.get(progress.id)
        self._latest[progress.id] = progress
        if last is None or (progress != last[1] and now - last[0] >= MIN_INTERVAL):
            self._emitted[progress.id] = now, progress
            self._update(progress, "running")

    def end(self) -> None:
        """Report the end of all tasks that reported progress."""
        for progress in self._latest.values():
            self._update(progress, "ended")
        self._emitted, self._latest = {}, {}

    def _update(self, progress: Progress, status: Literal["running", "ended"]) -> None:
        content: dict[str, Json] = {"label": progress.label, "status": status, "done": progress.done}
        if progress.total is not None:
            content["total"] = progress.total
        content["unit"] = progress.unit
        if progress.text:
            content["text"] = progress.text
        message = f"{self._message}-{progress.id}" if progress.id else self._message
        self._emit(ActivityUpdate(message=message, activity=ACTIVITY, content=content))
