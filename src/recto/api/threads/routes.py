"""Routes of threads: list, read, rename, delete, fork, and their runs. Threads of other users do not exist here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, cast

from pydantic import BaseModel, Field, JsonValue
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import Backend, backend_of, json_answer, user_of
from recto.api.bodies import NUL, read_object
from recto.api.parameters import Cursor, PageLimit, in_path, in_query
from recto.api.route import TASK, THREAD, TIME, Route
from recto.api.runs.client_threads import own_thread
from recto.api.runs.routes import RUN_EXAMPLE, RunShape, run_row
from recto.api.signed import urls_of
from recto.api.threads.history import HistoryMessageShape, queued_row
from recto.api.threads.kept_files import copy_files
from recto.conversation.attachment import FileRef
from recto.conversation.events import RunFinished, RunStarted, encode_event
from recto.conversation.history import time_text
from recto.conversation.input.take_input import pending_calls
from recto.conversation.interrupts import REASON, interrupts_of, question
from recto.conversation.json import Json, as_list, load
from recto.conversation.locale import DEFAULT_LOCALE
from recto.conversation.log import View
from recto.conversation.messages import AssistantMessage
from recto.conversation.snapshots.agui_messages import RenderContext
from recto.conversation.title import MOST, given_title
from recto.errors import NotFound, WireError
from recto.store.ports import StoredEvent
from recto.store.threads.forks import ForkOptions
from recto.store.threads.thread_rows import Stopped, StoredThread, ThreadsQuery
from recto.tools.workspace.workspaces import drop_workspace

THREADS = "/api/v1/agent/threads"
ONE = f"{THREADS}/{{id}}"
LONGEST_SEARCH, MOST_AGREED = 200, 200
ThreadId = Annotated[str, in_path("The thread's id, or what an AG-UI client calls it.")]
TitleSearch = Annotated[
    str | None, in_query("Only threads with this in their title, in any case.", max_length=LONGEST_SEARCH)
]


class PendingCall(TypedDict):
    """A client tool call that waits for its result until `expiresAt`. `arguments` is the model's text."""

    id: str
    name: str
    arguments: str
    expiresAt: str | None


class InterruptRow(TypedDict):
    """A call that waits for approval until `expiresAt`. `arguments` is the model's text.

    `runId` is the run that made it.
    """

    id: str
    toolCallId: str
    tool: str
    arguments: str
    reason: str
    message: str
    created: str | None
    expiresAt: str | None
    runId: str


class ThreadRow(TypedDict):
    """A thread. `activeRun` is the task id of its active run."""

    id: str
    title: str | None
    agent: str | None
    skill: str | None
    scenario: str | None
    created: str
    updated: str
    activeRun: str | None


class ThreadShape(ThreadRow):
    """A thread with its open calls, queued messages, shared state, and whether a rollback can be undone.

    Tools in `agreed` need no approval in it.
    """

    agreed: Sequence[str]
    pendingCalls: Sequence[PendingCall]
    interrupts: Sequence[InterruptRow]
    queued: Sequence[HistoryMessageShape]
    canUndo: bool
    state: JsonValue


class ThreadsShape(TypedDict):
    """Threads by latest activity. `next` is the cursor of the next page."""

    threads: Sequence[ThreadRow]
    next: str | None


class RunOfThread(RunShape):
    """A run, and whether it is active."""

    active: bool


class RunsShape(TypedDict):
    """Runs, newest first."""

    runs: Sequence[RunOfThread]
    next: str | None


class ThreadBody(BaseModel):
    """A new title, or the tools that need no approval any more in this thread."""

    title: str | None = Field(default=None, min_length=1, max_length=MOST)
    agreed: list[str] | None = Field(default=None, max_length=MOST_AGREED)


class ForkBody(BaseModel):
    """The user message to fork before; by default the end of the thread."""

    before: str | None = None
    title: str | None = Field(default=None, min_length=1, max_length=MOST)


class DeletedShape(TypedDict):
    """The deleted thread, and the task ids of its cancelled runs."""

    id: str
    stopped: Sequence[str]


