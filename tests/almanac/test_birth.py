"""Births as people tell them, and what becomes of them."""

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.shipped.vibe.almanac.birth.birth import (
    WrittenDate,
    check_birth,
    correct,
    normalise,
    read_birth,
    read_date,
    read_gender,
    read_time,
)
from recto.conversation.json import Json
from recto.errors import ToolError

NOW = datetime(2026, 5, 14, 4, tzinfo=UTC)


SPELLINGS = ("1990-05-15", "1990/5/15", "1990.5.15", "1990年05月15号", "19900515", " 1990-5-15 ", "1990 5 15")


@pytest.mark.parametrize("text", [*SPELLINGS, "１９９０年五月十五日", "一九九〇年五月十五日", "一九九○年五月十五"])
def test_S10_a_date_is_read_however_it_is_written(text: str) -> None:
    assert read_date(text) == WrittenDate(year=1990, month=5, day=15)


@pytest.mark.parametrize(
    ("text", "iso", "leap"),
    [
        ("1990年腊月廿三", "1990-12-23", False),
        ("1990年冬月初十", "1990-11-10", False),
        ("1990年二月卅", "1990-02-30", False),
        ("1990年阴历二月三十日", "1990-02-30", False),
        ("1990-04-21（农历）", "1990-04-21", False),
        ("1990年闰五月初一", "1990-05-01", True),
        ("1990年閏5月1日", "1990-05-01", True),
        ("1990-05-01 (leap month)", "1990-05-01", True),
    ],
)
def test_S10_words_that_only_a_lunar_date_has_make_it_one(text: str, iso: str, leap: bool) -> None:
    date_read = read_date(text)
    assert (date_read.iso, date_read.calendar, date_read.leap_month) == (iso, "lunar", leap)
    info: dict[str, Json] = {"date": iso, "calendar": "lunar", **({"leap_month": True} if leap else {})}
    assert normalise({"date": text}) == info
    assert read_birth({"date": text}) == read_birth(info)


@pytest.mark.parametrize(
    "text", ["公历1990年5月15日", "1990年5月15日（阳历）", "Gregorian 1990-05-15", "國曆1990年5月15日"]
)
def test_S10_a_date_may_say_that_it_is_solar(text: str) -> None:
    assert read_date(text) == WrittenDate(year=1990, month=5, day=15, calendar="solar")
    assert normalise({"date": text}) == {"date": "1990-05-15"}


@given(st.dates(date(1700, 1, 1), date(2200, 12, 31)), st.booleans())
def test_S10_numbers_say_the_same_in_chinese_and_the_days_of_a_lunar_month_have_names(day: date, lunar: bool) -> None:
    ones = "〇一二三四五六七八九"
    tens = ("初", "十", "廿", "卅") if lunar else ("", "十", "二十", "三十")
    year = "".join(ones[int(digit)] for digit in str(day.year))
    month = f"{'十' if day.month >= 10 else ''}{ones[day.month % 10] if day.month % 10 else ''}"
    day_name = f"{tens[day.day // 10]}{ones[day.day % 10] if day.day % 10 else ''}"
    day_name = "初十" if lunar and day_name == "十" else day_name
    date_read = read_date(f"{year}年{month}月{day_name}")
    # From the eleventh to the nineteenth a lunar day is named as a solar one.
    assert date_read.calendar == ("lunar" if lunar and not 11 <= day.day <= 19 else None)
    assert date_read.iso == day.isoformat()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("庚午年四月廿一", "by stem and branch, which come again every sixty years. Ask for the year as a number"),
        ("公历1990年腊月廿三", "of two calendars by its words. Ask which it is"),
        ("农历1990年四月廿一（公历1990年5月15日）", "of two calendars by its words. Ask which it is"),
        ("1990年四月初十一", "a lunar one as 农历1990年四月廿一"),
        ("1990闰年五月初一", "cannot be read"),
    ],
)
def test_S10_a_date_that_could_be_of_several_years_or_calendars_is_asked_back(text: str, says: str) -> None:
    with pytest.raises(ToolError, match=says):
        read_date(text)


@pytest.mark.parametrize(
    ("texts", "read"),
    [
        (("14:30", "14点30分", "十四点三十分", "下午2点半", "下午14点半", "2:30 PM", "2:30 p.m."), time(14, 30)),
        (("14:30:20", "１４：３０：２０", "14时30分20秒"), time(14, 30, 20)),
        (("14点", "2pm"), time(14)),
        (("凌晨12点", "凌晨0点", "12:00 am", "子时"), time(0)),
        (("中午12点", "上午12点", "12 PM"), time(12)),
        (("中午1点",), time(13)),
        (("中午11点半",), time(11, 30)),
        (("两点半",), time(2, 30)),
        (("晚上十一点一刻",), time(23, 15)),
        (("早子时",), time(0, 30)),
        (("晚子时",), time(23, 30)),
        (("辰时",), time(8)),
        (("", "不知道", "Unknown"), None),
    ],
)
def test_S10_a_time_is_read_however_it_is_written(texts: tuple[str, ...], read: time | None) -> None:
    assert [read_time(text) for text in texts] == [read] * len(texts)


