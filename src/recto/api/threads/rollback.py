"""Routes that change the past of a thread: rollback, undo, compaction, and its files (R12)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import Backend, backend_of, user_of
from recto.api.bodies import NUL, check_run, digest_of, read_object
from recto.api.route import Route, in_query
from recto.api.runs.admit import THREAD_PATH, TaskAccepted, ThreadId, admit_run, own_thread
from recto.api.threads.thread_messages import HistoryFile
from recto.conversation.history import history_row
from recto.conversation.input.agui import field_name
from recto.conversation.input.input_rules import MAX_RUN_ID, UUID
from recto.conversation.input.run_input import add_notes
from recto.conversation.json import Json, dump, optional_text
from recto.conversation.messages import UserMessage
from recto.errors import Conflict, NotFound, RectoError, WireError
from recto.store.threads.thread_rows import StoredThread
from recto.store.threads.threads import RollbackOptions, ThreadRolledBack
from recto.tools.daemon_thread import run_in_thread
from recto.tools.workspace.restore_files import RestorePlan, RestoreResult, copy_folder, restore
from recto.tools.workspace.snapshots import FolderState, Snapshots, SnapshotTurn, difference
from recto.tools.workspace.workspaces import Workspace, is_busy, lock_of

FILES, COMPACT = f"{THREAD_PATH}/files", f"{THREAD_PATH}/compact"
FIELDS = ("messageId", "snapshot", "paths")
ERRORS = (404, 409, 413, 422)
MOST_PATHS = 10_000
MOST_CHANGES = 1_000
# Name of worker threads for file work.
WORKER_NAME = "snapshot"
ONE_SOURCE = "name either a message in messageId or a snapshot, not both"
ACTIVE_RUN = "A run of this thread is active or queued. Wait for its end, or cancel it, then restore the files."
BUSY_FOLDER = (
    "A tool of another thread or a background command is using this folder. Wait for its end, or stop it, then restore "
    "the files."
)
Since = Annotated[str, in_query("The id of a user message: changes since before its turn.", max_length=1_000)]
LOGGER = logging.getLogger("recto.api")


class RollbackBody(BaseModel):
    """The user message to roll back to, by its id or the client's id."""

    message_id: str = Field(alias="messageId", min_length=1)


class CompactBody(BaseModel):
    """Optional id of the run, and the protocol version of its events."""

    run_id: str | None = Field(default=None, alias="runId", min_length=1, max_length=MAX_RUN_ID)
    protocol_version: str | None = Field(default=None, alias="protocolVersion")


