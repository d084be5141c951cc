"""Thread routes of CopilotKit's thread list: list, rename, archive, delete.

Threads of other users do not exist here. Clients poll for changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field
from starlette.requests import Request
from typing_extensions import TypedDict

from recto.api.backend import backend_of, user_of
from recto.api.bodies import read_object
from recto.api.copilotkit.info import BASE, DEFAULT, ThreadName, kit_agent
from recto.api.parameters import in_query
from recto.api.route import THREAD, TIME, Route
from recto.api.runs.thread_names import own_thread
from recto.api.threads.routes import drop_thread
from recto.conversation.history import time_text
from recto.conversation.title import MOST, check_title
from recto.errors import WireError
from recto.store.threads.thread_rows import StoredThread, ThreadsQuery

THREADS = f"{BASE}/threads"
ONE = f"{THREADS}/{{thread}}"
# Maximum page size; the cursor leads to the rest.
MOST_LISTED = 100


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


ROW: KitThreadShape = {
    "id": THREAD,
    "name": "Plan my week",
    "agentId": DEFAULT,
    "organizationId": "",
    "createdById": "anna",
    "archived": False,
    "createdAt": TIME,
    "updatedAt": TIME,
    "lastRunAt": TIME,
}
LISTED: KitThreadsShape = {"threads": [ROW], "nextCursor": None}


async def list_copilotkit_threads(
    request: Request,
    agent: Annotated[str, in_query("The agent that answers in them.", alias="agentId")] = DEFAULT,
    cursor: Annotated[str | None, in_query("`nextCursor` of the page before.")] = None,
    limit: Annotated[int, in_query(f"How many; {MOST_LISTED} at most are told at once.", ge=1)] = 50,
    archived: Annotated[bool, in_query("Archived ones too.", alias="includeArchived")] = False,
) -> KitThreadsShape:
    """List your threads with an agent by latest activity."""
    backend, owner = backend_of(request), user_of(request).name
    query = ThreadsQuery(
        cursor=cursor,
        limit=min(limit, MOST_LISTED),
        agent=backend.agents.default if agent == DEFAULT else kit_agent(backend, agent).name,
        with_archived=archived,
    )
    found = await backend.store.threads.list_page(owner, query)
    rows = [_row(thread, agent, owner) for thread in found.threads]
    return {"threads": rows, "nextCursor": found.next}


async def change_copilotkit_thread(request: Request, thread: ThreadName) -> KitThreadShape:
    """Rename a thread, or change its archive state."""
    store, owner, body = backend_of(request).store, user_of(request).name, await read_object(request)
    archived = body.get("archived")
    if archived is not None and not isinstance(archived, bool):
        raise WireError(where="archived", problem="must be true or false")
    name = check_title(body["name"]) if body.get("name") is not None else None
    id = await own_thread(request, thread)
    found = await store.threads.get(owner, id)
    if name is not None:
        found = await store.threads.rename(owner, id, name)
    if archived is not None:
        found = await store.threads.archive(owner, id, is_archived=archived)
    return _row(found, found.agent or DEFAULT, owner)


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
)
