"""What the store is to the rest: values in and out, each method one transaction. No caller sees SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol, TypeAlias

from recto.config.run_settings import UNBOUNDED, Bounds
from recto.conversation.attachment import FileRef
from recto.conversation.input.run_input import RunInput
from recto.conversation.input.run_options import Multitask
from recto.conversation.log import Entry, FoldStep
from recto.page.body import Segment
from recto.page.savings import Saving
from recto.skills.known import FREE_TIER

Purpose: TypeAlias = Literal["reply", "summary", "title"]
Status: TypeAlias = Literal["queued", "running", "ended"]


@dataclass(frozen=True, kw_only=True)
class Admission:
    """A run to be admitted. `id` is the server's, `name` the client's; `input` is the request as it is kept.

    `agent` is the one asked for; where none is, the thread's goes on, or a new thread gets `fallback`. `multitask` says
    what becomes of a run that is active in the thread. `digest` tells the request as it was sent from others (P4);
    `files` are the ids its files will be shown under. `parsed` is what `stored_input` makes of `input`, for whoever
    begins with the run at once.
    """

    id: str
    name: str
    owner: str
    thread: str
    input: bytes
    response_id: str
    created: datetime
    agent: str | None = None
    fallback: str = ""
    multitask: Multitask = "enqueue"
    bounds: Bounds = UNBOUNDED
    files: tuple[FileRef, ...] = ()
    digest: bytes | None = None
    parsed: RunInput | None = None


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """A run's row. `fence` rises with each claim, `losses` with each whose worker was lost before.

    `entered` says that the input is in the log.

    `cancel` is the reason it is to end; `usage` is a JSON object; `last_event` the number of its newest event;
    `last_seq` that of the newest entry of its thread's log, `thread_created` when that thread was made. `tier` is what
    its owner had when it was admitted.
    """

    id: str
    name: str
    owner: str
    thread: str
    agent: str
    input: bytes
    response_id: str
    created: datetime
    status: Status
    entered: bool
    fence: int
    losses: int
    started: datetime | None
    ended: datetime | None
    cancel: str | None
    failures: int
    too_long: int
    can_compact: bool
    calls: int
    last_event: int
    outcome: str | None
    error: str | None
    usage: bytes | None
    tier: str = FREE_TIER
    last_seq: int
    thread_created: datetime

    @property
    def lease(self) -> Lease:
        """The right to write for the run, for whoever claimed it as it is here."""
        return Lease(run=self.id, thread=self.thread, fence=self.fence)


@dataclass(frozen=True, kw_only=True)
class Admitted:
    """The run, and whether this request made it: the same request again finds the run it made before.

    `interrupted` is the run that is to end for it.
    """

    run: StoredRun
    is_new: bool
    interrupted: str | None = None


@dataclass(frozen=True, kw_only=True)
class FoundThread:
    """What admission asks of a thread that is there. Of somebody else's nothing is told."""

    is_own: bool
    agent: str | None = None
    skill: str | None = None


