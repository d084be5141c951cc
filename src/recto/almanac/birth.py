"""When and where somebody was born, read from what a profile keeps. Refuses to guess what it was not told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal, TypeVar
from zoneinfo import ZoneInfo

from recto.almanac.birth_words import read_date, read_time
from recto.almanac.places import Place, find_place, is_abroad
from recto.errors import ToolError
from recto.page.canonical import Json

Gender = Literal["male", "female"]
LateZi = Literal["next_day", "same_day"]
Calendar = Literal["solar", "lunar"]
Choice = TypeVar("Choice", bound=str)

HOME_ZONE = "Asia/Shanghai"
FIRST_YEAR, LAST_YEAR = 1600, 2200
# Without a time the day is told by its middle, which is never more than half a day wrong.
NOON = time(12)
GENDERS: Mapping[str, Gender] = {
    **dict.fromkeys(("male", "man", "m", "boy", "男", "男性", "男生", "乾造"), "male"),
    **dict.fromkeys(("female", "woman", "f", "girl", "女", "女性", "女生", "坤造"), "female"),
}
CALENDARS: Mapping[str, Calendar] = {
    **dict.fromkeys(("solar", "gregorian", "公历", "阳历", "新历"), "solar"),
    **dict.fromkeys(("lunar", "chinese", "农历", "阴历", "旧历"), "lunar"),
}
LATE_ZI: Mapping[str, LateZi] = {"next_day": "next_day", "same_day": "same_day"}
# A box around China: coordinates within it may stand without a time zone.
CHINA_LATITUDES, CHINA_LONGITUDES = (18.0, 54.0), (73.0, 135.5)


@dataclass(frozen=True, kw_only=True)
class Birth:
    """A birth. `local` is what the clock on the wall said; `moment` is the same in UTC; without a time both are noon's.

    `true_solar_time` and `late_zi` are wishes for the pillars, kept here because they are asked for with the rest.
    """

    local: datetime
    zone: tzinfo
    moment: datetime
    has_time: bool
    latitude: float | None = None
    longitude: float | None = None
    place: str = ""
    gender: Gender | None = None
    true_solar_time: bool = False
    late_zi: LateZi = "next_day"

    @property
    def summer_time(self) -> timedelta:
        """By how much the clock was ahead of standard time."""
        # Some zones have it the other way round: Ireland's winter is called an hour behind its standard time.
        days = (self.local, self.local.replace(month=1, day=15), self.local.replace(month=7, day=15))
        ahead = [day.replace(tzinfo=self.zone).dst() or timedelta() for day in days]
        return ahead[0] - min(timedelta(), *ahead)

    @property
    def standard(self) -> datetime:
        """What the clock would have said without summer time."""
        return self.local - self.summer_time

    @property
    def zone_name(self) -> str:
        return str(self.zone)


def read_birth(info: Mapping[str, Json]) -> Birth:
    """A birth from a profile's birth_info. A ToolError says what is wrong with it and what to give instead."""
    form = normalise(info)
    day = _solar_date(_text(form, "date"), form.get("calendar") == "lunar", bool(form.get("leap_month")))
    clock = read_time(_text(form, "time"))
    place = find_place(_text(form, "place"))
    latitude, longitude = _coordinates(form) or ((place.latitude, place.longitude) if place else (None, None))
    zone = _zone(_zone_name(form, place))
    local = datetime.combine(day, clock or NOON)
    return Birth(
        local=local,
        zone=zone,
        moment=local.replace(tzinfo=zone).astimezone(UTC),
        has_time=clock is not None,
        latitude=latitude,
        longitude=longitude,
        place=_text(form, "place"),
        gender=_gender(form),
        true_solar_time=bool(form.get("true_solar_time")),
        late_zi=_choice(form, "late_zi", LATE_ZI) or "next_day",
    )


