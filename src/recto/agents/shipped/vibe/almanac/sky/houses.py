"""Ascendant, midheaven and the twelve houses of a place at a moment.

All angles are in degrees. `sidereal` is the local apparent sidereal time, `obliquity` the obliquity of the ecliptic.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import asin, atan2, cos, degrees, radians, sin, tan
from typing import Literal, get_args

HouseSystem = Literal["placidus", "whole_sign"]
HOUSE_SYSTEMS: tuple[HouseSystem, ...] = get_args(HouseSystem)

# Maximum number of rounds. Each round leaves at most two thirds of the error, so 64 rounds reach a billionth of a
# degree.
ROUNDS = 64
EXACT = 1e-10


@dataclass(frozen=True, kw_only=True)
class Houses:
    """Cusps of the twelve houses in a system. Ascendant and midheaven do not depend on the system."""

    system: HouseSystem
    ascendant: float
    midheaven: float
    cusps: tuple[float, ...]

    def house_of(self, longitude: float) -> int:
        """Return the number of the house that contains a longitude."""
        along = [(cusp - self.cusps[0]) % 360 for cusp in self.cusps]
        distance = (longitude - self.cusps[0]) % 360
        return next((house for house, (_, end) in enumerate(pairwise(along), 1) if distance < end), len(along))


def houses(*, sidereal: float, latitude: float, obliquity: float, system: HouseSystem = "placidus") -> Houses:
    """Return the houses. Within the polar circles, use whole signs instead of Placidus, which does not exist there."""
    rising = ascendant(sidereal=sidereal, latitude=latitude, obliquity=obliquity)
    top = midheaven(sidereal=sidereal, obliquity=obliquity)
    if system == "placidus" and has_placidus(latitude, obliquity):
        used_system: HouseSystem = "placidus"
        sphere = _Sphere(sidereal=sidereal, latitude=latitude, obliquity=obliquity)
        eleventh, twelfth = (_divided(sphere, share, above=True) for share in (1 / 3, 2 / 3))
        second, third = (_divided(sphere, share, above=False) for share in (2 / 3, 1 / 3))
        eastern = (top, eleventh, twelfth, rising, second, third)
        western = tuple((cusp + 180) % 360 for cusp in eastern)
        cusps = (*eastern[3:], *western, *eastern[:3])
    else:
        first = rising // 30 * 30
        used_system, cusps = "whole_sign", tuple((first + 30 * house) % 360 for house in range(12))
    return Houses(system=used_system, ascendant=rising, midheaven=top, cusps=cusps)


def has_placidus(latitude: float, obliquity: float) -> bool:
    """Return True if every degree of the ecliptic rises and sets, so that its arcs can be divided."""
    return abs(latitude) < 90 - obliquity


def midheaven(*, sidereal: float, obliquity: float) -> float:
    """Return the degree of the ecliptic on the meridian."""
    return _longitude(radians(sidereal), radians(obliquity))


def ascendant(*, sidereal: float, latitude: float, obliquity: float) -> float:
    """Return the degree of the ecliptic on the eastern horizon."""
    angle, north, tilt = radians(sidereal), radians(latitude), radians(obliquity)
    longitude = atan2(cos(angle) * cos(north), -(sin(angle) * cos(tilt) * cos(north) + sin(north) * sin(tilt)))
    # Within the polar circles the formula may give the western crossing.
    east = cos(angle) * cos(tilt) * sin(longitude) - sin(angle) * cos(longitude)
    return degrees(longitude) % 360 if east >= 0 else (degrees(longitude) + 180) % 360


@dataclass(frozen=True, kw_only=True)
class _Sphere:
    sidereal: float
    latitude: float
    obliquity: float


def _divided(sphere: _Sphere, share: float, *, above: bool) -> float:
    """Return the degree at a share of its own arc between horizon and meridian.

    Right ascension and arc depend on each other, so iterate, with tan(declination) = sin(right ascension)
    tan(obliquity).
    """
    steep = tan(radians(sphere.latitude)) * tan(radians(sphere.obliquity))
    meridian = sphere.sidereal if above else sphere.sidereal + 180
    side = 1 if above else -1
    ascension = meridian + side * share * 90
    for _ in range(ROUNDS):
        arc = 90 + side * degrees(asin(steep * sin(radians(ascension))))
        better = meridian + side * share * arc
        ascension, change = better, better - ascension
        if abs(change) < EXACT:
            break
    return _longitude(radians(ascension), radians(sphere.obliquity))


def _longitude(ascension: float, tilt: float) -> float:
    """Return the degree of the ecliptic at a right ascension. Both arguments are in radians."""
    return degrees(atan2(sin(ascension), cos(ascension) * cos(tilt))) % 360
