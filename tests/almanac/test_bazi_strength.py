"""What follows from the pillars: strength, structure, luck cycles, and the words cases are found by."""

import json
import re
from dataclasses import replace
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tyme4py.sixtycycle import HeavenStem, SixtyCycle  # pyright: ignore[reportMissingTypeStubs] - its source has the types

from recto.agents.shipped.vibe.almanac.bazi.bazi import (
    METHOD,
    WEIGHTS,
    BaziChart,
    bazi,
    element_weights,
    structure_of,
    visible_counts,
)
from recto.agents.shipped.vibe.almanac.bazi.bazi_words import ELEMENTS, word
from recto.agents.shipped.vibe.almanac.bazi.pillars import Luck, Pillar, Pillars, pillar_from
from recto.agents.shipped.vibe.almanac.birth.birth import read_birth
from recto.conversation.json import Json

MOMENTS = st.datetimes(min_value=datetime(1700, 1, 2), max_value=datetime(2200, 12, 30))


def chart(day: str, hour: str = "", **more: Json) -> BaziChart:
    return bazi(read_birth({"date": day, "time": hour, **more}))


def luck(day: str, hour: str, gender: str) -> Luck:
    result = chart(day, hour, gender=gender).luck
    assert result is not None
    return result


def test_S10_the_score_is_the_share_of_what_supports_worked_by_hand_and_compared_before_it_is_rounded() -> None:
    # 庚午 辛巳 庚辰 癸未, master 庚, metal; supporting: metal and earth.
    # metal: year stem 6, month stem 9, 巳 hides 庚 40*0.3=12: 27. earth: 午 己 9*0.3=2.7, 巳 戊 40*0.1=4,
    # 辰 戊 15*0.6=9, 未 己 12*0.6=7.2: 22.9. Together 49.9 of 100.
    result = chart("1990-05-15", "14:30")
    assert element_weights(result.pillars) == pytest.approx({"木": 5.7, "火": 33.9, "土": 22.9, "金": 27.0, "水": 10.5})
    assert (result.strength.grade, result.strength.score) == ("中和", 49)
    assert [reason.zh for reason in result.strength.reasons] == [
        "失令：生于巳月，月令火不助日主",
        "得地：日主通根于巳",
        "天干有助：庚、辛生扶日主",
    ]
    assert result.strength.favourable == ("木", "水")


def test_S10_the_method_tells_the_weights_it_uses() -> None:
    documented_numbers = [int(number) for number in re.findall(r"(?<![≥<\d])\d+", METHOD.zh)]
    assert sorted(set(documented_numbers)) == sorted({weight for pair in WEIGHTS.values() for weight in pair} - {0})
    assert sum(weight for pair in WEIGHTS.values() for weight in pair) == 100


@given(MOMENTS, st.booleans())
def test_S10_strength_is_whole_and_says_what_the_score_says(moment: datetime, timed: bool) -> None:
    result = chart(moment.date().isoformat(), f"{moment:%H:%M}" if timed else "")
    strength = result.strength
    assert sum(element_weights(result.pillars).values()) == pytest.approx(100)
    assert sum(visible_counts(result.pillars).values()) == (8 if timed else 6)
    assert strength.grade == ("身强" if strength.score >= 50 else "身弱" if strength.score < 40 else "中和")
    own = ELEMENTS.index(result.pillars.day.element)
    supporting = {ELEMENTS[own], ELEMENTS[own - 1]}
    expected = {"身弱": supporting, "身强": set(ELEMENTS) - supporting}
    assert set(strength.favourable) == expected.get(strength.grade, set(strength.favourable))
    weights = [element_weights(result.pillars)[element] for element in strength.favourable]
    assert weights == sorted(weights)


@pytest.mark.parametrize(
    ("day", "hour", "structure"),
    [
        ("1990-05-15", "14:30", "七杀格"),  # 庚 in 巳, nothing of it shown: its main stem 丙
        ("1893-12-26", "辰时", "七杀格"),  # 丁 in 子, whose 癸 stands over the year
        ("2024-03-11", "12:00", "月刃格"),  # 甲 in 卯
        ("1904-08-22", "子时", "偏财格"),  # 戊 in 申, which shows its 壬 and not its 庚
        ("1983-02-16", "12:00", "月劫格"),  # 乙 in 寅, whose 甲 is shown
    ],
)
def test_S10_the_structure_is_that_of_the_month(day: str, hour: str, structure: str) -> None:
    assert chart(day, hour).structure == structure


# The ten stems by their places in the twelve branches, as every book of the art has them.
BY_BRANCH = {
    "建禄格": "甲寅 乙卯 丙巳 丁午 戊巳 己午 庚申 辛酉 壬亥 癸子",
    "月刃格": "甲卯 丙午 戊午 庚酉 壬子",
    "月劫格": "乙寅 丁巳 辛申 癸亥",
}


def pillars_in(master: str, branch: str, *visible_stems: str) -> Pillars:
    """A chart with a day master in a month; the stems of year and hour are as shown, else the master's own."""
    stem = HeavenStem.from_name(master)
    names = [a + b for a, b in zip("甲乙丙丁戊己庚辛壬癸" * 6, "子丑寅卯辰巳午未申酉戌亥" * 5, strict=True)]

    def pillar(sign: str, place: int) -> Pillar:
        return pillar_from(SixtyCycle.from_name(next(name for name in names if name[place] == sign)), stem)

    year, hour = (pillar(sign, 0) for sign in (*visible_stems, master, master)[:2])
    month = replace(pillar(branch, 1), stem=master)
    return Pillars(year=year, month=month, day=pillar(master, 0), hour=hour)


