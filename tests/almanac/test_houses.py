"""Houses: by published cusps, by arcs computed another way, and by what every division has to hold."""

from itertools import pairwise
from math import acos, asin, cos, degrees, radians, sin, tan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.shipped.vibe.almanac.sky.houses import Houses, HouseSystem, ascendant, has_placidus, houses

TILT = 23.44
SIDEREAL = st.floats(0, 360, exclude_max=True)
INHABITED = st.floats(-66, 66)
ANYWHERE = st.floats(-89.9, 89.9)
SYSTEMS: st.SearchStrategy[HouseSystem] = st.sampled_from(["placidus", "whole_sign"])


def place(longitude: float) -> tuple[float, float]:
    """Right ascension and declination of a degree of the ecliptic, by its vector."""
    along, tilt = radians(longitude), radians(TILT)
    across = sin(along) * cos(tilt)
    height = asin(sin(along) * sin(tilt))
    ascension = degrees(acos(max(-1, min(1, cos(along) / cos(height)))))
    return (ascension if across >= 0 else -ascension) % 360, degrees(height)


def altitude(longitude: float, sidereal: float, latitude: float) -> float:
    """How high a degree of the ecliptic stands, by the formula for the height of a star."""
    ascension, declination = place(longitude)
    hour, north, height = radians(sidereal - ascension), radians(latitude), radians(declination)
    return degrees(asin(sin(north) * sin(height) + cos(north) * cos(height) * cos(hour)))


def eastward(longitude: float, sidereal: float) -> float:
    """How far east of the meridian, from -180 up to 180."""
    return (place(longitude)[0] - sidereal + 180) % 360 - 180


def gaps(houses_found: Houses) -> list[float]:
    return [(end - start) % 360 for start, end in pairwise((*houses_found.cusps, houses_found.cusps[0]))]


# Published: the tests of pyswisseph, Python's binding of the Swiss Ephemeris, have these for `houses_armc`.
@pytest.mark.parametrize(
    ("sidereal", "latitude", "cusps"),
    [
        (0, 0, (90.0, 117.9175901, 147.8264120, 180.0, 212.1735880, 242.0824099)),
        (121.34, 43.57, (204.1198483, 231.6434481, 263.8428627, 299.2000171, 332.7652475, 1.1456558)),
    ],
)
def test_S10_placidus_cusps_are_those_of_the_swiss_ephemeris(
    sidereal: float, latitude: float, cusps: tuple[float, ...]
):
    houses_found = houses(sidereal=sidereal, latitude=latitude, obliquity=23.4)
    assert houses_found.system == "placidus"
    assert houses_found.cusps == pytest.approx((*cusps, *((cusp + 180) % 360 for cusp in cusps)), abs=1e-6)
    assert (houses_found.ascendant, houses_found.midheaven) == (houses_found.cusps[0], houses_found.cusps[9])


@given(SIDEREAL, INHABITED)
def test_S10_placidus_cusps_divide_their_own_arcs_in_three(sidereal: float, latitude: float):
    houses_found = houses(sidereal=sidereal, latitude=latitude, obliquity=TILT)
    for house, share in ((10, 0), (11, 1 / 3), (12, 2 / 3), (1, 1), (2, 4 / 3), (3, 5 / 3)):
        cusp = houses_found.cusps[house - 1]
        day = degrees(acos(-tan(radians(latitude)) * tan(radians(place(cusp)[1]))))
        arc = share * day if share <= 1 else day + (share - 1) * (180 - day)
        assert eastward(cusp, sidereal) == pytest.approx(arc, abs=1e-5), house


@given(SIDEREAL, ANYWHERE)
def test_S10_the_ascendant_is_on_the_eastern_horizon(sidereal: float, latitude: float):
    rising = ascendant(sidereal=sidereal, latitude=latitude, obliquity=TILT)
    assert 0 <= rising < 360
    assert altitude(rising, sidereal, latitude) == pytest.approx(0, abs=1e-5)
    # What crosses the horizon due north or south there is neither.
    assert sin(radians(eastward(rising, sidereal))) > -1e-6


@given(SIDEREAL, INHABITED)
def test_S10_what_is_on_the_ascendant_rises(sidereal: float, latitude: float):
    rising = ascendant(sidereal=sidereal, latitude=latitude, obliquity=TILT)
    assert altitude(rising, sidereal + 0.1, latitude) > 0 > altitude(rising, sidereal - 0.1, latitude)


@given(SIDEREAL, ANYWHERE, SYSTEMS)
def test_S10_cusps_go_round_once_and_face_each_other(sidereal: float, latitude: float, system: HouseSystem):
    houses_found = houses(sidereal=sidereal, latitude=latitude, obliquity=TILT, system=system)
    assert len(houses_found.cusps) == 12
    assert all(0 <= cusp < 360 for cusp in houses_found.cusps)
    assert all(0 < gap < 180 for gap in gaps(houses_found))
    assert sum(gaps(houses_found)) == pytest.approx(360)
    for house in range(6):
        assert (houses_found.cusps[house + 6] - houses_found.cusps[house]) % 360 == pytest.approx(180)


@given(SIDEREAL, ANYWHERE, SYSTEMS, st.floats(0, 360, exclude_max=True))
def test_S10_every_degree_is_in_one_house(sidereal: float, latitude: float, system: HouseSystem, longitude: float):
    houses_found = houses(sidereal=sidereal, latitude=latitude, obliquity=TILT, system=system)
    house = houses_found.house_of(longitude)
    inside = [
        number
        for number, (cusp, gap) in enumerate(zip(houses_found.cusps, gaps(houses_found), strict=True), 1)
        if (longitude - cusp) % 360 < gap
    ]
    # On a cusp itself, rounding may put it on either side.
    assert house in inside or min(abs((longitude - cusp + 180) % 360 - 180) for cusp in houses_found.cusps) < 1e-9
    assert [houses_found.house_of(cusp) for cusp in houses_found.cusps] == list(range(1, 13))


@pytest.mark.parametrize("latitude", [66.57, -66.57, 77.85, -90.0])
def test_S10_within_the_polar_circles_houses_are_whole_signs_and_not_just_outside(latitude: float):
    assert not has_placidus(latitude, TILT)
    for sidereal in range(0, 360, 15):
        houses_found = houses(sidereal=sidereal, latitude=latitude, obliquity=TILT)
        assert houses_found.system == "whole_sign"
        assert houses_found == houses(sidereal=sidereal, latitude=latitude, obliquity=TILT, system="whole_sign")
        assert (houses_found.cusps[0] % 30, gaps(houses_found), houses_found.house_of(houses_found.ascendant)) == (
            0,
            [30] * 12,
            1,
        )
        outside = houses(sidereal=sidereal, latitude=66.55 if latitude > 0 else -66.55, obliquity=TILT)
        assert outside.system == "placidus"
        assert sum(gaps(outside)) == pytest.approx(360)
