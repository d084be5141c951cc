"""The route of history: one day of a thread (P13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Annotated, Literal, NotRequired, cast

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import Backend, backend_of, json_answer, user_of
from recto.api.parameters import day_of, in_query, zone_of
from recto.api.route import THREAD, TIME, Route
from recto.api.signed import urls_of
from recto.conversation.history import QUEUED, FileUrlSigner, history_row
from recto.conversation.input.input_rules import NO_UUID, UUID
from recto.conversation.json import Json
from recto.conversation.locale import DEFAULT_LOCALE
from recto.conversation.messages import File, UserMessage
from recto.errors import Refused
from recto.store.runs.queued import Queued
from recto.store.threads.history import HistoryDay, HistoryQuery

HISTORY = "/api/v1/agent/history"


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


HISTORY_EXAMPLE: HistoryShape = {
    "scope": "history_day",
    "threadId": THREAD,
    "day": "2026-05-14",
    "hasMore": True,
    "messages": [
        {"id": "m1", "seq": 1, "role": "user", "content": "Hi", "url": None, "files": [], "timestamp": TIME},
        {"id": "m2", "seq": 2, "role": "assistant", "content": "Hello", "uiSchema": None, "timestamp": TIME},
    ],
}


async def get_history(
    request: Request,
    thread: Annotated[str | None, in_query("The thread; else your latest.", alias="threadId")] = None,
    before: Annotated[str | None, in_query("Only days before this one, `YYYY-MM-DD`.")] = None,
    tz: Annotated[str | None, in_query("The zone whose days are meant, such as `Asia/Shanghai`.")] = None,
) -> Response:
    """Return the newest day of a thread with messages, and whether older ones exist."""
    if thread is not None and not UUID.fullmatch(thread):
        raise Refused(NO_UUID, where="threadId")
    backend, owner = backend_of(request), user_of(request).name
    query = HistoryQuery(
        thread=thread.lower() if thread else None,
        before=day_of(before, "before") if before is not None else None,
        zone=zone_of(tz, "tz") if tz is not None else UTC,
        queued_bytes=backend.bodies.queued_bytes,
    )
    found = await backend.store.history(owner, query)
    messages = [*found.messages, *(one.message for one in found.queued)]
    has_files = any(isinstance(part, File) for message in messages for part in message.parts)
    refs = await backend.store.file_refs(found.thread) if has_files and found.thread else ()
    url_of, locale = urls_of(backend, refs), await _locale(backend, owner, found)
    answer: HistoryShape = {
        "scope": "history_day",
        "threadId": found.thread,
        "day": found.day.isoformat() if found.day else None,
        "hasMore": found.has_more,
        "messages": [
            *(_with_status(history_row(one, url_of, locale), found.statuses) for one in found.messages),
            *(queued_row(one, url_of) for one in found.queued),
        ],
    }
    return json_answer(answer)


def queued_row(queued: Queued, url_of: FileUrlSigner) -> HistoryMessageShape:
    """Return a queued user message. It has no number yet."""
    row = history_row(queued.message, url_of) | {"status": QUEUED, "taskId": queued.task, "runId": queued.run}
    return cast("HistoryMessageShape", row)


def _with_status(row: dict[str, Json], statuses: Mapping[str, str]) -> HistoryMessageShape:
    status = statuses.get(str(row["id"]))
    return cast("HistoryMessageShape", row | {"status": status} if status else row)


async def _locale(backend: Backend, owner: str, found: HistoryDay) -> str:
    """Return the language of the thread's agent. User messages have no hints, so a thread of them needs none."""
    if found.thread is None or all(isinstance(message, UserMessage) for message in found.messages):
        return DEFAULT_LOCALE
    agent = backend.agents.get(await backend.store.thread_agent(owner, found.thread) or "")
    return agent.locale if agent else DEFAULT_LOCALE


ROUTES = (
    Route(
        method="GET",
        path=HISTORY,
        handler=get_history,
        tag="history",
        answer=HistoryShape,
        refusals=(404, 422),
        examples={"answer": HISTORY_EXAMPLE},
    ),
)
