"""Dates and times as people write them, in digits, Chinese and English. Refuses a time that could mean two."""

from __future__ import annotations

import re
import unicodedata
from datetime import time

from recto.errors import ToolError

UNKNOWN_TIMES = frozenset({"", "unknown", "none", "n/a", "?", "未知", "不详", "不知道", "不清楚", "不记得", "时辰不详"})
BRANCHES = "子丑寅卯辰巳午未申酉戌亥"
MONTHS, LONGEST_MONTH, HOURS, MINUTES, HALF_DAY = 12, 31, 24, 60, 12

_DIGITS = {digit: value for value, digit in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_TENS = {"初": 0, "十": 10, "廿": 20, "卅": 30}
_MONTH_NAMES = {"正月": "1月", "冬月": "11月", "腊月": "12月"}
_NUMERAL = re.compile("[〇零一二两三四五六七八九十初廿卅]+")

_DATE = re.compile(r"(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})\s*[日号]?")
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


def read_date(text: str) -> tuple[int, int, int]:
    """Year, month and day of 1990-05-15, 1990/5/15, 19900515, 1990年5月15日 or 1990年四月廿一."""
    plain = _plain(text)
    found = _DATE.fullmatch(plain) or _COMPACT_DATE.fullmatch(plain)
    if found is None:
        problem = f"The birth date {text!r} cannot be read." if text else "The birth date is missing."
        raise ToolError(f"{problem} Give `date` as year, month and day, such as 1990-05-15 or 1990年5月15日.")
    year, month, day = (int(part) for part in found.groups())
    if not 1 <= month <= MONTHS or not 1 <= day <= LONGEST_MONTH:
        raise ToolError(f"There is no day {day} of a month {month}. Give `date` as year, month, day: 1990-05-15.")
    return year, month, day


def read_time(text: str) -> time | None:
    """The time of 14:30, 14点30分, 下午2点半, 2:30 PM or 辰时 (its middle); None where it is said to be unknown."""
    plain = _plain(text).replace(" ", "")
    if plain in UNKNOWN_TIMES:
        return None
    if found := _DOUBLE_HOUR.fullmatch(plain):
        return _double_hour(found["branch"], found["late"], text)
    found = _CLOCK.fullmatch(plain)
    # A bare number may be an hour or half a date; 上午2点PM says two things.
    if found is None or not any(found.group("before", "mark", "after")) or all(found.group("before", "after")):
        raise _unreadable(text)
    minute = 30 if found["half"] else 15 * int(found["quarter"] or 0) or int(found["minute"] or 0)
    hour, second = int(found["hour"]), int(found["second"] or 0)
    if part := found["before"] or found["after"]:
        hour = _hour_of_day(hour, part, text)
    if hour >= HOURS or minute >= MINUTES or second >= MINUTES:
        raise _unreadable(text)
    return time(hour, minute, second)


def _plain(text: str) -> str:
    """One width, lower case, Chinese numerals as digits."""
    plain = unicodedata.normalize("NFKC", text).strip().lower().replace("時", "时").replace("點", "点")
    for name, number in _MONTH_NAMES.items():
        plain = plain.replace(name, number)
    return _NUMERAL.sub(lambda found: _number(found[0]), plain)


def _number(numeral: str) -> str:
    """二十三 and 廿三 are 23, 初五 is 5, 一九九〇 is 1990."""
    if not any(digit in _TENS for digit in numeral):
        return "".join(str(_DIGITS[digit]) for digit in numeral)
    total = 0
    for digit in numeral:
        if digit == "十" and 0 < total < HALF_DAY:
            total *= 10
        else:
            total += _TENS[digit] if digit in _TENS else _DIGITS[digit]
    return str(total)


def _double_hour(branch: str, late: str, text: str) -> time:
    """The middle of a double hour. 子时 spans midnight: its middle begins the day that was named."""
    if late and branch != BRANCHES[0]:
        raise _unreadable(text)
    return time(23, 30) if late in ("晚", "夜") else time(2 * BRANCHES.index(branch), 30 if late else 0)


def _hour_of_day(hour: int, part: str, text: str) -> int:
    if part in (*_MORNING, *_NOON) and hour == HALF_DAY:
        return HALF_DAY if part in (*_NOON, "上午") else 0
    if hour == 0 or hour > HALF_DAY:
        # 下午14点 says the same thing twice; 上午14点 contradicts itself.
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
