"""Values and protocols of the store. Each method is one transaction; no caller sees SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol, TypeAlias

from recto.config.run_settings import UNBOUNDED, Bounds
from recto.conversation.input.run_input import Multitask, RunInput
from recto.conversation.log import Entry, FoldStep
from recto.conversation.message_files import FileRef
from recto.page.body import Segment
from recto.page.savings import Saving
from recto.skills.known_data import FREE_TIER

Purpose: TypeAlias = Literal["reply", "summary", "title"]
Status: TypeAlias = Literal["queued", "running", "ended"]


@dataclass(frozen=True, kw_only=True)
class Admission:
    """A run to admit. `id` is the server's, `name` the client's; `input` is the request as stored.

    `agent` is the requested agent. Without one, a thread keeps its agent and a new thread gets `fallback`. `digest`
    identifies the request as sent (P4). `files` maps the file ids of the run. `parsed` is the parsed `input`, for a
    worker that starts the run at once.
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
    """A run's row.

    `fence` rises with each claim, `losses` with each claim that ends with a lost worker. `entered` is True once the
    input is in the log. `cancel` is the reason to end the run. `usage` is a JSON object. `last_event` is the number of
    the run's newest event; `last_seq` is the number of the newest entry in the thread's log. `tier` is the owner's tier
    at admission.
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
        """Return the lease of this claim, which allows writes for the run."""
        return Lease(run=self.id, thread=self.thread, fence=self.fence)


@dataclass(frozen=True, kw_only=True)
class AdmissionResult:
    """A run, and whether this request created it: a repeated request returns the existing run.

    `interrupted` is the run that ends because of it.
    """

    run: StoredRun
    is_new: bool
    interrupted: str | None = None


@dataclass(frozen=True, kw_only=True)
class AdmissionThread:
    """The fields of an existing thread that admission needs. For another user's thread, only `is_own` is set."""

    is_own: bool
    agent: str | None = None
    skill: str | None = None


@dataclass(frozen=True, kw_only=True)
class Claimant:
    """A worker process. The name of the node survives restarts; the name of the boot does not.

    `lease` is the duration of a claim. `share` limits a user's concurrent runs in this process; 0 sets no limit.
    """

    node: str
    boot: str
    lease: timedelta
    share: int = 0


@dataclass(frozen=True, kw_only=True)
class Lease:
    """The right to write for a run. A later claim has a higher fence and ends this lease."""

    run: str
    thread: str
    fence: int


@dataclass(frozen=True, kw_only=True)
class Cancel:
    """A request to end a run. `events` are its events if no worker has started it."""

    reason: str
    now: datetime
    events: Sequence[bytes]


@dataclass(frozen=True, kw_only=True)
class RunEnding:
    """The outcome of a run."""

    outcome: str
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class CallStart:
    """A model call that is about to be made. `segments` are the segments that may not be in the store yet.

    `shared` is the number of leading segments shared with the run's previous call; `hashes` are the hashes of the
    following segments.
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
class CallEnd:
    """The result of a model call. `price` is in billionths of a unit of currency; None if unknown.

    `savings` contains the savings of folding and any break of the prefix.
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
    """A request of another agent to relay (X3), stored as the run `admission` with one call.

    The run's name identifies the conversation; a repeated request gets another name. `node` is the relaying node,
    `title` is for a new thread.
    """

    admission: Admission
    call: CallStart
    node: str
    title: str | None = None
    step: FoldStep | None = None


@dataclass(frozen=True, kw_only=True)
class StoredRequest:
    """A relayed request. `name` identifies its conversation.

    `last_sent` is the time of its last repetition. `is_newest` is False if its thread has a newer request with another
    name.
    """

    name: str
    run: str
    thread: str
    model: str
    created: datetime
    last_sent: datetime
    is_newest: bool


@dataclass(frozen=True, kw_only=True)
class RelayedPath:
    """The relayed requests of a conversation, oldest first, and their fold steps."""

    requests: tuple[StoredRequest, ...] = ()
    steps: tuple[FoldStep, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EntryCounts:
    """Token counts of entries, in order, by the counter of this name. None means that the entry is not counted yet."""

    counter: str = ""
    tokens: Sequence[int | None] = ()


NOT_COUNTED = EntryCounts()


@dataclass(frozen=True, kw_only=True)
class RunChange:
    """A worker's writes in one transaction. None leaves a field of the run as it is."""

    entries: Sequence[Entry] = ()
    counts: EntryCounts = NOT_COUNTED
    events: Sequence[bytes] = ()
    call_start: CallStart | None = None
    call_end: CallEnd | None = None
    entered: bool | None = None
    failures: int | None = None
    too_long: int | None = None
    can_compact: bool | None = None
    usage: bytes | None = None
    error: str | None = None
    ending: RunEnding | None = None


@dataclass(frozen=True, kw_only=True)
class RecordResult:
    """The numbers of the last event and the last entry after a change, and the reason to end the run, if any.

    `last_seq` is 0 if the change had no entries.
    """

    last_event: int
    last_seq: int
    cancel: str | None


# Uses slots, because thousands of events are in memory while readers read.
@dataclass(frozen=True, kw_only=True, slots=True)
class StoredEvent:
    """An event of a run."""

    number: int
    body: bytes


@dataclass(frozen=True, kw_only=True)
class StoredCall:
    """A model call with the exact body sent, joined from its segments, and the manifest's JSON."""

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


class RunQueue(Protocol):
    """The runs and leases that an engine uses."""

    async def admit(self, admission: Admission, who: Claimant | None = None) -> AdmissionResult:
        """Store a run with its input, and claim it for `who` if its thread is free."""
        ...

    async def claim(self, who: Claimant, now: datetime, limit: int) -> Sequence[StoredRun]:
        """Claim up to `limit` runs: first those whose lease expired, then queued ones whose thread is free.

        Of the queued runs, those of the user with the fewest active runs come first.
        """
        ...

    async def renew(self, who: Claimant, leases: Sequence[Lease], now: datetime) -> Sequence[Lease]:
        """Extend leases. Return those still held."""
        ...

    async def release(self, leases: Sequence[Lease], at: datetime) -> None:
        """Release runs for other workers, which may claim them from the given time on."""
        ...

    async def recover(self, who: Claimant, now: datetime) -> int:
        """Release the claims of an earlier boot of this node. Return the number of released claims."""
        ...

    async def list_cancelled(self, ids: Sequence[str]) -> Sequence[str]:
        """Return the given runs that have a request to end."""
        ...


class EventSource(Protocol):
    """The events of runs that readers use."""

    async def list_after(self, run: str, after: int, limit: int, size: int) -> Sequence[StoredEvent]:
        """Return up to `limit` events of a run after a number, in order, of about `size` bytes."""
        ...

    async def has_run(self, run: str) -> bool:
        """Return True if a run exists."""
        ...