THREAD_ROW: ThreadRow = {
    "id": THREAD,
    "title": "Plan my week",
    "agent": "vibe",
    "skill": None,
    "scenario": None,
    "created": TIME,
    "updated": TIME,
    "activeRun": None,
}
PENDING_EXAMPLE: PendingCall = {"id": "c1", "name": "pick_date", "arguments": "{}", "expiresAt": TIME}
INTERRUPT_EXAMPLE: InterruptRow = {
    "id": "01990b1e-7a00-7c5e-8a57-1f0c2b9d4e11",
    "toolCallId": "c2",
    "tool": "send",
    "arguments": '{"text": "Hello"}',
    "reason": REASON,
    "message": "May send be called with these arguments?",
    "created": TIME,
    "expiresAt": TIME,
    "runId": "run-001",
}
THREAD_EXAMPLE: ThreadShape = {
    **THREAD_ROW,
    "agreed": [],
    "pendingCalls": [PENDING_EXAMPLE],
    "interrupts": [INTERRUPT_EXAMPLE],
    "queued": [],
    "canUndo": False,
    "state": None,
}
THREADS_EXAMPLE: ThreadsShape = {"threads": [THREAD_ROW], "next": None}
RUNS_EXAMPLE: RunsShape = {"runs": [{**RUN_EXAMPLE, "active": False}], "next": None}
DELETED_EXAMPLE: DeletedShape = {"id": THREAD, "stopped": [TASK]}


async def list_threads(
    request: Request, cursor: Cursor = None, limit: PageLimit = 50, search: TitleSearch = None
) -> Response:
    """List your threads by latest activity."""
    if search and NUL in search:
        raise WireError(where="search", problem="holds the character U+0000, which no title has; take it out")
    query = ThreadsQuery(cursor=cursor, limit=limit, search=search)
    found = await backend_of(request).store.list_threads(user_of(request).name, query)
    answer: ThreadsShape = {"threads": [thread_row(thread) for thread in found.threads], "next": found.next}
    return json_answer(answer)


async def get_thread(request: Request, id: ThreadId) -> Response:
    """Return a thread, its active run, queued messages, open calls and shared state."""
    backend = backend_of(request)
    return await _answer(backend, await backend.store.get_thread(user_of(request).name, await own_thread(request, id)))


async def change_thread(request: Request, id: ThreadId) -> Response:
    """Set the title of a thread, which is then never generated again, or its tools that need no approval."""
    backend, body = backend_of(request), await read_object(request, b"{}")
    title = given_title(body.get("title")) if "title" in body or "agreed" not in body else None
    agreed = _agreed(body["agreed"]) if "agreed" in body else None
    owner, known = user_of(request).name, await own_thread(request, id)
    thread = await backend.store.get_thread(owner, known)
    if title is not None:
        thread = await backend.store.rename(owner, known, title)
    if agreed is not None:
        thread = await backend.store.agree(owner, known, agreed)
    return await _answer(backend, thread)


def _agreed(names: Json) -> list[str]:
    found = as_list(names, "agreed")
    if len(found) > MOST_AGREED or not all(isinstance(name, str) and NUL not in name for name in found):
        raise WireError(where="agreed", problem=f"must be names of tools, {MOST_AGREED} at the most")
    return [str(name) for name in dict.fromkeys(map(str, found))]


async def delete_thread(request: Request, id: ThreadId) -> Response:
    """Delete a thread and its data permanently. Cancels its runs."""
    known = await own_thread(request, id)
    stopped = await drop_thread(backend_of(request), user_of(request).name, known)
    answer: DeletedShape = {"id": known, "stopped": [run.id for run in stopped]}
    return json_answer(answer)


async def drop_thread(backend: Backend, owner: str, id: str) -> Sequence[Stopped]:
    """Delete a thread and its workspace, and end its runs and jobs. Returns the cancelled runs."""
    stopped = await backend.store.delete_thread(owner, id)
    stop(backend, stopped)
    if backend.terminal:
        await backend.terminal.end_threads((id,))
    if backend.workspaces:
        await drop_workspace(backend.workspaces.root, id)
    if backend.snapshots:
        await drop_workspace(backend.snapshots.root, id)
    return stopped


async def fork_thread(request: Request, id: ThreadId) -> Response:
    """Create a new thread from the visible messages of this one, optionally up to a user message."""
    backend, body = backend_of(request), await read_object(request, b"{}")
    before, title = body.get("before"), body.get("title")
    if not (before is None or isinstance(before, str)):
        raise WireError(where="before", problem="must be the id of a user message")
    if before is not None and NUL in before:
        raise NotFound(what="user message", id=before)
    options = ForkOptions(
        thread=await own_thread(request, id),
        id=backend.new_id(),
        now=backend.clock(),
        before=before,
        title=given_title(title) if title is not None else None,
    )
    forked = await backend.store.fork(user_of(request).name, options)
    await copy_files(backend, forked, options.thread, before)
    return await _answer(backend, forked, 201)


