"""What is kept of a run's user, for its tools: read and changed in the store, held to the agent's schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from recto.agents.profile_schema import check_profile
from recto.errors import Refused, ToolError, WireError
from recto.page.canonical import Json
from recto.store.ports import Lease
from recto.store.profiles import ProfileChange
from recto.store.store import Store


@dataclass(frozen=True, kw_only=True)
class UserProfile:
    """The profile of one user, for a run that is held by a lease: who has lost it changes nothing.

    `changed` is told when something of it is not what it was.
    """

    store: Store
    owner: str
    schema: str | None
    clock: Callable[[], datetime]
    limit_bytes: int
    changed: Callable[[], None]
    lease: Lease

    async def fields(self, *names: str) -> Mapping[str, Json]:
        """Fields by name; those that are not there are left out."""
        return await self.store.profile_fields(self.owner, names)

    async def change(self, field: str, value: Json) -> None:
        """Keep a field, in the place of what it was; None forgets it."""
        await self._write(
            ProfileChange(fields={field: value}, replaces=True, check=self._check, lease=self.lease), field
        )

    def _check(self, fields: Mapping[str, Json]) -> None:
        problem = check_profile(fields, self.schema) if self.schema else None
        if problem:
            raise Refused(problem, where="profile")

    async def skill_data(self, skill: str) -> Json:
        """What a skill has kept; None: nothing."""
        return await self.store.skill_data(self.owner, skill)

    async def keep(self, skill: str, data: Json) -> None:
        """Have a skill keep this; None forgets it."""
        change = ProfileChange(skill_data={skill: data}, replaces=True, lease=self.lease)
        await self._write(change, f"what {skill} found")

    async def _write(self, change: ProfileChange, what: str) -> None:
        try:
            await self.store.change_profile(self.owner, change, self.clock(), self.limit_bytes)
        except (Refused, WireError) as error:
            raise ToolError(f"{what[:1].upper()}{what[1:]} cannot be kept: {error}") from error
        self.changed()