NO_TIMES = ("24:00", "12:60", "14", "abc", "上午14点", "中午5点", "上午2点PM", "晚辰时", "下午0点")


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (NO_TIMES, r"cannot be read. Give `time` as 14:30"),
        (("晚上12点", "半夜1点", "夜里十二点"), "before or after midnight"),
    ],
)
def test_S10_a_time_that_is_none_or_may_belong_to_either_of_two_dates_is_refused(
    texts: tuple[str, ...], says: str
) -> None:
    for text in texts:
        with pytest.raises(ToolError, match=says):
            read_time(text)


@given(st.times())
def test_S10_every_time_of_day_reads_back(moment: time) -> None:
    assert read_time(moment.strftime("%H:%M:%S")) == moment.replace(microsecond=0, fold=0)
    assert read_time(moment.strftime("%H点%M分")) == time(moment.hour, moment.minute)
    assert read_time(moment.strftime("%I:%M %p")) == time(moment.hour, moment.minute)


def test_S10_the_clock_and_its_zone_give_the_moment() -> None:
    birth = read_birth({"date": "1990-12-15", "time": "14:30", "place": "北京", "gender": "男"})
    assert birth.local == datetime(1990, 12, 15, 14, 30)
    assert birth.moment == datetime(1990, 12, 15, 6, 30, tzinfo=UTC)
    assert (birth.has_time, birth.place, birth.gender, birth.zone_name) == (True, "北京", "male", "Asia/Shanghai")
    assert (birth.latitude, birth.longitude) == (39.90, 116.41)
    assert birth.standard == birth.local


def test_S10_summer_time_of_the_years_1986_to_1991_is_known() -> None:
    # China had summer time in these years, in 1988 from 17 April to 11 September (tzdata: rule PRC).
    birth = read_birth({"date": "1988-07-01", "time": "14:30"})
    assert birth.moment == datetime(1988, 7, 1, 5, 30, tzinfo=UTC)
    assert birth.summer_time == timedelta(hours=1)
    assert birth.standard == datetime(1988, 7, 1, 13, 30)
    assert read_birth({"date": "1992-07-01", "time": "14:30"}).summer_time == timedelta()


@pytest.mark.parametrize(
    ("day", "place", "hours"),
    [
        ("1980-01-01", "Dublin", 0),
        ("1980-07-01", "Dublin", 1),
        ("2024-01-15", "Sydney", 1),
        ("2024-07-15", "Sydney", 0),
        ("2024-03-20", "Casablanca", 0),
    ],
)
def test_S10_summer_time_is_told_alike_where_winter_is_the_exception(day: str, place: str, hours: int) -> None:
    assert read_birth({"date": day, "place": place}).summer_time == timedelta(hours=hours)


def test_S10_without_a_time_it_is_noon_and_said_to_be_unknown() -> None:
    birth = read_birth({"date": "2001-02-03"})
    assert not birth.has_time
    assert birth.local == datetime(2001, 2, 3, 12)
    assert (birth.latitude, birth.longitude, birth.gender, birth.place) == (None, None, None, "")


# Published new years' days and leap months of the Chinese calendar (Hong Kong Observatory, conversion tables).
@pytest.mark.parametrize(
    ("lunar", "leap", "solar"),
    [
        ("2024-01-01", False, date(2024, 2, 10)),
        ("2020-04-01", True, date(2020, 5, 23)),
        ("2023-02-01", True, date(2023, 3, 22)),
        ("1990年四月廿一", False, date(1990, 5, 15)),
        ("2023年腊月三十", False, date(2024, 2, 9)),
    ],
)
def test_S10_a_lunar_date_becomes_the_published_solar_one(lunar: str, leap: bool, solar: date) -> None:
    assert read_birth({"date": lunar, "calendar": "lunar", "leap_month": leap}).local.date() == solar


