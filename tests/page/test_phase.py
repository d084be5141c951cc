"""A thread without a skill gets a lean page, one with a skill the expert's (S1, S4)."""

import pytest

from recto.page import Entry, Phase, RolledBack, SkillChanged, Text, UserMessage, phase_of, view

ASKS = UserMessage(id="u1", parts=(Text(text="算个八字"),))
SKILL = SkillChanged(id="s1", skill="bazi")


@pytest.mark.parametrize(
    ("log", "name"),
    [
        pytest.param((), "select", id="nothing yet"),
        pytest.param((ASKS,), "select", id="no skill"),
        pytest.param((ASKS, SKILL), "execute", id="a skill"),
        pytest.param((ASKS, SKILL, SkillChanged(id="s2", skill=None)), "select", id="left"),
        pytest.param((ASKS, SKILL, SkillChanged(id="s2", skill="core")), "select", id="core is none"),
        pytest.param((ASKS, SKILL, RolledBack(id="b", to="u1")), "select", id="rolled back past the activation"),
    ],
)
def test_S1_S4_the_phase_follows_the_skill_in_view(log: tuple[Entry, ...], name: str):
    assert phase_of(view(log)).name == name


def test_S1_the_limits_of_a_phase_are_settings_with_the_defaults_of_the_spec():
    lean = Phase(name="select", history=None, budget=500)
    assert phase_of(view(())) == Phase(name="select", history=5, budget=2_000)
    assert phase_of(view((ASKS, SKILL))) == Phase(name="execute", history=10, budget=8_000)
    assert phase_of(view(()), select=lean) == lean
