"""Pillars of a moment, luck cycles (大运) and true solar time, computed with the calendar library.

Luck cycles run forward for a man born in a Yang year and a woman born in a Yin year, else backward. The first cycle
starts after a time proportional to the distance from birth to the next (backward: the last) of the twelve terms that
begin a month. Three days of distance are one year.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING

from recto.agents.shipped.vibe.almanac.bazi.bazi_words import word
from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.agents.shipped.vibe.almanac.birth.birth import Birth, Gender, LateZi
from recto.conversation.json import Json
from recto.errors import ToolError
from recto.page.prompt.reminder import Locale

if TYPE_CHECKING:
    from tyme4py.sixtycycle import HeavenStem, SixtyCycle, SixtyCycleHour  # pyright: ignore[reportMissingTypeStubs] - its source has the types
    from tyme4py.solar import SolarTime  # pyright: ignore[reportMissingTypeStubs] - its source has the types


# Time zone of the library's solar terms.
BEIJING = timezone(timedelta(hours=8))
LATE_ZI_HOUR = 23
DAY_MASTER = "日主"


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """A stem hidden in a branch."""

    stem: str
    element: str
    ten_god: str


@dataclass(frozen=True, kw_only=True)
class Pillar:
    """A stem and a branch, with their relations to the day master. The main hidden stem is first."""

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
    """Four pillars. Without a time of birth, the hour is None."""

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
    """Return the pillars of a birth.

    Year and month follow the moment, because solar terms are moments. Day and hour follow the local clock. From 23:00,
    the hour is the first hour of the next day. The day's pillar changes at 23:00 (`next_day`) or at midnight.
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
    """Return a pair of the sexagenary cycle as a pillar. The day pillar has a name in place of a ten god."""
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
    """Return the stem of a pillar as the library's type."""
    from tyme4py.sixtycycle import HeavenStem  # pyright: ignore[reportMissingTypeStubs] - its source has the types

    return HeavenStem.from_name(pillar.stem)


def sixty_cycle_at(clock: datetime) -> SixtyCycleHour:
    """Return the pairs of year, month, day and hour at a Beijing time. The next day begins at 23:00."""
    return solar_time_at(clock).get_sixty_cycle_hour()


def solar_time_at(clock: datetime) -> SolarTime:
    """Return a clock time as the library's type."""
    from tyme4py.solar import SolarTime  # pyright: ignore[reportMissingTypeStubs] - its source has the types

    return SolarTime.from_ymd_hms(clock.year, clock.month, clock.day, clock.hour, clock.minute, clock.second)


MINUTES_PER_DEGREE = 4
HOURS, NOON = 24, 12


@dataclass(frozen=True, kw_only=True)
class SundialTime:
    """True solar time, and the minutes added to standard time."""

    local: datetime
    longitude_minutes: float
    equation_minutes: float


def solar_time(birth: Birth) -> SundialTime:
    """Return standard time, corrected by the distance to the zone's meridian and by the equation of time."""
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
    """Return the minutes by which a sundial at Greenwich is ahead of UTC."""
    from astronomy import Body, HourAngle, Observer, Time  # pyright: ignore[reportMissingTypeStubs] - its source has the types

    at = Time.Make(moment.year, moment.month, moment.day, moment.hour, moment.minute, moment.second)
    dial = HourAngle(Body.Sun, at, Observer(0, 0, 0)) + NOON
    clock = moment.hour + moment.minute / 60 + moment.second / 3600
    return ((dial - clock + NOON) % HOURS - NOON) * 60


CYCLES, CYCLE_YEARS = 8, 10
YANG_STEMS = "甲丙戊庚壬"
AGES = Bilingual(zh="虚岁（出生当年为一岁）", en="nominal (the year of birth counts as one)")


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """A luck cycle of ten years. Ages count the year of birth as one."""

    pillar: Pillar
    from_year: int
    from_age: int

    def row(self, locale: Locale, now: bool) -> dict[str, Json]:
        to_year = self.from_year + CYCLE_YEARS - 1
        return {
            "pillar": word(self.pillar.name, locale),
            "ten_god": word(self.pillar.ten_god, locale),
            "branch_ten_god": word(self.pillar.hidden[0].ten_god, locale),
            "years": f"{self.from_year}-{to_year}",
            "ages": f"{self.from_age}-{self.from_age + CYCLE_YEARS - 1}",
            "now": now,
        }


@dataclass(frozen=True, kw_only=True)
class Luck:
    """Luck cycles: direction (顺行, 逆行), time from birth to the first cycle, its date, and all cycles."""

    direction: str
    years: int
    months: int
    days: int
    starts: date
    cycles: tuple[Cycle, ...]

    def current(self, today: date) -> Cycle | None:
        """Return the luck cycle of a day. Return None before the first cycle and after the last."""
        started = (today.month, today.day) >= (self.starts.month, self.starts.day)
        years = today.year - self.starts.year - (0 if started else 1)
        return self.cycles[years // CYCLE_YEARS] if 0 <= years < CYCLES * CYCLE_YEARS else None

    def row(self, locale: Locale, today: date | None) -> dict[str, Json]:
        now = self.current(today) if today else None
        after = f"{self.years}年{self.months}个月{self.days}天"
        if locale == "en":
            after = f"{self.years} years, {self.months} months, {self.days} days"
        return {
            "direction": word(self.direction, locale),
            "starts_after": after,
            "starts_on": self.starts.isoformat(),
            "ages_are": AGES.in_locale(locale),
            "cycles": [cycle.row(locale, cycle is now) for cycle in self.cycles],
        }


def luck_of(moment: datetime, pillars: Pillars, gender: Gender) -> Luck:
    """Return the luck cycles of a birth."""
    from tyme4py.eightchar.provider.impl import DefaultChildLimitProvider  # pyright: ignore[reportMissingTypeStubs] - its source has the types
    from tyme4py.sixtycycle import SixtyCycle  # pyright: ignore[reportMissingTypeStubs] - its source has the types

    forward = (pillars.year.stem in YANG_STEMS) == (gender == "male")
    born = solar_time_at(moment.astimezone(BEIJING))
    term = born.get_term()
    term = term if term.is_jie() else term.next(-1)
    wait = DefaultChildLimitProvider().get_info(born, term.next(2) if forward else term)
    start = wait.get_end_time()
    month, master = SixtyCycle.from_name(pillars.month.name), stem_of(pillars.day)
    return Luck(
        direction="顺行" if forward else "逆行",
        years=wait.get_year_count(),
        months=wait.get_month_count(),
        days=wait.get_day_count(),
        starts=date(start.get_year(), start.get_month(), start.get_day()),
        cycles=tuple(
            Cycle(
                pillar=pillar_from(month.next(place if forward else -place), master),
                from_year=start.get_year() + (place - 1) * CYCLE_YEARS,
                from_age=start.get_year() - born.get_year() + 1 + (place - 1) * CYCLE_YEARS,
            )
            for place in range(1, CYCLES + 1)
        ),
    )
