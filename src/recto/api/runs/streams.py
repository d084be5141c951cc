"""Server-sent events of runs, encoded as bytes with `\\n` line ends and numbers. A stream ends with its run."""

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
from recto.conversation.events import ViewSnapshot, ends_run, read_view_snapshot
from recto.engine.hub import Hub
from recto.errors import LimitReached, ServerFull
from recto.store.ports import StoredEvent, StoredRun

WEIGHT = re.compile(r"q\s*=\s*([01](?:\.\d{0,3})?)")
HEADERS = (
    # Without a charset parameter, because some clients reject it.
    (b"content-type", STREAM_MEDIA.encode()),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
HEARTBEAT = b":\n\n"
# Maximum size of a write. The server buffers a write until the client has read it.
PIECE_BYTES = 65_536
RETRY_SECONDS = 5.0
OF_USER = (
    "You have {most} event streams open, which is the limit. Close one, or wait for one to end. Runs without "
    "Accept: text/event-stream are still accepted; read their events later."
)
OF_SERVER = "This server has {most} event streams open, which is the limit. Try again in a moment."


@dataclass(frozen=True, kw_only=True)
class EventRenderer:
    """Functions that render events for a client: `render` stored bytes, `view` the log view of a snapshot marker."""

    render: Callable[[bytes], bytes]
    view: Callable[[StoredRun, ViewSnapshot], Awaitable[bytes]]


class OpenStreams:
    """Limits of concurrent streams of this process, in total and per user; 0 sets no limit."""

    of_user = OF_USER
    of_server = OF_SERVER

    def __init__(self, most: int = 0, of_user: int = 0) -> None:
        self._most = most
        self._most_of_user = of_user
        self._users: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """Number of open streams."""
        return self._users.total()

    @contextmanager
    def hold(self, user: str) -> Generator[ExitStack]:
        """Count a stream until the yielded stack is closed. The stream takes the stack over with `pop_all`.

        Raises LimitReached at the user's limit, ServerFull at the server's.
        """
        if self._most_of_user and self._users[user] >= self._most_of_user:
            raise LimitReached(self.of_user.format(most=self._most_of_user), retry=RETRY_SECONDS)
        if self._most and self._users.total() >= self._most:
            raise ServerFull(self.of_server.format(most=self._most))
        self._users[user] += 1
        with ExitStack() as stack:

            @stack.callback
            def release() -> None:
                # Counter subtraction drops zero counts.
                self._users -= Counter({user: 1})

            yield stack


def stream(hub: Hub, run: StoredRun, after: int, render: EventRenderer, stack: ExitStack) -> EventStream:
    """Stream the events of a run after a number. The stream closes `stack` at its end."""
    last = run.last_event if run.status == "ended" else None
    return EventStream(hub.follow(run.id, after, last=last), render, run, stack)


def stream_again(
    run: StoredRun, bodies: Sequence[bytes], after: int, render: EventRenderer, stack: ExitStack
) -> EventStream:
    """Stream substitute events for a run whose own events were deleted. The last event keeps its number."""

    async def once() -> AsyncGenerator[Sequence[StoredEvent]]:
        # A run that ended before it started has too few event numbers: send only the first and last substitute.
        substitutes = bodies if run.last_event >= len(bodies) else (bodies[0], bodies[-1])
        numbers = enumerate(substitutes, start=run.last_event - len(substitutes) + 1)
        yield [StoredEvent(number=number, body=body) for number, body in numbers if number > after]

    return EventStream(once(), render, run, stack)


def wants_stream(accept: str) -> bool:
    """Return True if the client accepts events and does not prefer JSON."""
    accept = accept.lower()
    if STREAM_MEDIA not in accept:
        return False
    weights = dict[str, float]()
    for kind in accept.split(","):
        media, *parameters = (part.strip() for part in kind.split(";"))
        matches = [match for parameter in parameters if (match := WEIGHT.fullmatch(parameter))]
        # An invalid weight counts as 1.
        weights[media] = float(matches[0][1]) if matches else 1.0
    return weights.get(STREAM_MEDIA, 0.0) > 0 and weights[STREAM_MEDIA] >= weights.get(JSON_MEDIA, 0.0)


class EventStream(Response):
    """A response that sends events until the last one or until the client disconnects. `run` is the run of the events.

    Closes `stack` at the end, even if sending fails.
    """

    def __init__(
        self,
        events: AsyncGenerator[Sequence[StoredEvent]],
        render: EventRenderer,
        run: StoredRun | None,
        stack: ExitStack,
    ) -> None:
        # Skips Response.__init__: the headers are encoded already, and there is no body to measure.
        self.status_code, self.body, self.background = 200, b"", None
        self.raw_headers = [*HEADERS, *([(b"recto-task-id", run.id.encode())] if run else [])]
        self._run = run
        self._events = events
        self._render = render
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - as all responses
        """Send the events."""
        with self._stack:
            await run_until_disconnect(receive, self._send(send))

    async def _send(self, send: Send) -> None:
        await write(send, {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        is_over = False
        async with aclosing(self._events) as batches:
            async for batch in batches:
                # Send the last event and the end in one packet, so that the client wakes only once.
                is_over = bool(batch) and ends_run(batch[-1].body)
                # An event numbered 0 gets no id: clients cannot resume from it, and start over.
                events = [
                    (b"id: %d\n" % event.number if event.number else b"")
                    + b"data: %b\n\n" % self._render.render(event.body)
                    for event in await self._with_views(batch)
                ]
                frame = b"".join(events) or HEARTBEAT
                for start in range(0, len(frame), PIECE_BYTES):
                    piece, has_more = frame[start : start + PIECE_BYTES], start + PIECE_BYTES < len(frame)
                    message = {"type": "http.response.body", "body": piece, "more_body": has_more or not is_over}
                    await write(send, message)
        if not is_over:
            await write(send, {"type": "http.response.body", "body": b"", "more_body": False})

    async def _with_views(self, events: Sequence[StoredEvent]) -> Sequence[StoredEvent]:
        views = [read_view_snapshot(event.body) for event in events]
        if self._run is None or not any(views):
            return events
        return [
            replace(event, body=await self._render.view(self._run, view)) if view else event
            for event, view in zip(events, views, strict=True)
        ]


async def run_until_disconnect(receive: Receive, work: Coroutine[None, None, None]) -> bool:
    """Run `work` until the client disconnects. Returns True if `work` ended first.

    One extra task watches for the disconnect, which is cheaper than a task group.
    """
    task = cast("asyncio.Task[None]", asyncio.current_task())
    is_disconnected = False

    async def cancel_on_disconnect() -> None:
        nonlocal is_disconnected
        while (await receive())["type"] != "http.disconnect":
            pass
        is_disconnected = True
        task.cancel()

    watcher = asyncio.create_task(cancel_on_disconnect())
    try:
        await work
    except asyncio.CancelledError:
        if not is_disconnected or task.uncancel():
            raise
    finally:
        watcher.cancel()
    return not is_disconnected


async def write(send: Send, message: Message) -> None:
    """Send one message. Raises ClientDisconnect if the client is gone."""
    try:
        await send(message)
    except OSError as error:
        # Newer servers report a disconnect this way.
        raise ClientDisconnect from error
