"""Routes of threads: list, look at, rename, delete, fork, and their runs. Somebody else's thread is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Path, Query
from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import Backend, backend_of, json_answer, user_of
from recto.api.bodies import NUL, read_body, run_row
from recto.api.route import Route
from recto.api.signed import urls_of
from recto.api.threads.history import queued_row
from recto.api.threads.thread_shapes import (
    DELETED_EXAMPLE,
    RUNS_EXAMPLE,
    THREAD_EXAMPLE,
    THREADS_EXAMPLE,
    DeletedShape,
    ForkBody,
    RunsShape,
    ThreadShape,
    ThreadsShape,
    TitleBody,
)
from recto.conversation.attachment import FileRef
from recto.conversation.events import RunFinished, RunStarted, encode_event
from recto.conversation.history import time_text
from recto.conversation.input.input_rules import UUID
from recto.conversation.input.take_input import pending_calls
from recto.conversation.json import Json, load_object
from recto.conversation.log import View
from recto.conversation.messages import AssistantMessage
from recto.conversation.replay import RenderContext
from recto.conversation.title import given_title
from recto.errors import NotFound, WireError
from recto.store.ports import StoredEvent
from recto.store.threads.forks import ForkOptions
from recto.store.threads.thread_rows import Stopped, StoredThread, ThreadsQuery
from recto.tools.workspace.workspaces import drop_workspace

THREADS = "/api/v1/agent/threads"
LONGEST_SEARCH = 200
ThreadId = Annotated[str, Path(description="The thread's id, a UUID.")]
Cursor = Annotated[str | None, Query(description="`next` of the page before.")]
PageLimit = Annotated[int, Query(ge=1, le=100, description="How many at most.")]
TitleSearch = Annotated[
    str | None, Query(max_length=LONGEST_SEARCH, description="Only threads with this in their title, in any case.")
]


async def list_threads(
    request: Request, cursor: Cursor = None, limit: PageLimit = 50, search: TitleSearch = None
) -> Response:
    """Your threads, newest activity first."""
    if search and NUL in search:
        raise WireError(where="search", problem="holds the character U+0000, which no title has; take it out")
    query = ThreadsQuery(cursor=cursor, limit=limit, search=search)
    found = await backend_of(request).store.list_threads(user_of(request).name, query)
    return json_answer({"threads": [thread_row(thread) for thread in found.threads], "next": found.next})


async def get_thread(request: Request, id: ThreadId) -> Response:
    """A thread, the run at work on it, messages that wait for their turn, and calls that wait for your results."""
    backend = backend_of(request)
    return await _answer(backend, await backend.store.get_thread(user_of(request).name, thread_id(id)))


async def rename_thread(request: Request, id: ThreadId) -> Response:
    """Give a thread a title. It is never changed by anybody else again."""
    backend, body = backend_of(request), await _object(request)
    title = given_title(body.get("title"))
    return await _answer(backend, await backend.store.rename(user_of(request).name, thread_id(id), title))


async def delete_thread(request: Request, id: ThreadId) -> Response:
    """Delete a thread with all there is of it, for good. Runs at work on it are stopped."""
    backend, known = backend_of(request), thread_id(id)
    stopped = await backend.store.delete_thread(user_of(request).name, known)
    stop(backend, stopped)
    if backend.workspaces:
        await drop_workspace(backend.workspaces, known)
    return json_answer({"id": known, "stopped": [run.id for run in stopped]})


async def fork_thread(request: Request, id: ThreadId) -> Response:
    """Make a new thread of what is seen of this one, up to a user message where one is named."""
    backend, body = backend_of(request), await _object(request)
    before, title = body.get("before"), body.get("title")
    if not (before is None or isinstance(before, str)):
        raise WireError(where="before", problem="must be the id of a user message")
    if before is not None and NUL in before:
        raise NotFound(what="user message", id=before)
    options = ForkOptions(
        thread=thread_id(id),
        id=backend.new_id(),
        now=backend.clock(),
        before=before,
        title=given_title(title) if title is not None else None,
    )
    return await _answer(backend, await backend.store.fork(user_of(request).name, options), 201)


async def get_runs_of_thread(request: Request, id: ThreadId, cursor: Cursor = None, limit: PageLimit = 50) -> Response:
    """The runs of a thread, newest first; the one at work is marked."""
    store = backend_of(request).store
    found = await store.runs_of_thread(user_of(request).name, thread_id(id), cursor, limit)
    rows: list[Json] = [{**run_row(run), "active": run.status == "running"} for run in found.runs]
    return json_answer({"runs": rows, "next": found.next})


def thread_id(id: str) -> str:
    """The id of a thread as it is stored. What is no UUID is no thread's."""
    if not UUID.fullmatch(id):
        raise NotFound(what="thread", id=id)
    return id.lower()


