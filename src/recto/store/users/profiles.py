"""SQL of profiles: what is kept of a user, field by field and skill by skill, and their tier.

A change is merged as RFC 7396 says: null forgets, objects are merged name by name, all else is replaced.
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
from recto.store.runs.run_queue import IS_HELD, mine
from recto.store.schema import PROFILE_FIELDS, PROFILES, RUNS, SKILL_DATA, micros, moment
from recto.store.statement import Statement, upsert

MOST_FIELDS, NAME_CHARACTERS, TIER_CHARACTERS, USER_CHARACTERS = 64, 64, 32, 256
NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_CHARACTERS}}}")
TIER = re.compile(rf"[a-z0-9_-]{{1,{TIER_CHARACTERS}}}")
# What a skill knows under these names is no field of a profile.
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
    """All that is kept of a user. `updated` is None where nothing ever was."""

    tier: str = FREE_TIER
    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])
    skill_data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    updated: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ProfileChange:
    """What is to be different, by the names of fields and of skills; what is not named stays.

    What is named is merged into what is there, or with `replaces` takes its place, whole; None forgets it either way.
    `check` is shown the named fields as they would be, those that would be gone left out; what it raises is raised, and
    nothing changes. `lease` is that of the run it is written for: one that another worker has, or that was deleted with
    its user, writes nothing (LeaseLost).
    """

    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])
    skill_data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    replaces: bool = False
    check: CheckFields | None = None
    lease: Lease | None = None


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """A table of JSON by owner and name."""

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
# Who writes this row has the profile to themselves until the end of the transaction.
ROW = ("owner", "tier", "updated")
TOUCH = upsert(PROFILES, ("owner",), ("updated",), ROW)
SET_TIER = upsert(PROFILES, ("owner",), ("tier", "updated"), ROW)
FIND = Statement(select(PROFILES.c.tier, PROFILES.c.updated).where(PROFILES.c.owner == bindparam("owner_is")))
_mine = and_(SKILL_DATA.c.owner == bindparam("owner_is"), SKILL_DATA.c.skill == bindparam("skill_is"))
FIND_DATA = Statement(select(SKILL_DATA.c.body).where(_mine))
FIND_HELD = Statement(select(RUNS.c.id).where(IS_HELD))


def fields_of(connection: Connection, owner: str, names: Sequence[str]) -> dict[str, Json]:
    """Those of these fields that are kept of a user."""
    columns = PROFILE_FIELDS.c
    query = select(columns.field, columns.body).where(columns.owner == owner, columns.field.in_(names))
    return {name: load(body) for name, body in sorted(connection.execute(query).all())}


def data_of(connection: Connection, owner: str, skill: str) -> Json:
    """What a skill has kept of a user; None: nothing."""
    rows = FIND_DATA.rows(connection, {"owner_is": owner, "skill_is": skill})
    return load(cast("bytes", rows[0][0])) if rows else None


def whole(connection: Connection, owner: str) -> StoredProfile:
    """All that is kept of a user."""
    rows = FIND.rows(connection, {"owner_is": owner})
    if not rows:
        return StoredProfile()
    tier, updated = cast("tuple[str, int]", rows[0])
    fields, skills = (_values(connection, owner, kept) for kept in KEPT)
    return StoredProfile(tier=tier, fields=fields, skill_data=skills, updated=moment(updated))


def change(connection: Connection, owner: str, change: ProfileChange, now: datetime, most: int) -> StoredProfile:
    """Merge a change into a profile, which may have so many bytes; more, and more than its fields: Refused."""
    for name in (*change.fields, *change.skill_data):
        check_name(name)
    for name in RESERVED & change.fields.keys():
        raise WireError(where=name, problem=TAKEN)
    if not change.fields and not change.skill_data:
        return whole(connection, owner)
    TOUCH.count(connection, {"owner": owner, "tier": FREE_TIER, "updated": micros(now)})
    if change.lease and not FIND_HELD.rows(connection, mine(change.lease)):
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
    """Give a user a tier. The user may be one who never came."""
    if not 0 < len(owner) <= USER_CHARACTERS or "\0" in owner or scrub(owner) != owner:
        raise WireError(where="user", problem=NO_USER)
    if not TIER.fullmatch(tier):
        raise WireError(where="tier", problem=NO_TIER)
    SET_TIER.count(connection, {"owner": owner, "tier": tier, "updated": micros(now)})


def check_name(name: str) -> None:
    """Refuse what is no name of a field or of a skill."""
    if not NAME.fullmatch(name):
        raise WireError(where=repr(name[:NAME_CHARACTERS]), problem=NO_NAME)


def merge(old: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    """An object with a patch merged into it, as RFC 7396 says. Neither is changed."""
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
    # Sorted here: databases differ in what comes first.
    return {name: load(body) for name, body in sorted(connection.execute(query).all())}


def _write(connection: Connection, owner: str, kept: _Kept, values: Mapping[str, Json], now: datetime) -> None:
    gone = [{"owner_is": owner, "name_is": name} for name, value in values.items() if value is None]
    rows = [
        {"owner": owner, kept.name: name, "body": dump(value), "updated": micros(now)}
        for name, value in values.items()
        if value is not None
    ]
    FORGET[kept.name].many(connection, gone)
    PUT[kept.name].many(connection, rows)


def _size(connection: Connection, owner: str) -> int:
    """The bytes of a profile, names and values. More names than there may be: Refused."""
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
    # Where the limit was lowered since, a profile may still become smaller.
    if size > max(most, before):
        raise Refused(FULL.format(size=size, most=most), where="profile")
