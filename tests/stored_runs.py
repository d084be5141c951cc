"""What tests of workers and engines share: a real store in a temporary file, and runs admitted and claimed in it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recto.conversation.json import dump
from recto.conversation.log import Entry
from recto.ids import new_id
from recto.store.ports import Admission, Claimant, Lease, RunChange, RunEnding, StoredRun
from recto.store.store import Store, open_store

WHO = Claimant(node="node", boot="boot", lease=timedelta(seconds=30))
OWNER = "ann"


def now() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def a_store(folder: Path) -> AsyncGenerator[Store]:
    store = await open_store(f"sqlite:///{folder / 'recto.db'}")
    try:
        yield store
    finally:
        await store.close()


def an_admission(*, thread: str = "", owner: str = OWNER) -> Admission:
    id = new_id()
    return Admission(
        id=id,
        name=f"run {id}",
        owner=owner,
        thread=thread or new_id(),
        agent="chat",
        input=dump({"runId": id}),
        response_id=new_id(),
        created=now(),
    )


async def admit(store: Store, *, thread: str = "") -> StoredRun:
    return (await store.runs.admit(an_admission(thread=thread))).run


async def claim(store: Store, *, who: Claimant = WHO) -> Lease:
    """Claim the only queued run. Return its lease."""
    (run,) = await store.runs.claim(who, now(), 1)
    return run.lease


async def a_lease(store: Store) -> Lease:
    """Admit and claim a run. Return its lease."""
    await admit(store)
    return await claim(store)


async def lose(store: Store, lease: Lease) -> Lease:
    """Release a run and claim it again. Return the new lease."""
    await store.runs.release((lease,), now())
    return await claim(store)


async def write_events(store: Store, lease: Lease, bodies: Sequence[bytes]) -> int:
    """Store events. Return the number of the last."""
    return (await store.runs.record(lease, RunChange(events=bodies), now())).last_event


async def write_log(store: Store, thread: str, entries: Sequence[Entry], owner: str = OWNER) -> None:
    """Write entries in an ended run, without token counts, like older versions."""
    lease = (await store.runs.admit(an_admission(thread=thread, owner=owner), WHO)).run.lease
    for at in range(0, len(entries), 500):
        await store.runs.record(lease, RunChange(entries=entries[at : at + 500]), now())
    await store.runs.record(lease, RunChange(entered=True, ending=RunEnding(outcome="done")), now())