def thread_row(thread: StoredThread) -> Mapping[str, Json]:
    """A thread as clients see it."""
    return {
        "id": thread.id,
        "title": thread.title,
        "agent": thread.agent,
        "skill": thread.skill,
        "scenario": thread.scenario,
        "created": time_text(thread.created),
        "updated": time_text(thread.updated),
        "activeRun": thread.active,
    }


def stop(backend: Backend, stopped: Sequence[Stopped]) -> None:
    """End what is at work on runs that are gone, and what their readers wait for."""
    for run in stopped:
        backend.cancel(run.id)
        begin = () if run.last_event else encode_event(RunStarted(thread=run.thread, run=run.name))
        end = encode_event(RunFinished(thread=run.thread, run=run.name, outcome="cancelled"))
        # Not stored: there is no run any more that could use the numbers again.
        numbered = enumerate((*begin, *end), start=run.last_event + 1)
        backend.hub.publish(run.id, [StoredEvent(number=number, body=body) for number, body in numbered])


async def _answer(backend: Backend, thread: StoredThread, status: int = 200) -> Response:
    refs = await backend.store.file_refs(thread.id)
    url_of, queued = urls_of(backend, refs), await backend.store.queued(thread.id, backend.bodies.queued_bytes)
    # While a run is at work, calls are its own to wait for or to answer.
    calls = await _pending(backend, thread, refs) if thread.active is None else ()
    waiting = [queued_row(one, url_of) for one in queued]
    return json_answer({**thread_row(thread), "pendingCalls": calls, "queued": waiting}, status)


async def _pending(backend: Backend, thread: StoredThread, refs: Sequence[FileRef]) -> Sequence[Json]:
    """The calls the next run may still bring results of."""
    own = backend.tool_names.get(thread.agent or "", frozenset())
    seen = View(entries=tuple(await backend.store.turn(thread.id)))
    end = _expiry(backend, thread, seen)
    if end is not None and backend.clock() > end:
        return ()
    expires = time_text(end) if end is not None else None
    # As the client's tools get them in events: with urls in the place of file ids (F8).
    files = RenderContext(url_of=urls_of(backend, refs), refs=refs, own_tools=own)
    return [
        {"id": call.id, "name": call.name, "arguments": files.arguments_of(call), "expiresAt": expires}
        for call in pending_calls(seen, own)
    ]


def _expiry(backend: Backend, thread: StoredThread, seen: View) -> datetime | None:
    """Until when results are taken; None where nobody knows the agent any more."""
    replies = [message.time for message in seen.messages if isinstance(message, AssistantMessage)]
    agent = backend.agents.get(thread.agent or backend.agent)
    if not (agent and replies and replies[-1]):
        return None
    return replies[-1] + timedelta(seconds=agent.limits.client_seconds)


async def _object(request: Request) -> Mapping[str, Json]:
    found = load_object(await read_body(request, what="Request body") or b"{}")
    if found is None:
        raise WireError(where="body", problem="must be a JSON object")
    return found


ONE = f"{THREADS}/{{id}}"
ROUTES = (
    Route(
        method="GET",
        path=THREADS,
        handler=list_threads,
        tag="threads",
        answer=ThreadsShape,
        refusals=(422,),
        examples={"answer": THREADS_EXAMPLE},
    ),
    Route(
        method="GET",
        path=ONE,
        handler=get_thread,
        tag="threads",
        answer=ThreadShape,
        refusals=(404,),
        examples={"answer": THREAD_EXAMPLE},
    ),
    Route(
        method="PATCH",
        path=ONE,
        handler=rename_thread,
        tag="threads",
        body=TitleBody,
        answer=ThreadShape,
        refusals=(404, 413, 422),
        examples={"body": {"title": "Plan my week"}, "answer": THREAD_EXAMPLE},
    ),
    Route(
        method="DELETE",
        path=ONE,
        handler=delete_thread,
        tag="threads",
        answer=DeletedShape,
        refusals=(404,),
        examples={"answer": DELETED_EXAMPLE},
    ),
    Route(
        method="POST",
        path=f"{ONE}/fork",
        handler=fork_thread,
        tag="threads",
        status=201,
        body=ForkBody,
        needs_body=False,
        answer=ThreadShape,
        refusals=(404, 413, 422),
        examples={"body": {"before": "msg-002"}, "answer": THREAD_EXAMPLE},
    ),
    Route(
        method="GET",
        path=f"{ONE}/runs",
        handler=get_runs_of_thread,
        tag="threads",
        answer=RunsShape,
        refusals=(404, 422),
        examples={"answer": RUNS_EXAMPLE},
    ),
)
