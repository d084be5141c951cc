"""Routes of your own account: user, export, deletion, profile and tier."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from typing_extensions import TypedDict

from recto.agents.profile_schema import check_profile
from recto.api.backend import backend_of, is_operator, user_of
from recto.api.bodies import NUL, NUL_ESCAPE, parse_json, read_body
from recto.api.problems import operator_problem
from recto.api.route import MERGE_MEDIA, Route, in_path, in_query
from recto.api.threads.routes import stop
from recto.conversation.history import time_text
from recto.conversation.json import Json, load
from recto.errors import ToolError, WireError
from recto.store.users.users import ProfileChange, StoredProfile
from recto.tools.client_schema import measure_json
from recto.tools.workspace.workspaces import sweep_workspaces

ME = "/api/v1/agent/me"
LINES = "application/x-ndjson"
EXPORT_HEADERS = {"content-disposition": 'attachment; filename="recto-export.ndjson"', "cache-control": "no-store"}
PROFILE, TIER = "/api/v1/profile", "/api/v1/users/{user}/tier"
# Maximum nesting depth of a body.
DEEPEST = 32
# TOKEN matches strings and numbers of a JSON text, MANY_DIGITS integers that may exceed 64 bits.
TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|-?[0-9][0-9.eE+-]*')
MANY_DIGITS = re.compile(rb"[0-9]{19}")
LEAST, MOST = -(2**63), 2**64 - 1
NAME_CHARACTERS = 64
HAS_NUL = "{text!r} contains the character U+0000, which cannot be stored. Remove it"
TOO_BIG = "the integer {number} has more than 64 bits. Send it as a string"
SKILL_DATA = "skill_data"
SchemaAgent = Annotated[str | None, in_query("The agent whose profile schema applies; by default the agent of /chat.")]
UserName = Annotated[str, in_path("The user's name.")]


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


class ProfileShape(TypedDict):
    """Your profile, and the data of each skill by name."""

    tier: str
    profile: Mapping[str, object]
    skillData: Mapping[str, object]
    updated: str | None


class ProfileBody(BaseModel):
    """A merge patch (RFC 7396): null deletes, objects are merged, other values replace. Missing names stay unchanged.

    Every name except `skill_data` is a field of the profile.
    """

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"example": {"birth_info": {"date": "1990-05-15"}, "skill_data": {"bazi": None}}},
    )

    birth_info: dict[str, object] | None = None
    life_context: dict[str, object] | None = None
    skill_data: dict[str, object] = {}


class TierBody(BaseModel):
    """The tier to assign."""

    tier: str = Field(pattern="^[a-z0-9_-]{1,32}$")


class TierShape(TypedDict):
    """A user's tier."""

    user: str
    tier: str


async def get_me(request: Request) -> MeShape:
    """Return the user of your credential."""
    name = user_of(request).name
    profile = await backend_of(request).store.users.read_profile(name)
    return {"user": name, "operator": is_operator(request), "tier": profile.tier}


async def export_me(request: Request) -> Response:
    """Export all your data: one JSON object per line, each with its `type`."""
    lines = backend_of(request).store.users.export(user_of(request).name)
    return StreamingResponse(lines, headers=EXPORT_HEADERS, media_type=LINES)


async def delete_me(
    request: Request, confirm: Annotated[str | None, in_query("Your user name, as confirmation.")] = None
) -> UserDeletedShape:
    """Delete all your data permanently."""
    backend, name = backend_of(request), user_of(request).name
    if confirm != name:
        raise WireError(where="confirm", problem=f"must be your user name, {name!r}, to delete all your data")
    deleted = await backend.store.users.delete(name, today=backend.clock().astimezone(UTC).date())
    stop(backend.runs, deleted.stopped)
    await backend.files.attachments.delete_blobs(deleted.blobs)
    for folders in filter(None, (backend.files.workspaces, backend.files.snapshots)):
        await sweep_workspaces(folders.root, backend.store.threads.find_existing)
    await backend.operations.forget_deleted()
    return {
        "threads": deleted.threads,
        "profiles": deleted.profiles,
        "days": deleted.days,
        "attachments": deleted.attachments,
        "datasets": deleted.datasets,
        "stopped": [run.id for run in deleted.stopped],
    }


