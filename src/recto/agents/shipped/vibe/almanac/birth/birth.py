"""Births: parsing, validation and correction of the profile's birth information."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Literal, TypeVar
from zoneinfo import ZoneInfo

from recto.agents.shipped.vibe.almanac.birth.places import HOME_ZONE, Place, find_place, home_zone, is_abroad
from recto.conversation.json import Json
from recto.errors import ToolError

Calendar = Literal["solar", "lunar"]

UNKNOWN_TIMES = frozenset({"", "unknown", "none", "n/a", "?", "未知", "不详", "不知道", "不清楚", "不记得", "时辰不详"})
BRANCHES = "子丑寅卯辰巳午未申酉戌亥"
MONTHS, LONGEST_MONTH, HOURS, MINUTES, HALF_DAY = 12, 31, 24, 60, 12

_DIGITS = {digit: value for value, digit in enumerate("〇一二三四五六七八九")} | {"零": 0, "○": 0, "两": 2}
_TENS = {"初": 0, "十": 10, "廿": 20, "卅": 30}
_MONTH_NAMES = {"正月": "1月", "元月": "1月", "冬月": "11月", "腊月": "12月"}
_NUMERAL = re.compile("[〇○零一二两三四五六七八九十初廿卅]+")
_ONES = "[一二三四五六七八九]"
_TENS_NUMERAL = re.compile(f"初(?:{_ONES}|十)?|{_ONES}?十{_ONES}?|[廿卅]{_ONES}?")
_ONE_SCRIPT = str.maketrans("時點農陰陽曆歷閏臘號舊國", "时点农阴阳历历闰腊号旧国")

_LUNAR_NAME = r"农历|阴历|旧历|夏历|\blunar(?:\s+calendar)?\b|\bchinese\s+calendar\b"
_SOLAR_NAME = r"公历|阳历|新历|西历|国历|\b(?:solar|gregorian)(?:\s+calendar)?\b"
# 闰年 is a year with a leap month or a leap day, so it does not name a month.
_LEAP_NAME = r"闰月|闰(?!年)|\bleap\s+month\b"
# Words that occur only in lunar dates.
_LUNAR = re.compile(rf"{_LUNAR_NAME}|{_LEAP_NAME}|正月|冬月|腊月|[初廿卅]")
_SOLAR, _LEAP = re.compile(_SOLAR_NAME), re.compile(_LEAP_NAME)
_BESIDE = re.compile(rf"{_LUNAR_NAME}|{_SOLAR_NAME}|{_LEAP_NAME}|[(),:\[\]【】、。]")
_CYCLE_YEAR = re.compile(rf"[甲乙丙丁戊己庚辛壬癸][{BRANCHES}]")
_DATE = re.compile(r"(\d{4})(?:\s*[-/.年]\s*|\s+)(\d{1,2})(?:\s*[-/.月]\s*|\s+)(\d{1,2})\s*[日号]?")
_COMPACT_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})")

_MORNING = ("凌晨", "清晨", "早上", "早晨", "上午", "am", "a.m.")
_NOON = ("中午", "正午")
_AFTERNOON = ("下午", "午后", "傍晚", "pm", "p.m.")
_EVENING = ("晚上", "晚间", "夜晚", "夜里", "半夜", "深夜")
_FIRST_EVENING_HOUR = 5
_FIRST_NOON_HOUR, _LAST_NOON_HOUR = 10, 2
_PARTS = "|".join(re.escape(part) for part in (*_MORNING, *_NOON, *_AFTERNOON, *_EVENING))
_MINUTE = r"(?:(?P<half>半)|(?P<quarter>[123])刻|(?P<minute>\d{1,2})(?:[:分](?:(?P<second>\d{1,2})秒?)?)?)"
_CLOCK = re.compile(rf"(?P<before>{_PARTS})?(?P<hour>\d{{1,2}})(?P<mark>[:点时]钟?整?{_MINUTE}?)?(?P<after>{_PARTS})?")
_DOUBLE_HOUR = re.compile(rf"(?P<late>[早晚夜]?)(?P<branch>[{BRANCHES}])时")


@dataclass(frozen=True, kw_only=True)
class WrittenDate:
    """A parsed date. `calendar` is None if the words fit both calendars."""

    year: int
    month: int
    day: int
    calendar: Calendar | None = None
    leap_month: bool = False

    @property
    def iso(self) -> str:
        """Year, month and day in digits, in the calendar of the date."""
        return f"{self.year:04}-{self.month:02}-{self.day:02}"


def read_date(text: str) -> WrittenDate:
    """Parse 1990-05-15, 1990/5/15, 19900515, 1990年5月15日, 一九九〇年腊月廿三 or 农历1990年闰五月初一."""
    words = _one_script(text)
    lunar, solar = bool(_LUNAR.search(words)), bool(_SOLAR.search(words))
    if lunar and solar:
        problem = f"The birth date {text!r} is of two calendars by its words."
        raise ToolError(f"{problem} Ask which it is, and give one date: 公历1990年5月15日 or 农历1990年四月廿一.")
    calendar = "lunar" if lunar else "solar" if solar else None
    plain = _in_digits(_BESIDE.sub(" ", words)).strip()
    match = _DATE.fullmatch(plain) or _COMPACT_DATE.fullmatch(plain)
    if match is None:
        problem = f"The birth date {text!r} cannot be read." if text else "The birth date is missing."
        if _CYCLE_YEAR.search(words):
            problem = f"The birth date {text!r} names its year by stem and branch, which come again every sixty years."
            raise ToolError(f"{problem} Ask for the year as a number, and give the date as 农历1990年四月廿一.")
        how = "such as 1990-05-15 or 1990年5月15日; a lunar one as 农历1990年四月廿一"
        raise ToolError(f"{problem} Give `date` as year, month and day, {how}.")
    year, month, day = (int(part) for part in match.groups())
    if not 1 <= month <= MONTHS or not 1 <= day <= LONGEST_MONTH:
        raise ToolError(f"There is no day {day} of a month {month}. Give `date` as year, month, day: 1990-05-15.")
    return WrittenDate(year=year, month=month, day=day, calendar=calendar, leap_month=bool(_LEAP.search(words)))


def read_time(text: str) -> time | None:
    """Parse 14:30, 14点30分, 下午2点半, 2:30 PM or 辰时 (as its middle). Return None for an unknown time."""
    plain = _in_digits(_one_script(text)).replace(" ", "")
    if plain in UNKNOWN_TIMES:
        return None
    if match := _DOUBLE_HOUR.fullmatch(plain):
        # Use the middle of a double hour. 子时 spans midnight, so its middle is the start of the day.
        branch = match["branch"]
        late = match["late"]
        if late and branch != BRANCHES[0]:
            raise _unreadable(text)
        return time(23, 30) if late in ("晚", "夜") else time(2 * BRANCHES.index(branch), 30 if late else 0)
    match = _CLOCK.fullmatch(plain)
    # A bare number is ambiguous; 上午2点PM contradicts itself.
    if match is None or not any(match.group("before", "mark", "after")) or all(match.group("before", "after")):
        raise _unreadable(text)
    minute = 30 if match["half"] else 15 * int(match["quarter"] or 0) or int(match["minute"] or 0)
    hour, second = int(match["hour"]), int(match["second"] or 0)
    if part := match["before"] or match["after"]:
        hour = _hour_of_day(hour, part, text)
    if hour >= HOURS or minute >= MINUTES or second >= MINUTES:
        raise _unreadable(text)
    return time(hour, minute, second)


def _one_script(text: str) -> str:
    """Normalise width, case and traditional characters of dates and times."""
    return unicodedata.normalize("NFKC", text).strip().lower().translate(_ONE_SCRIPT)


def _in_digits(words: str) -> str:
    """Replace Chinese numerals and month names by digits."""
    for name, number in _MONTH_NAMES.items():
        words = words.replace(name, number)
    return _NUMERAL.sub(lambda match: _number(match[0]), words)


def _number(numeral: str) -> str:
    """Convert 二十三 and 廿三 to 23, 初五 to 5, 一九九〇 to 1990. Leave other words, such as 初十一, unchanged."""
    if not any(digit in _TENS for digit in numeral):
        return "".join(str(_DIGITS[digit]) for digit in numeral)
    if not _TENS_NUMERAL.fullmatch(numeral):
        return numeral
    total = 0
    for digit in numeral:
        if digit == "十" and 0 < total < HALF_DAY:
            total *= 10
        else:
            total += _TENS[digit] if digit in _TENS else _DIGITS[digit]
    return str(total)


def _hour_of_day(hour: int, part: str, text: str) -> int:
    if part in (*_MORNING, *_NOON) and hour == HALF_DAY:
        return HALF_DAY if part in (*_NOON, "上午") else 0
    if hour == 0 or hour > HALF_DAY:
        # 下午14点 is redundant; 上午14点 contradicts itself.
        if (hour == 0 and part == "凌晨") or (hour > HALF_DAY and part in (*_AFTERNOON, *_EVENING)):
            return hour
        raise _unreadable(text)
    if part in _NOON and _LAST_NOON_HOUR < hour < _FIRST_NOON_HOUR:
        raise _unreadable(text)
    if part in _MORNING or (part in _NOON and hour >= _FIRST_NOON_HOUR):
        return hour
    if part in _EVENING and (hour < _FIRST_EVENING_HOUR or hour == HALF_DAY):
        problem = f"The birth time {text!r} may be before or after midnight, which are two dates."
        raise ToolError(f"{problem} Ask which, then give the time as 00:00 to 23:59 with the date it belongs to.")
    return hour % HALF_DAY + HALF_DAY


def _unreadable(text: str) -> ToolError:
    problem = f"The birth time {text!r} cannot be read."
    return ToolError(f"{problem} Give `time` as 14:30, 下午2点半 or 2:30 PM; leave it out where it is not known.")


Choice = TypeVar("Choice", bound=str)


def text_in(info: Mapping[str, Json], name: str) -> str:
    """Return a text without surrounding whitespace, empty if missing."""
    value = info.get(name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    raise ToolError(f"{name} {value!r} is no text. Give it as text.")


def flag_in(info: Mapping[str, Json], name: str) -> bool | None:
    """Return a flag, or None if missing."""
    value = info.get(name)
    if value is None or isinstance(value, bool):
        return value
    raise ToolError(f"{name} {value!r} is neither true nor false. Give one of these.")


def choice_in(info: Mapping[str, Json], name: str, choices: Mapping[str, Choice]) -> Choice | None:
    """Return the choice that a word means, ignoring case. Return None if there is no word."""
    text = text_in(info, name).lower()
    if text and text not in choices:
        allowed = ", ".join(dict.fromkeys(choices.values()))
        raise ToolError(f"{name} {text!r} is not known. Give one of: {allowed}.")
    return choices[text] if text else None


def coordinates_in(info: Mapping[str, Json]) -> tuple[float, float] | None:
    """Return latitude and longitude in degrees. Return None if both are missing."""
    latitude, longitude = _degrees(info, "latitude", 90), _degrees(info, "longitude", 180)
    if (latitude is None) != (longitude is None):
        raise ToolError("Latitude and longitude belong together. Give both, or neither and a `place`.")
    return None if latitude is None or longitude is None else (latitude, longitude)


def _degrees(info: Mapping[str, Json], name: str, limit: int) -> float | None:
    value = info.get(name)
    if value is None or value == "":
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else limit + 1.0
    except ValueError:
        number = limit + 1.0
    if not -limit <= number <= limit:
        raise ToolError(f"{name} {value!r} is no number of degrees. Give one from -{limit} to {limit}.")
    return number


Gender = Literal["male", "female"]
LateZi = Literal["next_day", "same_day"]

# Range of supported years. In some earlier years, the calendar's month does not change with its solar term.
FIRST_YEAR, LAST_YEAR = 1700, 2200
# Noon replaces an unknown time, because it is wrong by at most half a day.
NOON = time(12)
GENDERS: Mapping[str, Gender] = {
    **dict.fromkeys(("male", "man", "m", "boy", "男", "男性", "男生", "男的", "乾造"), "male"),
    **dict.fromkeys(("female", "woman", "f", "girl", "女", "女性", "女生", "女的", "坤造"), "female"),
}
CALENDARS: Mapping[str, Calendar] = {
    **dict.fromkeys(("solar", "gregorian", "公历", "阳历", "新历"), "solar"),
    **dict.fromkeys(("lunar", "chinese", "农历", "阴历", "旧历"), "lunar"),
}
LATE_ZI: Mapping[str, LateZi] = {"next_day": "next_day", "same_day": "same_day"}
# Zone names of some systems for their local zone and for no zone, and folders of zones that count seconds differently.
NO_ZONES, NO_ZONE_FOLDERS = ("localtime", "factory", "posixrules"), ("posix/", "right/")
# The first zone in which a new day begins.
FIRST_ZONE = timezone(timedelta(hours=14))
ASK_AGAIN = "Ask for the birth date again."
# Fields that depend on the place.
OF_A_PLACE = ("latitude", "longitude", "timezone")
# Coordinates of a box around China. A birth within the box needs no time zone.
CHINA_LATITUDES, CHINA_LONGITUDES = (18.0, 54.0), (73.0, 135.5)


@dataclass(frozen=True, kw_only=True)
class Birth:
    """A birth.

    `local` is the local clock time, and `moment` is the same time in UTC. If the time is unknown, both are noon.
    `zone_assumed` is True if the zone is China's because neither a zone nor a known place was given. `capital` is the
    capital that replaces a province without a city. `true_solar_time` and `late_zi` are options of the pillars.
    """

    local: datetime
    zone: tzinfo
    moment: datetime
    has_time: bool
    zone_assumed: bool = False
    capital: Place | None = None
    latitude: float | None = None
    longitude: float | None = None
    place: str = ""
    gender: Gender | None = None
    true_solar_time: bool = False
    late_zi: LateZi = "next_day"

    @property
    def summer_time(self) -> timedelta:
        """The difference between the clock and standard time; positive if the clock was ahead."""
        # Some zones are reversed: in Ireland, winter time is an hour behind standard time.
        days = (self.local, self.local.replace(month=1, day=15), self.local.replace(month=7, day=15))
        ahead = [day.replace(tzinfo=self.zone).dst() or timedelta() for day in days]
        return ahead[0] - min(timedelta(), *ahead)

    @property
    def standard(self) -> datetime:
        """The clock time without summer time."""
        return self.local - self.summer_time

    @property
    def clock_turned(self) -> timedelta:
        """The clock change at that moment, usually zero.

        It is forward if the time was skipped, and back if the time occurred twice.
        """
        first, second = (self.local.replace(tzinfo=self.zone, fold=fold).utcoffset() for fold in (0, 1))
        return (second or timedelta()) - (first or timedelta())

    @property
    def zone_name(self) -> str:
        return str(self.zone)


def read_birth(info: Mapping[str, Json]) -> Birth:
    """Parse a profile's `birth_info`. Raise ToolError with a remedy."""
    form = normalise(info)
    day = _solar_date(text_in(form, "date"), form.get("calendar") == "lunar", bool(form.get("leap_month")))
    clock = read_time(text_in(form, "time"))
    place = find_place(text_in(form, "place"))
    latitude, longitude = coordinates_in(form) or ((place.latitude, place.longitude) if place else (None, None))
    zone = _zone(_zone_name(form, place))
    local = datetime.combine(day, clock or NOON)
    return Birth(
        local=local,
        zone=zone,
        moment=local.replace(tzinfo=zone).astimezone(UTC),
        has_time=clock is not None,
        zone_assumed=place is None and not text_in(form, "timezone") and not home_zone(text_in(form, "place")),
        capital=place if place and place.capital_of and coordinates_in(form) is None else None,
        latitude=latitude,
        longitude=longitude,
        place=text_in(form, "place"),
        gender=choice_in(form, "gender", GENDERS),
        true_solar_time=bool(form.get("true_solar_time")),
        late_zi=choice_in(form, "late_zi", LATE_ZI) or "next_day",
    )


