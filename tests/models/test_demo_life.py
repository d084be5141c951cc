"""The demo model where lives are talked about: it has saved what was said, reads it out, and goes no further."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json
from recto.models.demo.life import life_in
from recto.models.demo.told import ASK_LIFE, CARE, ENTERED, GOES_ON, READS_OUT
from recto.skills.known import KnownData
from tests.models.test_demo import user
from tests.models.test_demo_skills import Scene, calls, done, text

SAVE = "save_life_context"
TAKES: dict[str, dict[str, Json]] = {name: {} for name in ("stage", "industry", "goal", "concerns", "notes")}
IN_CAREER = Scene(skill="career")
LIFE: dict[str, Json] = {"stage": "在职", "goal": "转行", "concerns": ["转行", "迷茫"]}
KNOWN = replace(IN_CAREER, known=KnownData(profile={"life_context": LIFE}))
LIFE_READ = f"{READS_OUT['zh']}\n- 处境：在职\n- 目标：转行\n- 困扰：转行、迷茫\n{GOES_ON['zh']}"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "我在互联网做产品经理，在职，想转行",
            {"stage": "在职", "industry": "互联网 产品经理", "goal": "转行", "concerns": ["转行"]},
        ),
        ("最近很焦虑睡不着", {"concerns": ["焦虑", "睡不着"]}),
        (
            "I work as a nurse, employed, I want to change fields and feel anxious",
            {"stage": "employed", "industry": "nurse", "goal": "change fields", "concerns": ["anxious"]},
        ),
        ("我现在间隔年，有点社恐", {"stage": "间隔年", "concerns": ["社恐"]}),
        ("I am between jobs", {"stage": "between jobs"}),
        ("老板总是半夜给我发消息", {"notes": "老板总是半夜给我发消息"}),
    ],
)
def test_S10_what_is_said_of_a_life_is_saved_by_what_the_tool_takes(words: str, told: Json):
    assert calls(IN_CAREER, user(words)) == [(SAVE, told)]


@pytest.mark.parametrize("words", ["你好", "继续", "我应该怎么办才好呢？", "我不想说我的工作情况", "我不焦虑"])
def test_S10_what_says_nothing_of_a_life_is_not_saved(words: str):
    assert calls(IN_CAREER, user(words)) == []


def test_S10_what_was_saved_is_read_out_and_a_real_model_would_go_on():
    asked = user("在职，想转行，很迷茫")
    assert calls(IN_CAREER, asked) == [(SAVE, LIFE)]
    saved = done(SAVE, {"status": "saved", "life_context": LIFE}, LIFE)
    assert text(IN_CAREER, asked, *saved) == LIFE_READ
    assert text(KNOWN, user("继续")) == LIFE_READ
    assert text(KNOWN, user("keep going")).endswith(GOES_ON["en"])


def test_S10_only_news_is_saved_beside_what_is_known_and_whole_messages_only_while_the_step_asks():
    assert calls(KNOWN, user("在职，想转行，很迷茫")) == []
    assert calls(KNOWN, user("现在还很焦虑")) == [(SAVE, {"concerns": ["转行", "迷茫", "焦虑"]})]
    assert calls(KNOWN, user("老板总是半夜给我发消息")) == []


def test_S10_where_nothing_is_known_it_says_what_it_can_take_and_presses_nobody():
    assert text(IN_CAREER, user("你好")) == ASK_LIFE["zh"]
    assert text(IN_CAREER, user("I'd rather not say")) == ENTERED["en"].format(skill="career")


@pytest.mark.parametrize(("words", "told"), [("我不想活了，工作也没了", CARE["zh"]), ("I want to die", CARE["en"])])
def test_S10_who_is_in_need_gets_no_demonstration(words: str, told: str):
    assert text(IN_CAREER, user(words)) == told


@given(st.text(max_size=60), st.booleans())
def test_whatever_people_write_only_what_the_tool_takes_is_passed_on(words: str, notes: bool):
    assert set(life_in(words, TAKES, (), notes=notes)) <= set(TAKES)
    assert life_in(words, {}, (), notes=notes) == {}
