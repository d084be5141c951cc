"""Routes that read messages: a thread in AG-UI form (P17), and one day of a thread (P13)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from functools import partial
from typing import Annotated, Literal, NotRequired, cast

from starlette.requests import Request
from typing_extensions import TypedDict

from recto.api.backend import backend_of, user_of
from recto.api.bodies import NUL
from recto.api.route import Route, day_of, in_query, zone_of
from recto.api.runs.admit import THREAD_PATH, ThreadId, own_thread
from recto.api.runs.stream_join import render_context
from recto.conversation.history import QUEUED, FileUrlSigner, history_row
from recto.conversation.input.input_rules import NO_UUID, UUID
from recto.conversation.locale import DEFAULT_LOCALE
from recto.conversation.log import View
from recto.conversation.message_snapshots import detailed_rows, message_rows
from recto.conversation.messages import File, UserMessage
from recto.errors import InvalidRequest, WireError
from recto.store.threads.history import HistoryQuery
from recto.store.threads.messages import NOT_VISIBLE, MessagesQuery
from recto.store.threads.queued_messages import QueuedMessage

HISTORY = "/api/v1/agent/history"
MOST = 1_000


class HistoryFile(TypedDict):
    """A file of a user message."""

    id: str | None
    name: str | None
    type: Literal["document", "image", "audio", "video"]
    mimeType: str | None
    url: str


class HistoryMessageShape(TypedDict):
    """A message. User messages have `url` and `files`, others `uiSchema`.

    `status` is `queued` for a message whose run has not started (no `seq` yet, but `taskId` and `runId`), and
    `interrupted` or the finish reason for an incomplete assistant message.
    """

    id: str
    seq: int | None
    role: Literal["user", "assistant", "tool"]
    content: str
    url: NotRequired[str | None]
    files: NotRequired[Sequence[HistoryFile]]
    uiSchema: NotRequired[Mapping[str, object] | None]
    timestamp: str
    status: NotRequired[Literal["queued", "interrupted", "length", "refused", "filtered"] | None]
    taskId: NotRequired[str | None]
    runId: NotRequired[str | None]


class HistoryShape(TypedDict):
    """One day of a thread."""

    scope: Literal["history_day"]
    threadId: str | None
    day: str | None
    hasMore: bool
    messages: Sequence[HistoryMessageShape]


class MessagesShape(TypedDict):
    """Messages of a thread in AG-UI form, oldest first. An incomplete reply also has a `status`.

    With `details`, rows have `timestamp` and the task id of their `run`, user messages have `files` by model-facing id,
    and some have a `uiSchema`. `next` is the `since` of the next page; `activeRun` is the task id of the active run.
    """

    threadId: str
    messages: Sequence[Mapping[str, object]]
    next: str | None
    activeRun: str | None


async def get_history(
    request: Request,
    thread: Annotated[str | None, in_query("The thread; by default your latest.", alias="threadId")] = None,
    before: Annotated[str | None, in_query("Return only days before this one, `YYYY-MM-DD`.")] = None,
    tz: Annotated[str | None, in_query("The time zone of the days, such as `Asia/Shanghai`.")] = None,
) -> HistoryShape:
    """Return the newest day of a thread with messages, and whether older ones exist."""
    if thread is not None and not UUID.fullmatch(thread):
        raise InvalidRequest(NO_UUID, where="threadId")
    backend, owner = backend_of(request), user_of(request).name
    query = HistoryQuery(
        thread=thread.lower() if thread else None,
        before=day_of(before, "before") if before is not None else None,
        zone=zone_of(tz, "tz") if tz is not None else UTC,
        queued_bytes=backend.bodies.queued_bytes,
    )
    page = await backend.store.messages.read_day(owner, query)
    messages = [*page.messages, *(one.message for one in page.queued)]
    has_files = any(isinstance(part, File) for message in messages for part in message.parts)
    refs = await backend.store.files.list_refs(page.thread) if has_files and page.thread else ()
    url_of, locale = backend.files.urls(refs), DEFAULT_LOCALE
    # Hints are in the language of the thread's agent. User messages have no hints.
    if page.thread and not all(isinstance(message, UserMessage) for message in page.messages):
        locale = backend.agents.locale(await backend.store.threads.get_agent(owner, page.thread))
    rows = [history_row(message, url_of, locale) for message in page.messages]
    status_rows = [{**row, "status": status} if (status := page.statuses.get(str(row["id"]))) else row for row in rows]
    return {
        "scope": "history_day",
        "threadId": page.thread,
        "day": page.day.isoformat() if page.day else None,
        "hasMore": page.has_more,
        "messages": [
            *cast("Sequence[HistoryMessageShape]", status_rows),
            *(queued_row(one, url_of) for one in page.queued),
        ],
    }


def queued_row(queued: QueuedMessage, url_of: FileUrlSigner) -> HistoryMessageShape:
    """Return the row of a queued user message, which has no number yet."""
    row = history_row(queued.message, url_of) | {"status": QUEUED, "taskId": queued.task, "runId": queued.run}
    return cast("HistoryMessageShape", row)


async def get_messages(
    request: Request,
    id: ThreadId,
    since: Annotated[str | None, in_query("Return only messages after this message id.")] = None,
    limit: Annotated[int, in_query("Maximum number of messages.", ge=1, le=MOST)] = MOST,
    details: Annotated[bool, in_query("Add fields that AG-UI lacks: times, runs, cards, file ids.")] = False,
) -> MessagesShape:
    """Return the visible messages of a thread, or those after an id. Output of an active run is in its events."""
    if since is not None and NUL in since:
        raise WireError(where="since", problem=NOT_VISIBLE.format(id=since[:64]))
    backend, thread = backend_of(request), await own_thread(request, id)
    query = MessagesQuery(thread=thread, since=since, limit=limit, most_bytes=backend.bodies.snapshot_bytes)
    page = await backend.store.messages.read_page(user_of(request).name, replace(query, with_runs=details))
    context = await render_context(backend, thread, page.thread.agent)
    # The query has limited the page already. A second limit would lose messages.
    context = replace(context, most_bytes=None)
    render = partial(detailed_rows, runs=page.runs) if details else message_rows
    rows = await asyncio.to_thread(render, View(entries=page.entries), context)
    return {"threadId": thread, "messages": rows, "next": page.next, "activeRun": page.thread.active}


ROUTES = (
    Route("GET", f"{THREAD_PATH}/messages", get_messages, "threads", errors=(404, 422)),
    Route("GET", HISTORY, get_history, "history", errors=(404, 422)),
)
