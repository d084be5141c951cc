"""Charts: published ones, what is told of them in both languages, and what is left open when something is not known."""

import re
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.shipped.vibe.almanac.birth.birth import Birth
from recto.agents.shipped.vibe.almanac.sky.sky import longitudes
from recto.agents.shipped.vibe.almanac.sky.zodiac import SIGNS, render_degrees, render_longitude, sign_at, zodiac
from recto.conversation.json import dump, load
from recto.errors import ToolError
from recto.skills.known_data import words_in

SHANGHAI = ZoneInfo("Asia/Shanghai")
HERE = (52 + 50 / 60, 0.5)


def born(
    local: datetime, zone: timezone | ZoneInfo, at: tuple[float, float] | None = None, *, has_time: bool = True
) -> Birth:
    latitude, longitude = at or (None, None)
    moment = local.replace(tzinfo=zone).astimezone(UTC)
    return Birth(local=local, zone=zone, moment=moment, has_time=has_time, latitude=latitude, longitude=longitude)


def hours(number: float) -> timezone:
    return timezone(timedelta(hours=number))


# Published charts, as Astro-Databank (Astrodienst) has them.
EINSTEIN = born(datetime(1879, 3, 14, 11, 30), hours(2 / 3), (48.4, 10.0))
DIANA = born(datetime(1961, 7, 1, 19, 45), ZoneInfo("Europe/London"), HERE)
OBAMA = born(datetime(1961, 8, 4, 19, 24), ZoneInfo("Pacific/Honolulu"), (21.3, -(157 + 52 / 60)))
# The Chinese almanac has 小满, the Sun entering Gemini, at 15:37 on that day, which was 16:37 by the clock.
UNTIMED = born(datetime(1990, 5, 21, 12), SHANGHAI, (39.9, 116.4), has_time=False)


def minutes(text: str) -> int:
    match = re.fullmatch(r"(\w+) (\d+)°(\d\d)′", text)
    assert match, text
    names = [sign.en for sign in SIGNS]
    return (names.index(match[1]) * 30 + int(match[2])) * 60 + int(match[3])


@pytest.mark.parametrize(
    ("birth", "sun", "moon", "rising"),
    [
        (EINSTEIN, "Pisces 23°30′", "Sagittarius 14°32′", "Cancer 11°38′"),
        (DIANA, "Cancer 9°40′", "Aquarius 25°02′", "Sagittarius 18°24′"),
        (OBAMA, "Leo 12°33′", "Gemini 3°21′", "Aquarius 18°03′"),
    ],
)
def test_S10_charts_are_as_published(birth: Birth, sun: str, moon: str, rising: str):
    row = zodiac(birth).row("en")
    for name, published in (("sun", sun), ("moon", moon), ("rising", rising)):
        assert abs(minutes(str(row[name])) - minutes(published)) <= 1, name


def test_S10_a_chart_is_told_whole_in_chinese():
    row = zodiac(EINSTEIN).row("zh")
    assert (row["sun"], row["moon"], row["rising"]) == ("双鱼座 23°30′", "射手座 14°32′", "巨蟹座 11°39′")
    assert (row["midheaven"], row["house_system"], row["untold"]) == ("双鱼座 12°50′", "placidus", [])
    planets = row["planets"]
    assert isinstance(planets, list)
    assert len(planets) == 11
    assert planets[0] == {"planet": "太阳", "position": "双鱼座 23°30′", "house": 10, "retrograde": False}
    assert planets[7] == {"planet": "天王星", "position": "处女座 1°17′", "house": 3, "retrograde": True}
    assert planets[10] == {"planet": "北交点", "position": "水瓶座 1°29′", "house": 8, "retrograde": True}
    assert list(words_in(row["houses"])) == [
        *("巨蟹座 11°39′", "巨蟹座 28°37′", "狮子座 17°48′", "处女座 12°50′", "天秤座 18°20′", "射手座 3°07′"),
        *("摩羯座 11°39′", "摩羯座 28°37′", "水瓶座 17°48′", "双鱼座 12°50′", "白羊座 18°20′", "双子座 3°07′"),
    ]
    assert list(words_in(row["aspects"]))[:2] == ["水星 合相 土星 1°03′ 入相", "太阳 六分相 冥王星 1°13′ 入相"]
    assert row["elements"] == {"火象": 4, "土象": 4, "风象": 1, "水象": 1}
    assert row["modalities"] == {"开创宫": 4, "固定宫": 3, "变动宫": 3}


