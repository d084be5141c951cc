"""What threads, history and calls look like, for the description of the API. Rows are written elsewhere."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from recto.api.shapes import RUN_EXAMPLE, TASK, THREAD, TIME, RunShape
from recto.conversation.json import Json

THREAD_ROW: dict[str, Json] = {
    "id": THREAD,
    "title": "Plan my week",
    "agent": "vibe",
    "skill": None,
    "scenario": None,
    "created": TIME,
    "updated": TIME,
    "activeRun": None,
}
PENDING_EXAMPLE: Json = {"id": "c1", "name": "pick_date", "arguments": "{}", "expiresAt": TIME}
THREAD_EXAMPLE: Json = {**THREAD_ROW, "pendingCalls": [PENDING_EXAMPLE], "queued": []}
THREADS_EXAMPLE: Json = {"threads": [THREAD_ROW], "next": None}
RUNS_EXAMPLE: Json = {"runs": [{**RUN_EXAMPLE, "active": False}] if isinstance(RUN_EXAMPLE, dict) else [], "next": None}
DELETED_EXAMPLE: Json = {"id": THREAD, "stopped": [TASK]}
USER_DELETED_EXAMPLE: Json = {"threads": 3, "profiles": 1, "days": 12, "attachments": 5, "datasets": 0, "stopped": []}
HISTORY_EXAMPLE: Json = {
    "scope": "history_day",
    "threadId": THREAD,
    "day": "2026-05-14",
    "hasMore": True,
    "messages": [
        {"id": "m1", "seq": 1, "role": "user", "content": "Hi", "url": None, "files": [], "timestamp": TIME},
        {"id": "m2", "seq": 2, "role": "assistant", "content": "Hello", "uiSchema": None, "timestamp": TIME},
    ],
}
CALL_ROW: dict[str, Json] = {
    "n": 1,
    "purpose": "reply",
    "model": "demo",
    "started": TIME,
    "firstToken": TIME,
    "ended": TIME,
    "finish": "stop",
    "usage": {"inputTokens": 321, "outputTokens": 12, "totalTokens": 333},
    "price": None,
    "tokens": 321,
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "error": None,
}
CALLS_EXAMPLE: Json = {"calls": [CALL_ROW]}
CALL_EXAMPLE: Json = {
    **CALL_ROW,
    "bytes": 1234,
    "verified": True,
    "damaged": [],
    "page": {"model": "demo", "messages": []},
    "manifest": {"parts": [], "tokens": 321, "skill": None},
}


class PendingCall(BaseModel):
    """A call that waits for the client's result. `arguments` is what the model wrote. After `expiresAt` it is late."""

    id: str
    name: str
    arguments: str
    expires_at: str | None = Field(alias="expiresAt")


class HistoryFile(BaseModel):
    """A file of a user message."""

    id: str | None
    name: str | None
    type: Literal["document", "image", "audio", "video"]
    mime_type: str | None = Field(alias="mimeType")
    url: str


class HistoryMessageShape(BaseModel):
    """A message: a user's with `url` and `files`, others with `uiSchema`.

    `status` is there where something is to be said: `queued` of a user's whose run has not begun, which has no `seq`
    yet but a `taskId` and a `runId`; of an assistant's that is not whole, that it was `interrupted`, or how it ended.
    """

    id: str
    seq: int | None
    role: Literal["user", "assistant", "tool"]
    content: str
    url: str | None = None
    files: list[HistoryFile] = []
    ui_schema: dict[str, object] | None = Field(default=None, alias="uiSchema")
    timestamp: str
    status: Literal["queued", "interrupted", "length", "refused", "filtered"] | None = None
    task_id: str | None = Field(default=None, alias="taskId")
    run_id: str | None = Field(default=None, alias="runId")


class ThreadRow(BaseModel):
    """A thread. `activeRun` is the task id of the run at work on it."""

    id: str
    title: str | None
    agent: str | None
    skill: str | None
    scenario: str | None
    created: str
    updated: str
    active_run: str | None = Field(alias="activeRun")


class ThreadShape(ThreadRow):
    """A thread and what it waits for."""

    pending_calls: list[PendingCall] = Field(alias="pendingCalls")
    queued: list[HistoryMessageShape]


class ThreadsShape(BaseModel):
    """Threads, newest activity first. `next` is the cursor of the page that follows."""

    threads: list[ThreadRow]
    next: str | None


class RunOfThread(RunShape):
    """A run, and whether it is the one at work."""

    active: bool


class RunsShape(BaseModel):
    """Runs, newest first."""

    runs: list[RunOfThread]
    next: str | None


class TitleBody(BaseModel):
    """A new title."""

    title: str = Field(min_length=1, max_length=200)


class ForkBody(BaseModel):
    """Where to fork: before this user message of the thread, else at its end."""

    before: str | None = None
    title: str | None = Field(default=None, min_length=1, max_length=200)


class DeletedShape(BaseModel):
    """What is gone, and the task ids of the runs that were stopped for it."""

    id: str
    stopped: list[str]


class UserDeletedShape(BaseModel):
    """How much is gone."""

    threads: int
    profiles: int
    days: int
    attachments: int
    datasets: int
    stopped: list[str]


class HistoryShape(BaseModel):
    """One day of a thread."""

    scope: Literal["history_day"]
    thread_id: str | None = Field(alias="threadId")
    day: str | None
    has_more: bool = Field(alias="hasMore")
    messages: list[HistoryMessageShape]


class CallRow(BaseModel):
    """A model call. `price` is in thousand-millionths of a unit of currency."""

    n: int
    purpose: str
    model: str
    started: str
    first_token: str | None = Field(alias="firstToken")
    ended: str | None
    finish: str | None
    usage: dict[str, object] | None
    price: int | None
    tokens: int | None
    digest: str
    error: str | None


class CallsShape(BaseModel):
    """The model calls of a run, in order."""

    calls: list[CallRow]


class CallShape(CallRow):
    """A model call with its page as it was sent. `damaged` names what is no longer what was written."""

    bytes: int | None
    verified: bool
    damaged: list[str]
    page: object
    manifest: dict[str, object] | None


class PageShape(BaseModel):
    """The body of a model call as it was sent. Its other fields are the provider's."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[object]


class CallAnswer(RootModel[CallShape | PageShape]):
    """A model call; with `raw` the page alone."""
