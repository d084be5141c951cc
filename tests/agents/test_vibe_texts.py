"""The texts of vibe: they load in both languages, say the same in both, and fit what its tools keep (S5-S8, S11)."""

from datetime import date, timedelta
from functools import cache
from typing import cast

import pytest

from recto.agents.profile_schema import check_profile
from recto.agents.shipped.vibe.almanac.bazi.bazi import bazi
from recto.agents.shipped.vibe.almanac.birth.birth import read_birth
from recto.agents.shipped.vibe.almanac.sky.zodiac import zodiac
from recto.agents.shipped.vibe.almanac.tarot.tarot import draw
from recto.config.frontmatter import read_document
from recto.config.yaml_values import read_yaml
from recto.conversation.json import dump
from recto.page.prompt.reminder import Locale
from recto.skills.expert import ExpertInput, expert
from recto.skills.known_data import KnownData
from recto.skills.load_skills import LoadedSkills, load_skills
from tests.agents.vibe import BIRTH, LOCALES, NOW, VIBE, KeptInMemory, at_work, born, call


@cache
def skills(locale: Locale) -> LoadedSkills:
    return load_skills(VIBE / "skills", locale)


@pytest.mark.parametrize("locale", LOCALES)
def test_S5_the_skills_load_without_a_word_of_complaint(locale: Locale):
    loaded_skills = skills(locale)
    assert (dict(loaded_skills.broken), loaded_skills.warnings) == ({}, ())
    assert list(loaded_skills.skills) == ["bazi", "career", "lifecoach", "tarot", "zodiac"]
    for skill in loaded_skills.skills.values():
        assert len(skill.cases.cases) >= 6
        assert skill.heading.isascii() == skill.identity.isascii() == (locale == "en")
        assert skill.title and skill.title.isascii() == (locale == "en")


@pytest.mark.parametrize("locale", LOCALES)
def test_S6_each_skill_reads_what_it_declares_and_no_more(locale: Locale):
    read = {name: (skill.fields, skill.has_data) for name, skill in skills(locale).skills.items()}
    assert read == {
        "bazi": (("birth_info",), True),
        "career": (("life_context",), True),
        "lifecoach": (("life_context", "extracted"), False),
        "tarot": ((), True),
        "zodiac": (("birth_info",), True),
    }


def test_S5_both_languages_say_the_same_but_for_the_words():
    for zh, en in zip(skills("zh").skills.values(), skills("en").skills.values(), strict=True):
        assert zh.sop is not None and en.sop is not None
        assert [(step.id, step.when) for step in zh.sop.steps] == [(step.id, step.when) for step in en.sop.steps]
        assert [(one.name, one.rule_ids) for one in zh.scenarios] == [(one.name, one.rule_ids) for one in en.scenarios]
        assert [(case.case.id, case.rule_ids) for case in zh.cases.cases] == [
            (case.case.id, case.rule_ids) for case in en.cases.cases
        ]


@pytest.mark.parametrize("locale", LOCALES)
def test_S8_cases_are_linked_to_rules_of_scenarios_and_each_rule_has_one(locale: Locale):
    for skill in skills(locale).skills.values():
        rules = {rule for scenario in skill.scenarios for rule in (scenario.name, *scenario.rule_ids)}
        assert {rule for case in skill.cases.cases for rule in case.rule_ids} == rules


@cache
def words_of_data(skill: str) -> frozenset[str]:
    """The words by which cases are found, of many charts and draws."""
    if skill == "tarot":
        return frozenset(word for seed in range(60) for word in draw("celtic_cross", seed).features)
    days = [date(1940, 1, 1) + number * timedelta(days=131) for number in range(250)]
    births = [read_birth({"date": f"{day}", "time": f"{day.day * 5 % 24}:30", "place": "北京"}) for day in days]
    return frozenset(word for birth in births for word in (bazi if skill == "bazi" else zodiac)(birth).features)


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("skill", ["bazi", "zodiac", "tarot"])
def test_S8_the_tags_of_cases_are_words_of_the_data(skill: str, locale: Locale):
    tags = {tag for case in skills(locale).skills[skill].cases.cases for tag in case.tags}
    assert tags - words_of_data(skill) == set()


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("skill", ["career", "lifecoach"])
def test_S8_the_tags_of_cases_are_words_the_model_is_told_to_save(skill: str, locale: Locale):
    skill_found = skills(locale).skills[skill]
    assert skill_found.sop is not None
    for case in skill_found.cases.cases:
        assert [tag for tag in case.tags if tag not in skill_found.sop.tool_rules] == []


