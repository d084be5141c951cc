"""Ports of the engine: the worker of a run, and the signals that stop it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from recto.conversation.input.run_input import RunInput
from recto.conversation.message_files import FileRef
from recto.page.body import Page
from recto.page.manifest import Manifest
from recto.store.ports import StoredRun

NextStep: TypeAlias = Literal["call_model", "compact", "run_tools", "wait_for_client", "finished"]


class OneTimeEvent:
    """An event that happens once. Code can wait for `future` together with other futures, without another task."""

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def set(self) -> None:
        """Mark the event as happened. A second call changes nothing."""
        if not self.future.done():
            self.future.set_result(None)

    def is_set(self) -> bool:
        """Return True if the event has happened."""
        return self.future.done()


class Signal:
    """Signals to a running run. `cancelled` ends the run; `leaving` releases it as it is."""

    def __init__(self) -> None:
        self.cancelled = OneTimeEvent()
        self.leaving = OneTimeEvent()


# A function that works on a claimed run. The input is already parsed if the run was admitted and started here. Returns
# True if the run has ended, False if another worker may continue it.
RunWorker: TypeAlias = Callable[[StoredRun, Signal, RunInput | None], Awaitable[bool]]


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The page that a run would send to a model, and its first step. `notes` list what may differ in a real run."""

    page: Page
    manifest: Manifest
    model: str
    next: NextStep
    notes: tuple[str, ...] = ()


# A function that builds the page of a run that is not stored, with the files of its request. Stores nothing.
Previewer: TypeAlias = Callable[[StoredRun, RunInput, Sequence[FileRef]], Awaitable[Preview]]
