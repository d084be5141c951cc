"""The sky at a moment, and when Mercury seems to go backwards, held against what almanacs publish."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from recto.agents.shipped.vibe.almanac.sky.sky import PLANETS
from recto.agents.shipped.vibe.almanac.sky.zodiac import current_sky, mercury_retrogrades
from recto.conversation.json import Json

# As almanacs have them, by the day in UTC.
PUBLISHED = [
    ("2024-04-01", "2024-04-25"),
    ("2024-08-05", "2024-08-28"),
    ("2024-11-26", "2024-12-15"),
    ("2025-03-15", "2025-04-07"),
    ("2025-07-18", "2025-08-11"),
    ("2025-11-09", "2025-11-29"),
    ("2026-02-26", "2026-03-20"),
    ("2026-06-29", "2026-07-23"),
    ("2026-10-24", "2026-11-13"),
]


def days(moment: datetime, count: int) -> list[tuple[str, str]]:
    return [(f"{one.start:%Y-%m-%d}", f"{one.end:%Y-%m-%d}") for one in mercury_retrogrades(moment, count)]


def test_S10_mercury_goes_backwards_when_almanacs_say_it_does() -> None:
    assert days(datetime(2024, 2, 1, tzinfo=UTC), len(PUBLISHED)) == PUBLISHED


@pytest.mark.parametrize(
    ("moment", "first"),
    [(datetime(2025, 3, 14, tzinfo=UTC), "2025-03-15"), (datetime(2025, 4, 8, tzinfo=UTC), "2025-07-18")],
)
def test_S10_the_first_period_is_the_present_one_or_the_next(moment: datetime, first: str) -> None:
    assert days(moment, 1)[0][0] == first


def test_S10_the_sky_is_told_in_the_zone_of_the_turn_in_both_languages() -> None:
    moment, zone = datetime(2025, 7, 25, 4, tzinfo=UTC), ZoneInfo("Asia/Shanghai")
    row = current_sky(moment, zone, "zh")
    assert (row["at"], row["zone"]) == ("2025-07-25 12:00", "Asia/Shanghai")
    assert row["mercury_retrograde"] == {
        "now": True,
        "periods": [
            {"from": "2025-07-18", "to": "2025-08-11"},
            {"from": "2025-11-10", "to": "2025-11-30"},
            {"from": "2026-02-26", "to": "2026-03-21"},
        ],
    }
    planets = rows(row["planets"])
    assert len(planets) == len(PLANETS)
    assert (planets[0], planets[2]["retrograde"]) == (
        {"planet": "太阳", "position": "狮子座 2°29′", "retrograde": False},
        True,
    )
    english = rows(current_sky(moment, zone, "en")["planets"])
    assert english[0] == {"planet": "Sun", "position": "Leo 2°29′", "retrograde": False}
    # Pluto in Aquarius, Saturn and Neptune in Aries, all backwards in that summer.
    backwards = [one["planet"] for one in english if one["retrograde"]]
    assert backwards == ["Mercury", "Saturn", "Neptune", "Pluto"]


def rows(value: Json) -> list[dict[str, Json]]:
    assert isinstance(value, list)
    return [one for one in value if isinstance(one, dict)]
