"""SQL of profiles: fields and skill data of a user, and their tier.

A change is merged by RFC 7396: null deletes, objects merge by name, all else is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, select

from recto.conversation.json import Json, dump, load, scrub
from recto.errors import LeaseLost, Refused, WireError
from recto.skills.known import FREE_TIER
from recto.store.ports import Lease
from recto.store.runs.run_queue import IS_HELD, lease_values
from recto.store.schema import PROFILE_FIELDS, PROFILES, RUNS, SKILL_DATA, from_micros, to_micros
from recto.store.statement import Statement, upsert

MOST_FIELDS, NAME_CHARACTERS, TIER_CHARACTERS, USER_CHARACTERS = 64, 64, 32, 256
NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_CHARACTERS}}}")
TIER = re.compile(rf"[a-z0-9_-]{{1,{TIER_CHARACTERS}}}")
# Names that skills use for other values.
RESERVED = frozenset({"tier", "scenario", "skill_data"})
NO_NAME = f"is no name; use 1 to {NAME_CHARACTERS} letters and digits of ASCII, `_` or `-`"
TAKEN = "is no field of a profile; give yours another name"
NO_USER = f"must be a name of 1 to {USER_CHARACTERS} characters of Unicode, without U+0000"
NO_TIER = f"must be 1 to {TIER_CHARACTERS} lower-case letters and digits of ASCII, `_` or `-`"
FULL = "The profile would have {size:,} bytes; it may have {most:,}. Keep less, or forget what is no longer needed."
MANY = "The profile would have {many:,} {what}; it may have {most:,}. Forget one that is no longer needed."

CheckFields = Callable[[Mapping[str, Json]], None]


@dataclass(frozen=True, kw_only=True)
class StoredProfile:
    """A user's profile. `updated` is None if nothing was ever stored."""

    tier: str = FREE_TIER
    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])
    skill_data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    updated: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ProfileChange:
    """Changes by name of field and skill; other names stay.

    A value is merged into the stored one, or replaces it with `replaces`; None deletes it. `check` gets the changed
    fields as they would be; if it raises, nothing changes. With the `lease` of a run, a write after the loss of that
    lease raises LeaseLost.
    """

    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])
    skill_data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    replaces: bool = False
    check: CheckFields | None = None
    lease: Lease | None = None


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """A table of JSON values by owner and name."""

    table: Table
    name: str
    what: str


FIELDS = _Kept(table=PROFILE_FIELDS, name="field", what="fields")
SKILLS = _Kept(table=SKILL_DATA, name="skill", what="skills with data")
KEPT = (FIELDS, SKILLS)


def _put_json(kept: _Kept) -> Statement:
    written = ("body", "updated")
    return upsert(kept.table, ("owner", kept.name), written, ("owner", kept.name, *written))


def _forget(kept: _Kept) -> Statement:
    columns = kept.table.c
    mine = columns.owner == bindparam("owner_is")
    return Statement(delete(kept.table).where(mine, columns[kept.name] == bindparam("name_is")))


PUT = {kept.name: _put_json(kept) for kept in KEPT}
FORGET = {kept.name: _forget(kept) for kept in KEPT}
# Writing this row locks the profile until the end of the transaction.
ROW = ("owner", "tier", "updated")
TOUCH = upsert(PROFILES, ("owner",), ("updated",), ROW)
SET_TIER = upsert(PROFILES, ("owner",), ("tier", "updated"), ROW)
FIND = Statement(select(PROFILES.c.tier, PROFILES.c.updated).where(PROFILES.c.owner == bindparam("owner_is")))
_mine = and_(SKILL_DATA.c.owner == bindparam("owner_is"), SKILL_DATA.c.skill == bindparam("skill_is"))
FIND_DATA = Statement(select(SKILL_DATA.c.body).where(_mine))
FIND_HELD = Statement(select(RUNS.c.id).where(IS_HELD))


def fields_of(connection: Connection, owner: str, names: Sequence[str]) -> dict[str, Json]:
    """Return those of these fields that a user's profile has."""
    columns = PROFILE_FIELDS.c
    query = select(columns.field, columns.body).where(columns.owner == owner, columns.field.in_(names))
    return {name: load(body) for name, body in sorted(connection.execute(query).all())}


def data_of(connection: Connection, owner: str, skill: str) -> Json:
    """Return the data that a skill stored about a user, or None."""
    rows = FIND_DATA.rows(connection, {"owner_is": owner, "skill_is": skill})
    return load(cast("bytes", rows[0][0])) if rows else None


