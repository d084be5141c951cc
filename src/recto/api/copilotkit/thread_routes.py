"""Thread routes of CopilotKit: its thread list (list, rename, archive, delete) and its inspector.

A user cannot see the threads of others. Clients poll for changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import backend_of, user_of
from recto.api.bodies import read_object
from recto.api.copilotkit.agent_routes import BASE, DEFAULT, ThreadName, find_kit_agent
from recto.api.route import JSON_MEDIA, Route, in_query
from recto.api.runs.admit import own_thread
from recto.api.runs.stream_join import event_renderer, render_context
from recto.api.threads.routes import drop_thread
from recto.conversation.events import read_view_snapshot
from recto.conversation.history import time_text
from recto.conversation.json import Json, load
from recto.conversation.log import view
from recto.conversation.message_snapshots import MessageRow, message_rows
from recto.conversation.title import MOST, check_title
from recto.errors import WireError
from recto.store.threads.thread_rows import StoredThread
from recto.store.threads.threads import ThreadsQuery

THREADS = f"{BASE}/threads"
ONE = f"{THREADS}/{{thread}}"
# Maximum page size. Further threads follow by cursor.
MOST_LISTED = 100
# Limits of an event response: runs, events per run, and bytes. The inspector renders all of it.
MOST_RUNS, MOST_EVENTS, MOST_BYTES = 20, 5_000, 2**20


class KitThreadShape(TypedDict):
    """A thread. Threads belong to a user, not to an organization."""

    id: str
    name: str | None
    agentId: str
    organizationId: str
    createdById: str
    archived: bool
    createdAt: str
    updatedAt: str
    lastRunAt: str


class KitThreadsShape(TypedDict):
    """Threads by latest activity. `nextCursor` is the cursor of the next page."""

    threads: Sequence[KitThreadShape]
    nextCursor: str | None


class KitArchivedShape(TypedDict):
    """The archived thread."""

    threadId: str
    archived: bool


class KitDeletedShape(TypedDict):
    """The deleted thread."""

    threadId: str
    deleted: bool


class KitThreadBody(BaseModel):
    """A new name, a new archive state, or both."""

    name: str | None = Field(default=None, min_length=1, max_length=MOST)
    archived: bool | None = None


class KitMessagesShape(TypedDict):
    """Messages, oldest first. A tool call has `id`, `name` and `args`."""

    messages: Sequence[Mapping[str, object]]


class KitEventsShape(TypedDict):
    """AG-UI events, oldest first."""

    events: Sequence[Mapping[str, object]]


class KitStateShape(TypedDict):
    """The state that agent and page share; null if there is none."""

    state: object


async def list_copilotkit_threads(
    request: Request,
    agent: Annotated[str, in_query("Return only threads with this agent.", alias="agentId")] = DEFAULT,
    cursor: Annotated[str | None, in_query("`nextCursor` of the previous page.")] = None,
    limit: Annotated[int, in_query(f"Maximum number of threads, up to {MOST_LISTED}.", ge=1)] = 50,
    archived: Annotated[bool, in_query("Include archived threads.", alias="includeArchived")] = False,
) -> KitThreadsShape:
    """List your threads with an agent by latest activity."""
    backend, owner = backend_of(request), user_of(request).name
    query = ThreadsQuery(
        cursor=cursor,
        limit=min(limit, MOST_LISTED),
        agent=backend.agents.default if agent == DEFAULT else find_kit_agent(backend.agents, agent).name,
        with_archived=archived,
    )
    page = await backend.store.threads.list_page(owner, query)
    return {"threads": [_row(thread, agent, owner) for thread in page.threads], "nextCursor": page.next}


async def change_copilotkit_thread(request: Request, thread: ThreadName) -> KitThreadShape:
    """Rename a thread, or change its archive state."""
    store, owner, body = backend_of(request).store, user_of(request).name, await read_object(request)
    archived = body.get("archived")
    if archived is not None and not isinstance(archived, bool):
        raise WireError(where="archived", problem="must be true or false")
    name = check_title(body["name"]) if body.get("name") is not None else None
    id = await own_thread(request, thread)
    row = await store.threads.get(owner, id)
    if name is not None:
        row = await store.threads.rename(owner, id, name)
    if archived is not None:
        row = await store.threads.archive(owner, id, is_archived=archived)
    return _row(row, row.agent or DEFAULT, owner)


async def archive_copilotkit_thread(request: Request, thread: ThreadName) -> KitArchivedShape:
    """Archive a thread. Lists hide it by default."""
    owner = user_of(request).name
    await backend_of(request).store.threads.archive(owner, await own_thread(request, thread), is_archived=True)
    return {"threadId": thread, "archived": True}


async def delete_copilotkit_thread(request: Request, thread: ThreadName) -> KitDeletedShape:
    """Delete a thread and its data permanently."""
    owner = user_of(request).name
    await drop_thread(backend_of(request), owner, await own_thread(request, thread))
    return {"threadId": thread, "deleted": True}


async def inspect_copilotkit_messages(request: Request, thread: ThreadName) -> KitMessagesShape:
    """Return a thread's messages for CopilotKit's inspector."""
    backend, owner = backend_of(request), user_of(request).name
    row = await backend.store.threads.get(owner, await own_thread(request, thread))
    context = await render_context(backend, row.id, row.agent)
    rows = await asyncio.to_thread(message_rows, view(await backend.store.log.read_after(row.id)), context)
    return {"messages": [inspector_message(message) for message in rows]}


def inspector_message(row: MessageRow) -> Mapping[str, Json]:
    """Convert an AG-UI message to the inspector's form."""
    fields = {name: row[name] for name in ("id", "role", "content", "toolCallId") if name in row}
    calls, kit_calls = row.get("toolCalls"), list[Json]()
    for call in calls if isinstance(calls, list) else ():
        match call:
            case {"id": id, "function": {"name": name, "arguments": arguments}}:
                kit_calls.append({"id": id, "name": name, "args": arguments})
            case _:
                kit_calls.append(call)
    return {**fields, "toolCalls": kit_calls} if kit_calls else fields


