"""S5: which skill a message speaks of, by its triggers."""

from pathlib import Path

import pytest

from recto.skills.skill import Skill
from recto.skills.triggers import triggered


def skill(name: str, *triggers: str) -> Skill:
    return Skill(name=name, description="", title="", identity="", folder=Path(), triggers=triggers)


SKILLS = (
    skill("bazi", "八字", "大运", "bazi", "four pillars"),
    skill("tarot", "塔罗", "tarot", "draw a card"),
    skill("career", "工作", "work", "job", "career change"),
    skill("plain"),
)


@pytest.mark.parametrize(
    ("words", "name", "said"),
    [
        ("帮我看看八字", "bazi", ("八字",)),
        ("八字里的大运，还有工作", "bazi", ("八字", "大运")),
        ("我想看Tarot牌", "tarot", ("tarot",)),
        ("Please DRAW  a\ncard for me", "tarot", ("draw a card",)),
        ("ＢＡＺＩ, please", "bazi", ("bazi",)),
        ("My job, and a career change?", "career", ("job", "career change")),
        ("Let the four pillars say something of my job", "bazi", ("four pillars",)),
        # As much of one as of another: the model is to choose.
        ("八字还是塔罗", "", ()),
        ("bazi at work", "", ()),
        # A part of another word is not it.
        ("Jobs' homework and networks", "", ()),
        ("hello", "", ()),
        ("", "", ()),
    ],
)
def test_S5_the_skill_that_is_spoken_of_most_is_the_one(words: str, name: str, said: tuple[str, ...]):
    found = triggered(SKILLS, words)
    assert (found.skill.name if found else "", found.said if found else ()) == (name, said)


def test_S5_a_trigger_within_a_longer_one_counts_once():
    found = triggered((skill("zodiac", "星座", "月亮星座"),), "我的月亮星座")
    assert found
    assert found.said == ("月亮星座",)