def check_birth(info: Mapping[str, Json], now: datetime) -> None:
    """Raise ToolError for an invalid date or time, and for a time that is in the future at the place of birth."""
    birth_date = read_date(text_in(info, "date"))
    calendar, leap = _calendar(info, birth_date)
    day, clock = _solar_date(birth_date.iso, calendar == "lunar", leap), read_time(text_in(info, "time"))
    try:
        zone: tzinfo = _zone(_zone_name(info, find_place(text_in(info, "place"))))
    except ToolError:
        zone = FIRST_ZONE
    local = now.astimezone(zone).replace(tzinfo=None)
    if datetime.combine(day, clock or time.min) > local:
        when = f"{day} {clock:%H:%M}" if clock else f"{day}"
        raise ToolError(f"The birth, {when}, lies in the future: it is {local:%Y-%m-%d %H:%M}. {ASK_AGAIN}")


def normalise(info: Mapping[str, Json]) -> dict[str, Json]:
    """Return the stored form of a birth: the given values in one spelling, with unknown fields unchanged.

    The stored form has no time zone and coordinates from a place. They are looked up on reading, so that a corrected
    place corrects them.
    """
    birth_date = read_date(text_in(info, "date"))
    calendar, leap = _calendar(info, birth_date)
    clock = read_time(text_in(info, "time"))
    _solar_date(birth_date.iso, calendar == "lunar", leap)
    at = coordinates_in(info)
    form: dict[str, Json] = {
        "date": birth_date.iso,
        "time": None if clock is None else clock.isoformat("minutes" if clock.second == 0 else "seconds"),
        "place": text_in(info, "place") or None,
        **({} if at is None else {"latitude": at[0], "longitude": at[1]}),
        "timezone": text_in(info, "timezone") or None,
        "gender": read_gender(text_in(info, "gender")),
        "calendar": "lunar" if calendar == "lunar" else None,
        "leap_month": leap or None,
        "true_solar_time": flag_in(info, "true_solar_time") or None,
        "late_zi": choice_in(info, "late_zi", LATE_ZI),
    }
    _zone(_zone_name(form, find_place(text_in(info, "place"))))
    others = {name: value for name, value in info.items() if name not in form and name not in ("latitude", "longitude")}
    return {name: value for name, value in form.items() if value is not None} | others