async def inspect_copilotkit_events(request: Request, thread: ThreadName) -> Response:
    """Return the events of a thread's newest runs, up to the size of a response."""
    backend, owner = backend_of(request), user_of(request).name
    page = await backend.store.runs.list_page(owner, await own_thread(request, thread), None, MOST_RUNS)
    bodies, room, render = list[bytes](), MOST_BYTES, event_renderer(backend, None).render
    for run in page.runs:
        events = await backend.store.events.list_after(run.id, 0, MOST_EVENTS, room)
        # Snapshot markers are skipped; the inspector has the messages.
        run_bodies = [render(event.body) for event in events if read_view_snapshot(event.body) is None]
        bodies, room = [*run_bodies, *bodies], room - sum(map(len, run_bodies))
        if room <= 0:
            break
    return Response(b'{"events":[' + b",".join(bodies) + b"]}", media_type=JSON_MEDIA)


async def inspect_copilotkit_state(request: Request, thread: ThreadName) -> KitStateShape:
    """Return a thread's state."""
    store, owner = backend_of(request).store, user_of(request).name
    row = await store.threads.get(owner, await own_thread(request, thread))
    state = await store.log.read_state(row.id)
    return {"state": load(state.value) if state else None}


def _row(thread: StoredThread, agent: str, owner: str) -> KitThreadShape:
    updated = time_text(thread.updated)
    return {
        "id": thread.id,
        "name": thread.title,
        "agentId": agent,
        "organizationId": "",
        "createdById": owner,
        "archived": thread.archived,
        "createdAt": time_text(thread.created),
        "updatedAt": updated,
        "lastRunAt": updated,
    }


ROUTES = (
    Route("GET", THREADS, list_copilotkit_threads, "copilotkit", errors=(404, 422)),
    Route("PATCH", ONE, change_copilotkit_thread, "copilotkit", body=KitThreadBody, errors=(404, 413, 422)),
    Route("POST", f"{ONE}/archive", archive_copilotkit_thread, "copilotkit", errors=(404,)),
    Route("DELETE", ONE, delete_copilotkit_thread, "copilotkit", errors=(404,)),
    Route("GET", f"{ONE}/messages", inspect_copilotkit_messages, "copilotkit", errors=(404,)),
    Route("GET", f"{ONE}/events", inspect_copilotkit_events, "copilotkit", errors=(404,), json=KitEventsShape),
    Route("GET", f"{ONE}/state", inspect_copilotkit_state, "copilotkit", errors=(404,)),
)
