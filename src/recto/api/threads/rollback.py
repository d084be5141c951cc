"""Routes that change the view of a thread (R12, R13): rollback, undo, compact. The log keeps everything.

The server rejects all three while a run of the thread is active or queued.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import cast

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import Backend, backend_of, user_of
from recto.api.bodies import NUL, check_run, digest_of, read_object
from recto.api.route import Route
from recto.api.runs.admit import TaskAccepted, admit_run
from recto.api.runs.thread_names import THREAD_PATH, ThreadId, own_thread
from recto.api.threads.file_changes import FileChangeRow, changes_since
from recto.api.threads.thread_messages import HistoryFile
from recto.conversation.history import history_row
from recto.conversation.input.agui import field_name
from recto.conversation.input.input_rules import MAX_RUN_ID, UUID
from recto.conversation.input.run_input import add_notes
from recto.conversation.json import Json, dump, optional_text
from recto.errors import NotFound, RectoError, WireError
from recto.store.threads.rollbacks import RollbackOptions, ThreadRolledBack

LOGGER = logging.getLogger("recto.api")
MOST_CHANGES = 1_000


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


async def roll_back_thread(request: Request, id: ThreadId) -> RolledBackShape:
    """Hide a user message and all that follows. Returns its text for editing. Undo restores it."""
    backend, body = backend_of(request), await read_object(request)
    message = optional_text(body, field_name(body, "messageId"), "body")
    if not message:
        raise WireError(where="messageId", problem="is missing. Name the id of the user message to roll back to")
    if NUL in message:
        raise NotFound(what="user message", id=message)
    options = await _options(request, id)
    rollback = await backend.store.threads.roll_back(user_of(request).name, options, to=message)
    row = history_row(rollback.message, backend.files.urls(await backend.store.files.list_refs(options.thread)))
    return {
        "threadId": options.thread,
        "messageId": rollback.message.id,
        "content": str(row["content"]),
        "files": cast("Sequence[HistoryFile]", row["files"]),
        "changedFiles": await _changed_files(backend, rollback),
        "canUndo": True,
        "skill": rollback.thread.skill,
        "scenario": rollback.thread.scenario,
    }


async def _changed_files(backend: Backend, rollback: ThreadRolledBack) -> Sequence[FileChangeRow] | None:
    """Return the workspace files to restore. The rollback stands even if this fails."""
    try:
        changes = await changes_since(backend, rollback.thread, rollback.message.id)
    # Any failure, such as a busy database: the response still has the text to edit.
    except Exception as error:
        is_expected = isinstance(error, OSError | RectoError)
        thread = rollback.thread.id
        LOGGER.warning("The changed files of thread %s are unknown: %s", thread, error, exc_info=not is_expected)
        return None
    return changes[:MOST_CHANGES] if changes is not None else None


async def undo_rollback(request: Request, id: ThreadId) -> UndoneShape:
    """Undo the last rollback, including a client's. Messages sent since then are hidden."""
    options = await _options(request, id)
    undone_rollback = await backend_of(request).store.threads.undo(user_of(request).name, options)
    return {
        "threadId": options.thread,
        "count": undone_rollback.count,
        "messageIds": undone_rollback.messages,
        "canUndo": undone_rollback.can_undo,
        "skill": undone_rollback.thread.skill,
        "scenario": undone_rollback.thread.scenario,
    }


async def compact_thread(request: Request, id: ThreadId) -> TaskAccepted | Response:
    """Summarise the old part of a thread for the model, in a run of its own.

    202 once it is stored, or its events with `Accept: text/event-stream`. A repeated `runId` returns the same run.
    """
    backend, body = backend_of(request), await read_object(request, b"{}")
    thread = await own_thread(request, id)
    await backend.store.threads.get(user_of(request).name, thread)
    run, protocol = (optional_text(body, field_name(body, name), "body") for name in ("runId", "protocolVersion"))
    value: Mapping[str, Json] = {
        "threadId": thread,
        "runId": backend.new_id() if run is None else run,
        "messages": [],
        **({"protocolVersion": protocol} if protocol else {}),
    }
    value = add_notes(value, None, thread=None if UUID.fullmatch(id) else id, compact=True)
    run_request = check_run(value, dump(value), digest=digest_of(value))
    return await admit_run(request, run_request, fallback=backend.agents.default)


async def _options(request: Request, id: str) -> RollbackOptions:
    backend = backend_of(request)
    return RollbackOptions(thread=await own_thread(request, id), id=backend.new_id(), now=backend.clock())


ROUTES = (
    Route(
        "POST", f"{THREAD_PATH}/rollback", roll_back_thread, "threads", body=RollbackBody, errors=(404, 409, 413, 422)
    ),
    Route("POST", f"{THREAD_PATH}/undo", undo_rollback, "threads", errors=(404, 409)),
    Route(
        "POST",
        f"{THREAD_PATH}/compact",
        compact_thread,
        "threads",
        status=202,
        body=CompactBody,
        needs_body=False,
        streams=True,
        errors=(404, 409, 413, 422),
    ),
)
