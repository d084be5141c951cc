"""Progress of a tool, for whoever watches the run: AG-UI activities, few of them. Nothing of it is in the log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal

from recto.conversation.events import ActivityUpdate, Event
from recto.conversation.json import Json
from recto.tools.ports import Progress

ACTIVITY = "recto.progress"
# Each is an event that is stored; more often nobody can look.
APART = timedelta(milliseconds=300)


class ProgressReporter:
    """Reports what one call does, each thing of it under an id of its own. Readers get some of what it is given."""

    def __init__(self, mention: Callable[[Event], None], message: str, clock: Callable[[], datetime]) -> None:
        self._mention = mention
        self._message = message
        self._clock = clock
        self._shown: dict[str, tuple[datetime, Progress]] = {}
        self._last: dict[str, Progress] = {}

    def __call__(self, progress: Progress) -> None:
        """Show how far it is, unless it is as far as was shown, or that was shown a moment ago."""
        now, shown = self._clock(), self._shown.get(progress.id)
        self._last[progress.id] = progress
        if shown is None or (progress != shown[1] and now - shown[0] >= APART):
            self._shown[progress.id] = now, progress
            self._say(progress, "running")

    def end(self) -> None:
        """All is over, whether it went well or not. Who was shown nothing is not shown this either."""
        for progress in self._last.values():
            self._say(progress, "ended")
        self._shown, self._last = {}, {}

    def _say(self, progress: Progress, status: Literal["running", "ended"]) -> None:
        content: dict[str, Json] = {"label": progress.label, "status": status, "done": progress.done}
        if progress.total is not None:
            content["total"] = progress.total
        content["unit"] = progress.unit
        if progress.text:
            content["text"] = progress.text
        message = f"{self._message}-{progress.id}" if progress.id else self._message
        self._mention(ActivityUpdate(message=message, activity=ACTIVITY, content=content))