def whole(connection: Connection, owner: str) -> StoredProfile:
    """Return a user's whole profile."""
    rows = FIND.rows(connection, {"owner_is": owner})
    if not rows:
        return StoredProfile()
    tier, updated = cast("tuple[str, int]", rows[0])
    fields, skills = (_values(connection, owner, kept) for kept in KEPT)
    return StoredProfile(tier=tier, fields=fields, skill_data=skills, updated=from_micros(updated))


def change(connection: Connection, owner: str, change: ProfileChange, now: datetime, most: int) -> StoredProfile:
    """Merge a change into a profile (RFC 7396). Concurrent changes of one user are serialized, so both apply.

    Raise WireError for an invalid name, Refused if the profile would be too large. Then nothing changes.
    """
    for name in (*change.fields, *change.skill_data):
        check_name(name)
    for name in RESERVED & change.fields.keys():
        raise WireError(where=name, problem=TAKEN)
    if not change.fields and not change.skill_data:
        return whole(connection, owner)
    TOUCH.count(connection, {"owner": owner, "tier": FREE_TIER, "updated": to_micros(now)})
    if change.lease and not FIND_HELD.rows(connection, lease_values(change.lease)):
        raise LeaseLost(run=change.lease.run, fence=change.lease.fence)
    before, old = _size(connection, owner), whole(connection, owner)
    combine = _replace if change.replaces else merge
    fields, skills = combine(old.fields, change.fields), combine(old.skill_data, change.skill_data)
    if change.check:
        change.check({name: fields[name] for name in change.fields if name in fields})
    for kept, values, names in ((FIELDS, fields, change.fields), (SKILLS, skills, change.skill_data)):
        _write(connection, owner, kept, {name: values.get(name) for name in names}, now)
    _check_size(_size(connection, owner), before, most)
    return whole(connection, owner)


def set_tier(connection: Connection, owner: str, tier: str, now: datetime) -> None:
    """Set a user's tier for runs admitted from now on. The user may be new. Raise WireError for an invalid tier."""
    if not 0 < len(owner) <= USER_CHARACTERS or "\0" in owner or scrub(owner) != owner:
        raise WireError(where="user", problem=NO_USER)
    if not TIER.fullmatch(tier):
        raise WireError(where="tier", problem=NO_TIER)
    SET_TIER.count(connection, {"owner": owner, "tier": tier, "updated": to_micros(now)})


def check_name(name: str) -> None:
    """Raise WireError if a name is not valid for a field or a skill."""
    if not NAME.fullmatch(name):
        raise WireError(where=repr(name[:NAME_CHARACTERS]), problem=NO_NAME)


def merge(old: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    """Return an object with a patch merged into it (RFC 7396)."""
    merged = dict(old)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            inner = merged.get(name)
            merged[name] = merge(inner if isinstance(inner, Mapping) else {}, value)
        else:
            merged[name] = value
    return merged


def _replace(old: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in {**old, **new}.items() if value is not None}


def _values(connection: Connection, owner: str, kept: _Kept) -> dict[str, Json]:
    columns = kept.table.c
    query = select(columns[kept.name], columns.body).where(columns.owner == owner)
    # Sorted here, because databases collate differently.
    return {name: load(body) for name, body in sorted(connection.execute(query).all())}


def _write(connection: Connection, owner: str, kept: _Kept, values: Mapping[str, Json], now: datetime) -> None:
    gone = [{"owner_is": owner, "name_is": name} for name, value in values.items() if value is None]
    rows = [
        {"owner": owner, kept.name: name, "body": dump(value), "updated": to_micros(now)}
        for name, value in values.items()
        if value is not None
    ]
    FORGET[kept.name].run_many(connection, gone)
    PUT[kept.name].run_many(connection, rows)


def _size(connection: Connection, owner: str) -> int:
    """Return the size of a profile in bytes, names and values. Raise Refused if it has too many names."""
    size = 0
    for kept in KEPT:
        length = func.length(kept.table.c[kept.name]) + func.length(kept.table.c.body)
        query = select(func.count(), func.coalesce(func.sum(length), 0)).where(kept.table.c.owner == owner)
        many, bytes_of_it = connection.execute(query).one()
        if many > MOST_FIELDS:
            raise Refused(MANY.format(many=many, what=kept.what, most=MOST_FIELDS), where="profile")
        size += int(bytes_of_it)
    return size


def _check_size(size: int, before: int, most: int) -> None:
    # A profile above a limit that was lowered may still shrink.
    if size > max(most, before):
        raise Refused(FULL.format(size=size, most=most), where="profile")
