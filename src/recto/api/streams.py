"""Runs as server-sent events: ready bytes, `\\n` line ends, a number on each. Ends when the run does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack

from starlette.responses import StreamingResponse

from recto.engine.hub import Hub, Listener
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
    last = run.last_event if run.status == "ended" else None
    return _response(_frames(hub.follow(run.id, after, last=last), protocol), run)


def stream_new(
    hub: Hub, hearing: ExitStack, listener: Listener, run: StoredRun, protocol: str | None
) -> StreamingResponse:
    """The events of a run that was just admitted, to who listens since before that. `hearing` is closed at the end."""
    return _response(_frames(_heard(hub, hearing, listener), protocol), run)


def stream_again(run: StoredRun, bodies: Sequence[bytes], after: int, protocol: str | None) -> StreamingResponse:
    """A run whose own events are kept no longer, told by what the log has of it. The last has the number it had."""

    async def once() -> AsyncGenerator[Sequence[StoredEvent]]:
        # A run that was over before it began had fewer events than there are to tell now.
        told = bodies if run.last_event >= len(bodies) else (bodies[0], bodies[-1])
        first = run.last_event - len(told) + 1
        events = [StoredEvent(number=number, body=body) for number, body in enumerate(told, start=first)]
        yield events if after < run.last_event else ()

    return _response(_frames(once(), protocol), run)


async def _heard(hub: Hub, hearing: ExitStack, listener: Listener) -> AsyncGenerator[Sequence[StoredEvent]]:
    with hearing:
        async for events in hub.hear(listener, 0, is_new=True):
            yield events


def _response(frames: AsyncGenerator[bytes], run: StoredRun) -> StreamingResponse:
    return StreamingResponse(frames, headers=HEADERS | {"recto-task-id": run.id})


async def _frames(events: AsyncGenerator[Sequence[StoredEvent]], protocol: str | None) -> AsyncGenerator[bytes]:
    told = _same if protocol == NEWEST else for_older_client
    async for some in events:
        yield _frame(some, told) or HEARTBEAT


def _frame(events: Sequence[StoredEvent], told: Callable[[bytes], bytes]) -> bytes:
    return b"".join([b"id: %d\ndata: %b\n\n" % (event.number, told(event.body)) for event in events])


def _same(body: bytes) -> bytes:
    return body