class RestoreBody(BaseModel):
    """The files to restore, all or `paths`, from before a turn or from a `snapshot`."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"messageId": "msg-002", "paths": ["src/app.py"]}}
    )

    message_id: str | None = Field(default=None, alias="messageId")
    snapshot: str | None = None
    paths: list[str] | None = Field(default=None, max_length=MOST_PATHS)


class FileChangeRow(TypedDict):
    """A change of a file. One that is not `kept` was too large for the snapshot and cannot be restored."""

    path: str
    change: Literal["created", "changed", "deleted"]
    kept: bool


class FileChangesShape(TypedDict):
    """Files that changed since before a turn, by path."""

    changes: Sequence[FileChangeRow]


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


class RestoredShape(TypedDict):
    """The restored files, and those `left` because they could not be restored. `undo` is the snapshot to undo it."""

    restored: Sequence[str]
    left: Sequence[str]
    undo: str


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
    """Return the workspace files that can be restored. A failure is logged and does not undo the rollback."""
    try:
        changes = await changes_since(backend, rollback.thread, rollback.message.id)
    # Catch any failure, such as a busy database, because the response must contain the text to edit.
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


async def _options(request: Request, id: str) -> RollbackOptions:
    backend = backend_of(request)
    return RollbackOptions(thread=await own_thread(request, id), id=backend.new_id(), now=backend.clock())


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


async def get_changes(request: Request, id: ThreadId, since: Since) -> FileChangesShape:
    """Return the file changes since before a turn."""
    backend = backend_of(request)
    thread = await backend.store.threads.get(user_of(request).name, await own_thread(request, id))
    rows = await changes_since(backend, thread, since)
    if rows is None:
        raise NotFound(what="snapshot of files since message", id=since)
    return {"changes": rows}


async def restore_files(request: Request, id: ThreadId) -> RestoredShape:
    """Restore files as before a turn, or undo a restore. Files created since are deleted."""
    backend, owner = backend_of(request), user_of(request).name
    message, snapshot, paths = _parse_source(await read_object(request, b"{}"))
    thread = await backend.store.threads.get(owner, await own_thread(request, id))
    snapshots, before = backend.files.snapshots, None
    if snapshots and message is not None:
        before = await _state_before(backend, thread, message)
    elif snapshots:
        state = await run_in_thread(partial(snapshots.of_undo, thread.id, snapshot or ""), name=WORKER_NAME)
        before = state if state and state.is_of(_workspace(backend, thread)) else None
    if snapshots is None or before is None:
        raise NotFound(what="snapshot of files", id=message or snapshot or "")
    workspace, terminal = _workspace(backend, thread), backend.files.terminal
    async with lock_of(workspace.folder):
        # Check under the lock, which a run needs for its snapshot before it changes files.
        if await backend.store.runs.list_open(owner, thread.id):
            raise Conflict(ACTIVE_RUN)
        if is_busy(workspace.folder) or (terminal and terminal.is_at_work_in(workspace.folder)):
            raise Conflict(BUSY_FOLDER)
        job = partial(_restore, snapshots, workspace, thread.id, before, paths)
        undo, result = await run_in_thread(job, name=WORKER_NAME)
    return {"restored": result.restored, "left": result.failed_paths, "undo": undo}


def _restore(
    snapshots: Snapshots, workspace: Workspace, thread: str, before: FolderState, paths: Collection[str] | None
) -> tuple[str, RestoreResult]:
    """Save a snapshot and restore files. Return the id of the snapshot, which undoes the restore."""
    undo, now = snapshots.save_undo(workspace, thread, before)
    plan = RestorePlan(before=before, now=now, content=partial(snapshots.content, thread), paths=paths)
    return undo, restore(workspace, plan)


def _parse_source(body: Mapping[str, Json]) -> tuple[str | None, str | None, Collection[str] | None]:
    """Return the message or snapshot of a request, and its paths; None means all files.

    Reject unknown fields, because a misspelt `paths` would restore all files.
    """
    names = [field_name(body, name) for name in FIELDS]
    unknown = next((name for name in body if name not in names), None)
    if unknown is not None:
        raise WireError(where=unknown, problem=f"is unknown; known are {', '.join(FIELDS)}")
    message, snapshot = (optional_text(body, name, "body") for name in names[:2])
    if (message is None) == (snapshot is None):
        raise WireError(where="messageId", problem=ONE_SOURCE)
    value = body.get("paths")
    paths = [path for path in value if isinstance(path, str)] if isinstance(value, list) else []
    if value is not None and not (isinstance(value, list) and len(paths) == len(value) <= MOST_PATHS):
        raise WireError(where="paths", problem=f"must be a list of up to {MOST_PATHS:,} paths, each a string")
    return message, snapshot, None if value is None else frozenset(paths)


async def changes_since(backend: Backend, thread: StoredThread, message: str) -> Sequence[FileChangeRow] | None:
    """Return the file changes of a thread since before the turn of a message; None without a snapshot."""
    snapshots = backend.files.snapshots
    before = await _state_before(backend, thread, message)
    if snapshots is None or before is None:
        return None
    workspace = _workspace(backend, thread)
    async with lock_of(workspace.folder):
        now = await run_in_thread(partial(snapshots.state, workspace, thread.id), name=WORKER_NAME)
    return [{"path": one.path, "change": one.change, "kept": one.is_kept} for one in difference(before, now)]


async def copy_files(backend: Backend, fork: StoredThread, source: str, before: str | None) -> None:
    """Copy the source thread's files, as they were before a message, to a fork. Skip a shared workspace.

    All or no files are copied, even if the process is killed. A failure is logged and does not undo the fork.
    """
    workspaces, snapshots = backend.files.workspaces, backend.files.snapshots
    if workspaces is None or not _workspace(backend, fork).is_own:
        return
    old, new = (workspaces.of(thread) for thread in (source, fork.id))
    state = await _state_before(backend, fork, before, source) if before else None
    try:
        async with lock_of(old.folder):
            if not old.folder.is_dir():
                return

            def rewind(folder: Path) -> None:
                """Restore the earlier state in `folder`, which holds the copy until it is complete."""
                if snapshots and state:
                    copied = replace(new, folder=folder)
                    content = partial(snapshots.content, source)
                    plan = RestorePlan(before=state, now=snapshots.state(copied, source), content=content)
                    restore(copied, plan)

            copy = partial(copy_folder, old.folder, new.folder, most=new.most_bytes, finish=rewind)
            await run_in_thread(copy, name=WORKER_NAME)
    except (OSError, RectoError) as error:
        LOGGER.warning("The files of thread %s could not be copied for its fork: %s", source, error)


def _workspace(backend: Backend, thread: StoredThread) -> Workspace:
    agent = backend.agents.by_name.get(thread.agent or backend.agents.default)
    if backend.files.workspaces is None:
        raise NotFound(what="workspace of thread", id=thread.id)
    return backend.files.workspaces.of(thread.id, agent.workspace if agent else None)


async def _state_before(backend: Backend, thread: StoredThread, message: str, source: str = "") -> FolderState | None:
    """Return the files as they were before the turn of a message, even if the message is no longer visible.

    None if there is no snapshot, or if the snapshot is of another folder than the current workspace.
    """
    id, snapshots = source or thread.id, backend.files.snapshots
    if snapshots is None or backend.files.workspaces is None or NUL in message:
        return None
    if not await run_in_thread(partial(snapshots.has_any, id), name=WORKER_NAME):
        return None
    log = await backend.store.log.read_up_to_entry(id, message)
    user = log[-1] if log else None
    if not isinstance(user, UserMessage) or user.time is None:
        return None
    turn = SnapshotTurn(message=message, admission_time=user.time)
    state = await run_in_thread(partial(snapshots.of_turn, id, turn), name=WORKER_NAME)
    return state if state and state.is_of(_workspace(backend, thread)) else None


post = partial(Route, "POST", tag="threads")
ROUTES = (
    Route("GET", f"{FILES}/changes", get_changes, "threads", errors=(404, 422)),
    post(f"{FILES}/restore", restore_files, body=RestoreBody, errors=ERRORS),
    post(f"{THREAD_PATH}/rollback", roll_back_thread, body=RollbackBody, errors=ERRORS),
    post(f"{THREAD_PATH}/undo", undo_rollback, errors=(404, 409)),
    post(COMPACT, compact_thread, status=202, body=CompactBody, needs_body=False, streams=True, errors=ERRORS),
)
