"""The part of the store that has profiles: every method one transaction, and no more asked than is wanted (S6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from recto.page.canonical import Json
from recto.store import profiles
from recto.store.database import Database
from recto.store.profiles import ProfileChange, StoredProfile


class ProfiledStore:
    """What is kept of users, in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def profile_fields(self, owner: str, names: Sequence[str]) -> Mapping[str, Json]:
        """Those of these fields that are kept of a user: one question for all of them, none where none is named."""
        if not names:
            return {}
        return await self._database.read(partial(profiles.fields_of, owner=owner, names=names))

    async def skill_data(self, owner: str, skill: str) -> Json:
        """What a skill has kept of a user; None: nothing."""
        return await self._database.read(partial(profiles.data_of, owner=owner, skill=skill))

    async def whole_profile(self, owner: str) -> StoredProfile:
        """All that is kept of a user, and their tier."""
        return await self._database.read(partial(profiles.whole, owner=owner))

    async def change_profile(self, owner: str, change: ProfileChange, now: datetime, limit_bytes: int) -> StoredProfile:
        """Merge a change into a profile (RFC 7396). Changes of one user come one after the other, so both stay.

        A name that is none: WireError; more than it may hold: Refused. Either leaves all as it was.
        """
        return await self._database.write(partial(profiles.change, owner=owner, wish=change, now=now, most=limit_bytes))

    async def set_tier(self, owner: str, tier: str, now: datetime) -> None:
        """Give a user a tier. Runs admitted from now on have it. One that is none: WireError."""
        await self._database.write(partial(profiles.set_tier, owner=owner, tier=tier, now=now))