@pytest.mark.parametrize(
    ("info", "says"),
    [
        ({}, "birth date is missing"),
        ({"date": "someday"}, "cannot be read"),
        ({"date": "1990-13-01"}, "no day 1 of a month 13"),
        ({"date": "1990-02-30"}, "no day 1990-02-30 in the solar calendar"),
        ({"date": "1699-12-31"}, "outside 1700-2200"),
        ({"date": "1990-04-31", "calendar": "lunar"}, "in the lunar calendar"),
        ({"date": "1990年腊月廿三", "calendar": "solar"}, "a lunar one by its words, but `calendar` is solar. Ask"),
        ({"date": "公历1990年5月15日", "calendar": "农历"}, "a solar one by its words, but `calendar` is lunar. Ask"),
        ({"date": "1990年闰五月初一", "leap_month": False}, "by its words, but `leap_month` is false. Ask"),
        ({"date": "公历1990年5月1日", "leap_month": True}, "only a lunar month can be a leap month"),
        ({"date": "1990年闰四月初一"}, "its leap month is 5"),
        ({"date": "1990-05-15", "timezone": "right/Asia/Shanghai"}, "no time zone 'right/Asia/Shanghai'"),
        ({"date": "1990-05-15", "gender": "x"}, "male, female"),
        ({"date": "1990-05-15", "late_zi": "never"}, "next_day, same_day"),
        ({"date": "1990-05-15", "latitude": 39.9}, "belong together"),
        ({"date": "1990-05-15", "latitude": 1, "longitude": "east"}, "from -180 to 180"),
        ({"date": "1990-05-15", "latitude": float("nan"), "longitude": 1}, "from -90 to 90"),
        ({"date": "1990-05-15", "timezone": "../etc"}, "no time zone"),
        ({"date": "1990-05-15", "place": "Smallville, Kansas"}, "Give `timezone`"),
        ({"date": "1990-05-15", "latitude": 48.4, "longitude": 10}, "time zone of these coordinates"),
        ({"date": 19900515}, "is no text"),
        ({"date": "1990-05-15", "true_solar_time": "yes"}, "neither true nor false"),
    ],
)
def test_S10_what_cannot_be_is_refused_with_what_to_do(info: dict[str, Json], says: str) -> None:
    for reader in (read_birth, normalise):
        with pytest.raises(ToolError, match=says):
            reader(info)


def test_S10_a_future_birth_and_a_zone_of_ones_own_are_taken() -> None:
    birth = read_birth(
        {"date": "2199-06-01", "time": "8:00", "latitude": "48.4", "longitude": 10, "timezone": "Europe/Berlin"}
    )
    assert birth.moment == datetime(2199, 6, 1, 6, tzinfo=UTC)
    assert (birth.latitude, birth.longitude) == (48.4, 10.0)


@pytest.mark.parametrize(
    ("where", "assumed"),
    [
        ({"place": "月球"}, True),
        ({"latitude": 39.9, "longitude": 116.4}, True),
        ({"place": "湖南省某某县"}, False),
        ({"place": "某村", "timezone": "Asia/Shanghai"}, False),
    ],
)
def test_S10_a_zone_that_nobody_told_is_marked_as_assumed(where: dict[str, Json], assumed: bool) -> None:
    birth = read_birth({"date": "1990-12-15", **where})
    assert (birth.zone_name, birth.zone_assumed) == ("Asia/Shanghai", assumed)
    assert (birth.latitude is None) == ("latitude" not in where)


@pytest.mark.parametrize(
    ("day", "hour", "minutes"),
    [("1990-09-16", "01:30", -60), ("1990-04-15", "02:30", 60), ("1990-09-16", "02:30", 0), ("1992-09-16", "01:30", 0)],
)
def test_S10_a_time_the_clock_showed_twice_or_never_is_known(day: str, hour: str, minutes: int) -> None:
    # China's clocks went back at 02:00 on 16 September 1990, and on at 02:00 on 15 April (tzdata: rule PRC).
    assert read_birth({"date": day, "time": hour, "place": "北京"}).clock_turned == timedelta(minutes=minutes)


def test_S10_a_gender_can_be_read_by_itself() -> None:
    assert [read_gender(text) for text in ("男", "Female", "女的", "")] == ["male", "female", "female", None]
    with pytest.raises(ToolError, match=r"gender 'other' is not known\. Give one of: male, female."):
        read_gender("Other")


SOLAR: dict[str, Json] = {"date": "1990-05-15", "time": "14:30", "gender": "male"}
LUNAR: dict[str, Json] = {"date": "1990-04-21", "calendar": "lunar"}
LEAP: dict[str, Json] = {"date": "2020-04-10", "calendar": "lunar", "leap_month": True}
ULM: dict[str, Json] = {"latitude": 48.4, "longitude": 10.0, "timezone": "Europe/Berlin"}
ABROAD: dict[str, Json] = {"date": "1990-05-15", "place": "Ulm-Wiblingen", **ULM}


