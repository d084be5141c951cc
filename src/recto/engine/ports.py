"""What the engine is to the rest: who works on a run, and how a run hears that it is to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from recto.conversation.attachment import FileRef
from recto.conversation.input.run_input import RunInput
from recto.page.body import Page
from recto.page.manifest import Manifest
from recto.store.ports import StoredRun

NextStep: TypeAlias = Literal["call_model", "compact", "run_tools", "wait_for_client", "finished"]


class Once:
    """Something that happens once. It can be waited for beside other things without a task of its own."""

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def set(self) -> None:
        """It has happened; again changes nothing."""
        if not self.future.done():
            self.future.set_result(None)

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self.future.done()


class Signal:
    """What a run at work listens to. `cancelled` ends the run; `leaving` hands it back as it is."""

    def __init__(self) -> None:
        self.cancelled = Once()
        self.leaving = Once()


# Works on a claimed run, whose input is parsed already where it was admitted here and begun at once.
# True: the run has ended; False: somebody else may go on with it.
RunWorker: TypeAlias = Callable[[StoredRun, Signal, RunInput | None], Awaitable[bool]]


@dataclass(frozen=True, kw_only=True)
class Preview:
    """A page as it would be sent to a model, and what a run would do first. `notes` say what may be other then."""

    page: Page
    manifest: Manifest
    model: str
    next: NextStep
    notes: tuple[str, ...] = ()


# Sets the page of a run that is not stored, with the files its request brings. Leaves nothing behind.
Previewer: TypeAlias = Callable[[StoredRun, RunInput, Sequence[FileRef]], Awaitable[Preview]]