def test_S10_a_chart_is_told_in_english_with_the_same_numbers():
    chinese, english = (zodiac(EINSTEIN).row(locale) for locale in ("zh", "en"))
    assert list(english) == list(chinese)
    assert english["features"] == chinese["features"]
    assert english["elements"] == {"fire": 4, "earth": 4, "air": 1, "water": 1}
    assert "Mercury conjunction Saturn 1°03′ applying" in words_in(english["aspects"])
    without_tags = {name: value for name, value in english.items() if name != "features"}
    assert not re.search(r"[\u3400-\u9fff]", dump(without_tags).decode())


def test_S10_features_are_words_cases_are_tagged_with():
    features = zodiac(EINSTEIN).features
    assert features[:8] == ("双鱼座", "水象", "变动宫", "上升巨蟹", "太阳双鱼", "太阳10宫", "月亮射手", "月亮6宫")
    assert {"Pisces", "water sign", "Sun in Pisces", "Moon in Sagittarius", "Cancer rising"} <= set(features)
    assert "水星逆行" not in features
    backwards = zodiac(born(datetime(2024, 4, 10, 8), SHANGHAI)).features
    assert {"水星逆行", "Mercury retrograde", "白羊座", "太阳白羊"} <= set(backwards)
    # Signs of slow planets, and the way the node goes, are everybody's.
    assert not [one for one in features if re.match("天王星|海王星|冥王星|北交点", one)]
    assert [one for one in features if re.search(r"\d宫", one)] == ["太阳10宫", "月亮6宫"]


def test_S10_a_row_names_no_sign_but_those_the_user_is_known_by():
    bare = {*(sign.name.zh for sign in SIGNS), *(sign.en for sign in SIGNS)}
    for locale in ("zh", "en"):
        assert bare & set(words_in(zodiac(EINSTEIN).row(locale))) == {"双鱼座", "Pisces"}


# What is not known


def test_S10_without_a_time_there_are_no_houses_and_the_moon_has_a_range():
    chart = zodiac(UNTIMED)
    row = chart.row("en")
    assert (row["rising"], row["midheaven"], row["house_system"], row["houses"]) == (None, None, None, {})
    assert {one.house for one in chart.placements} == {None}
    assert chart.gaps == ("no_time",)
    assert row["untold"] == [
        "The time of birth is not known: no ascendant, midheaven, houses or aspects of the Moon. The Moon is told by "
        "its range on that day (zone Asia/Shanghai), everything else as it was at noon."
    ]
    midnight = datetime(1990, 5, 20, 15, tzinfo=UTC)  # summer time
    ends = [longitudes(moment)["moon"] for moment in (midnight, midnight + timedelta(days=1))]
    assert row["moon"] == " to ".join(render_longitude(end, "en") for end in ends)
    assert "moon" not in {body for one in chart.aspects for body in (one.first, one.second)}
    # On another day it stays within a sign.
    moon = zodiac(born(datetime(1990, 5, 15, 12), SHANGHAI, has_time=False)).placement("moon")
    assert moon.sign is not None
    assert moon.is_range


def test_S10_without_time_and_place_both_are_told_and_so_is_what_goes_backwards():
    chart = zodiac(born(datetime(2024, 4, 10, 12), SHANGHAI, has_time=False))
    assert chart.gaps == ("no_time", "no_place")
    assert len(set(words_in(chart.row("zh")["untold"]))) == 2
    assert [one.body for one in chart.placements if one.retrograde] == ["mercury", "north_node"]