def read_gender(text: str) -> Gender | None:
    """Return the gender that a word such as 女, Female or girl means; None if it is empty.

    Raise ToolError for other words.
    """
    return choice_in({"gender": text}, "gender", GENDERS)


def correct(birth_info: Mapping[str, Json], changes: Mapping[str, Json]) -> dict[str, Json]:
    """Merge changes into a birth. The result is not normalised yet.

    A new date is in the calendar of the old date, unless its words or `calendar` name another. A leap month applies
    only to the same month; coordinates and zone apply only to the same place. An empty text deletes a value.
    """
    changes = {name: value for name, value in changes.items() if value is not None}
    new_date = read_date(text_in(changes, "date")) if text_in(changes, "date") else None
    stale: set[str] = set()
    if "date" in changes and (new_date is None or new_date.calendar):
        stale.add("calendar")
    if not _is_same_month(birth_info, changes, new_date):
        stale.add("leap_month")
    if "place" in changes and text_in(changes, "place") != birth_info.get("place"):
        stale.update(OF_A_PLACE)
    return {**{name: value for name, value in birth_info.items() if name not in stale}, **changes}


def _is_same_month(birth_info: Mapping[str, Json], changes: Mapping[str, Json], new_date: WrittenDate | None) -> bool:
    if "calendar" in changes and choice_in(changes, "calendar", CALENDARS) != "lunar":
        return False
    if new_date is None:
        return "date" not in changes
    before = str(birth_info.get("date") or "").strip()
    return new_date.calendar != "solar" and before.startswith(f"{new_date.year:04}-{new_date.month:02}-")


