"""Users: profiles, tiers, spending and savings.

A change is merged into a profile by RFC 7396: null deletes a value, objects merge by name, all other values are
replaced.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import cast

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, select

from recto.conversation.json import Json, dump, load, scrub
from recto.errors import InvalidRequest, LeaseLost, WireError
from recto.skills.known_data import FREE_TIER
from recto.store.database.database import Repository, read_transaction, write_transaction
from recto.store.ports import CallEnd, Lease
from recto.store.runs.run_rows import IS_HELD, lease_values
from recto.store.runs.spending import DailySaving, DailySpending, add_spending_of_user, read_savings, read_spending
from recto.store.schema import PROFILE_FIELDS, PROFILES, RUNS, SKILL_DATA, from_micros, to_micros
from recto.store.statement import Statement, upsert
from recto.store.users.user_data import DeletedUser, delete_user, export_user

MAX_FIELDS, NAME_CHARACTERS, TIER_CHARACTERS, USER_CHARACTERS = 64, 64, 32, 256
NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_CHARACTERS}}}")
TIER = re.compile(rf"[a-z0-9_-]{{1,{TIER_CHARACTERS}}}")
# Names that skills use for other values.
RESERVED = frozenset({"tier", "scenario", "skill_data"})
NO_NAME = f"is not a valid name; use 1 to {NAME_CHARACTERS} letters and digits of ASCII, `_` or `-`"
RESERVED_NAME = "is reserved; use another name"
NO_USER = f"must be a name of 1 to {USER_CHARACTERS} characters of Unicode, without U+0000"
NO_TIER = f"must be 1 to {TIER_CHARACTERS} lower-case letters and digits of ASCII, `_` or `-`"
FULL = "The profile would have {size:,} bytes; the limit is {most:,}. Delete values first."
MANY = "The profile would have {many:,} {what}; the limit is {most:,}. Delete some first."

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
    """Changes by the name of a field or a skill. Other names stay unchanged.

    A value is merged into the stored value, or replaces it if `replaces` is True; None deletes it. `check` receives the
    changed fields and rejects the change by raising. With the `lease` of a run, a write raises LeaseLost after the
    lease is lost.
    """

    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])
    skill_data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    replaces: bool = False
    check: CheckFields | None = None
    lease: Lease | None = None


@dataclass(frozen=True, kw_only=True)
class _ValueTable:
    """A table of JSON values by owner and name, and its statements."""

    table: Table
    name: str
    what: str
    put: Statement
    delete: Statement


def _make_value_table(table: Table, name: str, what: str) -> _ValueTable:
    is_value = and_(table.c.owner == bindparam("owner_is"), table.c[name] == bindparam("name_is"))
    return _ValueTable(
        table=table,
        name=name,
        what=what,
        put=upsert(table, ("owner", name), ("body", "updated"), ("owner", name, "body", "updated")),
        delete=Statement(delete(table).where(is_value)),
    )


FIELDS = _make_value_table(PROFILE_FIELDS, "field", "fields")
SKILLS = _make_value_table(SKILL_DATA, "skill", "skills with data")
PROFILE_COLUMNS = ("owner", "tier", "updated")
# Statement that locks a profile until the end of the transaction by writing its row.
TOUCH = upsert(PROFILES, ("owner",), ("updated",), PROFILE_COLUMNS)
SET_TIER = upsert(PROFILES, ("owner",), ("tier", "updated"), PROFILE_COLUMNS)
FIND = Statement(select(PROFILES.c.tier, PROFILES.c.updated).where(PROFILES.c.owner == bindparam("owner_is")))
_is_own = and_(SKILL_DATA.c.owner == bindparam("owner_is"), SKILL_DATA.c.skill == bindparam("skill_is"))
FIND_SKILL_DATA = Statement(select(SKILL_DATA.c.body).where(_is_own))
FIND_HELD = Statement(select(RUNS.c.id).where(IS_HELD))


class Users(Repository):
    """Profiles, tiers, spending and savings of users."""

    async def read_fields(self, owner: str, names: Sequence[str]) -> Mapping[str, Json]:
        """Return the given fields that a user's profile contains. Without names, run no query."""
        return await self._read_fields(owner, names) if names else {}

    @read_transaction
    def _read_fields(self, connection: Connection, owner: str, names: Sequence[str]) -> Mapping[str, Json]:
        columns = PROFILE_FIELDS.c
        query = select(columns.field, columns.body).where(columns.owner == owner, columns.field.in_(names))
        return {name: load(body) for name, body in sorted(connection.execute(query).all())}

    @read_transaction
    def read_skill_data(self, connection: Connection, owner: str, skill: str) -> Json:
        """Return the data that a skill stored about a user, or None."""
        rows = FIND_SKILL_DATA.rows(connection, {"owner_is": owner, "skill_is": skill})
        return load(cast("bytes", rows[0][0])) if rows else None

    @read_transaction
    def read_profile(self, connection: Connection, owner: str) -> StoredProfile:
        """Return a user's whole profile."""
        return _read_profile(connection, owner)

    @write_transaction
    def change_profile(
        self, connection: Connection, owner: str, change: ProfileChange, now: datetime, limit_bytes: int
    ) -> StoredProfile:
        """Merge a change into a profile (RFC 7396). Concurrent changes of one user are serialized, so both apply.

        Raise WireError for an invalid name, InvalidRequest if the profile would be too large. After an error, the
        profile is unchanged.
        """
        for name in (*change.fields, *change.skill_data):
            if not NAME.fullmatch(name):
                raise WireError(where=repr(name[:NAME_CHARACTERS]), problem=NO_NAME)
        for name in RESERVED & change.fields.keys():
            raise WireError(where=name, problem=RESERVED_NAME)
        if not change.fields and not change.skill_data:
            return _read_profile(connection, owner)
        TOUCH.count(connection, {"owner": owner, "tier": FREE_TIER, "updated": to_micros(now)})
        if change.lease and not FIND_HELD.rows(connection, lease_values(change.lease)):
            raise LeaseLost(run=change.lease.run, fence=change.lease.fence)
        before, old = _measure_profile(connection, owner), _read_profile(connection, owner)
        combine = _replace if change.replaces else merge
        fields, skills = combine(old.fields, change.fields), combine(old.skill_data, change.skill_data)
        if change.check:
            change.check({name: fields[name] for name in change.fields if name in fields})
        for target, values, names in ((FIELDS, fields, change.fields), (SKILLS, skills, change.skill_data)):
            _write_values(connection, owner, target, {name: values.get(name) for name in names}, now)
        size = _measure_profile(connection, owner)
        # If the limit was lowered, a larger profile may still shrink.
        if size > max(limit_bytes, before):
            raise InvalidRequest(FULL.format(size=size, most=limit_bytes), where="profile")
        return _read_profile(connection, owner)

    @write_transaction
    def set_tier(self, connection: Connection, owner: str, tier: str, now: datetime) -> None:
        """Set the tier of a new or existing user. It applies to runs admitted from now on.

        Raise WireError for an invalid tier.
        """
        if not 0 < len(owner) <= USER_CHARACTERS or "\0" in owner or scrub(owner) != owner:
            raise WireError(where="user", problem=NO_USER)
        if not TIER.fullmatch(tier):
            raise WireError(where="tier", problem=NO_TIER)
        SET_TIER.count(connection, {"owner": owner, "tier": tier, "updated": to_micros(now)})

    @read_transaction
    def read_spending(self, connection: Connection, owner: str, day: date) -> DailySpending:
        """Return a user's usage on a day (UTC)."""
        return read_spending(connection, owner, day)

    @write_transaction
    def add_spending(self, connection: Connection, owner: str, call: CallEnd) -> None:
        """Add the usage of a call without a run to its user's day."""
        add_spending_of_user(connection, owner, call)

    @read_transaction
    def read_savings(
        self, connection: Connection, owner: str, since: date, until: date, agent: str | None = None
    ) -> list[DailySaving]:
        """Return a user's savings and prefix breaks between two days (UTC, inclusive), of one agent or of all."""
        return read_savings(connection, owner, since, until, agent)

    def export(self, owner: str) -> AsyncGenerator[bytes]:
        """Yield a user's data as JSON lines."""
        return export_user(self.database, owner)

    async def delete(self, owner: str, *, today: date | None = None) -> DeletedUser:
        """Delete all data of a user except the spending of `today`, which is needed for the daily limit."""
        return await delete_user(self.database, owner, today)


