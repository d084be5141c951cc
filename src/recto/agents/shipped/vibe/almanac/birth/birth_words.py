"""Dates and times as people write them, in digits, Chinese and English. Ambiguous texts raise ToolError."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from datetime import time
from typing import Literal

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
