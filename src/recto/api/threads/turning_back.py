"""Routes that change the view of a thread (R12, R13): rollback, undo, compact. The log keeps everything.

All three are rejected while a run of the thread is active or queued.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import cast

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import Backend, backend_of, json_answer, user_of
from recto.api.bodies import NUL, check_run, digest_of, read_object
from recto.api.route import THREAD, Route
from recto.api.runs.admit import ACCEPTED, TaskAccepted, admit_run
from recto.api.runs.client_threads import own_thread
from recto.api.runs.streams import wants_stream
from recto.api.signed import urls_of
from recto.api.threads.history import HistoryFile
from recto.api.threads.kept_files import FileChangeRow, changes_since
from recto.api.threads.routes import ONE, ThreadId
from recto.conversation.history import history_row
from recto.conversation.input.agui import spelled
from recto.conversation.input.input_rules import MAX_RUN_ID, UUID
from recto.conversation.input.run_input import noted
from recto.conversation.json import Json, dump, optional_text
from recto.errors import NotFound, RectoError, WireError
from recto.store.threads.rollbacks import ThreadRolledBack, TurnBackOptions

LOGGER = logging.getLogger("recto.api")
CHANGES_TOLD = 1_000


class RollbackBody(BaseModel):
    """The user message to roll back to, by its id or the client's id."""

    message_id: str = Field(alias="messageId", min_length=1)


class CompactBody(BaseModel):
    """Optional id of the run, and the protocol version of its events."""

    run_id: str | None = Field(default=None, alias="runId", min_length=1, max_length=MAX_RUN_ID)
    protocol_version: str | None = Field(default=None, alias="protocolVersion")


class RolledBackShape(TypedDict):
    """The message to edit and send again, and the skill that is active now.

    `changedFiles` lists workspace files that differ from before the message, up to a thousand by path. They can be
    restored. None if there is no snapshot.
    """

    threadId: str
    messageId: str
    content: str
    files: Sequence[HistoryFile]
    changedFiles: Sequence[FileChangeRow] | None
    canUndo: bool
    skill: str | None
    scenario: str | None


class UndoneShape(TypedDict):
    """Number and ids (up to a thousand) of the restored messages, and whether another rollback can be undone."""

    threadId: str
    count: int
    messageIds: Sequence[str]
    canUndo: bool
    skill: str | None
    scenario: str | None


ROLLED_BACK: RolledBackShape = {
    "threadId": THREAD,
    "messageId": "msg-003",
    "content": "Plan my week",
    "files": [],
    "changedFiles": [{"path": "src/app.py", "change": "changed", "kept": True}],
    "canUndo": True,
    "skill": None,
    "scenario": None,
}
UNDONE: UndoneShape = {
    "threadId": THREAD,
    "count": 2,
    "messageIds": ["msg-003", "01990b1e-7a00-7c5e-8a57-1f0c2b9d4e11"],
    "canUndo": False,
    "skill": None,
    "scenario": None,
}


async def roll_back_thread(request: Request, id: ThreadId) -> Response:
    """Hide a user message and all that follows. Returns its text for editing. Undo restores it."""
    backend, body = backend_of(request), await read_object(request)
    message = optional_text(body, spelled(body, "messageId"), "body")
    if not message:
        raise WireError(where="messageId", problem="is missing; it is the id of the user message to roll back to")
    if NUL in message:
        raise NotFound(what="user message", id=message)
    options = await _options(request, id)
    done = await backend.store.roll_back(user_of(request).name, options, to=message)
    row = history_row(done.message, urls_of(backend, await backend.store.file_refs(options.thread)))
    answer: RolledBackShape = {
        "threadId": options.thread,
        "messageId": done.message.id,
        "content": str(row["content"]),
        "files": cast("Sequence[HistoryFile]", row["files"]),
        "changedFiles": await _changed_files(backend, done),
        "canUndo": True,
        "skill": done.thread.skill,
        "scenario": done.thread.scenario,
    }
    return json_answer(answer)


async def _changed_files(backend: Backend, done: ThreadRolledBack) -> Sequence[FileChangeRow] | None:
    """Return the workspace files to restore. The rollback stands even if this fails."""
    try:
        changes = await changes_since(backend, done.thread, done.message.id)
    # Any failure, such as a busy database: the text to edit is returned all the same.
    except Exception as error:
        expected = isinstance(error, OSError | RectoError)
        LOGGER.warning("What changed of thread %s's files is unknown: %s", done.thread.id, error, exc_info=not expected)
        return None
    return changes[:CHANGES_TOLD] if changes is not None else None


async def undo_rollback(request: Request, id: ThreadId) -> Response:
    """Undo the last rollback, including a client's. Messages sent since then are hidden."""
    options = await _options(request, id)
    done = await backend_of(request).store.undo(user_of(request).name, options)
    answer: UndoneShape = {
        "threadId": options.thread,
        "count": done.count,
        "messageIds": done.messages,
        "canUndo": done.can_undo,
        "skill": done.thread.skill,
        "scenario": done.thread.scenario,
    }
    return json_answer(answer)


async def compact_thread(request: Request, id: ThreadId) -> Response:
    """Summarise the old part of a thread for the model, in a run of its own.

    202 once it is stored, or its events with `Accept: text/event-stream`. A repeated `runId` returns the same run.
    """
    backend, body = backend_of(request), await read_object(request, b"{}")
    thread = await own_thread(request, id)
    await backend.store.get_thread(user_of(request).name, thread)
    value = _compacting(body, thread, backend.new_id())
    value = noted(value, None, thread=None if UUID.fullmatch(id) else id, compact=True)
    sent = check_run(value, dump(value), noted_digest=digest_of(value))
    streams = wants_stream(request.headers.get("accept", ""))
    return await admit_run(request, sent, streams=streams, fallback=backend.agent)


async def _options(request: Request, id: str) -> TurnBackOptions:
    backend = backend_of(request)
    return TurnBackOptions(thread=await own_thread(request, id), id=backend.new_id(), now=backend.clock())


def _compacting(body: Mapping[str, Json], thread: str, new_id: str) -> Mapping[str, Json]:
    """Return the request of a run that compacts a thread."""
    run, protocol = (optional_text(body, spelled(body, name), "body") for name in ("runId", "protocolVersion"))
    return {
        "threadId": thread,
        "runId": new_id if run is None else run,
        "messages": [],
        **({"protocolVersion": protocol} if protocol else {}),
    }


ROUTES = (
    Route(
        method="POST",
        path=f"{ONE}/rollback",
        handler=roll_back_thread,
        tag="threads",
        body=RollbackBody,
        answer=RolledBackShape,
        refusals=(404, 409, 413, 422),
        examples={"body": {"messageId": "msg-003"}, "answer": ROLLED_BACK},
    ),
    Route(
        method="POST",
        path=f"{ONE}/undo",
        handler=undo_rollback,
        tag="threads",
        answer=UndoneShape,
        refusals=(404, 409),
        examples={"answer": UNDONE},
    ),
    Route(
        method="POST",
        path=f"{ONE}/compact",
        handler=compact_thread,
        tag="threads",
        status=202,
        body=CompactBody,
        needs_body=False,
        answer=TaskAccepted,
        streams=True,
        refusals=(404, 409, 413, 422),
        examples={"body": {"runId": "run-007"}, "answer": ACCEPTED},
    ),
)
