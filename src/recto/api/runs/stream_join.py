"""Streams that join a thread: its current state as events of a run, followed by the active run. Nothing is stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import Backend, backend_of, user_of
from recto.api.runs.streams import EventRenderer, EventStream
from recto.conversation.events import (
    MessagesSnapshot,
    RunFinished,
    RunStarted,
    ViewSnapshot,
    encode_event,
    for_older_client,
    rename_thread,
    starts_run,
)
from recto.conversation.input.input_entries import pending_calls
from recto.conversation.interrupts import interrupt_event, interrupts_of
from recto.conversation.json import load_object
from recto.conversation.log import view
from recto.conversation.message_files import sign_file_urls
from recto.conversation.message_snapshots import (
    EndedRun,
    RenderContext,
    join_events,
    message_rows,
    snapshot_events,
    view_event,
)
from recto.conversation.thread_state import state_events
from recto.store.ports import StoredEvent, StoredRun
from recto.store.runs.events import RunSnapshot

NEWEST = "1.0"


async def render_context(backend: Backend, thread: str, agent: str | None) -> RenderContext:
    """Return the render context of a thread's messages for the given agent."""
    refs = await backend.store.files.list_refs(thread)
    return RenderContext(
        url_of=backend.files.urls(refs),
        refs=refs,
        own_tools=backend.agents.tools_of(agent).own_names(),
        locale=backend.agents.locale(agent),
        most_bytes=backend.bodies.snapshot_bytes,
    )


def event_renderer(backend: Backend, protocol: str | None, thread_name: str | None = None) -> EventRenderer:
    """Return the renderer of stored events for a client's protocol version, with file ids as urls (F8).

    `thread_name` is the client's name of the thread, if it differs from its id.
    """

    def render(body: bytes) -> bytes:
        event = sign_file_urls(body, backend.files.url)
        event = rename_thread(event, thread_name) if thread_name is not None else event
        return event if protocol == NEWEST else for_older_client(event)

    async def render_view(run: StoredRun, snapshot: ViewSnapshot) -> bytes:
        log = await backend.store.log.read_up_to_entry(run.thread, snapshot.upto)
        context = await render_context(backend, run.thread, run.agent)
        return await asyncio.to_thread(view_event, log, snapshot, context)

    return EventRenderer(render=render, view=render_view)


async def join_stream(
    request: Request, run: StoredRun, *, thread_name: str | None = None, protocol: str | None = None
) -> Response:
    """Stream the conversation with its open messages, then the run's events to its end.

    Only the last event of the conversation has a number to resume from, because its events form one unit.
    """
    backend = backend_of(request)
    with backend.runs.streams.hold(run.owner) as stack:
        progress = await backend.store.events.read_snapshot(run)
        render = event_renderer(backend, protocol, thread_name)
        if progress.is_over and not progress.events:
            events = _one_batch(await ended_events(backend, progress.run), run.last_event)
        else:
            events = _join_events(backend, progress)
        return EventStream(events, render, run, stack.pop_all())


async def snapshot_stream(
    request: Request, thread: str, run_id: str, *, thread_name: str | None = None, protocol: str | None = None
) -> Response:
    """Stream a thread as a run of this id that starts and ends at once. Raises NotFound for other users' threads."""
    backend, owner = backend_of(request), user_of(request).name
    with backend.runs.streams.hold(owner) as stack:
        row = await backend.store.threads.get(owner, thread)
        log, context = await backend.store.log.read_after(thread), await render_context(backend, thread, row.agent)
        messages = view(log)
        rows = await asyncio.to_thread(message_rows, messages, context)
        pending = tuple([call.id for call in pending_calls(messages, context.own_tools)])
        interrupts = [interrupt_event(one, context.locale) for one in interrupts_of(messages) if one.is_waiting]
        events = (
            RunStarted(thread=thread, run=run_id),
            *state_events(messages),
            MessagesSnapshot(messages=rows),
            RunFinished(thread=thread, run=run_id, pending=pending, interrupts=tuple(interrupts)),
        )
        bodies = [body for event in events for body in encode_event(event)]
        render = event_renderer(backend, protocol, thread_name)
        return EventStream(_one_batch(bodies), render, None, stack.pop_all())


async def _one_batch(bodies: Sequence[bytes], last: int = 0) -> AsyncGenerator[Sequence[StoredEvent]]:
    yield _number_last(bodies, last)


def _number_last(bodies: Sequence[bytes], last: int) -> list[StoredEvent]:
    """Number only the last event, so that a reader that disconnects earlier starts over."""
    *before, end = bodies
    return [*[StoredEvent(number=0, body=body) for body in before], StoredEvent(number=last, body=end)]


async def _join_events(backend: Backend, progress: RunSnapshot) -> AsyncGenerator[Sequence[StoredEvent]]:
    run = progress.run
    start = encode_event(RunStarted(thread=run.thread, run=run.name))
    yield _number_last([*start, *await _conversation_events(backend, progress)], progress.last)
    if progress.is_over:
        return
    async with aclosing(backend.runs.hub.follow(run.id, progress.last, last=None)) as batches:
        async for batch in batches:
            if batch and not progress.has_input:
                # The log has the run's input by now. No event announces this, so send the conversation again.
                progress = await backend.store.events.read_snapshot(run)
                yield _number_last(await _conversation_events(backend, progress), progress.last)
                continue
            yield [event for event in batch if event.number > progress.last and not starts_run(event.body)]


async def _conversation_events(backend: Backend, progress: RunSnapshot) -> Sequence[bytes]:
    context = await render_context(backend, progress.run.thread, progress.run.agent)
    bodies = [event.body for event in progress.events]
    # Encode in a thread, because a long conversation takes a while.
    return await asyncio.to_thread(join_events, progress.log, bodies, context)


async def ended_events(backend: Backend, run: StoredRun) -> Sequence[bytes]:
    """Return substitute events for a run whose own events were deleted."""
    counts = load_object(run.usage) if run.usage else None
    # Omit the price, because events have no field for it.
    usage = {name: count for name, count in counts.items() if isinstance(count, int)} if counts else None
    ended_run = EndedRun(
        thread=run.thread, run=run.name, outcome=run.outcome or "", events=run.last_event, error=run.error, usage=usage
    )
    log, context = await backend.store.log.read_of_run(run), await render_context(backend, run.thread, run.agent)
    return await asyncio.to_thread(snapshot_events, ended_run, log, context)