def _calendar(info: Mapping[str, Json], birth_date: WrittenDate) -> tuple[Calendar, bool]:
    """Return the calendar of a date, and True if its month is a leap month.

    The words of the date decide, else the other fields.
    """
    kind, flag = choice_in(info, "calendar", CALENDARS), flag_in(info, "leap_month")
    subject = f"The birth date {text_in(info, 'date')!r}"
    if kind and birth_date.calendar and kind != birth_date.calendar:
        problem = f"{subject} is a {birth_date.calendar} one by its words, but `calendar` is {kind}."
        raise ToolError(f"{problem} Ask which it is, then give the date as the user says it and leave `calendar` out.")
    if birth_date.leap_month and flag is False:
        problem = f"{subject} is in a leap month by its words, but `leap_month` is false."
        raise ToolError(
            f"{problem} Ask which it is, then give the date as the user says it and leave `leap_month` out."
        )
    leap = birth_date.leap_month or bool(flag)
    calendar = birth_date.calendar or kind or ("lunar" if leap else "solar")
    if leap and calendar == "solar":
        problem = f"{subject} is a solar one, and only a lunar month can be a leap month."
        raise ToolError(f"{problem} Leave `leap_month` out, or give `calendar` as lunar if the date is lunar.")
    return calendar, leap


