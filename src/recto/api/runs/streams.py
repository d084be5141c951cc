"""Runs as server-sent events: ready bytes, `\\n` line ends, a number on each. Ends when the run does."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass, replace
from typing import cast

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from recto.api.route import JSON_MEDIA, STREAM_MEDIA
from recto.conversation.events import ViewSnapshot, ends_run, view_named
from recto.engine.hub import Hub, Listener
from recto.errors import LimitReached, ServerFull
from recto.store.ports import StoredEvent, StoredRun

WEIGHT = re.compile(r"q\s*=\s*([01](?:\.\d{0,3})?)")
HEADERS = (
    # Exactly this: with a charset some clients do not take it for a stream.
    (b"content-type", STREAM_MEDIA.encode()),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
HEARTBEAT = b":\n\n"
# The most that is handed over at once: what a reader does not take waits in the server.
PIECE_BYTES = 65_536
RETRY_SECONDS = 5.0
OF_USER = (
    "You have {most} event streams open, which is the limit. Close one, or wait for one to end. A run sent without "
    "Accept: text/event-stream is taken all the same, and its events can be read later."
)
OF_SERVER = "This server has {most} event streams open, which is the limit. Try again in a moment."


@dataclass(frozen=True, kw_only=True)
class EventRenderer:
    """How a client is told the events that are stored: each by its bytes, or by the log's view that it stands for."""

    render: Callable[[bytes], bytes]
    view: Callable[[StoredRun, ViewSnapshot], Awaitable[bytes]]


class OpenStreams:
    """The streams of this process: so many at once in all and of one user; 0 is no limit."""

    of_user = OF_USER
    of_server = OF_SERVER

    def __init__(self, most: int = 0, of_user: int = 0) -> None:
        self._most = most
        self._most_of_user = of_user
        self._users: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """How many there are."""
        return self._users.total()

    @contextmanager
    def hold(self, user: str) -> Generator[ExitStack]:
        """Count one more, in what it holds while it lasts; whoever makes the stream takes that over.

        One too many of a user raises LimitReached, of the server ServerFull.
        """
        if self._most_of_user and self._users[user] >= self._most_of_user:
            raise LimitReached(self.of_user.format(most=self._most_of_user), retry=RETRY_SECONDS)
        if self._most and self._users.total() >= self._most:
            raise ServerFull(self.of_server.format(most=self._most))
        self._users[user] += 1
        with ExitStack() as held:
            held.callback(self._release, user)
            yield held

    def _release(self, user: str) -> None:
        self._users[user] -= 1
        self._users += Counter()


def stream(hub: Hub, run: StoredRun, after: int, render: EventRenderer, held: ExitStack) -> EventStream:
    """The events of a run behind a number, as they come. `held` is closed at the end, as in all of these."""
    last = run.last_event if run.status == "ended" else None
    return EventStream(hub.follow(run.id, after, last=last), render, run, held)


def stream_new(hub: Hub, held: ExitStack, listener: Listener, run: StoredRun, render: EventRenderer) -> EventStream:
    """The events of a run that was just admitted, to who listens since before that."""
    return EventStream(hub.hear(listener, 0, is_new=True), render, run, held)


def stream_again(
    run: StoredRun, bodies: Sequence[bytes], after: int, render: EventRenderer, held: ExitStack
) -> EventStream:
    """A run whose own events are kept no longer, told by what the log has of it. The last has the number it had."""

    async def once() -> AsyncGenerator[Sequence[StoredEvent]]:
        # A run that was over before it began had fewer events than there are to tell now.
        kept = bodies if run.last_event >= len(bodies) else (bodies[0], bodies[-1])
        first = run.last_event - len(kept) + 1
        numbered = enumerate(kept, start=first)
        yield [StoredEvent(number=number, body=body) for number, body in numbered if number > after]

    return EventStream(once(), render, run, held)


def wants_stream(accept: str) -> bool:
    """Whether a client would have events: it accepts them, and JSON no more than them."""
    kinds = accept.lower()
    if STREAM_MEDIA not in kinds:
        return False
    weights = dict(map(_weight, kinds.split(",")))
    return weights.get(STREAM_MEDIA, 0.0) > 0 and weights[STREAM_MEDIA] >= weights.get(JSON_MEDIA, 0.0)


def _weight(kind: str) -> tuple[str, float]:
    """A media type of an Accept header, and how much it is wanted. What is no number is no less than 1."""
    media, *parameters = (part.strip() for part in kind.split(";"))
    found = [WEIGHT.fullmatch(parameter) for parameter in parameters]
    return media, next((float(one[1]) for one in found if one), 1.0)


class EventStream(Response):
    """A response that sends events as they come, until the last or until the client is gone. `run` is whose they are.

    It gives up what is held for it, even if it never began.
    """

    def __init__(
        self,
        events: AsyncGenerator[Sequence[StoredEvent]],
        render: EventRenderer,
        run: StoredRun | None,
        held: ExitStack,
    ) -> None:
        # Not the way of all responses: its headers are bytes already, and it has no body to be measured.
        self.status_code, self.body, self.background = 200, b"", None
        self.raw_headers = [*HEADERS, *([(b"recto-task-id", run.id.encode())] if run else [])]
        self._run = run
        self._events = events
        self._render = render
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as all responses
        """Send them."""
        with self._held:
            await until_left(receive, self._send(send))

    async def _send(self, send: Send) -> None:
        await write(send, {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        is_over = False
        async with aclosing(self._events) as events:
            async for some in events:
                # The end goes with the last event: one packet less, and one less that wakes the client.
                is_over = bool(some) and ends_run(some[-1].body)
                frame = _frame(await self._with_views(some), self._render.render) or HEARTBEAT
                for start in range(0, len(frame), PIECE_BYTES):
                    piece, has_more = frame[start : start + PIECE_BYTES], start + PIECE_BYTES < len(frame)
                    body = {"type": "http.response.body", "body": piece, "more_body": has_more or not is_over}
                    await write(send, body)
        if not is_over:
            await write(send, {"type": "http.response.body", "body": b"", "more_body": False})

    async def _with_views(self, events: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
        named = [view_named(event.body) for event in events]
        if self._run is None or not any(named):
            return events
        return [
            replace(event, body=await self._render.view(self._run, view)) if view else event
            for event, view in zip(events, named, strict=True)
        ]


async def until_left(receive: Receive, work: Coroutine[None, None, None]) -> bool:
    """Do some work for a client, for as long as it is there. Returns whether it stayed.

    One more task, in place of a group of tasks, looks out for a client that leaves.
    """
    working = cast("asyncio.Task[None]", asyncio.current_task())
    has_left = False

    async def end_when_left() -> None:
        nonlocal has_left
        while (await receive())["type"] != "http.disconnect":
            pass
        has_left = True
        working.cancel()

    leaving = asyncio.create_task(end_when_left())
    try:
        await work
    except asyncio.CancelledError:
        if not has_left or working.uncancel():
            raise
    finally:
        leaving.cancel()
    return not has_left


async def write(send: Send, message: Message) -> None:
    """Send one message to a client; one that is gone raises ClientDisconnect."""
    try:
        await send(message)
    except OSError as error:
        # How newer servers say that nobody is there.
        raise ClientDisconnect from error


def _frame(events: Sequence[StoredEvent], render: Callable[[bytes], bytes]) -> bytes:
    return b"".join([_numbered(event.number) + b"data: %b\n\n" % render(event.body) for event in events])


def _numbered(number: int) -> bytes:
    """What has no number cannot be gone on from: whoever has nothing else begins anew."""
    return b"id: %d\n" % number if number else b""