async def get_profile(request: Request, agent: SchemaAgent = None) -> ProfileShape:
    """Return your profile, your skill data and your tier."""
    backend = backend_of(request)
    if agent is not None:
        backend.agents.require(agent, "agent")
    return _row(await backend.store.users.read_profile(user_of(request).name))


async def change_profile(request: Request, agent: SchemaAgent = None) -> ProfileShape:
    """Change your profile with a merge patch (RFC 7396); `skill_data` changes or deletes the data of skills."""
    backend = backend_of(request)
    if agent is not None:
        backend.agents.require(agent, "agent")
    body = await _read_object(request)
    data = body.get(SKILL_DATA, {})
    if not isinstance(data, Mapping):
        raise WireError(where=SKILL_DATA, problem="must be an object by skill name; null deletes the data of a skill")
    name, now = agent or backend.agents.chat, backend.clock()

    def check(fields: Mapping[str, Json]) -> None:
        """Reject fields that the agent could not use (S6)."""
        schema = backend.agents.by_name[name].profile_schema if name in backend.agents.by_name else None
        if schema and (error := check_profile(fields, schema)):
            raise WireError(where="profile", problem=f"{error}. Follow the profile schema of agent {name!r}")
        try:
            for profile_check in backend.agents.tools_of(name).profile_checks():
                profile_check(fields, now)
        except ToolError as error:
            raise WireError(where="profile", problem=str(error)) from error

    fields = {field: value for field, value in body.items() if field != SKILL_DATA}
    change = ProfileChange(fields=fields, skill_data=data, check=check)
    return _row(await backend.store.users.change_profile(user_of(request).name, change, now, backend.profile_bytes))


async def set_tier(request: Request, user: UserName) -> TierShape | Response:
    """Assign a tier to a user, for all later runs. For operators."""
    backend = backend_of(request)
    if not is_operator(request):
        return operator_problem(request, "assign tiers")
    value = (await _read_object(request)).get("tier")
    tier = value if isinstance(value, str) else ""
    await backend.store.users.set_tier(user, tier, backend.clock())
    return {"user": user, "tier": tier}


async def _read_object(request: Request) -> Mapping[str, Json]:
    """Parse the body as an object that can be stored exactly as sent."""
    body = await read_body(request, name="Request body")
    value = parse_json(body)
    if not isinstance(value, Mapping):
        raise WireError(where="body", problem="must be a JSON object")
    if measure_json(value)[1] > DEEPEST:
        raise WireError(where="body", problem=f"is nested more than {DEEPEST} levels deep")
    if NUL_ESCAPE in body or MANY_DIGITS.search(body):
        for token in TOKEN.findall(body):
            # Reject a string with U+0000, and an integer of more than 64 bits, which the parser reads as a float.
            if token.startswith(b'"'):
                if NUL_ESCAPE in token and NUL in (text := str(load(token))):
                    raise WireError(where="body", problem=HAS_NUL.format(text=text[:NAME_CHARACTERS]))
            elif token.lstrip(b"-").isdigit() and not LEAST <= int(token) <= MOST:
                raise WireError(where="body", problem=TOO_BIG.format(number=token[:NAME_CHARACTERS].decode()))
    return value


def _row(profile: StoredProfile) -> ProfileShape:
    return {
        "tier": profile.tier,
        "profile": profile.fields,
        "skillData": profile.skill_data,
        "updated": time_text(profile.updated) if profile.updated else None,
    }


ROUTES = (
    Route("GET", ME, get_me, "me"),
    Route("GET", f"{ME}/export", export_me, "me", text=LINES),
    Route("DELETE", ME, delete_me, "me", errors=(422,)),
    Route("GET", PROFILE, get_profile, "profile", errors=(422,)),
    Route("PATCH", PROFILE, change_profile, "profile", body=ProfileBody, more_media=(MERGE_MEDIA,), errors=(413, 422)),
    Route("PUT", TIER, set_tier, "profile", body=TierBody, errors=(404, 413, 422)),
)
