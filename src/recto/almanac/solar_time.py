"""True solar time: what a sundial said at a moment and a longitude. Refuses to work without a longitude."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from recto.almanac.birth import Birth
from recto.errors import ToolError

MINUTES_PER_DEGREE = 4
HOURS, NOON = 24, 12


@dataclass(frozen=True, kw_only=True)
class SolarTime:
    """True solar time, and the minutes that were added to standard time to get there."""

    local: datetime
    longitude_minutes: float
    equation_minutes: float


def solar_time(birth: Birth) -> SolarTime:
    """Standard time corrected by the distance to the zone's meridian, then by the equation of time."""
    if birth.longitude is None:
        problem = "True solar time needs the longitude of the place of birth, which is not known."
        raise ToolError(f"{problem} Ask for the city, or for latitude and longitude, or compute without it.")
    mean = birth.moment.replace(tzinfo=None) + timedelta(minutes=birth.longitude * MINUTES_PER_DEGREE)
    equation = equation_of_time(birth.moment)
    return SolarTime(
        local=(mean + timedelta(minutes=equation)).replace(microsecond=0),
        longitude_minutes=round((mean - birth.standard).total_seconds() / 60, 2),
        equation_minutes=round(equation, 2),
    )


def equation_of_time(moment: datetime) -> float:
    """Minutes by which a sundial is ahead of a mean clock: the hour of the true sun at Greenwich less that of UTC."""
    from astronomy import Body, HourAngle, Observer, Time  # pyright: ignore[reportMissingTypeStubs] - its source has the types

    at = Time.Make(moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)
    dial = HourAngle(Body.Sun, at, Observer(0, 0, 0)) + NOON
    clock = moment.hour + moment.minute / 60 + moment.second / 3600
    return ((dial - clock + NOON) % HOURS - NOON) * 60
