"""Routes of CopilotKit's inspector: messages, recent events and state of a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import Backend, backend_of, user_of
from recto.api.copilotkit.info import BASE, ThreadName
from recto.api.route import JSON_MEDIA, THREAD, Route
from recto.api.runs.stream_join import event_renderer
from recto.api.runs.thread_names import own_thread
from recto.api.signed import render_context
from recto.conversation.events import read_view_snapshot
from recto.conversation.json import Json, load
from recto.conversation.log import view
from recto.conversation.message_snapshots import MessageRow, message_rows
from recto.store.ports import StoredRun

ONE = f"{BASE}/threads/{{thread}}"
# Limits of a response in runs, events and bytes. The inspector renders everything it receives.
MOST_RUNS, MOST_EVENTS, MOST_BYTES = 20, 5_000, 2**20


class KitMessagesShape(TypedDict):
    """Messages, oldest first. A tool call has `id`, `name` and `args`."""

    messages: Sequence[Mapping[str, object]]


class KitEventsShape(TypedDict):
    """AG-UI events, oldest first."""

    events: Sequence[Mapping[str, object]]


class KitStateShape(TypedDict):
    """The state that agent and page share; null if there is none."""

    state: object


async def inspect_copilotkit_messages(request: Request, thread: ThreadName) -> KitMessagesShape:
    """Return a thread's messages for CopilotKit's inspector."""
    backend, owner = backend_of(request), user_of(request).name
    row = await backend.store.threads.get(owner, await own_thread(request, thread))
    context = await render_context(backend, row.id, row.agent)
    rows = await asyncio.to_thread(message_rows, view(await backend.store.log.read_after(row.id)), context)
    return {"messages": [inspected(message) for message in rows]}


def inspected(row: MessageRow) -> Mapping[str, Json]:
    """Convert an AG-UI message to the inspector's form."""
    kept = {name: row[name] for name in ("id", "role", "content", "toolCallId") if name in row}
    calls = row.get("toolCalls")
    return {**kept, "toolCalls": [_call(call) for call in calls]} if isinstance(calls, list) and calls else kept


def _call(call: Json) -> Json:
    match call:
        case {"id": id, "function": {"name": name, "arguments": arguments}}:
            return {"id": id, "name": name, "args": arguments}
        case _:
            return call


async def inspect_copilotkit_events(request: Request, thread: ThreadName) -> KitEventsShape | Response:
    """Return the events of a thread's newest runs, up to the size of a response."""
    backend, owner = backend_of(request), user_of(request).name
    found = await backend.store.runs.list_page(owner, await own_thread(request, thread), None, MOST_RUNS)
    told, left = list[bytes](), MOST_BYTES
    for run in found.runs:
        bodies = await _bodies(backend, run, left)
        told, left = [*bodies, *told], left - sum(map(len, bodies))
        if left <= 0:
            break
    return Response(b'{"events":[' + b",".join(told) + b"]}", media_type=JSON_MEDIA)


async def _bodies(backend: Backend, run: StoredRun, most: int) -> Sequence[bytes]:
    render = event_renderer(backend, None).render
    events = await backend.store.events.list_after(run.id, 0, MOST_EVENTS, most)
    # Snapshot markers are skipped; the inspector has the messages.
    return [render(event.body) for event in events if read_view_snapshot(event.body) is None]


async def inspect_copilotkit_state(request: Request, thread: ThreadName) -> KitStateShape:
    """Return a thread's state."""
    store, owner = backend_of(request).store, user_of(request).name
    row = await store.threads.get(owner, await own_thread(request, thread))
    shared = await store.log.read_state(row.id)
    return {"state": load(shared.value) if shared else None}


MESSAGES_EXAMPLE: KitMessagesShape = {"messages": [{"id": "m1", "role": "user", "content": "Hi"}]}
EVENTS_EXAMPLE: KitEventsShape = {"events": [{"type": "RUN_STARTED", "threadId": THREAD, "runId": "run-001"}]}
STATE_EXAMPLE: KitStateShape = {"state": None}
ROUTES = (
    Route("GET", f"{ONE}/messages", inspect_copilotkit_messages, "copilotkit", errors=(404,)),
    Route("GET", f"{ONE}/events", inspect_copilotkit_events, "copilotkit", errors=(404,)),
    Route("GET", f"{ONE}/state", inspect_copilotkit_state, "copilotkit", errors=(404,)),
)
