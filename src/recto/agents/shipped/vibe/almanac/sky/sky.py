"""Geocentric positions of Sun, Moon and planets.

Longitudes are apparent (with light time and aberration), in degrees from the true equinox of date (tropical zodiac).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

Planet = Literal["sun", "moon", "mercury", "venus", "mars", "jupiter", "saturn", "uranus", "neptune", "pluto"]
Body = Planet | Literal["north_node"]
PLANETS: tuple[Planet, ...] = get_args(Planet)
NODE: Body = "north_node"

NOON_2000 = datetime(2000, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
CENTURY_DAYS = 36525
# Interval for the direction of a body: long enough to detect it despite rounding, short enough to find a station to
# within minutes.
SHORT_WHILE = timedelta(minutes=15)
# Meeus, Astronomical Algorithms (2nd ed.), formula 47.7: factors of powers of centuries since 2000.
MEAN_NODE = (125.0445479, -1934.1362891, 0.0020754, 1 / 467441, -1 / 60616000)


@dataclass(frozen=True, kw_only=True)
class Position:
    """A longitude and its change per day, negative if retrograde."""

    longitude: float
    speed: float


def positions(moment: datetime) -> dict[Body, Position]:
    """Return all bodies at a moment, in the order of PLANETS, then the mean lunar node."""
    return moving(longitudes(moment), longitudes(moment + SHORT_WHILE), SHORT_WHILE)


def moving(now: Mapping[Body, float], later: Mapping[Body, float], while_: timedelta) -> dict[Body, Position]:
    """Return positions from longitudes at two times."""
    days = while_ / DAY
    return {
        body: Position(longitude=longitude, speed=turn(longitude, later[body]) / days)
        for body, longitude in now.items()
    }


def longitudes(moment: datetime) -> dict[Body, float]:
    """Return the longitudes of all bodies."""
    import astronomy  # pyright: ignore[reportMissingTypeStubs] - its source has the types

    longitudes: dict[Body, float] = {planet: longitude(planet, moment) for planet in PLANETS}
    return {**longitudes, NODE: mean_node(astronomy.Time(_days(moment)).tt)}


def longitude(planet: Planet, moment: datetime) -> float:
    """Return the longitude of a planet."""
    import astronomy  # pyright: ignore[reportMissingTypeStubs] - its source has the types

    vector = astronomy.GeoVector(astronomy.Body[planet.capitalize()], astronomy.Time(_days(moment)), True)
    return astronomy.Ecliptic(vector).elon % 360


def mean_node(days: float) -> float:
    """Return the mean ascending node of the Moon. `days` are in terrestrial time since noon of 2000-01-01."""
    centuries = days / CENTURY_DAYS
    return sum(factor * centuries**power for power, factor in enumerate(MEAN_NODE)) % 360


def sidereal_angle(moment: datetime, longitude: float) -> float:
    """Return the local apparent sidereal time in degrees. Eastern longitudes are positive."""
    import astronomy  # pyright: ignore[reportMissingTypeStubs] - its source has the types

    return (astronomy.SiderealTime(astronomy.Time(_days(moment))) * 15 + longitude) % 360


def obliquity(moment: datetime) -> float:
    """Return the true obliquity of the ecliptic."""
    import astronomy  # pyright: ignore[reportMissingTypeStubs] - its source has the types

    # The obliquity is the angle by which the library rotates about the first axis.
    rotation = astronomy.Rotation_EQD_ECT(astronomy.Time(_days(moment))).rot
    return math.degrees(math.acos(rotation[1][1]))


def turn(start: float, end: float) -> float:
    """Return the shorter way from one longitude to another, in degrees from -180 to 180."""
    return (end - start + 180) % 360 - 180


def _days(moment: datetime) -> float:
    return (moment - NOON_2000) / DAY
