"""The sky at a moment: where planets stand, and when Mercury seems to go backwards. Refuses to tell fortunes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from recto.agents.shipped.vibe.almanac.sky.sky import PLANETS, SHORT_WHILE, Planet, longitude, positions, turn
from recto.agents.shipped.vibe.almanac.sky.zodiac_words import BODIES, render_longitude
from recto.conversation.json import Json
from recto.page.prompt.reminder import Locale

MERCURY: Planet = "mercury"
# It goes backwards for 19 days at least and forwards for 90: no station is stepped over.
STEP, EXACT = timedelta(days=5), timedelta(minutes=1)
PERIODS = 3


@dataclass(frozen=True, kw_only=True)
class Period:
    """From the moment a planet turns back to the one it turns forwards again."""

    start: datetime
    end: datetime


def current_sky(moment: datetime, zone: tzinfo, locale: Locale) -> dict[str, Json]:
    """The sky of a moment for JSON, in a language, by the clock of a zone."""
    where = positions(moment)
    periods = mercury_retrogrades(moment, PERIODS)
    return {
        "at": f"{moment.astimezone(zone):%Y-%m-%d %H:%M}",
        "zone": str(zone),
        "planets": [
            {
                "planet": BODIES[planet].in_locale(locale),
                "position": render_longitude(where[planet].longitude, locale),
                "retrograde": where[planet].speed < 0,
            }
            for planet in PLANETS
        ],
        "mercury_retrograde": {
            "now": periods[0].start <= moment,
            "periods": [{"from": _day(one.start, zone), "to": _day(one.end, zone)} for one in periods],
        },
    }


def mercury_retrogrades(moment: datetime, count: int) -> tuple[Period, ...]:
    """The next times that Mercury goes backwards; where it does so at the moment, that one is the first."""
    at, periods = moment, list[Period]()
    while _goes_back(at):
        at -= STEP
    for _ in range(count):
        start = _station(at, back=True)
        end = _station(start + STEP, back=False)
        periods.append(Period(start=start, end=end))
        at = end + STEP
    return tuple(periods)


def _station(after: datetime, *, back: bool) -> datetime:
    """When it next turns."""
    while _goes_back(after + STEP) != back:
        after += STEP
    before = after + STEP
    while before - after > EXACT:
        middle = after + (before - after) / 2
        after, before = (after, middle) if _goes_back(middle) == back else (middle, before)
    return before


def _goes_back(moment: datetime) -> bool:
    # Around the moment, so that a station is where it is and not a little before.
    ends = (longitude(MERCURY, moment + shift) for shift in (-SHORT_WHILE, SHORT_WHILE))
    return turn(*ends) < 0


def _day(moment: datetime, zone: tzinfo) -> str:
    # Not the minute: the planet is found to within an arc minute, and at a station it takes minutes for that.
    return f"{moment.astimezone(zone):%Y-%m-%d}"