def _solar_date(iso: str, lunar: bool, leap: bool) -> date:
    year, month, day = (int(part) for part in iso.split("-"))
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise ToolError(f"The year {year} is outside {FIRST_YEAR}-{LAST_YEAR}. Give a birth date within these years.")
    if lunar:
        return _from_lunar(year, month, day, leap)
    try:
        return date(year, month, day)
    except ValueError:
        raise ToolError(f"There is no day {iso} in the solar calendar. {ASK_AGAIN}") from None


def _from_lunar(year: int, month: int, day: int, leap: bool) -> date:
    from tyme4py.lunar import LunarDay, LunarYear  # pyright: ignore[reportMissingTypeStubs] - its source has the types

    leap_month = LunarYear.from_year(year).get_leap_month()
    if leap and month != leap_month:
        has = f"its leap month is {leap_month}" if leap_month else "it has no leap month"
        raise ToolError(f"Lunar year {year} has no leap month {month}: {has}. Ask whether the month was a leap one.")
    try:
        solar = LunarDay.from_ymd(year, -month if leap else month, day).get_solar_day()
    except ValueError:
        problem = f"There is no day {year:04}-{month:02}-{day:02} in the lunar calendar."
        raise ToolError(f"{problem} A lunar month has 29 or 30 days: ask for the date again.") from None
    return date(solar.get_year(), solar.get_month(), solar.get_day())


def _zone_name(form: Mapping[str, Json], place: Place | None) -> str:
    """Return the given zone, else the zone of the place. Else return China's zone, unless the place is abroad."""
    if zone := text_in(form, "timezone"):
        return zone
    if place is not None:
        return place.zone
    name, at = text_in(form, "place"), coordinates_in(form)
    at_home = at is None or (
        CHINA_LATITUDES[0] <= at[0] <= CHINA_LATITUDES[1] and CHINA_LONGITUDES[0] <= at[1] <= CHINA_LONGITUDES[1]
    )
    if not at_home or (name and is_abroad(name)):
        where = name or "these coordinates"
        problem = f"The time zone of {where} is not known."
        raise ToolError(f"{problem} Give `timezone` (such as Europe/Paris), or the nearest large city as `place`.")
    return home_zone(name) or HOME_ZONE


def _zone(name: str) -> ZoneInfo:
    try:
        if name.lower() in NO_ZONES or name.lower().startswith(NO_ZONE_FOLDERS):
            raise ValueError(name)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        problem = f"There is no time zone {name!r}."
        raise ToolError(f"{problem} Give an IANA name such as Asia/Shanghai or America/New_York.") from None
