"""The cases of vibe (S8): what they say is true of the chart, the draw and the life they are shown for."""

import random
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import cache

import pytest

from recto.agents.shipped.vibe.almanac.bazi.bazi import BaziChart, bazi
from recto.agents.shipped.vibe.almanac.bazi.bazi_words import ELEMENTS, STEMS, pinyin, word
from recto.agents.shipped.vibe.almanac.birth.birth import read_birth
from recto.agents.shipped.vibe.almanac.chart_rows import features_in_locale, short_bazi
from recto.agents.shipped.vibe.almanac.sky.zodiac import zodiac
from recto.agents.shipped.vibe.almanac.tarot.tarot import SPREADS, draw
from recto.conversation.json import Json
from recto.page.prompt.reminder import Locale
from recto.skills.cases import ScoredCase
from recto.skills.expert import ExpertInput, expert
from recto.skills.known_data import KnownData
from recto.skills.load_skills import load_skills
from recto.skills.skill import Skill
from tests.agents.vibe import LOCALES, VIBE, KeptInMemory, at_work, call

SOME, MANY = 25, 300
WEALTH, RESOURCE, PEERS = {"正财", "偏财"}, {"正印", "偏印"}, {"比肩", "劫财"}


@cache
def skills(locale: Locale) -> Mapping[str, Skill]:
    return load_skills(VIBE / "skills", locale).skills


@cache
def charts(count: int) -> tuple[BaziChart, ...]:
    chance = random.Random(count)
    days = [date(1940, 1, 1) + timedelta(days=chance.randrange(27_000)) for _ in range(count)]
    clocks = [f"{chance.randrange(24)}:30" if chance.random() < 0.9 else "" for _ in range(count)]
    return tuple(
        bazi(read_birth({"date": day.isoformat(), "time": clock})) for day, clock in zip(days, clocks, strict=True)
    )


def find_cases(skill: str, scenario: str, data: Json, locale: Locale) -> tuple[ScoredCase, ...]:
    user_data = KnownData(profile={"birth_info": {"date": "1990-05-15"}}, skill_data={skill: data}, scenario=scenario)
    return expert(skills(locale)[skill], user_data, ExpertInput(locale=locale)).cases


# Bazi


def gods(chart: BaziChart) -> set[str]:
    """The ten gods of the stems, and of the main stem of each branch."""
    pillars = chart.pillars.all
    return {one.ten_god for one in pillars} | {one.hidden[0].ten_god for one in pillars}


def is_of(verdict: str, element: str) -> Callable[[BaziChart], bool]:
    return lambda chart: (chart.strength.grade, chart.pillars.day.element) == (verdict, element)


def weight(chart: BaziChart, steps: int) -> int:
    order = ELEMENTS.index(chart.pillars.day.element)
    return chart.strength.weights[ELEMENTS[(order + steps) % len(ELEMENTS)]]


ENGLISH = dict(zip(("wood", "fire", "earth", "metal", "water"), ELEMENTS, strict=True))
# What each case takes for granted of a chart.
TRUE: Mapping[str, Callable[[BaziChart], bool]] = {
    **{f"bazi_strong_{name}": is_of("身强", element) for name, element in ENGLISH.items()},
    **{f"bazi_weak_{name}": is_of("身弱", element) for name, element in ENGLISH.items()},
    "bazi_balanced": lambda chart: chart.strength.grade == "中和",
    "bazi_luck_rhythm": lambda chart: chart.strength.grade != "中和",
    "bazi_wood_growth": lambda chart: chart.pillars.day.element == "木",
    "bazi_earth_water": lambda chart: chart.pillars.day.element in "土水",
    "bazi_fire_metal": lambda chart: chart.pillars.day.element in "火金",
    "bazi_missing_element": lambda chart: bool(chart.missing),
    "bazi_strong_wealth": lambda chart: chart.strength.grade == "身强" and bool(gods(chart) & WEALTH),
    "bazi_weak_wealth": lambda chart: chart.strength.grade == "身弱" and weight(chart, 2) >= 30,
    "bazi_peers": lambda chart: weight(chart, 0) >= 30 and bool(gods(chart) & PEERS),
    "bazi_output_wealth": lambda chart: bool(gods(chart) & {"食神", "伤官"}) and bool(gods(chart) & WEALTH),
    "bazi_killing_food": lambda chart: {"七杀", "食神"} <= gods(chart),
    "bazi_killing_resource": lambda chart: "七杀" in gods(chart) and bool(gods(chart) & RESOURCE),
    "bazi_officer_resource": lambda chart: {"正官", "正印"} <= gods(chart),
    "bazi_hurting_officer": lambda chart: {"伤官", "正官"} <= gods(chart),
    "bazi_spouse_palace": lambda chart: True,
}