@dataclass(frozen=True, kw_only=True)
class Claimant:
    """Who claims: the node keeps its name over restarts, the boot does not. A lease holds until it is not renewed.

    `share` is how many runs of one user it works on at once; 0 sets no limit.
    """

    node: str
    boot: str
    lease: timedelta
    share: int = 0


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right to write for a run. It ends when somebody else claims the run: their fence is higher."""

    run: str
    thread: str
    fence: int


@dataclass(frozen=True, kw_only=True)
class Cancel:
    """A wish to end a run. `events` are what its readers get if nobody has begun it yet."""

    reason: str
    now: datetime
    events: Sequence[bytes]


@dataclass(frozen=True, kw_only=True)
class RunEnding:
    """How a run ended, for good."""

    outcome: str
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class CallBegun:
    """A model call about to be made: what the page was made of. `segments` are those the store may not have yet.

    `shared` counts the leading segments it has in common with the run's call before it; `hashes` are the rest.
    """

    number: int
    purpose: Purpose
    model: str
    digest: str
    shared: int
    hashes: bytes
    segments: Sequence[Segment]
    manifest: bytes
    started: datetime


@dataclass(frozen=True, kw_only=True)
class CallEnded:
    """How a model call went. `price` is in thousand-millionths of a unit of currency; None where nobody knows it.

    `savings` are what folding saved in it, and whether its page broke the prefix.
    """

    number: int
    ended: datetime
    first_token: datetime | None = None
    finish: str | None = None
    usage: bytes | None = None
    error: str | None = None
    price: int | None = None
    savings: Sequence[Saving] = ()


@dataclass(frozen=True, kw_only=True)
class RelayedCall:
    """A request of another agent that is about to be sent on (X3), as a run of one call: `admission` is that run.

    Its name is what its conversation goes by; the same request again has another one. `node` is who sends it on,
    `title` is for a new thread.
    """

    admission: Admission
    call: CallBegun
    node: str
    title: str | None = None
    step: FoldStep | None = None


@dataclass(frozen=True, kw_only=True)
class SeenRequest:
    """A request that was relayed before: what its conversation went by, its run, thread and model, and when it came.

    It was `asked` last when it came again. It `is_newest` where its thread has none after it that went by another name.
    """

    name: str
    run: str
    thread: str
    model: str
    created: datetime
    asked: datetime
    is_newest: bool


@dataclass(frozen=True, kw_only=True)
class SeenPath:
    """The requests that a conversation grew by, oldest first, and the steps of folding that were made on the way."""

    requests: tuple[SeenRequest, ...] = ()
    steps: tuple[FoldStep, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EntryCounts:
    """What entries count, in their order, by the counter of this name. None: that is counted when it is needed."""

    counter: str = ""
    tokens: Sequence[int | None] = ()


NOT_COUNTED = EntryCounts()


@dataclass(frozen=True, kw_only=True)
class RunChange:
    """All that a worker writes at once: it happens whole or not at all. None leaves a field of the run as it is."""

    entries: Sequence[Entry] = ()
    counts: EntryCounts = NOT_COUNTED
    events: Sequence[bytes] = ()
    call: CallBegun | None = None
    call_ended: CallEnded | None = None
    entered: bool | None = None
    failures: int | None = None
    too_long: int | None = None
    can_compact: bool | None = None
    usage: bytes | None = None
    error: str | None = None
    ending: RunEnding | None = None


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What the store made of a change: the numbers of the last event and the last entry, and a wish to end the run.

    `last_seq` is 0 where the change had no entries.
    """

    last_event: int
    last_seq: int
    cancel: str | None


# Thousands are in memory while readers read.
@dataclass(frozen=True, kw_only=True, slots=True)
class StoredEvent:
    """An event as every reader gets it."""

    number: int
    body: bytes


@dataclass(frozen=True, kw_only=True)
class StoredCall:
    """A model call as it was made: the exact body, put together from its segments, and the manifest's JSON."""

    number: int
    purpose: str
    model: str
    digest: str
    body: bytes
    manifest: bytes
    started: datetime
    first_token: datetime | None
    ended: datetime | None
    finish: str | None
    usage: bytes | None
    error: str | None


class Runs(Protocol):
    """Runs and their leases: what an engine needs of a store."""

    async def admit(self, admission: Admission, who: Claimant | None = None) -> Admitted:
        """Store a run with its input, and claim it for `who` if its thread is free."""
        ...

    async def claim(self, who: Claimant, now: datetime, limit: int) -> Sequence[StoredRun]:
        """Up to `limit` runs that nobody works on: those whose lease ran out, then new ones whose thread is free.

        Of the new ones, those of whoever has the fewest at work come first.
        """
        ...

    async def renew(self, who: Claimant, leases: Sequence[Lease], now: datetime) -> Sequence[Lease]:
        """Hold these leases longer. Returns those still held."""
        ...

    async def hand_back(self, leases: Sequence[Lease], at: datetime) -> None:
        """Give these runs up, for anybody to go on with from that time on."""
        ...

    async def recover(self, who: Claimant, now: datetime) -> int:
        """Free what an earlier boot of this node left claimed. Returns how many runs that were."""
        ...

    async def cancels(self, held: Sequence[str]) -> Sequence[str]:
        """Of these runs, those that are to end."""
        ...


class Events(Protocol):
    """Events of runs: what readers need of a store."""

    async def events(self, run: str, after: int, limit: int, size: int) -> Sequence[StoredEvent]:
        """Up to `limit` events of a run, from the one after `after`, in order; no more once they have `size` bytes."""
        ...

    async def knows(self, run: str) -> bool:
        """Whether there is such a run; one that was deleted is none."""
        ...
