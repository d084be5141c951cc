"""Streams that join a thread: its current state as events of a run, followed by the active run. Nothing is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import Backend, backend_of, user_of
from recto.api.runs.streams import EventRenderer, EventStream
from recto.api.signed import render_context, signs
from recto.conversation.attachment import as_sent
from recto.conversation.events import (
    MessagesSnapshot,
    RunFinished,
    RunStarted,
    ViewSnapshot,
    encode_event,
    for_older_client,
    in_thread,
    starts_run,
)
from recto.conversation.input.take_input import pending_calls
from recto.conversation.interrupts import interrupt_event, interrupts_of
from recto.conversation.json import load_object
from recto.conversation.log import view
from recto.conversation.snapshots.agui_messages import message_rows
from recto.conversation.snapshots.mid_run import join_events, view_event
from recto.conversation.snapshots.replay import EndedRun, snapshot_events
from recto.conversation.state.thread_state import state_events
from recto.store.ports import StoredEvent, StoredRun
from recto.store.runs.so_far import RunSoFar

NEWEST = "1.0"


def event_renderer(backend: Backend, protocol: str | None, thread_name: str | None = None) -> EventRenderer:
    """Return the renderer of stored events for a client's protocol version, with file ids as urls (F8).

    `thread_name` is the client's name of the thread, if it differs from its id.
    """
    url_of = signs(backend)

    def render(body: bytes) -> bytes:
        sent = as_sent(body, url_of)
        named = in_thread(sent, thread_name) if thread_name is not None else sent
        return named if protocol == NEWEST else for_older_client(named)

    async def rendered_view(run: StoredRun, snapshot: ViewSnapshot) -> bytes:
        log = await backend.store.log_up_to_entry(run.thread, snapshot.upto)
        context = await render_context(backend, run.thread, run.agent)
        return await asyncio.to_thread(view_event, log, snapshot, context)

    return EventRenderer(render=render, view=rendered_view)


async def join_stream(
    request: Request, run: StoredRun, *, thread_name: str | None = None, protocol: str | None = None
) -> Response:
    """Stream the conversation with its open messages, then the run's events to its end.

    Clients resume from the first numbered event; those before it only make sense as a whole.
    """
    backend = backend_of(request)
    with backend.streams.hold(run.owner) as held:
        found, render = await backend.store.run_so_far(run), event_renderer(backend, protocol, thread_name)
        if found.is_over and not found.events:
            return EventStream(
                _once(await ended_events(backend, found.run), run.last_event), render, run, held.pop_all()
            )
        return EventStream(_joined(backend, found), render, run, held.pop_all())


async def snapshot_stream(
    request: Request, thread: str, run_id: str, *, thread_name: str | None = None, protocol: str | None = None
) -> Response:
    """Stream a thread as a run of this id that starts and ends at once. Raises NotFound for other users' threads."""
    backend, owner = backend_of(request), user_of(request).name
    with backend.streams.hold(owner) as held:
        row = await backend.store.get_thread(owner, thread)
        log, context = await backend.store.log_after(thread), await render_context(backend, thread, row.agent)
        seen = view(log)
        rows = await asyncio.to_thread(message_rows, seen, context)
        pending = tuple([call.id for call in pending_calls(seen, context.own_tools)])
        asked = tuple([interrupt_event(one, context.locale) for one in interrupts_of(seen) if one.waits])
        events = (
            RunStarted(thread=thread, run=run_id),
            *state_events(seen),
            MessagesSnapshot(messages=rows),
            RunFinished(thread=thread, run=run_id, pending=pending, interrupts=asked),
        )
        bodies = [body for event in events for body in encode_event(event)]
        render = event_renderer(backend, protocol, thread_name)
        return EventStream(_once(bodies), render, None, held.pop_all())


async def _once(bodies: Sequence[bytes], last: int = 0) -> AsyncGenerator[Sequence[StoredEvent]]:
    yield _numbered(bodies, last)


def _numbered(bodies: Sequence[bytes], last: int) -> list[StoredEvent]:
    """Number only the last event: a reader that disconnects before it starts over."""
    *before, end = bodies
    return [*[StoredEvent(number=0, body=body) for body in before], StoredEvent(number=last, body=end)]


async def _joined(backend: Backend, found: RunSoFar) -> AsyncGenerator[Sequence[StoredEvent]]:
    run = found.run
    start = encode_event(RunStarted(thread=run.thread, run=run.name))
    yield _numbered([*start, *await _so_far(backend, found)], found.last)
    if found.is_over:
        return
    async with aclosing(backend.hub.follow(run.id, found.last, last=None)) as tail:
        async for some in tail:
            if some and not found.has_input:
                # The run's input has entered the log since; no event announces it.
                found = await backend.store.run_so_far(run)
                yield _numbered(await _so_far(backend, found), found.last)
                continue
            yield [event for event in some if event.number > found.last and not starts_run(event.body)]


async def _so_far(backend: Backend, found: RunSoFar) -> Sequence[bytes]:
    context = await render_context(backend, found.run.thread, found.run.agent)
    bodies = [event.body for event in found.events]
    # Encoding a long thread takes a while.
    return await asyncio.to_thread(join_events, found.log, bodies, context)


async def ended_events(backend: Backend, run: StoredRun) -> Sequence[bytes]:
    """Return events for a run whose own events were deleted."""
    known = load_object(run.usage) if run.usage else None
    # Events have no field for a price.
    usage = {name: count for name, count in known.items() if isinstance(count, int)} if known else None
    ended = EndedRun(
        thread=run.thread,
        run=run.name,
        outcome=run.outcome or "",
        events=run.last_event,
        error=run.error,
        usage=usage,
    )
    log, context = await backend.store.log_of_run(run), await render_context(backend, run.thread, run.agent)
    return await asyncio.to_thread(snapshot_events, ended, log, context)
