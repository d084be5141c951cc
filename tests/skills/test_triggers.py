"""S5: which skill a message speaks of, by its triggers."""

from pathlib import Path

import pytest

import recto.agents
from recto.skills.directory import triggered
from recto.skills.load_skills import load_skills
from recto.skills.skill import Skill


def skill(name: str, *triggers: str) -> Skill:
    return Skill(name=name, description="", heading="", identity="", folder=Path(), triggers=triggers)


SKILLS = (
    skill("bazi", "八字", "大运", "bazi", "four pillars"),
    skill("tarot", "塔罗", "tarot", "draw a card"),
    skill("career", "工作", "work", "job", "career change"),
    skill("plain"),
)


@pytest.mark.parametrize(
    ("words", "name", "expected"),
    [
        ("帮我看看八字", "bazi", ("八字",)),
        ("Please DRAW  a\ncard for me", "tarot", ("draw a card",)),
        ("ＢＡＺＩ, please", "bazi", ("bazi",)),
        ("Let the four pillars say something of my job", "bazi", ("four pillars",)),
        # As much of one as of another: the model is to choose.
        ("八字还是塔罗", "", ()),
        # A part of another word is not it.
        ("Jobs' homework and networks", "", ()),
        ("", "", ()),
    ],
)
def test_S5_the_skill_that_is_spoken_of_most_is_the_one(words: str, name: str, expected: tuple[str, ...]):
    matches = triggered(SKILLS, words)
    assert (matches.skill.name if matches else "", matches.triggers if matches else ()) == (name, expected)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("不要给我看八字", ""),
        ("我不想抽塔罗", ""),
        ("八字就算了", ""),
        ("Don't read my tarot", ""),
        ("No tarot, thanks", ""),
        # What is refused makes room for what is not.
        ("不要塔罗，看八字", "bazi"),
        ("Don’t read my tarot. Read my bazi.", "bazi"),
        # These ask.
        ("要不要看看八字？", "bazi"),
        ("我特别想看八字", "bazi"),
        ("我不懂，帮我看八字", "bazi"),
        ("I don't know my bazi", "bazi"),
        ("Why not? Read my tarot", "tarot"),
    ],
)
def test_S5_a_trigger_that_is_refused_takes_up_nothing(words: str, name: str):
    matches = triggered(SKILLS, words)
    assert (matches.skill.name if matches else "") == name


SHIPPED = Path(recto.agents.__file__).parent / "shipped" / "vibe" / "skills"


@pytest.mark.parametrize(
    ("locale", "words", "name"),
    [
        ("zh", "我的目标是写一个排序函数", ""),
        ("zh", "这个变量的意义是什么", ""),
        ("zh", "我想换工作", "career"),
        ("zh", "我很迷茫", "lifecoach"),
        ("zh", "我的上升星座是什么", "zodiac"),
        ("en", "My goal is to write a sort function.", ""),
        ("en", "Does it work? What is the meaning of this job queue?", ""),
        ("en", "I need a life coach", "lifecoach"),
    ],
)
def test_S5_shipped_skills_are_taken_up_by_words_that_want_them_and_hardly_else(locale: str, words: str, name: str):
    matches = triggered(load_skills(SHIPPED, locale).skills.values(), words)
    assert (matches.skill.name if matches else "") == name


def test_S5_a_trigger_within_a_longer_one_counts_once():
    matches = triggered((skill("zodiac", "星座", "月亮星座"),), "我的月亮星座")
    assert matches
    assert matches.triggers == ("月亮星座",)
