"""What profiles and tiers look like, for the description of the API. Rows are written elsewhere."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from recto.api.shapes import TIME
from recto.page.canonical import Json

PROFILE_BODY: Json = {
    "birth_info": {"date": "1990-05-15", "time": "14:30", "place": "北京"},
    "life_context": {"stage": None},
    "skill_data": {"bazi": None},
}
PROFILE_EXAMPLE: Json = {
    "tier": "free",
    "profile": {"birth_info": {"date": "1990-05-15", "time": "14:30", "place": "北京"}},
    "skillData": {"tarot": {"spread": "three"}},
    "updated": TIME,
}
TIER_EXAMPLE: Json = {"user": "anna", "tier": "pro"}


class ProfileShape(BaseModel):
    """What is kept of you: the fields of your profile, and by its name what each skill keeps."""

    tier: str
    profile: dict[str, object]
    skill_data: dict[str, object] = Field(alias="skillData")
    updated: str | None


class ProfileBody(BaseModel):
    """A merge patch (RFC 7396): null forgets, objects are merged, all else is replaced; what is not named stays.

    Every name but `skill_data` is a field of the profile.
    """

    model_config = ConfigDict(extra="allow")

    birth_info: dict[str, object] | None = None
    life_context: dict[str, object] | None = None
    skill_data: dict[str, object] = {}


class TierBody(BaseModel):
    """What a user is to be."""

    tier: str = Field(pattern="^[a-z0-9_-]{1,32}$")


class TierShape(BaseModel):
    """What a user is."""

    user: str
    tier: str