@pytest.mark.parametrize("master", "甲乙丙丁戊己庚辛壬癸")
@pytest.mark.parametrize("branch", "子丑寅卯辰巳午未申酉戌亥")
def test_S10_a_master_is_at_home_at_its_height_or_robbed_in_its_own_months_only(master: str, branch: str) -> None:
    structure = structure_of(pillars_in(master, branch))
    names = {name for name, pairs in BY_BRANCH.items() if master + branch in pairs.split()}
    assert {structure} & set(BY_BRANCH) == names
    mixed = master in "戊己" and branch in "辰戌丑未"
    assert (structure == "杂气格") == mixed
    assert word(structure, "en").endswith(" structure")


@pytest.mark.parametrize(
    ("master", "branch", "visible_stems", "structure"),
    [
        ("戊", "辰", "乙", "正官格"),  # 辰 hides 戊, 乙 and 癸
        ("戊", "辰", "乙癸", "正官格"),
        ("戊", "辰", "戊", "杂气格"),
        ("己", "丑", "辛", "食神格"),  # 丑 hides 己, 癸 and 辛
        ("己", "巳", "己", "正印格"),
    ],
)
def test_S10_earth_in_a_month_of_earth_goes_by_another_stem_that_shows(
    master: str, branch: str, visible_stems: str, structure: str
) -> None:
    assert structure_of(pillars_in(master, branch, *visible_stems)) == structure


# Published in the tests of tyme4j by 6tail: how long until the first cycle, and its first day.
@pytest.mark.parametrize(
    ("day", "hour", "gender", "wait", "first"),
    [
        ("2022-03-09", "20:51", "男", (8, 9, 2), "2030-12-12 顺行 甲辰"),
        ("2018-06-11", "09:30", "女", (1, 9, 10), "2020-03-21 逆行 丁巳"),
        ("1990-03-15", "10:30", "男", (6, 11, 23), "1997-03-11 顺行 庚辰"),
    ],
)
def test_S10_luck_cycles_start_as_published(
    day: str, hour: str, gender: str, wait: tuple[int, int, int], first: str
) -> None:
    result = luck(day, hour, gender)
    assert (result.years, result.months, result.days) == wait
    assert f"{result.starts} {result.direction} {result.cycles[0].pillar.name}" == first


def test_S10_eight_cycles_of_ten_years_follow_one_another() -> None:
    result = luck("1983-02-15", "20:00", "女")
    assert " ".join(cycle.pillar.name for cycle in result.cycles) == "乙卯 丙辰 丁巳 戊午 己未 庚申 辛酉 壬戌"
    assert [cycle.from_year for cycle in result.cycles] == list(range(1989, 2069, 10))
    assert [cycle.from_age for cycle in result.cycles] == list(range(7, 87, 10))
    backward = luck("1992-02-02", "12:00", "男")
    assert [cycle.pillar.name for cycle in backward.cycles[:3]] == ["庚子", "己亥", "戊戌"]


def test_S10_a_cycle_begins_and_ends_on_its_day() -> None:
    result = luck("1983-02-15", "20:00", "女")
    days = (date(1989, 5, 3), date(1989, 5, 4), date(1999, 5, 3), date(1999, 5, 4), date(2069, 5, 4))
    assert [result.current(day) for day in days] == [None, result.cycles[0], result.cycles[0], result.cycles[1], None]
    birth = read_birth({"date": "1983-02-15", "time": "20:00", "gender": "女"})
    assert json.dumps(bazi(birth, today=date(2000, 1, 1)).row()["luck"]).count('"now": true') == 1
    assert result.row("zh", None)["ages_are"] == "虚岁（出生当年为一岁）"


def test_S10_without_a_gender_there_are_no_cycles_and_the_notes_say_why() -> None:
    result = chart("1983-02-15", "20:00")
    assert result.luck is None
    assert result.row()["luck"] is None
    assert "The gender is not known" in str(result.row("en")["notes"])


def test_S10_the_features_are_the_words_cases_are_tagged_with() -> None:
    result = chart("1990-05-15", "14:30").features
    expected = {
        *("日主庚金", "庚", "金", "中和", "七杀格", "比肩", "劫财", "伤官", "正官", "七杀", "正印", "缺木", "喜水"),
        *("属马", "Geng Metal day master", "Balanced day master", "Direct Officer", "Lacks Wood"),
    }
    assert expected <= set(result)
    assert not {"缺金", "食神"} & set(result)
    assert len(result) == len(set(result))


@given(MOMENTS, st.sampled_from(["男", "女", ""]))
def test_S10_a_row_is_plain_json_in_either_language(moment: datetime, gender: str) -> None:
    result = bazi(read_birth({"date": moment.date().isoformat(), "time": f"{moment:%H:%M}", "gender": gender}))
    for locale in ("zh", "en"):
        assert json.loads(json.dumps(result.row(locale))) == result.row(locale)
    english = {name: value for name, value in result.row("en").items() if name not in ("features", "bazi")}
    outside_brackets = re.sub(r"\([^)]*\)", "", json.dumps(english, ensure_ascii=False))
    assert not re.search(r"[\u4e00-\u9fff]", outside_brackets)
