"""Sample runs, changes and entries. Times are fixed, never read from a clock."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol, TypeVar

from recto.conversation.messages import Text, UserMessage
from recto.errors import NotFound
from recto.ids import new_id
from recto.store.ports import Admission, Claimant, Lease, RunChange, StoredRun
from recto.store.store import Store

START = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)
LEASE = timedelta(seconds=30)
NODE = Claimant(node="node-1", boot="boot-1", lease=LEASE)
OTHER_NODE = Claimant(node="node-2", boot="boot-2", lease=LEASE)
PLENTY = 1000


class ListPage(Protocol):
    @property
    def next(self) -> str | None: ...


PageT = TypeVar("PageT", bound=ListPage)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def admission(name: str, thread: str = "thread-1", *, owner: str = "ann", input: bytes = b'{"n": 1}') -> Admission:
    return Admission(
        id=new_id(),
        name=name,
        owner=owner,
        thread=thread,
        agent="vibe",
        input=input,
        response_id=new_id(),
        created=START,
    )


async def admit(store: Store, name: str, thread: str = "thread-1", *, owner: str = "ann") -> StoredRun:
    return (await store.runs.admit(admission(name, thread, owner=owner))).run


async def begin(store: Store, name: str, thread: str = "thread-1") -> Lease:
    """Admit a run of a free thread and claim it for the first node at the start of the test."""
    await admit(store, name, thread)
    runs = await store.runs.claim(NODE, at(0), limit=1)
    assert [run.name for run in runs] == [name]
    return lease_of(runs[0])


async def claim_names(store: Store, who: Claimant, now: datetime, limit: int = PLENTY) -> list[str]:
    return [run.name for run in await store.runs.claim(who, now, limit)]


def lease_of(run: StoredRun) -> Lease:
    return run.lease


def message_of(id: str, text: str = "Hello") -> UserMessage:
    """Return a message without a number, which the store assigns."""
    return UserMessage(id=id, time=START, parts=(Text(text=text),))


def events(*bodies: bytes) -> RunChange:
    return RunChange(events=bodies)


async def events_of(store: Store, run: str) -> list[tuple[int, bytes]]:
    return [(event.number, event.body) for event in await store.events.list_after(run, after=0, limit=PLENTY)]


async def everything(store: Store, lease: Lease, owner: str = "ann") -> tuple[StoredRun, object, object, object]:
    result = await store.runs.find(owner, lease.run)
    return (
        result,
        await events_of(store, lease.run),
        await store.log.read_after(lease.thread),
        await store.calls.list_full(lease.run),
    )


async def has_run(store: Store, owner: str, name: str) -> bool:
    try:
        await store.runs.find(owner, name)
    except NotFound:
        return False
    return True


async def all_pages(read: Callable[[str | None], Awaitable[PageT]]) -> list[PageT]:
    """Return all pages of a list. `read` returns the page at a cursor."""
    pages = [await read(None)]
    while pages[-1].next is not None:
        pages.append(await read(pages[-1].next))
    return pages
