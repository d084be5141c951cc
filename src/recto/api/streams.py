"""Runs as server-sent events: ready bytes, `\\n` line ends, a number on each. Ends when the run does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

from starlette.responses import StreamingResponse

from recto.engine.hub import Hub
from recto.page.events import for_older_client
from recto.store.ports import StoredEvent, StoredRun

HEADERS = {
    # Exactly this: with a charset some clients do not take it for a stream.
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
HEARTBEAT = b":\n\n"
NEWEST = "1.0"


def stream(hub: Hub, run: StoredRun, after: int, protocol: str | None) -> StreamingResponse:
    """The events of a run behind a number, as they come."""
    told = _same if protocol == NEWEST else for_older_client
    return StreamingResponse(_frames(hub, run, after, told), headers=HEADERS | {"recto-task-id": run.id})


async def _frames(hub: Hub, run: StoredRun, after: int, told: Callable[[bytes], bytes]) -> AsyncGenerator[bytes]:
    last = run.last_event if run.status == "ended" else None
    async for events in hub.follow(run.id, after, last=last):
        yield _frame(events, told) or HEARTBEAT


def _frame(events: Sequence[StoredEvent], told: Callable[[bytes], bytes]) -> bytes:
    return b"".join([b"id: %d\ndata: %b\n\n" % (event.number, told(event.body)) for event in events])


def _same(body: bytes) -> bytes:
    return body