@pytest.mark.parametrize(
    ("birth_info", "changes", "becomes"),
    [
        (SOLAR, {"time": "下午3点"}, {**SOLAR, "time": "15:00"}),
        (SOLAR, {"date": "1990年四月廿一"}, {**SOLAR, **LUNAR}),
        (SOLAR, {"time": "", "gender": None}, {"date": "1990-05-15", "gender": "male"}),
        (LUNAR, {"date": "公历1990年5月15日"}, {"date": "1990-05-15"}),
        (LUNAR, {"date": "1990-05-15", "calendar": "solar"}, {"date": "1990-05-15"}),
        (LEAP, {"date": "2020年4月10日"}, LEAP),
        (LEAP, {"date": "2020-05-11"}, {"date": "2020-05-11", "calendar": "lunar"}),
        (LEAP, {"date": "2023年闰二月初一"}, {"date": "2023-02-01", "calendar": "lunar", "leap_month": True}),
        (LEAP, {"leap_month": False}, {"date": "2020-04-10", "calendar": "lunar"}),
        ({"date": "2020-04-10"}, {"leap_month": True}, LEAP),
        ({"date": "abcdef"}, {"date": "1990-05-15"}, {"date": "1990-05-15"}),
        (ABROAD, {"place": "北京"}, {"date": "1990-05-15", "place": "北京"}),
        (ABROAD, {"place": " Ulm-Wiblingen "}, ABROAD),
        (ABROAD, {"place": "某村", "timezone": "UTC"}, {"date": "1990-05-15", "place": "某村", "timezone": "UTC"}),
    ],
)
def test_S10_a_correction_changes_what_it_says_and_what_went_by_that(
    birth_info: dict[str, Json], changes: dict[str, Json], becomes: dict[str, Json]
) -> None:
    assert normalise(correct(birth_info, changes)) == becomes


def test_S10_without_a_date_its_calendar_and_leap_month_are_forgotten_too() -> None:
    assert correct({**LEAP, "gender": "male"}, {"date": ""}) == {"date": "", "gender": "male"}


@pytest.mark.parametrize("change", [{"date": "someday"}, {"calendar": "maya"}, {"date": 5}, {"place": 5}])
def test_S10_a_correction_that_cannot_be_read_is_refused_in_words(change: dict[str, Json]) -> None:
    with pytest.raises(ToolError, match=r"Give"):
        correct(SOLAR, change)


def test_S10_the_form_that_is_kept_has_one_spelling_and_nothing_filled_in() -> None:
    form: dict[str, Json] = {"date": "1990年5月15日", "time": "下午2点半", "place": " 北京 ", "gender": "男"}
    own: dict[str, Json] = {"true_solar_time": True, "late_zi": "same_day", "nickname": "小明"}
    birth_info = normalise({**form, "calendar": "公历", **own})
    assert birth_info == {"date": "1990-05-15", "time": "14:30", "place": "北京", "gender": "male", **own}
    assert normalise(birth_info) == birth_info
    birth = read_birth(birth_info)
    assert (birth.true_solar_time, birth.late_zi) == (True, "same_day")
    info: dict[str, Json] = {"date": "2020-4-1", "calendar": "农历", "leap_month": True, "time": "unknown"}
    assert normalise(info) == {"date": "2020-04-01", "calendar": "lunar", "leap_month": True}


FIELDS = st.sampled_from(
    ["date", "time", "place", "gender", "calendar", "timezone", "latitude", "longitude", "leap_month"]
)
VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.just("1990-05-15"))


@given(st.dictionaries(FIELDS, VALUES))
def test_S10_anything_at_all_is_read_or_refused_in_words(info: dict[str, Any]) -> None:
    try:
        birth_info = normalise(cast("dict[str, Json]", info))
    except ToolError as error:
        assert str(error).endswith(".")
    else:
        assert normalise(birth_info) == birth_info
        read_birth(birth_info)


@pytest.mark.parametrize(
    ("birth", "problem"),
    [
        ({"date": "1990-02-30"}, "There is no day 1990-02-30 in the solar calendar. Ask for the birth date again"),
        ({"date": "1990-05-15", "time": "25:00"}, "The birth time '25:00' cannot be read"),
        ({"date": "2026-05-15"}, "The birth, 2026-05-15, lies in the future: it is 2026-05-14 12:00."),
        ({"date": "2026-05-14", "time": "13:00", "place": "北京"}, "The birth, 2026-05-14 13:00, lies in the future"),
        ({"date": "2026-05-14", "time": "11:00", "place": "Paris"}, "lies in the future: it is 2026-05-14 06:00"),
    ],
)
def test_S10_a_birth_on_no_day_at_no_time_or_in_the_future_is_refused(birth: dict[str, Json], problem: str):
    with pytest.raises(ToolError, match=re.escape(problem)):
        check_birth(birth, NOW)


@pytest.mark.parametrize(
    "birth",
    [
        {"date": "2026-05-14"},
        {"date": "2026-05-14", "time": "11:59", "place": "北京"},
        {"date": "1990-02-30", "calendar": "lunar"},
        {"date": "1990-05-15", "place": "Nowhere, Atlantis"},
    ],
)
def test_S10_a_birth_that_can_have_been_passes(birth: dict[str, Json]):
    check_birth(birth, NOW)