def normalise(info: Mapping[str, Json]) -> dict[str, Json]:
    """The form a profile keeps: what was given, in one spelling each, with nothing filled in.

    The time zone and the coordinates of a named place are looked up when read, so that a corrected place corrects them.
    Fields that say nothing of a birth stay as they are.
    """
    lunar = _choice(info, "calendar", CALENDARS) == "lunar"
    leap = lunar and _flag(info, "leap_month")
    year, month, day = read_date(_text(info, "date"))
    clock = read_time(_text(info, "time"))
    iso = f"{year:04}-{month:02}-{day:02}"
    _solar_date(iso, lunar, leap)
    form: dict[str, Json] = {
        "date": iso,
        "time": None if clock is None else clock.isoformat("minutes" if clock.second == 0 else "seconds"),
        "place": _text(info, "place") or None,
        **_coordinate_fields(info),
        "timezone": _text(info, "timezone") or None,
        "gender": _gender(info),
        "calendar": "lunar" if lunar else None,
        "leap_month": leap or None,
        "true_solar_time": _flag(info, "true_solar_time") or None,
        "late_zi": _choice(info, "late_zi", LATE_ZI),
    }
    _zone(_zone_name(form, find_place(_text(info, "place"))))
    others = {name: value for name, value in info.items() if name not in form and name not in ("latitude", "longitude")}
    return {name: value for name, value in form.items() if value is not None} | others


def _solar_date(iso: str, lunar: bool, leap: bool) -> date:
    year, month, day = (int(part) for part in iso.split("-"))
    if not FIRST_YEAR <= year <= LAST_YEAR:
        raise ToolError(f"The year {year} is outside {FIRST_YEAR}-{LAST_YEAR}. Give a birth date within these years.")
    if lunar:
        return _from_lunar(year, month, day, leap)
    try:
        return date(year, month, day)
    except ValueError:
        raise ToolError(f"There is no day {iso} in the solar calendar. Ask for the birth date again.") from None


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
    """The zone that was given, else the place's, else China's: but never for a place that is plainly somewhere else."""
    if given := _text(form, "timezone"):
        return given
    if place is not None:
        return place.zone
    name, at = _text(form, "place"), _coordinates(form)
    at_home = at is None or (
        CHINA_LATITUDES[0] <= at[0] <= CHINA_LATITUDES[1] and CHINA_LONGITUDES[0] <= at[1] <= CHINA_LONGITUDES[1]
    )
    if not at_home or (name and is_abroad(name)):
        where = name or "these coordinates"
        problem = f"The time zone of {where} is not known."
        raise ToolError(f"{problem} Give `timezone` (such as Europe/Paris), or the nearest large city as `place`.")
    return HOME_ZONE


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        problem = f"There is no time zone {name!r}."
        raise ToolError(f"{problem} Give an IANA name such as Asia/Shanghai or America/New_York.") from None


def _coordinates(info: Mapping[str, Json]) -> tuple[float, float] | None:
    latitude, longitude = _number(info, "latitude", 90), _number(info, "longitude", 180)
    if (latitude is None) != (longitude is None):
        raise ToolError("Latitude and longitude belong together. Give both, or neither and a `place`.")
    return None if latitude is None or longitude is None else (latitude, longitude)


def _coordinate_fields(info: Mapping[str, Json]) -> dict[str, Json]:
    at = _coordinates(info)
    return {} if at is None else {"latitude": at[0], "longitude": at[1]}


def _number(info: Mapping[str, Json], name: str, limit: int) -> float | None:
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


def _gender(info: Mapping[str, Json]) -> Gender | None:
    return _choice(info, "gender", GENDERS)


def _choice(info: Mapping[str, Json], name: str, known: Mapping[str, Choice]) -> Choice | None:
    text = _text(info, name).lower()
    if text and text not in known:
        allowed = ", ".join(dict.fromkeys(known.values()))
        raise ToolError(f"{name} {text!r} is not known. Give one of: {allowed}.")
    return known[text] if text else None


def _flag(info: Mapping[str, Json], name: str) -> bool:
    value = info.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise ToolError(f"{name} {value!r} is neither true nor false. Give one of these.")


def _text(info: Mapping[str, Json], name: str) -> str:
    value = info.get(name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    raise ToolError(f"{name} {value!r} is no text. Give it as text.")