@pytest.mark.parametrize("count", [SOME, pytest.param(MANY, marks=pytest.mark.full)])
@pytest.mark.parametrize("locale", LOCALES)
def test_S8_no_case_contradicts_the_chart_it_is_shown_for_and_each_chart_has_two(locale: Locale, count: int):
    skill = skills(locale)["bazi"]
    assert {case.case.id for case in skill.cases.cases} == TRUE.keys()
    for chart in charts(count):
        data = short_bazi(chart.row(locale), locale)
        for scenario in skill.scenarios:
            cases = find_cases("bazi", scenario.name, data, locale)
            assert [one.case.id for one in cases if not TRUE[one.case.id](chart)] == []
            assert len(cases) == 2


@pytest.mark.parametrize("count", [SOME, pytest.param(MANY, marks=pytest.mark.full)])
def test_S8_a_reading_begins_with_the_strength_of_the_day_master_in_both_languages(count: int):
    for chart in charts(count):
        first = {find_cases("bazi", "basic_reading", short_bazi(chart.row(it), it), it)[0].case.id for it in LOCALES}
        strengths = {"bazi_balanced", *(f"bazi_{how}_{name}" for how in ("strong", "weak") for name in ENGLISH)}
        assert len(first) == 1
        assert first <= strengths


@pytest.mark.parametrize("locale", LOCALES)
def test_S8_every_day_master_and_strength_has_a_case_for_a_first_reading(locale: Locale):
    tags = {tag for one in skills(locale)["bazi"].cases.cases if "basic_reading" in one.rule_ids for tag in one.tags}
    for place, stem in enumerate(STEMS):
        element = ELEMENTS[place // 2]
        for verdict in ("身强", "身弱"):
            english = f"{word(verdict, 'en')} {pinyin(stem)} {word(element, 'en')}"
            assert (f"{verdict}{stem}{element}" if locale == "zh" else english) in tags
        english = f"{pinyin(stem)} {word(element, 'en')} day master"
        assert (f"日主{stem}{element}" if locale == "zh" else english) in tags


# The sky


@pytest.mark.parametrize("locale", LOCALES)
def test_S8_a_case_of_the_sun_or_the_moon_is_of_its_element(locale: Locale):
    skill = skills(locale)["zodiac"]
    for number in range(12):
        chart = zodiac(read_birth({"date": f"{1960 + number}-{number + 1}-{number + 2}", "time": "9:30"}))
        sun, moon = chart.placement("sun").sign, chart.placement("moon").sign
        assert sun is not None and moon is not None
        moons = {"water": "water_moon", "earth": "earth_moon", "fire": "fire_moon", "air": "fire_moon"}
        true = {f"zodiac_{sun.element}_sun", f"zodiac_{moons[moon.element]}"}
        true |= {"zodiac_retrograde"} if any(one.retrograde for one in chart.placements) else set[str]()
        for scenario in skill.scenarios:
            cases = find_cases("zodiac", scenario.name, features_in_locale(chart.row(locale), locale), locale)
            assert {one.case.id for one in cases} <= true
            assert len(cases) == 2


# Cards


@pytest.mark.parametrize("locale", LOCALES)
def test_S8_a_case_of_reversed_cards_needs_one_and_every_draw_finds_a_case(locale: Locale):
    for seed in range(40):
        user, spread = KeptInMemory(), list(SPREADS)[seed % len(SPREADS)]
        call("draw_tarot", user, {"spread": spread, "seed": seed}, at_work(user, locale))
        for scenario in skills(locale)["tarot"].scenarios:
            ids = [one.case.id for one in find_cases("tarot", scenario.name, user.data["tarot"], locale)]
            assert ids
            assert "tarot_reversed" not in ids or any(card.reversed for card in draw(spread, seed).cards)


# Lives


@pytest.mark.parametrize(
    ("locale", "life", "cases"),
    [
        ("zh", {"stage": "在职"}, []),
        ("en", {"stage": "employed"}, []),
        ("zh", {"stage": "在职", "concerns": ["晋升"]}, ["career_promotion"]),
        ("en", {"stage": "employed", "concerns": ["promotion"]}, ["career_promotion"]),
        ("zh", {"stage": "待业", "concerns": ["焦虑"]}, ["career_job_search"]),
        ("en", {"stage": "unemployed", "concerns": ["layoff"]}, ["career_job_search", "career_layoff"]),
        ("zh", {"concerns": ["职场关系", "倦怠"]}, ["career_burnout", "career_conflict"]),
    ],
)
def test_S8_a_case_of_work_needs_the_trouble_it_is_about(locale: Locale, life: Json, cases: list[str]):
    user_data = KnownData(profile={"life_context": life}, scenario="direction")
    advice = expert(skills(locale)["career"], user_data, ExpertInput(locale=locale))
    assert sorted(one.case.id for one in advice.cases) == cases
