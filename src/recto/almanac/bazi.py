"""The four pillars of a birth, their strength and luck cycles, words to find cases by. Refuses to tell fortunes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime

from recto.almanac.bazi_features import paired
from recto.almanac.bazi_notes import notes_of
from recto.almanac.bazi_strength import Strength, strength_of, strength_row, visible_counts
from recto.almanac.bazi_structure import structure_of
from recto.almanac.bazi_words import BRANCHES, PLACES, pinyin, word
from recto.almanac.birth import NOON, Birth, LateZi
from recto.almanac.luck import YANG_STEMS, Luck, luck_of
from recto.almanac.pillars import Pillar, Pillars, pillar_from, pillars_of, sixty_cycle_at, stem_of
from recto.almanac.solar_time import SolarTime, solar_time
from recto.almanac.told import Locale, Told
from recto.page.canonical import Json

ANIMALS = dict(zip(BRANCHES, "鼠牛虎兔龙蛇马羊猴鸡狗猪", strict=True))
LATE_ZI_WORDS = {
    "next_day": Told(zh="23点起换日柱", en="the day's pillar turns at 23:00"),
    "same_day": Told(zh="零点换日柱，晚子时日柱不变", en="the day's pillar turns at midnight"),
}


@dataclass(frozen=True, kw_only=True)
class YearPillar:
    """The pillar of a year. It begins in February, so in January it is still the year before."""

    year: int
    pillar: Pillar


@dataclass(frozen=True, kw_only=True)
class BaziChart:
    """Four pillars and what follows from them. `clock` is the time that day and hour were told by."""

    birth: Birth
    clock: datetime
    sun: SolarTime | None
    late_zi: LateZi
    pillars: Pillars
    structure: str
    strength: Strength
    luck: Luck | None
    today: date | None
    this_year: YearPillar | None
    notes: tuple[Told, ...]

    @property
    def polarity(self) -> str:
        return "阳" if self.pillars.day.stem in YANG_STEMS else "阴"

    @property
    def missing(self) -> tuple[str, ...]:
        """Elements that no stem and no branch is of."""
        return tuple(element for element, count in visible_counts(self.pillars).items() if count == 0)

    @property
    def features(self) -> tuple[str, ...]:
        """The words cases are found by: Chinese first, then the same in English."""
        return tuple(dict.fromkeys((*_chinese_features(self), *_english_features(self))))

    def row(self, locale: Locale = "zh") -> dict[str, Json]:
        day, pillars = self.pillars.day, self.pillars
        placed = zip(PLACES, (pillars.year, pillars.month, pillars.day, pillars.hour), strict=True)
        return {
            "bazi": pillars.name,
            "pillars": {place: pillar.row(locale) if pillar else None for place, pillar in placed},
            "day_master": {
                "stem": word(day.stem, locale),
                "element": word(day.element, locale),
                "polarity": word(self.polarity, locale),
            },
            "animal": word(ANIMALS[pillars.year.branch], locale),
            "structure": word(self.structure, locale),
            "elements": _elements_row(self, locale),
            "strength": strength_row(self.strength, locale),
            "favourable": [word(element, locale) for element in self.strength.favourable],
            "luck": self.luck.row(locale, self.today) if self.luck else None,
            "this_year": _this_year_row(self, locale),
            "clock": _clock_row(self, locale),
            "notes": [note.in_locale(locale) for note in self.notes],
            "features": list(self.features),
        }


def bazi(
    birth: Birth, *, true_solar_time: bool | None = None, late_zi: LateZi | None = None, today: date | None = None
) -> BaziChart:
    """The chart of a birth. What is not given here is as the birth itself asks; `today` adds the pillar of its year."""
    by_sun = birth.true_solar_time if true_solar_time is None else true_solar_time
    late = late_zi or birth.late_zi
    sun = solar_time(birth) if by_sun and birth.has_time else None
    clock = sun.local if sun else birth.standard
    pillars = pillars_of(birth.moment, clock, late, birth.has_time)
    return BaziChart(
        birth=birth,
        clock=clock,
        sun=sun,
        late_zi=late,
        pillars=pillars,
        structure=structure_of(pillars),
        strength=strength_of(pillars),
        luck=luck_of(birth.moment, pillars, birth.gender) if birth.gender else None,
        today=today,
        this_year=_year_pillar(today, pillars) if today else None,
        notes=tuple(notes_of(birth, by_sun)),
    )


def _year_pillar(today: date, pillars: Pillars) -> YearPillar:
    month = sixty_cycle_at(datetime.combine(today, NOON)).get_sixty_cycle_day().get_sixty_cycle_month()
    year = month.get_sixty_cycle_year()
    return YearPillar(year=year.get_year(), pillar=pillar_from(year.get_sixty_cycle(), stem_of(pillars.day)))


def _elements_row(chart: BaziChart, locale: Locale) -> dict[str, Json]:
    return {
        "counts": {word(element, locale): count for element, count in visible_counts(chart.pillars).items()},
        "weights": {word(element, locale): weight for element, weight in chart.strength.weights.items()},
        "missing": [word(element, locale) for element in chart.missing],
    }


def _this_year_row(chart: BaziChart, locale: Locale) -> dict[str, Json] | None:
    if chart.this_year is None:
        return None
    pillar = chart.this_year.pillar
    return {
        "year": chart.this_year.year,
        "pillar": word(pillar.name, locale),
        "ten_god": word(pillar.ten_god, locale),
        "branch_ten_god": word(pillar.hidden[0].ten_god, locale),
    }


def _clock_row(chart: BaziChart, locale: Locale) -> dict[str, Json]:
    birth = chart.birth
    sun = chart.sun and {
        "longitude_minutes": chart.sun.longitude_minutes,
        "equation_of_time_minutes": chart.sun.equation_minutes,
    }
    return {
        "local": birth.local.isoformat(" ", "minutes") if birth.has_time else birth.local.date().isoformat(),
        "zone": birth.zone_name,
        "summer_time_minutes": int(birth.summer_time.total_seconds() // 60),
        "told_by": chart.clock.isoformat(" ", "seconds") if birth.has_time else None,
        "true_solar_time": sun,
        "late_zi": LATE_ZI_WORDS[chart.late_zi].in_locale(locale),
    }


def _chinese_features(chart: BaziChart) -> Iterator[str]:
    day = chart.pillars.day
    yield from (f"日主{day.stem}{day.element}", f"{day.stem}{day.element}", day.stem, day.element)
    yield from (chart.strength.verdict, chart.structure, *_gods(chart))
    yield from (pair.zh for pair in paired(chart.pillars, chart.strength, _gods(chart)))
    yield from (f"缺{element}" for element in chart.missing)
    yield from ("五行有缺",) if chart.missing else ()
    yield from (f"喜{element}" for element in chart.strength.favourable)
    yield f"属{ANIMALS[chart.pillars.year.branch]}"


def _english_features(chart: BaziChart) -> Iterator[str]:
    day = chart.pillars.day
    yield f"{pinyin(day.stem)} {word(day.element, 'en')} day master"
    yield from (f"{word(chart.strength.verdict, 'en')} day master", word(chart.structure, "en"))
    yield from (word(god, "en") for god in _gods(chart))
    yield from (pair.en for pair in paired(chart.pillars, chart.strength, _gods(chart)))
    yield from (f"Lacks {word(element, 'en')}" for element in chart.missing)
    yield from ("Lacks an element",) if chart.missing else ()


def _gods(chart: BaziChart) -> list[str]:
    """The ten gods a chart shows: of its stems, then of the main stem of each branch."""
    pillars = chart.pillars.all
    stems = [pillar.ten_god for pillar in pillars if pillar is not chart.pillars.day]
    return stems + [pillar.hidden[0].ten_god for pillar in pillars]
