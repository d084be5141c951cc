"""S7: the next step of a procedure, and the text that tells it to the model."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.skills.known_data import KnownData
from recto.skills.sop import (
    AllOf,
    AnyOf,
    Condition,
    Differs,
    Equals,
    Has,
    Missing,
    Not,
    Sop,
    SopStep,
    holds,
    next_sop_step,
    sop_text,
)

BIRTH = {"date": "1990-05-15", "place": "北京"}
NOTHING = KnownData()
BORN = KnownData(profile={"birth_info": BIRTH})
CHARTED = KnownData(profile={"birth_info": BIRTH}, skill_data={"bazi": {"birth_info": dict(reversed(BIRTH.items()))}})
OTHER_BIRTH = KnownData(profile={"birth_info": {"date": "1991-05-15"}}, skill_data={"bazi": {"birth_info": BIRTH}})

COLLECT = SopStep(id="collect", title="收集出生信息", text="调用 collect。", when=Missing(path="birth_info"))
DIFFERS = Differs(path="birth_info", other="skill_data.bazi.birth_info")
COMPUTE = SopStep(id="compute", title="排盘", text="排盘。", when=AnyOf(of=(Missing(path="skill_data.bazi"), DIFFERS)))
READY = SopStep(id="ready", title="解读", text="按命盘回答。")
SOP = Sop(steps=(COLLECT, COMPUTE, READY))
YES, NO = AllOf(of=()), AnyOf(of=())


@pytest.mark.parametrize(
    ("condition", "user_data", "expected"),
    [
        (Missing(path="birth_info"), NOTHING, True),
        (Has(path="birth_info.date"), BORN, True),
        (Equals(path="birth_info.place", value="北京"), BORN, True),
        (Equals(path="birth_info", value={"place": "北京", "date": "1990-05-15"}), BORN, True),
        (Equals(path="tier", value="free"), NOTHING, True),
        (Equals(path="scenario", value=""), NOTHING, True),
        (Equals(path="n", value=1), KnownData(profile={"n": True}), False),
        (Equals(path="n", value=False), KnownData(profile={"n": 0}), False),
        (DIFFERS, OTHER_BIRTH, True),
        (DIFFERS, CHARTED, False),
        (DIFFERS, BORN, False),
        (DIFFERS, NOTHING, False),
        (DIFFERS, replace(OTHER_BIRTH, profile={}), False),
        (AllOf(of=(YES, NO)), NOTHING, False),
        (AnyOf(of=(NO, YES)), NOTHING, True),
        (Not(of=NO), NOTHING, True),
    ],
)
def test_S7_a_condition_holds_for_what_is_known(condition: Condition, user_data: KnownData, expected: bool):
    assert holds(condition, user_data) is expected


@pytest.mark.parametrize(
    ("user_data", "step"), [(NOTHING, COLLECT), (BORN, COMPUTE), (OTHER_BIRTH, COMPUTE), (CHARTED, READY)]
)
def test_S7_missing_birth_info_comes_before_a_missing_chart_then_ready(user_data: KnownData, step: SopStep):
    assert next_sop_step(SOP, user_data) == step


@given(st.lists(st.sampled_from([None, YES, NO]), max_size=6))
def test_S7_the_next_step_is_the_first_whose_condition_holds(conditions: list[Condition | None]):
    steps = tuple(SopStep(id=str(place), title="", text="", when=when) for place, when in enumerate(conditions))
    due = [step for step, when in zip(steps, conditions, strict=True) if when != NO]
    assert next_sop_step(Sop(steps=steps), NOTHING) == (due[0] if due else None)


def test_S7_where_no_step_is_due_the_text_says_so():
    text = sop_text(Sop(steps=(COLLECT,)), BORN, "zh")
    assert text == "以下流程中目前没有需要执行的步骤：直接回答用户。\n- 1. 收集出生信息"


def test_S7_a_procedure_of_rules_alone_tells_these():
    assert sop_text(Sop(rules="- Be kind."), NOTHING, "en") == "At every step:\n- Be kind."
    assert sop_text(Sop(rules="- 不下定论。"), NOTHING, "zh") == "始终遵守：\n- 不下定论。"
    assert sop_text(Sop(), NOTHING, "en") == ""


def test_S7_a_step_without_title_goes_by_its_id_and_braces_are_words():
    text = sop_text(Sop(steps=(SopStep(id="greet", title="", text=""),)), NOTHING, "en")
    assert text.endswith("\n→ 1. greet\n\nNext step: greet")
    text = sop_text(Sop(steps=(SopStep(id="a", title="{title}", text="{x} {}"),), rules="{rules}"), NOTHING, "en")
    assert text.endswith("Next step: {title}\n{x} {}\n\nAt every step:\n{rules}")
