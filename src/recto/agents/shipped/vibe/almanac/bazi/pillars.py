"""The pillars of a moment, by the calendar library: stem, branch, what is hidden, ten gods. Refuses to judge them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from recto.agents.shipped.vibe.almanac.bazi.bazi_words import word
from recto.agents.shipped.vibe.almanac.birth.birth import Birth, LateZi
from recto.conversation.json import Json
from recto.errors import ToolError
from recto.page.prompt.reminder import Locale

if TYPE_CHECKING:
    from tyme4py.sixtycycle import HeavenStem, SixtyCycle, SixtyCycleHour  # pyright: ignore[reportMissingTypeStubs] - its source has the types
    from tyme4py.solar import SolarTime  # pyright: ignore[reportMissingTypeStubs] - its source has the types

# The library tells solar terms in Beijing time.
BEIJING = timezone(timedelta(hours=8))
LATE_ZI_HOUR = 23
DAY_MASTER = "日主"


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """A stem hidden in a branch, main one first."""

    stem: str
    element: str
    ten_god: str


@dataclass(frozen=True, kw_only=True)
class Pillar:
    """A stem over a branch, seen from the day master."""

    stem: str
    branch: str
    element: str
    branch_element: str
    ten_god: str
    hidden: tuple[Hidden, ...]
    na_yin: str

    @property
    def name(self) -> str:
        return self.stem + self.branch

    def row(self, locale: Locale) -> dict[str, Json]:
        return {
            "pillar": word(self.name, locale),
            "stem": word(self.stem, locale),
            "branch": word(self.branch, locale),
            "stem_element": word(self.element, locale),
            "branch_element": word(self.branch_element, locale),
            "ten_god": word(self.ten_god, locale),
            "hidden": [
                {
                    "stem": word(hidden.stem, locale),
                    "element": word(hidden.element, locale),
                    "ten_god": word(hidden.ten_god, locale),
                }
                for hidden in self.hidden
            ],
            "na_yin": word(self.na_yin, locale),
        }


@dataclass(frozen=True, kw_only=True)
class Pillars:
    """Four pillars; the hour's is None where the time of birth is not known."""

    year: Pillar
    month: Pillar
    day: Pillar
    hour: Pillar | None

    @property
    def all(self) -> tuple[Pillar, ...]:
        return (self.year, self.month, self.day, *((self.hour,) if self.hour else ()))

    @property
    def name(self) -> str:
        return " ".join(pillar.name for pillar in self.all)


def pillars_of(moment: datetime, clock: datetime, late_zi: LateZi, has_time: bool) -> Pillars:
    """Year and month by the moment, as solar terms are moments; day and hour by what the clock at the place said.

    From 23:00 the hour is the first of the next day. `next_day` turns the day's pillar with it, `same_day` at midnight.
    """
    at_moment, at_clock = sixty_cycle_at(moment.astimezone(BEIJING)), sixty_cycle_at(clock)
    day = at_clock.get_day()
    if late_zi == "same_day" and clock.hour == LATE_ZI_HOUR:
        day = sixty_cycle_at(clock.replace(hour=12)).get_day()
    master = day.get_heaven_stem()
    return Pillars(
        year=pillar_from(at_moment.get_year(), master),
        month=pillar_from(at_moment.get_month(), master),
        day=pillar_from(day, master, ten_god=DAY_MASTER),
        hour=pillar_from(at_clock.get_sixty_cycle(), master) if has_time else None,
    )


def pillar_from(pair: SixtyCycle, master: HeavenStem, ten_god: str | None = None) -> Pillar:
    """A pair of the cycle of sixty as a pillar, seen from a day master; its own pillar has no ten god but a name."""
    stem, branch = pair.get_heaven_stem(), pair.get_earth_branch()
    stems = [hidden.get_heaven_stem() for hidden in branch.get_hide_heaven_stems()]
    return Pillar(
        stem=stem.get_name(),
        branch=branch.get_name(),
        element=stem.get_element().get_name(),
        branch_element=branch.get_element().get_name(),
        ten_god=ten_god or master.get_ten_star(stem).get_name(),
        hidden=tuple(
            Hidden(
                stem=hidden.get_name(),
                element=hidden.get_element().get_name(),
                ten_god=master.get_ten_star(hidden).get_name(),
            )
            for hidden in stems
        ),
        na_yin=pair.get_sound().get_name(),
    )


def stem_of(pillar: Pillar) -> HeavenStem:
    """The stem of a pillar, as the library has it."""
    from tyme4py.sixtycycle import HeavenStem  # pyright: ignore[reportMissingTypeStubs] - its source has the types

    return HeavenStem.from_name(pillar.stem)


def sixty_cycle_at(clock: datetime) -> SixtyCycleHour:
    """The pairs of year, month, day and hour at a clock time, read as Beijing time. From 23:00 it is the next day."""
    return solar_time_at(clock).get_sixty_cycle_hour()


def solar_time_at(clock: datetime) -> SolarTime:
    """A clock time, as the library has it."""
    from tyme4py.solar import SolarTime  # pyright: ignore[reportMissingTypeStubs] - its source has the types

    return SolarTime.from_ymd_hms(clock.year, clock.month, clock.day, clock.hour, clock.minute, clock.second)


MINUTES_PER_DEGREE = 4
HOURS, NOON = 24, 12


@dataclass(frozen=True, kw_only=True)
class SundialTime:
    """True solar time, and the minutes that were added to standard time to get there."""

    local: datetime
    longitude_minutes: float
    equation_minutes: float


def solar_time(birth: Birth) -> SundialTime:
    """Standard time corrected by the distance to the zone's meridian, then by the equation of time."""
    if birth.longitude is None:
        problem = "True solar time needs the longitude of the place of birth, which is not known."
        raise ToolError(f"{problem} Ask for the city, or for latitude and longitude, or compute without it.")
    mean = birth.moment.replace(tzinfo=None) + timedelta(minutes=birth.longitude * MINUTES_PER_DEGREE)
    equation = equation_of_time(birth.moment)
    return SundialTime(
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