def test_S10_a_sign_that_changed_on_a_day_without_a_time_is_left_open():
    chart = zodiac(UNTIMED)
    assert chart.placement("sun").sign is None
    assert chart.row("zh")["sun"] == "金牛座 29°20′ 至 双子座 0°18′"
    assert not [one for one in chart.features if "金牛座" in one or "双子座" in one or "太阳" in one]
    assert chart.row("zh")["elements"] == {"火象": 2, "土象": 4, "风象": 0, "水象": 3}
    # A day later it is certain.
    after = zodiac(born(datetime(1990, 5, 22, 12), SHANGHAI, has_time=False))
    assert "双子座" in after.features
    assert after.row("zh")["sun"] == "双子座 0°47′"


def test_S10_without_a_place_there_are_no_houses_and_the_zone_is_named():
    chart = zodiac(born(datetime(1990, 5, 15, 14, 30), SHANGHAI))
    assert chart.houses is None
    assert chart.gaps == ("no_place",)
    row = chart.row("zh")
    assert row["untold"] == ["出生地的经纬度未知：上升、中天和宫位无法确定；时刻按时区 Asia/Shanghai 计算。"]
    assert not chart.placement("moon").is_range
    assert [one for one in chart.aspects if "moon" in (one.first, one.second)]
    assert not [one for one in chart.features if re.search(r"上升|rising|\d宫|house", one)]


def test_S10_within_a_polar_circle_whole_signs_stand_in_for_placidus():
    tromso = born(datetime(1990, 5, 15, 14, 30), ZoneInfo("Europe/Oslo"), (69.65, 18.96))
    chart = zodiac(tromso)
    assert chart.gaps == ("polar",)
    assert chart.row("en")["house_system"] == "whole_sign"
    assert chart.row("en")["untold"] == [
        "The place is within a polar circle, where Placidus has no houses: they are whole signs instead."
    ]
    assert zodiac(tromso, house_system="whole_sign").gaps == ()


def test_S10_whole_signs_are_houses_when_asked_for_and_other_systems_are_refused():
    chart = zodiac(EINSTEIN, house_system="whole_sign")
    assert chart.houses is not None
    assert chart.houses.cusps[0] == 90
    assert [chart.placement(body).house for body in ("sun", "moon", "mars")] == [9, 6, 7]
    with pytest.raises(ToolError, match=r"no house system 'koch' here\. Use one of: placidus, whole_sign\."):
        zodiac(EINSTEIN, house_system="koch")


# What holds for any birth


BIRTHS = st.builds(
    born,
    st.datetimes(datetime(1700, 1, 2), datetime(2200, 12, 30)),
    st.sampled_from([SHANGHAI, ZoneInfo("Europe/London"), hours(-10)]),
    st.none() | st.tuples(st.floats(-90, 90), st.floats(-180, 180)),
    has_time=st.booleans(),
)


@given(BIRTHS, st.sampled_from(["placidus", "whole_sign"]))
def test_S10_every_birth_has_a_chart_that_is_json_and_says_what_it_leaves_out(birth: Birth, system: str):
    chart = zodiac(birth, house_system=system)
    assert chart == zodiac(birth, house_system=system)
    for locale in ("zh", "en"):
        row = chart.row(locale)
        assert load(dump(row)) == row
    has_houses = birth.has_time and birth.latitude is not None
    assert (chart.houses is not None) == has_houses
    assert all((one.house in range(1, 13)) == has_houses for one in chart.placements)
    assert has_houses or chart.gaps
    assert len(set(chart.features)) == len(chart.features)
    assert all(0 <= one.longitude < 360 for one in chart.placements)
    assert all(one.sign in (None, sign_at(one.longitude)) for one in chart.placements)


@given(st.floats(0, 360, exclude_max=True))
def test_S10_degrees_are_told_to_the_nearest_minute_within_their_sign(longitude: float):
    text = render_longitude(longitude, "en")
    assert text.startswith(f"{SIGNS[int(longitude // 30)].en} ")
    assert abs(minutes(text) / 60 - longitude) <= 1 / 60
    assert minutes(text) % 1800 // 60 < 30


def test_S10_degrees_are_rounded_but_never_into_the_next_sign():
    assert render_longitude(29.9999, "zh") == "白羊座 29°59′"
    assert render_longitude(359.9999, "en") == "Pisces 29°59′"
    assert render_longitude(54.2, "zh") == "金牛座 24°12′"
    assert (render_degrees(7.999), render_degrees(0)) == ("8°00′", "0°00′")
