"""A thread without a skill gets a lean page, one with a skill the expert's (S1, S4)."""

import pytest

from recto.page import Entry, Phase, RolledBack, SkillChanged, Text, UserMessage, view
from recto.page.phase import EXECUTE, SELECT

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
    assert view(log).skill == skill


def test_S1_the_limits_of_a_phase_have_the_defaults_of_the_spec():
    assert Phase(name="select", history=5, budget=2_000) == SELECT
    assert Phase(name="execute", history=10, budget=8_000) == EXECUTE
