"""What a request may wish of an agent's skills: one that it has, a scenario of it, a voice. Else it is refused."""

from __future__ import annotations

from collections.abc import Collection

from recto.agents.agent import Agent
from recto.errors import WireError
from recto.page.refuse import Wishes
from recto.skills.skill import CORE

SHOWN = 64


def needs_active(wishes: Wishes) -> bool:
    """Whether it matters which skill the thread is in."""
    return wishes.scenario is not None and wishes.skill is None


def has_skill_wishes(wishes: Wishes) -> bool:
    """Whether anything is wished that only the agent knows to be there."""
    return wishes.skill not in (None, CORE) or wishes.scenario is not None or wishes.voice_mode is not None


def check_skill_wishes(agent: Agent, wishes: Wishes, active: str | None) -> None:
    """Refuse a skill, a scenario or a voice that the agent does not have. Who has no voices is asked for none.

    A scenario is one of the skill that is asked for, or of the `active` one.
    """
    if wishes.skill is not None:
        _check_known(wishes.skill, (*agent.skills, CORE), "skill")
    skill = agent.skills.get(wishes.skill or active or "")
    if wishes.scenario is not None and agent.skills:
        _check_known(wishes.scenario, [one.name for one in skill.scenarios] if skill else (), "scenario")
    if wishes.voice_mode is not None and agent.voices:
        _check_known(wishes.voice_mode, agent.voices, "voice_mode")


def _check_known(name: str, known: Collection[str], what: str) -> None:
    if name not in known:
        problem = f"there is no {what} {name[:SHOWN]!r}; known: {', '.join(known) or 'none'}"
        raise WireError(where=f"forwardedProps.{what}", problem=problem)
