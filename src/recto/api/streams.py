"""Runs as server-sent events: ready bytes, `\\n` line ends, a number on each. Ends when the run does."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TypeAlias

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from recto.engine.hub import Hub, Listener
from recto.page.call_files import SignedUrl, as_sent
from recto.page.events import for_older_client
from recto.store.ports import StoredEvent, StoredRun

STREAM, JSON = "text/event-stream", "application/json"
WEIGHT = re.compile(r"q\s*=\s*([01](?:\.\d{0,3})?)")
HEADERS = {
    # Exactly this: with a charset some clients do not take it for a stream.
    "content-type": STREAM,
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}
HEARTBEAT = b":\n\n"
NEWEST = "1.0"

Teller: TypeAlias = Callable[[bytes], bytes]


def teller(protocol: str | None, url_of: SignedUrl) -> Teller:
    """How a client is told the events that are stored: in its version of the protocol, file ids as urls (F8)."""
    if protocol == NEWEST:
        return lambda body: as_sent(body, url_of)
    return lambda body: for_older_client(as_sent(body, url_of))


def stream(hub: Hub, run: StoredRun, after: int, told: Teller) -> StreamingResponse:
    """The events of a run behind a number, as they come."""
    last = run.last_event if run.status == "ended" else None
    return _response(_frames(hub.follow(run.id, after, last=last), told), run)


def stream_new(hub: Hub, hearing: ExitStack, listener: Listener, run: StoredRun, told: Teller) -> StreamingResponse:
    """The events of a run that was just admitted, to who listens since before that. `hearing` is closed at the end."""
    return _response(_frames(hub.hear(listener, 0, is_new=True), told), run, hearing)


def stream_again(run: StoredRun, bodies: Sequence[bytes], after: int, told: Teller) -> StreamingResponse:
    """A run whose own events are kept no longer, told by what the log has of it. The last has the number it had."""

    async def once() -> AsyncGenerator[Sequence[StoredEvent]]:
        # A run that was over before it began had fewer events than there are to tell now.
        kept = bodies if run.last_event >= len(bodies) else (bodies[0], bodies[-1])
        first = run.last_event - len(kept) + 1
        numbered = enumerate(kept, start=first)
        yield [StoredEvent(number=number, body=body) for number, body in numbered if number > after]

    return _response(_frames(once(), told), run)


def wants_stream(accept: str) -> bool:
    """Whether a client would have events: it accepts them, and JSON no more than them."""
    kinds = accept.lower()
    if STREAM not in kinds:
        return False
    weights = dict(map(_weight, kinds.split(",")))
    return weights.get(STREAM, 0.0) > 0 and weights[STREAM] >= weights.get(JSON, 0.0)


def _weight(kind: str) -> tuple[str, float]:
    """A media type of an Accept header, and how much it is wanted. What is no number is no less than 1."""
    media, *parameters = (part.strip() for part in kind.split(";"))
    found = [WEIGHT.fullmatch(parameter) for parameter in parameters]
    return media, next((float(one[1]) for one in found if one), 1.0)


class _Stream(StreamingResponse):
    """A response that ends the listening it was made for, even if it never began."""

    def __init__(self, frames: AsyncGenerator[bytes], headers: Mapping[str, str], hearing: ExitStack) -> None:
        super().__init__(frames, headers=headers)
        self._hearing = hearing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._hearing:
            await super().__call__(scope, receive, send)


def _response(frames: AsyncGenerator[bytes], run: StoredRun, hearing: ExitStack | None = None) -> StreamingResponse:
    return _Stream(frames, HEADERS | {"recto-task-id": run.id}, hearing or ExitStack())


async def _frames(events: AsyncGenerator[Sequence[StoredEvent]], told: Teller) -> AsyncGenerator[bytes]:
    async for some in events:
        yield _frame(some, told) or HEARTBEAT


def _frame(events: Sequence[StoredEvent], told: Teller) -> bytes:
    return b"".join([b"id: %d\ndata: %b\n\n" % (event.number, told(event.body)) for event in events])
