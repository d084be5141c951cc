"""Luck cycles (大运): which way they run, when they start, ten years each. Refuses to run without a gender.

Forward for a man born in a Yang year and a woman born in a Yin one, else backward. The start is the distance from birth
to the next (or last) of the twelve terms that begin a month: three days are a year, a day is four months.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from recto.agents.shipped.vibe.almanac.bazi.bazi_words import word
from recto.agents.shipped.vibe.almanac.bazi.pillars import BEIJING, Pillar, Pillars, pillar_from, solar_time_at, stem_of
from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.agents.shipped.vibe.almanac.birth.birth import Gender
from recto.conversation.json import Json
from recto.page.prompt.reminder import Locale

CYCLES, CYCLE_YEARS = 8, 10
YANG_STEMS = "甲丙戊庚壬"
AGES = Bilingual(zh="虚岁（出生当年为一岁）", en="nominal (the year of birth counts as one)")


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """Ten years. Ages count the year of birth as one, as almanacs do."""

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
    """The direction (顺行, 逆行), how long after birth the first cycle starts, on which day, and the cycles."""

    direction: str
    years: int
    months: int
    days: int
    starts: date
    cycles: tuple[Cycle, ...]

    def current(self, today: date) -> Cycle | None:
        """The cycle a day falls into; None before the first and after the last."""
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
    """The luck cycles of a birth. Terms are moments, so the distance to one is told by the moment, not by a clock."""
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