@pytest.mark.parametrize("locale", LOCALES)
def test_S7_another_conversation_draws_anew_and_so_does_another_day_for_its_card(locale: Locale):
    user = KeptInMemory()
    tarot = skills(locale).skills["tarot"]

    def step(thread: str, day: str, scenario: str = "three_cards") -> str:
        user_data = KnownData(skill_data=user.data, scenario=scenario, thread=thread, day=day)
        advice = expert(tarot, user_data, ExpertInput(locale=locale)).step
        return advice.id if advice else ""

    assert step("t1", "2026-05-14") == "draw"
    call("draw_tarot", user, {}, at_work(user, locale))
    assert [step("t1", "2026-05-14"), step("t1", "2026-05-15"), step("t2", "2026-05-14")] == ["read", "read", "draw"]
    assert step("t1", "2026-05-14", "daily_card") == "draw"
    call("draw_tarot", user, {"daily": True}, at_work(user, locale, call="c2"))
    assert [step("t1", day, "daily_card") for day in ("2026-05-14", "2026-05-15")] == ["read", "draw"]


def test_S7_a_birth_that_changed_asks_for_a_new_chart():
    user = born()
    call("compute_bazi", user)
    changed = {"birth_info": {**BIRTH, "time": "09:00"}}
    steps = [
        expert(skills("zh").skills["bazi"], KnownData(profile=profile, skill_data=data), ExpertInput()).step
        for profile, data in (({}, {}), (user.profile, {}), (changed, user.data), (user.profile, user.data))
    ]
    assert [step.id for step in steps if step] == ["collect", "compute", "compute", "ready"]


@pytest.mark.parametrize(
    ("skill", "month", "locale", "step"),
    [
        ("bazi", "2026-05", "zh", "ready"),
        ("bazi", "2026-06", "zh", "compute"),
        ("bazi", "2026-05", "en", "compute"),
        ("zodiac", "2026-06", "zh", "ready"),
        ("zodiac", "2026-05", "en", "compute"),
    ],
)
def test_S7_a_chart_of_another_month_or_language_is_computed_anew(skill: str, month: str, locale: Locale, step: str):
    user = born()
    call(f"compute_{skill}", user)
    user_data = KnownData(profile=user.profile, skill_data={skill: user.data[skill]}, month=month, locale=locale)
    due = expert(skills(locale).skills[skill], user_data, ExpertInput(locale=locale)).step
    assert due is not None
    assert due.id == step
    now = NOW.replace(month=int(month[-2:]))
    status = call(f"compute_{skill}", user, {}, at_work(user, locale, now=now)).at("status")
    assert status == ("reused" if step == "ready" else "computed")


@pytest.mark.parametrize("skill", ["bazi", "zodiac"])
@pytest.mark.parametrize(("locale", "problem"), [("zh", "不再追问，也不再弹表单"), ("en", "do not ask again")])
def test_S7_who_would_rather_not_tell_their_birth_is_not_pressed(skill: str, locale: Locale, problem: str):
    step = expert(skills(locale).skills[skill], KnownData(), ExpertInput(locale=locale)).step
    assert step is not None
    assert (step.id, problem in step.text, "declined" in step.text) == ("collect", True, True)


def test_S10_what_is_noted_of_a_chart_is_on_the_page_and_what_it_was_made_of_is_not():
    user = KeptInMemory(profile={"birth_info": {"date": "1990-05-15", "place": "我家"}})
    call("compute_bazi", user)
    advice = expert(skills("zh").skills["bazi"], KnownData(profile=user.profile, skill_data=user.data), ExpertInput())
    page = "\n".join(datum.text for datum in advice.prompt.data)
    assert "出生地未识别" in page
    assert [word for word in ("features", "options", "2026-05") if word in page] == []


@pytest.mark.parametrize("name", ["profile.yaml", "profile.en.yaml"])
def test_S6_what_the_tools_keep_is_as_the_profile_wants_it(name: str):
    schema = read_yaml((VIBE / name).read_text(encoding="utf-8"), first_line=1)
    assert schema.faults == ()
    user = KeptInMemory()
    call("collect_birth_info", user, {**BIRTH, "calendar": "lunar", "latitude": 1.5, "longitude": 2, "timezone": "UTC"})
    call("save_life_context", user, {"stage": "在职", "industry": "x" * 100, "goal": "y" * 1_000, "concerns": ["迷茫"]})
    call("save_facts", user, {"facts": ["z" * 200]})
    text = dump(schema.values).decode()
    assert check_profile(user.profile, text) is None
    assert check_profile({"birth_info": {"birthday": "1990-05-15"}}, text) is not None


def test_S11_the_voices_are_the_same_in_both_languages():
    both = [read_document((VIBE / name).read_bytes()).settings for name in ("AGENT.md", "AGENT.en.md")]
    assert [one.faults for one in both] == [(), ()]
    voices = [list(cast("dict[str, str]", one.values["voices"])) for one in both]
    assert voices == [["warm", "direct", "playful"]] * 2
