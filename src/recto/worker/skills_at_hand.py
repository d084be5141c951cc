"""The skills of a run's agent, for the tools that take one up and read its files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from recto.config.checked import nearest
from recto.errors import ToolError
from recto.skills.bundled import read_bundled
from recto.skills.expert import missing_for
from recto.skills.skill import CORE, Skill
from recto.tools.ports import Activation
from recto.worker.desk import Desk

SHOWN = 64
NO_SKILL = "There is no skill {name!r}{known}."
NO_FILES = "No skill is active, so there are no files to read. Take one up with use_skill first."


@dataclass(frozen=True, kw_only=True)
class SkillsOfRun:
    """What a run's tools may do with its agent's skills. What is looked up for a skill, its first page has."""

    desk: Desk

    @property
    def names(self) -> Sequence[str]:
        """What may be taken up now: leaving a skill is for who has one."""
        return (*self.desk.agent.skills, *((CORE,) if self.desk.skill else ()))

    async def activate(self, skill: str, scenario: str | None) -> Activation:
        """Look up what the skill needs to know."""
        if skill not in self.names:
            raise ToolError(NO_SKILL.format(name=skill[:SHOWN], known=nearest(skill[:SHOWN], self.names)))
        if skill == CORE:
            return Activation(skill=None)
        found = self.desk.agent.skills[skill]
        known = await self.desk.know(found, scenario)
        missing = missing_for(found, known)
        return Activation(skill=skill, scenario=known.scenario, missing=missing, collect_tool=_collect(found, missing))

    async def read(self, path: str) -> bytes:
        """A file of the active skill's folder."""
        skill = self.desk.skill
        if skill is None:
            raise ToolError(NO_FILES)
        return await asyncio.to_thread(partial(read_bundled, skill, path))


def _collect(skill: Skill, missing: Sequence[str]) -> str:
    return skill.collect_tool if missing else ""
