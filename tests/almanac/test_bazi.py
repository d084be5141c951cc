"""The four pillars, against published charts and almanacs, and against the old rules for finding stems."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.shipped.vibe.almanac.bazi.bazi import BaziChart, bazi
from recto.agents.shipped.vibe.almanac.bazi.pillars import Pillars, equation_of_time, pillars_of, solar_time
from recto.agents.shipped.vibe.almanac.birth.birth import read_birth
from recto.conversation.json import Json
from recto.errors import ToolError

STEMS, BRANCHES = "甲乙丙丁戊己庚辛壬癸", "子丑寅卯辰巳午未申酉戌亥"
MOMENTS = st.datetimes(min_value=datetime(1700, 1, 2), max_value=datetime(2200, 12, 30)).map(
    lambda moment: moment.replace(microsecond=0)
)


def chart(day: str, hour: str = "", **more: Json) -> BaziChart:
    return bazi(read_birth({"date": day, "time": hour, **more}))


def at(clock: datetime) -> Pillars:
    """The pillars where the clock shows Beijing time."""
    moment = (clock - timedelta(hours=8)).replace(tzinfo=UTC)
    return pillars_of(moment, clock, "next_day", has_time=True)


def place_in_sixty(pillar: str) -> int:
    return next(n for n in range(60) if STEMS[n % 10] + BRANCHES[n % 12] == pillar)


@pytest.mark.parametrize(
    ("day", "hour", "pillars"),
    [
        # Public birth charts, as books and sites of the art print them.
        ("1893-12-26", "辰时", "癸巳 甲子 丁酉 甲辰"),  # 毛泽东
        ("1904-08-22", "子时", "甲辰 壬申 戊子 壬子"),  # 邓小平
        # The published tests of the libraries tyme4j and lunar by 6tail.
        ("2005-12-23", "08:37", "乙酉 戊子 辛巳 壬辰"),
        ("1992-02-02", "12:00", "辛未 辛丑 戊申 戊午"),
        ("1990-03-15", "10:30", "庚午 己卯 己卯 己巳"),
        # Days every 万年历 has: 1 January 1900 is 甲戌, 1 October 1949 is 甲子, 7 January 2000 is 甲子.
        ("1900-01-01", "12:00", "己亥 丙子 甲戌 庚午"),
        ("2000-01-07", "12:00", "己卯 丁丑 甲子 庚午"),
    ],
)
def test_S10_published_charts_come_out_as_published(day: str, hour: str, pillars: str) -> None:
    assert chart(day, hour).pillars.name == pillars


def test_S10_the_year_and_the_month_turn_at_the_minute_of_the_solar_term() -> None:
    # 立春 2024: 4 February, 16:27 Beijing time (Purple Mountain Observatory).
    assert chart("2024-02-04", "16:26").pillars.name.startswith("癸卯 乙丑 戊戌")
    assert chart("2024-02-04", "16:28").pillars.name.startswith("甲辰 丙寅 戊戌")


def test_S10_a_term_is_a_moment_wherever_one_is_born() -> None:
    # 16:27 in Beijing is 08:27 in London and 03:27 in New York.
    names = [chart("2024-02-04", clock, place="London").pillars.year.name for clock in ("08:26", "08:28")]
    assert names == ["癸卯", "甲辰"]
    assert chart("2024-02-04", "03:28", place="New York").pillars.name == "甲辰 丙寅 戊戌 甲寅"


def test_S10_the_late_night_hour_turns_the_day_or_does_not() -> None:
    # Both published by the libraries of 6tail for 15 February 1988, 23:30: 辛丑 and, with their second rule, 庚子.
    assert chart("1988-02-15", "23:30").pillars.name == "戊辰 甲寅 辛丑 戊子"
    assert chart("1988-02-15", "23:30", late_zi="same_day").pillars.name == "戊辰 甲寅 庚子 戊子"
    assert chart("1988-02-15", "22:59").pillars.day.name == "庚子"
    assert chart("1988-02-16", "00:10", late_zi="same_day").pillars.name == "戊辰 甲寅 辛丑 戊子"


def test_S10_summer_time_is_taken_off_the_clock_and_said() -> None:
    summer = chart("1988-07-01", "13:30")
    assert summer.clock == datetime(1988, 7, 1, 12, 30)
    assert summer.pillars.hour is not None
    assert summer.pillars.hour.branch == "午"
    assert any("夏令时" in str(note) for note in rows(summer, "notes"))
    winter = chart("1988-12-01", "13:30", place="北京")
    assert winter.pillars.hour is not None
    assert winter.pillars.hour.branch == "未"
    assert not rows(winter, "notes")[:-1]


def test_S10_true_solar_time_moves_the_hour_and_tells_both_corrections() -> None:
    # Kashgar, 75.99 E, is 44.01 degrees west of the meridian of Beijing time: 176.04 minutes.
    kashgar = chart("2024-02-11", "12:30", place="喀什", true_solar_time=True)
    assert kashgar.sun is not None
    assert kashgar.sun.longitude_minutes == pytest.approx(-176.04)
    assert kashgar.sun.equation_minutes == pytest.approx(-14.2, abs=0.1)
    assert kashgar.clock == pytest.approx(datetime(2024, 2, 11, 9, 19, 45), abs=timedelta(seconds=10))
    assert kashgar.pillars.hour is not None
    assert kashgar.pillars.hour.branch == "巳"
    plain = chart("2024-02-11", "12:30", place="喀什")
    assert plain.pillars.hour is not None
    assert plain.pillars.hour.branch == "午"
    assert kashgar.row()["clock"] == {
        "local": "2024-02-11 12:30",
        "zone": "Asia/Shanghai",
        "summer_time_minutes": 0,
        "told_by": kashgar.clock.isoformat(" "),
        "true_solar_time": {"longitude_minutes": -176.04, "equation_of_time_minutes": kashgar.sun.equation_minutes},
        "late_zi": "23点起换日柱",
    }


def test_S10_true_solar_time_without_a_longitude_says_what_to_ask_for() -> None:
    with pytest.raises(ToolError, match="needs the longitude"):
        chart("2024-02-11", "12:30", true_solar_time=True)


def test_S10_the_equation_of_time_is_that_of_the_books() -> None:
    # Meeus, Astronomical Algorithms, example 28.a: 13 October 1992, 0h: +13 min 42.6 s.
    assert equation_of_time(datetime(1992, 10, 13, tzinfo=UTC)) == pytest.approx(13.71, abs=0.02)
    # Its extremes of the year, in any almanac: about -14 min 14 s on 11 February, +16 min 25 s on 3 November.
    assert equation_of_time(datetime(2024, 2, 11, 12, tzinfo=UTC)) == pytest.approx(-14.2, abs=0.1)
    assert equation_of_time(datetime(2024, 11, 3, 12, tzinfo=UTC)) == pytest.approx(16.45, abs=0.1)


def test_S10_solar_time_is_the_same_whatever_the_zone_of_the_clock() -> None:
    beijing = read_birth({"date": "2024-06-01", "time": "12:00", "place": "北京"})
    utc = read_birth({"date": "2024-06-01", "time": "04:00", "latitude": 39.9, "longitude": 116.41, "timezone": "UTC"})
    assert solar_time(beijing).local == solar_time(utc).local


@given(MOMENTS)
def test_S10_the_stem_of_a_month_follows_from_that_of_its_year(clock: datetime) -> None:
    """五虎遁: 甲己之年丙作首, 乙庚之岁戊为头, 丙辛必定寻庚起, 丁壬壬位顺行流, 戊癸甲寅."""
    pillars = at(clock)
    first = dict(zip("甲己乙庚丙辛丁壬戊癸", "丙丙戊戊庚庚壬壬甲甲", strict=True))
    months = (BRANCHES.index(pillars.month.branch) - BRANCHES.index("寅")) % 12
    assert pillars.month.stem == STEMS[(STEMS.index(first[pillars.year.stem]) + months) % 10]


@given(MOMENTS)
def test_S10_the_hour_follows_from_the_clock_and_its_stem_from_that_of_the_day(clock: datetime) -> None:
    """五鼠遁: 甲己还加甲, 乙庚丙作初, 丙辛从戊起, 丁壬庚子居, 戊癸壬子."""
    pillars = at(clock)
    first = dict(zip("甲己乙庚丙辛丁壬戊癸", "甲甲丙丙戊戊庚庚壬壬", strict=True))
    assert pillars.hour is not None
    assert pillars.hour.branch == BRANCHES[(clock.hour + 1) // 2 % 12]
    hours = BRANCHES.index(pillars.hour.branch)
    assert pillars.hour.stem == STEMS[(STEMS.index(first[pillars.day.stem]) + hours) % 10]


@given(MOMENTS)
def test_S10_days_and_years_follow_the_cycle_of_sixty(clock: datetime) -> None:
    pillars = at(clock)
    # 7 January 2000 was 甲子; from 23:00 it is the next day. 1984 was 甲子, and begins about 4 February.
    days = (clock + timedelta(hours=1)).date() - date(2000, 1, 7)
    assert place_in_sixty(pillars.day.name) == days.days % 60
    year = place_in_sixty(pillars.year.name)
    assert year in {(clock.year - 1984) % 60, (clock.year - 1985) % 60}
    if clock.month > 2:
        assert year == (clock.year - 1984) % 60


def test_S10_ten_gods_and_hidden_stems_are_seen_from_the_day() -> None:
    # Published with tyme4j for 13:37, which is 14:37 of summer time: 丙寅 癸巳 癸酉 己未 has 正财, 比肩, 七杀,
    # in 寅 伤官, 正财, 正官; and 酉 hides 辛 alone.
    pillars = chart("1986-05-29", "14:37").pillars
    assert pillars.name == "丙寅 癸巳 癸酉 己未"
    assert [pillar.ten_god for pillar in pillars.all] == ["正财", "比肩", "日主", "七杀"]
    assert [(one.stem, one.ten_god) for one in pillars.year.hidden] == [("甲", "伤官"), ("丙", "正财"), ("戊", "正官")]
    assert [(one.stem, one.ten_god) for one in pillars.day.hidden] == [("辛", "偏印")]


def test_S10_na_yin_is_that_of_the_old_verse() -> None:
    # 甲子乙丑海中金; 庚午辛未路旁土; 庚辰辛巳白蜡金; 壬午癸未杨柳木.
    pillars = chart("1990-05-15", "14:30").pillars
    assert [one.name + one.na_yin for one in pillars.all] == ["庚午路旁土", "辛巳白蜡金", "庚辰白蜡金", "癸未杨柳木"]
    assert chart("1949-10-01").pillars.day.na_yin == "海中金"


def test_S10_without_a_time_there_is_no_hour_and_the_notes_say_what_is_open() -> None:
    untimed = chart("2024-02-04", gender="女", true_solar_time=True)
    assert untimed.pillars.hour is None
    notes = " ".join(str(note) for note in rows(untimed, "notes"))
    assert all(part in notes for part in ("没有时柱", "当天交节", "未作真太阳时校正", "起运时间约有两个月"))
    assert "交节" not in " ".join(str(note) for note in rows(chart("2024-02-06"), "notes"))


@pytest.mark.parametrize(
    ("where", "zh", "en"),
    [
        ({}, "未提供出生地名或时区，按 Asia/Shanghai 的时间计算", "Neither a place of birth nor a time zone was given"),
        ({"place": "月球"}, "出生地未识别，按 Asia/Shanghai 的时间计算", "The place of birth is not recognised"),
    ],
)
def test_S10_a_chart_in_chinese_time_that_nobody_told_says_so(where: dict[str, Json], zh: str, en: str) -> None:
    assumed = chart("1995-07-10", "07:30", gender="男", **where)
    assert [str(note)[: len(zh)] for note in rows(assumed, "notes")] == [zh]
    assert en in str(assumed.row("en")["notes"])
    assert not rows(chart("1995-07-10", "07:30", gender="男", place="北京"), "notes")
    (note,) = rows(chart("1995-07-10", "07:30", gender="男", place="广东"), "notes")
    assert note == "出生地只到省（广东），按省会广州计算；知道城市时请补充。"
    assert not rows(chart("1995-07-10", "07:30", gender="男", timezone="Asia/Tokyo", **where), "notes")


def test_S10_an_hour_the_clock_showed_twice_or_never_is_said() -> None:
    twice = chart("1990-09-16", "01:30", place="北京", gender="男")
    assert rows(twice, "notes")[1:] == [
        "当天钟表拨回60分钟，01:30 出现过两次：按第一次（拨回前）计算，请确认。",
        "若是第二次，时区请填 Etc/GMT-8。",
    ]
    assert "so 01:30 came twice: it is taken to be the first" in str(twice.row("en")["notes"])
    assert twice.clock == datetime(1990, 9, 16, 0, 30)
    second = chart("1990-09-16", "01:30", place="北京", gender="男", timezone="Etc/GMT-8")
    assert (second.clock, rows(second, "notes")) == (datetime(1990, 9, 16, 1, 30), [])
    new_york = chart("2023-11-05", "01:30", place="New York", gender="男")
    assert "Etc/GMT+5" in str(rows(new_york, "notes"))
    half_an_hour = chart("2024-04-07", "01:45", timezone="Australia/Lord_Howe", gender="男")
    assert "拨回30分钟" in str(rows(half_an_hour, "notes"))
    assert "Etc" not in str(rows(half_an_hour, "notes"))
    never = chart("1990-04-15", "02:30", place="北京", gender="男")
    assert "没有 02:30 这一时刻" in str(rows(never, "notes"))
    assert "there was no 02:30" in str(never.row("en")["notes"])
    untimed = chart("1990-09-16", place="北京", gender="男")
    assert "两次" not in str(rows(untimed, "notes"))


def test_S10_what_is_asked_here_goes_before_what_the_birth_asks() -> None:
    birth = read_birth(
        {"date": "1988-02-15", "time": "23:30", "place": "北京", "late_zi": "same_day", "true_solar_time": True}
    )
    assert bazi(birth).sun is not None
    assert bazi(birth, true_solar_time=False, late_zi="next_day").pillars.day.name == "辛丑"


def test_S10_the_year_at_hand_begins_with_the_term_not_in_january() -> None:
    birth = read_birth({"date": "1990-05-15", "time": "14:30"})
    january, march = bazi(birth, today=date(2026, 1, 10)), bazi(birth, today=date(2026, 3, 1))
    assert january.row()["this_year"] == {"year": 2025, "pillar": "乙巳", "ten_god": "正财", "branch_ten_god": "七杀"}
    assert march.row()["this_year"] == {"year": 2026, "pillar": "丙午", "ten_god": "七杀", "branch_ten_god": "正官"}
    assert bazi(birth).row()["this_year"] is None


def rows(chart: BaziChart, name: str) -> list[Json]:
    result = chart.row()[name]
    assert isinstance(result, list)
    return list(result)