async def get_runs_of_thread(request: Request, id: ThreadId, cursor: Cursor = None, limit: PageLimit = 50) -> Response:
    """List the runs of a thread, newest first; the active one is marked."""
    store = backend_of(request).store
    found = await store.runs_of_thread(user_of(request).name, await own_thread(request, id), cursor, limit)
    rows: list[RunOfThread] = [{**run_row(run), "active": run.status == "running"} for run in found.runs]
    answer: RunsShape = {"runs": rows, "next": found.next}
    return json_answer(answer)


def thread_row(thread: StoredThread) -> ThreadRow:
    """Return a thread as clients see it."""
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
    """Cancel deleted runs, and end the streams of their readers."""
    for run in stopped:
        backend.cancel(run.id)
        begin = () if run.last_event else encode_event(RunStarted(thread=run.thread, run=run.name))
        end = encode_event(RunFinished(thread=run.thread, run=run.name, outcome="cancelled"))
        # Not stored: the run is deleted, so its event numbers are never reused.
        numbered = enumerate((*begin, *end), start=run.last_event + 1)
        backend.hub.publish(run.id, [StoredEvent(number=number, body=body) for number, body in numbered])


async def _answer(backend: Backend, thread: StoredThread, status: int = 200) -> Response:
    refs = await backend.store.file_refs(thread.id)
    url_of, queued = urls_of(backend, refs), await backend.store.queued(thread.id, backend.bodies.queued_bytes)
    # While a run is active, it handles its calls itself.
    seen = View(entries=tuple(await backend.store.turn(thread.id)) if thread.active is None else ())
    shared = await backend.store.state(thread.id)
    answer: ThreadShape = {
        **thread_row(thread),
        "agreed": thread.agreed,
        "pendingCalls": _pending(backend, thread, refs, seen),
        "interrupts": _interrupts(backend, thread, seen),
        "queued": [queued_row(one, url_of) for one in queued],
        "canUndo": await backend.store.can_undo(thread.id),
        "state": cast("JsonValue", load(shared.value)) if shared else None,
    }
    return json_answer(answer, status)


def _pending(backend: Backend, thread: StoredThread, refs: Sequence[FileRef], seen: View) -> Sequence[PendingCall]:
    """Return the client calls whose results the next run accepts."""
    own = backend.tool_names.get(thread.agent or "", frozenset())
    end = _expiry(backend, thread, seen)
    if end is not None and backend.clock() > end:
        return ()
    expires = time_text(end) if end is not None else None
    # As in events: with urls instead of file ids (F8).
    files = RenderContext(url_of=urls_of(backend, refs), refs=refs, own_tools=own)
    return [
        {"id": call.id, "name": call.name, "arguments": files.arguments_of(call), "expiresAt": expires}
        for call in pending_calls(seen, own)
    ]


def _interrupts(backend: Backend, thread: StoredThread, seen: View) -> Sequence[InterruptRow]:
    """Return the calls that wait for approval."""
    agent, now = backend.agents.get(thread.agent or backend.agent), backend.clock()
    waiting = [one for one in interrupts_of(seen) if one.waits and not one.is_late(now)]
    return [
        {
            "id": one.id,
            "toolCallId": one.call.id,
            "tool": one.call.name,
            "arguments": one.call.arguments,
            "reason": REASON,
            "message": question(one, agent.locale if agent else DEFAULT_LOCALE),
            "created": time_text(one.asked) if one.asked else None,
            "expiresAt": time_text(one.expires) if one.expires else None,
            "runId": one.run,
        }
        for one in waiting
    ]


def _expiry(backend: Backend, thread: StoredThread, seen: View) -> datetime | None:
    """Return the time until which results are accepted; None if the agent no longer exists."""
    replies = [message.time for message in seen.messages if isinstance(message, AssistantMessage)]
    agent = backend.agents.get(thread.agent or backend.agent)
    if not (agent and replies and replies[-1]):
        return None
    return replies[-1] + timedelta(seconds=agent.limits.client_seconds)


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
        handler=change_thread,
        tag="threads",
        body=ThreadBody,
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