def merge(old: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    """Return an object with a patch merged into it (RFC 7396)."""
    result = dict(old)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            inner = result.get(name)
            result[name] = merge(inner if isinstance(inner, Mapping) else {}, value)
        else:
            result[name] = value
    return result


def _replace(old: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in {**old, **new}.items() if value is not None}


def _read_profile(connection: Connection, owner: str) -> StoredProfile:
    rows = FIND.rows(connection, {"owner_is": owner})
    if not rows:
        return StoredProfile()
    tier, updated = cast("tuple[str, int]", rows[0])
    values: list[dict[str, Json]] = []
    for source in (FIELDS, SKILLS):
        columns = source.table.c
        query = select(columns[source.name], columns.body).where(columns.owner == owner)
        # Sort here, because databases collate differently.
        values.append({name: load(body) for name, body in sorted(connection.execute(query).all())})
    fields, skills = values
    return StoredProfile(tier=tier, fields=fields, skill_data=skills, updated=from_micros(updated))


def _write_values(
    connection: Connection, owner: str, target: _ValueTable, values: Mapping[str, Json], now: datetime
) -> None:
    removed = [{"owner_is": owner, "name_is": name} for name, value in values.items() if value is None]
    rows = [
        {"owner": owner, target.name: name, "body": dump(value), "updated": to_micros(now)}
        for name, value in values.items()
        if value is not None
    ]
    target.delete.run_many(connection, removed)
    target.put.run_many(connection, rows)


def _measure_profile(connection: Connection, owner: str) -> int:
    """Return the size of a profile in bytes, names and values. Raise InvalidRequest if it has too many names."""
    size = 0
    for source in (FIELDS, SKILLS):
        length = func.length(source.table.c[source.name]) + func.length(source.table.c.body)
        query = select(func.count(), func.coalesce(func.sum(length), 0)).where(source.table.c.owner == owner)
        count, length_sum = connection.execute(query).one()
        if count > MAX_FIELDS:
            raise InvalidRequest(MANY.format(many=count, what=source.what, most=MAX_FIELDS), where="profile")
        size += int(length_sum)
    return size
