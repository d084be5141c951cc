"""Routes that change what is seen of a thread (R12, R13): rollback, undo, compact. Nothing that is stored goes.

All three are refused while a run of the thread is at work or waits for its turn.
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
    """The user message to roll back to, by its id or by the one you sent it under."""

    message_id: str = Field(alias="messageId", min_length=1)


class CompactBody(BaseModel):
    """What the run is to go by, else it gets a name; and the version of the protocol its events are to be in."""

    run_id: str | None = Field(default=None, alias="runId", min_length=1, max_length=MAX_RUN_ID)
    protocol_version: str | None = Field(default=None, alias="protocolVersion")


class RolledBackShape(TypedDict):
    """What is to be edited and said again, and the skill that the thread is in now.

    `changedFiles` are those of the workspace that are not as they were before that message, the first thousand by path:
    they can be put back. None where nothing was kept of them.
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
    """How many messages came back, the ids of the first thousand, and whether there is another rollback to undo."""

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
    """Take a user message and all that follows out of view; its words come back to be edited. Undo brings it back."""
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
    """What of the workspace could be put back as well. The rollback is made, whether or not that can be told."""
    try:
        changes = await changes_since(backend, done.thread, done.message.id)
    # Too many files, a database that is busy: whatever it is, the words to edit are told.
    except Exception as error:
        expected = isinstance(error, OSError | RectoError)
        LOGGER.warning("What changed of thread %s's files is unknown: %s", done.thread.id, error, exc_info=not expected)
        return None
    return changes[:CHANGES_TOLD] if changes is not None else None


async def undo_rollback(request: Request, id: ThreadId) -> Response:
    """Take the last rollback back, a client's too. What was said since then is out of view."""
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
    """Have what is old of a thread summarised for the model, by a run that does nothing else.

    202 once it is stored, or its events with `Accept: text/event-stream`. The same `runId` again is the same run.
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
    """The request for a run that compacts a thread."""
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
