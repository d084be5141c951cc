"""Where bodies stand: by published positions, instants and worked examples."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.shipped.vibe.almanac.sky.houses import ascendant, midheaven
from recto.agents.shipped.vibe.almanac.sky.sky import (
    NODE,
    PLANETS,
    Body,
    mean_node,
    moving,
    obliquity,
    positions,
    sidereal_angle,
    turn,
)

SECOND = 1 / 3600
MOMENTS = st.datetimes(datetime(1600, 1, 1), datetime(2200, 12, 31), timezones=st.just(UTC))


def angle(text: str) -> float:
    """`101 38 47.06`: degrees, minutes, seconds."""
    degrees, minutes, seconds = (float(part) for part in text.split())
    return degrees + minutes / 60 + seconds / 3600


def off(longitude: float, published: float) -> float:
    """How far apart two longitudes are, in seconds of arc."""
    return abs(turn(longitude, published)) / SECOND


@dataclass(frozen=True, kw_only=True)
class Published:
    """A sky as the Swiss Ephemeris 2.10 (swetest, Astrodienst) prints it: the ten longitudes, and the two angles."""

    moment: datetime
    latitude: float
    longitude: float
    longitudes: tuple[str, ...]
    backwards: frozenset[Body]
    ascendant: str
    midheaven: str


PUBLISHED = {
    "Ulm 1879": Published(
        moment=datetime(1879, 3, 14, 10, 50, tzinfo=UTC),
        latitude=48.4,
        longitude=10.0,
        longitudes=(
            *("353 30 27.89", "254 31 33.28", "3 8 37.99", "16 59 6.04", "296 54 51.20"),
            *("327 29 2.76", "4 11 23.38", "151 17 18.96", "37 52 19.07", "54 43 32.03"),
        ),
        backwards=frozenset({"uranus"}),
        ascendant="101 38 47.06",
        midheaven="342 50 23.51",
    ),
    "Sydney 1987": Published(
        moment=datetime(1987, 6, 15, 6, 30, tzinfo=UTC),
        latitude=-33.8688,
        longitude=151.2093,
        longitudes=(
            *("83 38 56.17", "311 36 46.75", "105 30 5.41", "64 55 42.73", "106 16 4.72"),
            *("23 26 20.34", "257 25 26.12", "264 46 52.81", "276 59 10.42", "217 26 30.40"),
        ),
        backwards=frozenset({"saturn", "uranus", "neptune", "pluto"}),
        ascendant="259 13 23.24",
        midheaven="149 36 51.79",
    ),
    "Reykjavik 2015": Published(
        moment=datetime(2015, 11, 11, 11, 11, tzinfo=UTC),
        latitude=64.1466,
        longitude=-21.9426,
        longitudes=(
            *("228 44 4.10", "225 39 24.48", "225 3 27.86", "183 3 44.36", "179 8 4.27"),
            *("168 25 6.10", "245 16 19.63", "17 21 12.11", "337 2 1.78", "283 31 36.94"),
        ),
        backwards=frozenset({"uranus", "neptune"}),
        ascendant="239 28 42.29",
        midheaven="197 27 3.72",
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_S10_bodies_stand_where_the_swiss_ephemeris_has_them(name: str):
    published = PUBLISHED[name]
    positions_found = positions(published.moment)
    assert tuple(positions_found) == (*PLANETS, NODE)
    for planet, longitude in zip(PLANETS, published.longitudes, strict=True):
        assert off(positions_found[planet].longitude, angle(longitude)) < 20, planet
    assert {planet for planet in PLANETS if positions_found[planet].speed < 0} == published.backwards


@pytest.mark.parametrize("name", PUBLISHED)
def test_S10_ascendant_and_midheaven_are_those_of_the_swiss_ephemeris(name: str):
    published = PUBLISHED[name]
    sidereal, tilt = sidereal_angle(published.moment, published.longitude), obliquity(published.moment)
    rising = ascendant(sidereal=sidereal, latitude=published.latitude, obliquity=tilt)
    assert off(rising, angle(published.ascendant)) < 2
    assert off(midheaven(sidereal=sidereal, obliquity=tilt), angle(published.midheaven)) < 2


# Seasons of 2024 as the Montréal Planetarium publishes them, to the minute: the Sun goes 2.5 seconds of arc in one.


# Worked examples of Meeus, Astronomical Algorithms, 2nd edition. Terrestrial time was 55 s ahead in 1987, 59 s in 1992.


def test_S10_the_mean_node_is_that_of_meeus_examples_22a_and_47a():
    noon = datetime(2000, 1, 1, 12, tzinfo=UTC)
    days = [(datetime(*day, tzinfo=UTC) - noon) / timedelta(days=1) for day in ((1987, 4, 10), (1992, 4, 12))]
    assert mean_node(days[0]) == pytest.approx(11.2531, abs=1e-4)
    # The example gives the Moon's mean longitude and its distance from the node.
    assert mean_node(days[1]) == pytest.approx((134.290182 - 219.889721) % 360, abs=1e-3)


# What holds at any time


@given(MOMENTS)
def test_S10_longitudes_are_within_a_circle_and_bodies_keep_their_pace(moment: datetime):
    positions_found = positions(moment)
    assert all(0 <= position.longitude < 360 for position in positions_found.values())
    assert 0.94 < positions_found["sun"].speed < 1.03
    assert 11 < positions_found["moon"].speed < 16
    assert -0.06 < positions_found[NODE].speed < -0.05
    assert abs(turn(positions_found["sun"].longitude, positions_found["mercury"].longitude)) < 29
    assert abs(turn(positions_found["sun"].longitude, positions_found["venus"].longitude)) < 48


@given(st.floats(0, 360, exclude_max=True), st.floats(-179, 179))
def test_S10_the_shorter_way_leads_there(start: float, way: float):
    assert turn(start, (start + way) % 360) == pytest.approx(way)


def test_S10_speeds_are_by_the_day_also_where_a_circle_closes():
    half = timedelta(hours=12)
    result = moving({"moon": 356.0, "mercury": 0.25}, {"moon": 3.0, "mercury": 359.75}, half)
    assert (result["moon"].speed, result["mercury"].speed) == (14.0, -1.0)
    assert all(earlier > later for earlier, later in pairwise(mean_node(day) for day in range(100)))
