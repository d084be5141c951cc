"""Routes of a thread's files: changes since a turn, and restoring them (R12)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import Backend, backend_of, json_answer, user_of
from recto.api.bodies import read_object
from recto.api.parameters import in_query
from recto.api.route import Route
from recto.api.runs.client_threads import own_thread
from recto.api.threads.kept_files import WORK, FileChangeRow, before_turn, changes_since, kept_of, of_this_folder
from recto.api.threads.routes import ThreadId
from recto.conversation.input.agui import spelled
from recto.conversation.json import Json, optional_text
from recto.errors import Conflict, NotFound, WireError
from recto.store.threads.thread_rows import StoredThread
from recto.tools.daemon_thread import run_in_thread
from recto.tools.workspace.restore_files import RestoredFiles, Restoring, restore
from recto.tools.workspace.snapshots import FolderState, Snapshots
from recto.tools.workspace.workspaces import Workspace, is_at_work_in, lock_of

FILES = "/api/v1/agent/threads/{id}/files"
FIELDS = ("messageId", "snapshot", "paths")
MOST_PATHS = 10_000
EITHER = "name either a message, by messageId, or a snapshot, and not both"
AT_WORK = (
    "A run of this thread is at work or waits for its turn. Wait for its end, or cancel it, and put files back then."
)
IN_USE = (
    "A tool of another thread or a command in the background is at work in this folder. Wait for its end, or have it "
    "ended, and put files back then."
)
Since = Annotated[str, in_query("The id of a user message: changes since before its turn.", max_length=1_000)]


class FileChangesShape(TypedDict):
    """Files that changed since before a turn, by path."""

    changes: Sequence[FileChangeRow]


class RestoreBody(BaseModel):
    """The files to restore, all or `paths`, from before a turn or from a `snapshot`."""

    model_config = ConfigDict(extra="forbid")

    message_id: str | None = Field(default=None, alias="messageId")
    snapshot: str | None = None
    paths: list[str] | None = Field(default=None, max_length=MOST_PATHS)


class RestoredShape(TypedDict):
    """The restored files, and those `left` because they could not be restored. `undo` is the snapshot to undo it."""

    restored: Sequence[str]
    left: Sequence[str]
    undo: str


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """The parsed request. No `paths` means all files."""

    message: str | None
    snapshot: str | None
    paths: Collection[str] | None


CHANGES_EXAMPLE: FileChangesShape = {"changes": [{"path": "src/app.py", "change": "changed", "kept": True}]}
RESTORED_EXAMPLE: RestoredShape = {
    "restored": ["src/app.py"],
    "left": [],
    "undo": "0f5c6d1e2b7a4c9d8e3f1a2b3c4d5e6f",
}


async def get_changes(request: Request, id: ThreadId, since: Since) -> Response:
    """Return the file changes since before a turn."""
    backend = backend_of(request)
    thread = await backend.store.get_thread(user_of(request).name, await own_thread(request, id))
    rows = await changes_since(backend, thread, since)
    if rows is None:
        raise NotFound(what="snapshot of files since message", id=since)
    answer: FileChangesShape = {"changes": rows}
    return json_answer(answer)


async def restore_files(request: Request, id: ThreadId) -> Response:
    """Restore files as before a turn, or undo a restore. Files created since are deleted."""
    backend, asked = backend_of(request), _asked(await read_object(request, b"{}"))
    owner = user_of(request).name
    thread = await backend.store.get_thread(owner, await own_thread(request, id))
    kept = kept_of(backend, thread)
    before = await _wanted(backend, thread, asked) if kept else None
    if kept is None or before is None:
        raise NotFound(what="snapshot of files", id=asked.message or asked.snapshot or "")
    snapshots, workspace = kept
    async with lock_of(workspace.folder):
        # Checked under the lock: a run takes a snapshot before it changes files, and waits for the lock.
        if await backend.store.open_runs(owner, thread.id):
            raise Conflict(AT_WORK)
        if is_at_work_in(workspace.folder) or (backend.terminal and backend.terminal.is_at_work_in(workspace.folder)):
            raise Conflict(IN_USE)
        work = partial(_restore, snapshots, workspace, thread.id, before, asked.paths)
        undo, done = await run_in_thread(work, name=WORK)
    answer: RestoredShape = {"restored": done.restored, "left": done.left, "undo": undo}
    return json_answer(answer)


def _asked(body: Mapping[str, Json]) -> _Asked:
    """Parse the request. An unknown name may be a typo that would restore all files, so it is rejected."""
    names = [spelled(body, name) for name in FIELDS]
    unknown = next((name for name in body if name not in names), None)
    if unknown is not None:
        raise WireError(where=unknown, problem=f"is not known here; known are {', '.join(FIELDS)}")
    message, snapshot = (optional_text(body, name, "body") for name in names[:2])
    if (message is None) == (snapshot is None):
        raise WireError(where="messageId", problem=EITHER)
    return _Asked(message=message, snapshot=snapshot, paths=_paths(body.get("paths")))


def _paths(given: Json) -> Collection[str] | None:
    if given is None:
        return None
    paths = [path for path in given if isinstance(path, str)] if isinstance(given, list) else []
    if not isinstance(given, list) or not len(paths) == len(given) <= MOST_PATHS:
        raise WireError(where="paths", problem=f"must be a list of up to {MOST_PATHS:,} paths, each a string")
    return frozenset(paths)


async def _wanted(backend: Backend, thread: StoredThread, asked: _Asked) -> FolderState | None:
    if asked.message is not None:
        return await before_turn(backend, thread, asked.message)
    if backend.snapshots is None:
        return None
    found = await run_in_thread(partial(backend.snapshots.of_undo, thread.id, asked.snapshot or ""), name=WORK)
    return of_this_folder(backend, thread, found)


def _restore(
    snapshots: Snapshots, workspace: Workspace, thread: str, before: FolderState, paths: Collection[str] | None
) -> tuple[str, RestoredFiles]:
    """Restore after saving the current state for undo."""
    undo, now = snapshots.keep_undo(workspace, thread, before)
    content = partial(snapshots.content, thread)
    return undo, restore(workspace, Restoring(before=before, now=now, content=content, paths=paths))


ROUTES = (
    Route(
        method="GET",
        path=f"{FILES}/changes",
        handler=get_changes,
        tag="threads",
        answer=FileChangesShape,
        refusals=(404, 422),
        examples={"answer": CHANGES_EXAMPLE},
    ),
    Route(
        method="POST",
        path=f"{FILES}/restore",
        handler=restore_files,
        tag="threads",
        body=RestoreBody,
        answer=RestoredShape,
        refusals=(404, 409, 413, 422),
        examples={"body": {"messageId": "msg-002", "paths": ["src/app.py"]}, "answer": RESTORED_EXAMPLE},
    ),
)
