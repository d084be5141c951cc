"""Routes of the current user: identity, export and deletion of their data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from typing import Annotated

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from typing_extensions import TypedDict

from recto.api.backend import backend_of, is_operator, json_answer, user_of
from recto.api.parameters import in_query
from recto.api.route import Route
from recto.api.threads.routes import stop
from recto.errors import WireError
from recto.tools.workspace.workspaces import sweep_workspaces

ME = "/api/v1/agent/me"
LINES = "application/x-ndjson"
HEADERS = {"content-disposition": 'attachment; filename="recto-export.ndjson"', "cache-control": "no-store"}


class MeShape(TypedDict):
    """The current user. An `operator` may read server-wide data; `tier` selects limits."""

    user: str
    operator: bool
    tier: str


class UserDeletedShape(TypedDict):
    """The number of deleted items."""

    threads: int
    profiles: int
    days: int
    attachments: int
    datasets: int
    stopped: Sequence[str]


ME_EXAMPLE: MeShape = {"user": "anna", "operator": False, "tier": "free"}
USER_DELETED_EXAMPLE: UserDeletedShape = {
    "threads": 3,
    "profiles": 1,
    "days": 12,
    "attachments": 5,
    "datasets": 0,
    "stopped": [],
}


async def get_me(request: Request) -> Response:
    """Return the user of your credential."""
    name = user_of(request).name
    kept = await backend_of(request).store.whole_profile(name)
    answer: MeShape = {"user": name, "operator": is_operator(request), "tier": kept.tier}
    return json_answer(answer)


async def export_me(request: Request) -> Response:
    """Export all your data: one JSON object per line, each with its `type`."""
    lines = backend_of(request).store.export_user(user_of(request).name)
    return StreamingResponse(lines, headers=HEADERS, media_type=LINES)


async def delete_me(
    request: Request,
    confirm: Annotated[str | None, in_query("Your user name, to show that you mean it.")] = None,
) -> Response:
    """Delete all your data permanently."""
    backend, name = backend_of(request), user_of(request).name
    if confirm != name:
        raise WireError(where="confirm", problem=f"must be your user name, {name!r}: all there is of you is deleted")
    gone = await backend.store.delete_user(name, today=backend.clock().astimezone(UTC).date())
    stop(backend, gone.stopped)
    await backend.files.forget(gone.blobs)
    if backend.workspaces:
        await sweep_workspaces(backend.workspaces.root, backend.store.known_threads)
    if backend.snapshots:
        await sweep_workspaces(backend.snapshots.root, backend.store.known_threads)
    await backend.forget_gone()
    answer: UserDeletedShape = {
        "threads": gone.threads,
        "profiles": gone.profiles,
        "days": gone.days,
        "attachments": gone.attachments,
        "datasets": gone.datasets,
        "stopped": [run.id for run in gone.stopped],
    }
    return json_answer(answer)


ROUTES = (
    Route(method="GET", path=ME, handler=get_me, tag="me", answer=MeShape, examples={"answer": ME_EXAMPLE}),
    Route(method="GET", path=f"{ME}/export", handler=export_me, tag="me", text=LINES),
    Route(
        method="DELETE",
        path=ME,
        handler=delete_me,
        tag="me",
        answer=UserDeletedShape,
        refusals=(422,),
        examples={"answer": USER_DELETED_EXAMPLE},
    ),
)
