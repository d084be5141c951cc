"""What bodies look like, for the description of the API. Bodies are read and written elsewhere, without these."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from recto.conversation.json import Json

TASK = "01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e11"
THREAD = "550e8400-e29b-41d4-a716-446655440000"
TIME = "2026-05-14T12:00:00.000Z"
RUN_BODY: Json = {
    "threadId": THREAD,
    "runId": "run-001",
    "state": {},
    "messages": [{"id": "msg-001", "role": "user", "content": "What is 12*7?"}],
    "tools": [],
    "context": [],
    "forwardedProps": {"agent": "chat"},
}
ACCEPTED: dict[str, Json] = {"taskId": TASK, "threadId": THREAD, "runId": "run-001", "created": TIME}
RUN_EXAMPLE: Json = {
    **ACCEPTED,
    "agent": "chat",
    "status": "finished",
    "started": TIME,
    "ended": TIME,
    "outcome": "done",
    "error": None,
    "usage": {"inputTokens": 321, "outputTokens": 12, "totalTokens": 333},
    "calls": 1,
    "lastEventId": 7,
}


class MessageShape(BaseModel):
    """A message of AG-UI. Which other fields it has depends on its role."""

    model_config = ConfigDict(extra="allow")

    id: str
    role: Literal["user", "assistant", "system", "tool", "developer", "reasoning", "activity"]


class ToolShape(BaseModel):
    """A tool the client answers itself."""

    name: str
    description: str | None = ""
    parameters: dict[str, object] | None = Field(default=None, description="JSON Schema")


class ContextShape(BaseModel):
    """Something the model should know for this turn."""

    description: str
    value: str


class RunBody(BaseModel):
    """AG-UI's RunAgentInput. Unknown fields are ignored; snake_case is taken too."""

    thread_id: str = Field(alias="threadId", json_schema_extra={"format": "uuid"})
    run_id: str = Field(alias="runId", min_length=1, max_length=128)
    parent_run_id: str | None = Field(default=None, alias="parentRunId")
    state: object = None
    messages: list[MessageShape] = Field(max_length=200)
    tools: list[ToolShape] | None = []
    context: list[ContextShape] | None = []
    forwarded_props: dict[str, object] | None = Field(default=None, alias="forwardedProps")


class TaskAccepted(BaseModel):
    """A run that is stored and will be worked on."""

    task_id: str = Field(alias="taskId")
    thread_id: str = Field(alias="threadId")
    run_id: str = Field(alias="runId")
    created: str


class RunShape(TaskAccepted):
    """A run and how it does."""

    agent: str
    status: Literal["queued", "running", "finished", "waiting", "cancelled", "failed"]
    started: str | None
    ended: str | None
    outcome: str | None
    error: str | None
    usage: dict[str, object] | None
    calls: int
    last_event_id: int = Field(alias="lastEventId")
