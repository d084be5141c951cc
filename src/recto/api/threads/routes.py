"""Routes of threads: list, read, rename, delete, fork, their runs, and the daily savings of their user."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Annotated, cast

from pydantic import BaseModel, Field, JsonValue
from starlette.requests import Request
from typing_extensions import TypedDict

from recto.agents.agent import Agent
from recto.api.backend import Backend, RunService, backend_of, user_of
from recto.api.bodies import NUL, read_object
from recto.api.route import Cursor, PageLimit, Route, day_of, in_query
from recto.api.runs.admit import THREAD_PATH, THREADS, ThreadId, own_thread
from recto.api.runs.routes import RunShape, run_row
from recto.api.threads.rollback import copy_files
from recto.api.threads.thread_messages import HistoryMessageShape, queued_row
from recto.conversation.events import RunFinished, RunStarted, encode_event
from recto.conversation.history import time_text
from recto.conversation.input.input_entries import pending_calls
from recto.conversation.interrupts import REASON, interrupts_of, question
from recto.conversation.json import as_list, load
from recto.conversation.locale import DEFAULT_LOCALE
from recto.conversation.log import View
from recto.conversation.message_snapshots import RenderContext
from recto.conversation.messages import AssistantMessage
from recto.conversation.title import MOST, check_title
from recto.errors import NotFound, WireError
from recto.page.manifest_rows import RULE_NAMES, link_of
from recto.page.savings import FOLD
from recto.store.ports import StoredEvent
from recto.store.threads.thread_rows import StoppedRun, StoredThread
from recto.store.threads.threads import ForkOptions, ThreadsQuery
from recto.tools.workspace.workspaces import drop_workspace

SAVINGS = "/api/v1/agent/savings"
USUAL_DAYS = timedelta(days=29)
LONGEST_SEARCH, MOST_TOOLS = 200, 200
TitleSearch = Annotated[
    str | None, in_query("Return only threads with this text in their title, ignoring case.", max_length=LONGEST_SEARCH)
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
    agreed: list[str] | None = Field(default=None, max_length=MOST_TOOLS)


class ForkBody(BaseModel):
    """The user message to fork before; by default the end of the thread."""

    before: str | None = None
    title: str | None = Field(default=None, min_length=1, max_length=MOST)


class DeletedShape(TypedDict):
    """The deleted thread, and the task ids of its cancelled runs."""

    id: str
    stopped: Sequence[str]


class RuleSavings(TypedDict):
    """Savings of one fold rule in `calls` of an agent, in tokens and in billionths of the currency.

    `saved` is the price of the saved tokens, `cost` the price of rewriting the provider's cache for it; both are null
    without a known price. `ruleName` and `ruleLink` describe the rule.
    """

    agent: str
    rule: str
    ruleName: str | None
    ruleLink: str | None
    calls: int
    tokens: int
    saved: int | None
    cost: int | None


class PrefixBreaks(TypedDict):
    """Prompt-cache prefix breaks of an agent by cause, with the tokens sent again and their price."""

    agent: str
    cause: str
    breaks: int
    tokens: int
    cost: int | None


class SavingsShape(TypedDict):
    """Your folding savings between two days (UTC). Prices are in billionths of the currency."""

    since: str
    until: str
    currency: str
    rules: Sequence[RuleSavings]
    breaks: Sequence[PrefixBreaks]


async def list_threads(
    request: Request, cursor: Cursor = None, limit: PageLimit = 50, search: TitleSearch = None
) -> ThreadsShape:
    """List your threads by latest activity."""
    if search and NUL in search:
        raise WireError(where="search", problem="contains the character U+0000, which no title contains. Remove it")
    query = ThreadsQuery(cursor=cursor, limit=limit, search=search)
    page = await backend_of(request).store.threads.list_page(user_of(request).name, query)
    return {"threads": [thread_row(thread) for thread in page.threads], "next": page.next}


async def get_thread(request: Request, id: ThreadId) -> ThreadShape:
    """Return a thread, its active run, queued messages, open calls and shared state."""
    backend = backend_of(request)
    thread = await backend.store.threads.get(user_of(request).name, await own_thread(request, id))
    return await _thread_with_calls(backend, thread)


async def change_thread(request: Request, id: ThreadId) -> ThreadShape:
    """Set the title of a thread, which is then never generated again, or its tools that need no approval."""
    backend, body = backend_of(request), await read_object(request, b"{}")
    title = check_title(body.get("title")) if "title" in body or "agreed" not in body else None
    tools = as_list(body["agreed"], "agreed") if "agreed" in body else None
    if tools and (len(tools) > MOST_TOOLS or not all(isinstance(name, str) and NUL not in name for name in tools)):
        raise WireError(where="agreed", problem=f"must be a list of up to {MOST_TOOLS} tool names")
    owner, thread_id = user_of(request).name, await own_thread(request, id)
    thread = await backend.store.threads.get(owner, thread_id)
    if title is not None:
        thread = await backend.store.threads.rename(owner, thread_id, title)
    if tools is not None:
        names = list(dict.fromkeys(map(str, tools)))
        thread = await backend.store.threads.set_agreed_tools(owner, thread_id, names)
    return await _thread_with_calls(backend, thread)


async def delete_thread(request: Request, id: ThreadId) -> DeletedShape:
    """Delete a thread and its data permanently. Cancels its runs."""
    thread = await own_thread(request, id)
    stopped = await drop_thread(backend_of(request), user_of(request).name, thread)
    return {"id": thread, "stopped": [run.id for run in stopped]}


async def drop_thread(backend: Backend, owner: str, id: str) -> Sequence[StoppedRun]:
    """Delete a thread and its workspace, and end its runs and jobs. Returns the cancelled runs."""
    stopped = await backend.store.threads.delete(owner, id)
    stop(backend.runs, stopped)
    if backend.files.terminal:
        await backend.files.terminal.end_threads((id,))
    for folders in filter(None, (backend.files.workspaces, backend.files.snapshots)):
        await drop_workspace(folders.root, id)
    return stopped


async def fork_thread(request: Request, id: ThreadId) -> ThreadShape:
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
        title=check_title(title) if title is not None else None,
    )
    fork = await backend.store.threads.fork(user_of(request).name, options)
    await copy_files(backend, fork, options.thread, before)
    return await _thread_with_calls(backend, fork)


async def get_runs_of_thread(request: Request, id: ThreadId, cursor: Cursor = None, limit: PageLimit = 50) -> RunsShape:
    """List the runs of a thread, newest first; the active one is marked."""
    store = backend_of(request).store
    page = await store.runs.list_page(user_of(request).name, await own_thread(request, id), cursor, limit)
    rows: list[RunOfThread] = [{**run_row(run), "active": run.status == "running"} for run in page.runs]
    return {"runs": rows, "next": page.next}


async def get_savings(
    request: Request,
    since: Annotated[str | None, in_query("The first day, YYYY-MM-DD; by default 30 days ago.")] = None,
    until: Annotated[str | None, in_query("The last day, YYYY-MM-DD; by default today.")] = None,
    agent: Annotated[str | None, in_query("Return only savings of this agent.", max_length=64)] = None,
) -> SavingsShape:
    """Return your folding savings by rule and agent, and the prompt-cache breaks by cause."""
    backend = backend_of(request)
    last = day_of(until, "until") if until is not None else backend.clock().astimezone(UTC).date()
    first = day_of(since, "since") if since is not None else max(last, date.min + USUAL_DAYS) - USUAL_DAYS
    savings = await backend.store.users.read_savings(user_of(request).name, first, last, agent)
    return {
        "since": first.isoformat(),
        "until": last.isoformat(),
        "currency": backend.models.prices.currency,
        "rules": [
            {
                "agent": one.agent,
                "rule": one.name,
                "ruleName": RULE_NAMES.get(one.name),
                "ruleLink": link_of(one.name) if one.name in RULE_NAMES else None,
                "calls": one.calls,
                "tokens": one.tokens,
                "saved": one.saved,
                "cost": one.cost,
            }
            for one in savings
            if one.kind == FOLD
        ],
        "breaks": [
            {"agent": one.agent, "cause": one.name, "breaks": one.calls, "tokens": one.tokens, "cost": one.cost}
            for one in savings
            if one.kind != FOLD
        ],
    }


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


def stop(service: RunService, runs: Sequence[StoppedRun]) -> None:
    """Cancel deleted runs, and end the streams of their readers."""
    for run in runs:
        service.cancel(run.id)
        begin = () if run.last_event else encode_event(RunStarted(thread=run.thread, run=run.name))
        end = encode_event(RunFinished(thread=run.thread, run=run.name, outcome="cancelled"))
        # The events are not stored. The run is deleted, so their numbers are never reused.
        events = enumerate((*begin, *end), start=run.last_event + 1)
        service.hub.publish(run.id, [StoredEvent(number=number, body=body) for number, body in events])


async def _thread_with_calls(backend: Backend, thread: StoredThread) -> ThreadShape:
    refs = await backend.store.files.list_refs(thread.id)
    queued = await backend.store.messages.list_queued(thread.id, backend.bodies.queued_bytes)
    # Report no pending calls while a run is active, because the run handles them.
    turn = View(entries=tuple(await backend.store.log.read_turn(thread.id)) if thread.active is None else ())
    state = await backend.store.log.read_state(thread.id)
    url_of = backend.files.urls(refs)
    agent = backend.agents.by_name.get(thread.agent or backend.agents.default)
    tools = backend.agents.tools_of(thread.agent).own_names()
    context = RenderContext(url_of=url_of, refs=refs, own_tools=tools, locale=agent.locale if agent else DEFAULT_LOCALE)
    return {
        **thread_row(thread),
        "agreed": thread.agreed,
        "pendingCalls": _pending_calls(turn, context, agent, backend.clock()),
        "interrupts": _interrupts(turn, context.locale, backend.clock()),
        "queued": [queued_row(one, url_of) for one in queued],
        "canUndo": await backend.store.log.can_undo(thread.id),
        "state": cast("JsonValue", load(state.value)) if state else None,
    }


def _pending_calls(turn: View, context: RenderContext, agent: Agent | None, now: datetime) -> Sequence[PendingCall]:
    """Return the client calls whose results the next run accepts.

    Their arguments contain URLs in place of file ids, as in events (F8).
    """
    replies = [message.time for message in turn.messages if isinstance(message, AssistantMessage)]
    expires = None
    # If the agent was deleted, calls have no deadline.
    if agent and replies and replies[-1]:
        deadline = replies[-1] + timedelta(seconds=agent.limits.client_seconds)
        if now > deadline:
            return ()
        expires = time_text(deadline)
    return [
        {"id": call.id, "name": call.name, "arguments": context.arguments_of(call), "expiresAt": expires}
        for call in pending_calls(turn, context.own_tools)
    ]


def _interrupts(turn: View, locale: str, now: datetime) -> Sequence[InterruptRow]:
    """Return the calls that wait for approval."""
    return [
        {
            "id": one.id,
            "toolCallId": one.call.id,
            "tool": one.call.name,
            "arguments": one.call.arguments,
            "reason": REASON,
            "message": question(one, locale),
            "created": time_text(one.asked_at) if one.asked_at else None,
            "expiresAt": time_text(one.expires_at) if one.expires_at else None,
            "runId": one.run,
        }
        for one in interrupts_of(turn)
        if one.is_waiting and not one.is_late(now)
    ]


post = partial(Route, "POST", tag="threads")
ROUTES = (
    Route("GET", THREADS, list_threads, "threads", errors=(422,)),
    Route("GET", THREAD_PATH, get_thread, "threads", errors=(404,)),
    Route("PATCH", THREAD_PATH, change_thread, "threads", body=ThreadBody, errors=(404, 413, 422)),
    Route("DELETE", THREAD_PATH, delete_thread, "threads", errors=(404,)),
    post(f"{THREAD_PATH}/fork", fork_thread, status=201, body=ForkBody, needs_body=False, errors=(404, 413, 422)),
    Route("GET", f"{THREAD_PATH}/runs", get_runs_of_thread, "threads", errors=(404, 422)),
    Route("GET", SAVINGS, get_savings, "calls", errors=(422,)),
)
