"""Aspects: which angles count, how near, and whether they close or open."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.shipped.vibe.almanac.sky.aspects import ANGLES, ORBS, AspectKind, OrbSettings, aspect, aspects
from recto.agents.shipped.vibe.almanac.sky.sky import PLANETS, Body, Position, positions
from recto.errors import SettingsError

BODIES = st.lists(st.sampled_from(PLANETS), min_size=2, max_size=2, unique=True)
PLACES = st.builds(Position, longitude=st.floats(0, 360, exclude_max=True), speed=st.floats(-2, 15))


def at(longitude: float, speed: float = 0) -> Position:
    return Position(longitude=longitude, speed=speed)


def kind_of(first: tuple[Body, float], second: tuple[Body, float], orbs: OrbSettings = ORBS) -> AspectKind | None:
    result = aspect((first[0], at(first[1])), (second[0], at(second[1])), orbs)
    return result.kind if result else None


@pytest.mark.parametrize(
    ("kind", "angle", "orb"),
    [("conjunction", 0, 8), ("sextile", 60, 6), ("square", 90, 7), ("trine", 120, 8), ("opposition", 180, 8)],
)
def test_S10_an_aspect_counts_up_to_its_orb_and_two_degrees_more_with_sun_or_moon(
    kind: AspectKind, angle: int, orb: int
):
    pairs: list[tuple[int, Body, Body]] = [(0, "venus", "mars"), (2, "sun", "mars"), (2, "saturn", "moon")]
    for side in (-1, 1):
        for more, first, second in pairs:
            within, beyond = (angle + side * (orb + more + edge) for edge in (-0.01, 0.01))
            assert kind_of((first, 350), (second, (350 + within) % 360)) == kind
            assert kind_of((first, 350), (second, (350 + beyond) % 360)) is None


def test_S10_orbs_are_settings():
    narrow = OrbSettings(conjunction=1, light=0)
    assert kind_of(("sun", 0), ("moon", 1), narrow) == "conjunction"
    assert kind_of(("sun", 0), ("moon", 1.1), narrow) is None


@pytest.mark.parametrize("wrong", [{"trine": -1.0}, {"square": 13.5}, {"light": 16.0}, {"light": -1.0}])
def test_S10_orbs_that_mean_nothing_or_overlap_are_refused(wrong: dict[str, float]):
    (name, value), *_ = wrong.items()
    with pytest.raises(SettingsError, match=rf"Setting {name} is {value}; an orb is from 0 to 15, with what is added"):
        OrbSettings(**wrong)


@given(BODIES, PLACES, PLACES)
def test_S10_an_aspect_is_the_same_from_both_sides_and_within_its_orb(
    bodies: list[Body], here: Position, there: Position
):
    first, second = bodies
    one, other = aspect((first, here), (second, there)), aspect((second, there), (first, here))
    assert (one is None) == (other is None)
    if one and other:
        assert (one.kind, one.applying) == (other.kind, other.applying)
        assert one.orb == pytest.approx(other.orb, abs=1e-9)
        assert 0 <= one.orb <= ORBS.between(one.kind, first, second)


@given(BODIES, PLACES, PLACES)
def test_S10_no_aspect_is_missed(bodies: list[Body], here: Position, there: Position):
    first, second = bodies
    way = abs(here.longitude - there.longitude)
    apart = min(way, 360 - way)
    near = [kind for kind, angle in ANGLES.items() if abs(apart - angle) < ORBS.between(kind, first, second) - 1e-9]
    result = aspect((first, here), (second, there))
    assert len(near) <= 1
    assert not near or (result is not None and result.kind == near[0])


@given(BODIES, PLACES, PLACES)
def test_S10_what_applies_is_closer_a_moment_later(bodies: list[Body], here: Position, there: Position):
    first, second = bodies
    result = aspect((first, here), (second, there))
    moment = 1e-4
    later_positions = [at((one.longitude + moment * one.speed) % 360, one.speed) for one in (here, there)]
    later = aspect((first, later_positions[0]), (second, later_positions[1]))
    if result and later and abs(here.speed - there.speed) > 0.01 and result.orb > 0.01:
        assert (later.orb < result.orb) == result.applying


def test_S10_the_closest_aspect_comes_first_and_each_pair_once():
    # New moon of 2024-04-08: nothing is closer in the sky of that minute.
    aspects_found = aspects(positions(datetime(2024, 4, 8, 18, 21, tzinfo=UTC)))
    assert (aspects_found[0].first, aspects_found[0].second, aspects_found[0].kind) == ("sun", "moon", "conjunction")
    assert [one.orb for one in aspects_found] == sorted(one.orb for one in aspects_found)
    assert aspects({"sun": at(0, 1)}) == ()
    assert len({frozenset((one.first, one.second)) for one in aspects_found}) == len(aspects_found)
