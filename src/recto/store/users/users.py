"""Profiles, tiers, spending and savings of users."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import date, datetime
from functools import partial

from recto.conversation.json import Json
from recto.store.database.database import Database
from recto.store.ports import (
    CallEnd,
)
from recto.store.runs import daily_savings, spending
from recto.store.runs.daily_savings import DailySaving
from recto.store.users import export, profiles
from recto.store.users.profiles import ProfileChange, StoredProfile


class Users:
    """Profiles, tiers, spending and savings of users."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read_fields(self, owner: str, names: Sequence[str]) -> Mapping[str, Json]:
        """Those of these fields that are kept of a user: one question for all of them, none where none is named."""
        if not names:
            return {}
        return await self._database.read(partial(profiles.fields_of, owner=owner, names=names))

    async def read_skill_data(self, owner: str, skill: str) -> Json:
        """What a skill has kept of a user; None: nothing."""
        return await self._database.read(partial(profiles.data_of, owner=owner, skill=skill))

    async def read_profile(self, owner: str) -> StoredProfile:
        """All that is kept of a user, and their tier."""
        return await self._database.read(partial(profiles.whole, owner=owner))

    async def change_profile(self, owner: str, change: ProfileChange, now: datetime, limit_bytes: int) -> StoredProfile:
        """Merge a change into a profile (RFC 7396). Changes of one user come one after the other, so both stay.

        A name that is none: WireError; more than it may hold: Refused. Either leaves all as it was.
        """
        return await self._database.write(
            partial(profiles.change, owner=owner, change=change, now=now, most=limit_bytes)
        )

    async def set_tier(self, owner: str, tier: str, now: datetime) -> None:
        """Give a user a tier. Runs admitted from now on have it. One that is none: WireError."""
        await self._database.write(partial(profiles.set_tier, owner=owner, tier=tier, now=now))

    async def read_spending(self, owner: str, day: date) -> spending.DailySpending:
        """What a user's calls took on a day, in UTC."""
        return await self._database.read(partial(spending.spent, owner=owner, day=day))

    async def add_spending(self, owner: str, call: CallEnd) -> None:
        """Add what a call took that belongs to no run to its user's day."""
        await self._database.write(partial(spending.spend_beside, owner=owner, call=call))

    async def read_savings(
        self, owner: str, since: date, until: date, agent: str | None = None
    ) -> Sequence[DailySaving]:
        """What folding saved in a user's calls from one day to another, in UTC, by agent and rule; and breaks."""
        read = partial(daily_savings.saved, owner=owner, since=since, until=until, agent=agent)
        return await self._database.read(read)

    def export(self, owner: str) -> AsyncGenerator[bytes]:
        """All there is of a user, as JSON lines."""
        return export.export_user(self._database, owner)

    async def delete(self, owner: str, *, today: date | None = None) -> export.DeletedUser:
        """Delete all there is of a user, but what they spent `today`: else a deletion would lift the day's limit."""
        return await export.delete_user(self._database, owner, today)
