"""A thread without a skill gets a lean page, one with a skill the expert's (S1, S4)."""

import pytest

from recto.conversation.log import Entry, RolledBack, SkillChanged, view
from recto.conversation.messages import Text, UserMessage
from recto.page.facts import EXECUTE, SELECT, Phase

ASKS = UserMessage(id="u1", parts=(Text(text="算个八字"),))
SKILL = SkillChanged(id="s1", skill="bazi")


@pytest.mark.parametrize(
    ("log", "skill"),
    [
        pytest.param((), None, id="nothing yet"),
        pytest.param((ASKS,), None, id="no skill"),
        pytest.param((ASKS, SKILL), "bazi", id="a skill"),
        pytest.param((ASKS, SKILL, SkillChanged(id="s2", skill=None)), None, id="left"),
        pytest.param((ASKS, SKILL, SkillChanged(id="s2", skill="core")), None, id="core is none"),
        pytest.param((ASKS, SKILL, RolledBack(id="b", to="u1")), None, id="rolled back past the activation"),
    ],
)
def test_S4_the_skill_is_the_one_in_view(log: tuple[Entry, ...], skill: str | None):
    found = view(log).skill
    assert (found.skill if found else None) == skill


def test_S1_the_limits_of_a_phase_have_the_defaults_of_the_spec():
    assert Phase(name="select", history=5, budget=2_000) == SELECT
    assert Phase(name="execute", history=10, budget=8_000) == EXECUTE
