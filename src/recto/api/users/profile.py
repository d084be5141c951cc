"""Routes of user profiles and tiers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.agents.profile_schema import check_profile
from recto.api.backend import Backend, agent_named, backend_of, is_operator, json_answer, user_of
from recto.api.bodies import NUL, NUL_ESCAPE, read_body
from recto.api.parameters import in_path, in_query
from recto.api.problems import refuse_user
from recto.api.route import MERGE_MEDIA, TIME, Route
from recto.conversation.history import time_text
from recto.conversation.json import Json, load
from recto.errors import ToolError, WireError
from recto.store.users.profiles import ProfileChange, StoredProfile
from recto.tools.schema_cost import size

PROFILE, TIER = "/api/v1/profile", "/api/v1/users/{user}/tier"
# Maximum nesting depth of a body.
DEEPEST = 32
# Strings and numbers of a JSON text. Integers with this many digits may exceed 64 bits.
TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|-?[0-9][0-9.eE+-]*')
MANY_DIGITS = re.compile(rb"[0-9]{19}")
LEAST, MOST = -(2**63), 2**64 - 1
SHOWN = 64
HAS_NUL = "{text!r} holds the character U+0000, which cannot be stored; take it out"
TOO_BIG = "the whole number {number} has more than 64 bits and would be kept as another; send it as a string"
SKILL_DATA = "skill_data"
SchemaAgent = Annotated[str | None, in_query("Whose schema a change keeps; by default, of who answers on /chat.")]
UserName = Annotated[str, in_path("The user's name.")]


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

    model_config = ConfigDict(extra="allow")

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


PROFILE_BODY: Json = {
    "birth_info": {"date": "1990-05-15", "time": "14:30", "place": "北京"},
    "life_context": {"stage": None},
    "skill_data": {"bazi": None},
}
PROFILE_EXAMPLE: ProfileShape = {
    "tier": "free",
    "profile": {"birth_info": {"date": "1990-05-15", "time": "14:30", "place": "北京"}},
    "skillData": {"tarot": {"spread": "three"}},
    "updated": TIME,
}
TIER_EXAMPLE: TierShape = {"user": "anna", "tier": "pro"}


async def get_profile(request: Request, agent: SchemaAgent = None) -> Response:
    """Return your profile, your skill data and your tier."""
    backend = backend_of(request)
    if agent is not None:
        agent_named(backend, agent, "agent")
    return json_answer(_row(await backend.store.whole_profile(user_of(request).name)))


async def change_profile(request: Request, agent: SchemaAgent = None) -> Response:
    """Change your profile with a merge patch (RFC 7396); `skill_data` changes or deletes the data of skills."""
    backend = backend_of(request)
    if agent is not None:
        agent_named(backend, agent, "agent")
    body = await _object(request)
    data = body.get(SKILL_DATA, {})
    if not isinstance(data, Mapping):
        raise WireError(where=SKILL_DATA, problem="must be an object that names each skill; null forgets what it keeps")
    change = ProfileChange(
        fields={name: value for name, value in body.items() if name != SKILL_DATA},
        skill_data=data,
        check=lambda fields: _check_fields(backend, agent, fields),
    )
    owner, now = user_of(request).name, backend.clock()
    return json_answer(_row(await backend.store.change_profile(owner, change, now, backend.profile_bytes)))


async def set_tier(request: Request, user: UserName) -> Response:
    """Assign a tier to a user, for all later runs. For operators."""
    backend = backend_of(request)
    if not is_operator(request):
        return refuse_user(request, "give users a tier")
    tier = (await _object(request)).get("tier")
    known = tier if isinstance(tier, str) else ""
    await backend.store.set_tier(user, known, backend.clock())
    answer: TierShape = {"user": user, "tier": known}
    return json_answer(answer)


def _check_fields(backend: Backend, agent: str | None, fields: Mapping[str, Json]) -> None:
    """Reject fields that the agent could not use (S6)."""
    name = agent or backend.chat_agent
    schema = backend.agents[name].profile_schema if name in backend.agents else None
    wrong = check_profile(fields, schema) if schema else None
    if wrong:
        raise WireError(where="profile", problem=f"{wrong}. Send what the schema of agent {name!r} allows")
    try:
        for check in backend.profile_checks.get(name, ()):
            check(fields, backend.clock())
    except ToolError as error:
        raise WireError(where="profile", problem=str(error)) from error


async def _object(request: Request) -> Mapping[str, Json]:
    """Parse the body as an object that can be stored exactly as sent."""
    body = await read_body(request, what="Request body")
    try:
        value = load(body)
    except ValueError as error:
        raise WireError(where="body", problem=f"is no JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise WireError(where="body", problem="must be a JSON object")
    if size(value)[1] > DEEPEST:
        raise WireError(where="body", problem=f"is nested more than {DEEPEST} deep; make it flatter")
    if NUL_ESCAPE in body or MANY_DIGITS.search(body):
        for token in TOKEN.findall(body):
            _check_token(token)
    return value


def _check_token(token: bytes) -> None:
    """Reject a string with U+0000, and an integer that JSON would read as a float."""
    if token.startswith(b'"'):
        if NUL_ESCAPE in token and NUL in (text := str(load(token))):
            raise WireError(where="body", problem=HAS_NUL.format(text=text[:SHOWN]))
    elif token.lstrip(b"-").isdigit() and not LEAST <= int(token) <= MOST:
        raise WireError(where="body", problem=TOO_BIG.format(number=token[:SHOWN].decode()))


def _row(profile: StoredProfile) -> ProfileShape:
    return {
        "tier": profile.tier,
        "profile": profile.fields,
        "skillData": profile.skill_data,
        "updated": time_text(profile.updated) if profile.updated else None,
    }


ROUTES = (
    Route(
        method="GET",
        path=PROFILE,
        handler=get_profile,
        tag="profile",
        answer=ProfileShape,
        refusals=(422,),
        examples={"answer": PROFILE_EXAMPLE},
    ),
    Route(
        method="PATCH",
        path=PROFILE,
        handler=change_profile,
        tag="profile",
        body=ProfileBody,
        more_media=(MERGE_MEDIA,),
        answer=ProfileShape,
        refusals=(413, 422),
        examples={"body": PROFILE_BODY, "answer": PROFILE_EXAMPLE},
    ),
    Route(
        method="PUT",
        path=TIER,
        handler=set_tier,
        tag="profile",
        body=TierBody,
        answer=TierShape,
        refusals=(404, 413, 422),
        examples={"body": {"tier": "pro"}, "answer": TIER_EXAMPLE},
    ),
)
