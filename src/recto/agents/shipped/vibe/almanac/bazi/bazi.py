"""The four pillars of a birth, their strength and luck cycles, words to find cases by. Refuses to tell fortunes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date, datetime

from recto.agents.shipped.vibe.almanac.bazi.bazi_notes import notes_of
from recto.agents.shipped.vibe.almanac.bazi.bazi_strength import Strength, strength_of, strength_row, visible_counts
from recto.agents.shipped.vibe.almanac.bazi.bazi_words import BRANCHES, PEERS, PLACES, cycle_step, pinyin, word
from recto.agents.shipped.vibe.almanac.bazi.luck import YANG_STEMS, Luck, luck_of
from recto.agents.shipped.vibe.almanac.bazi.pillars import (
    Pillar,
    Pillars,
    SundialTime,
    pillar_from,
    pillars_of,
    sixty_cycle_at,
    solar_time,
    stem_of,
)
from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.agents.shipped.vibe.almanac.birth.birth import NOON, Birth, LateZi
from recto.conversation.json import Json
from recto.page.prompt.reminder import Locale

# The day's stem, and the month's branch in which it is at home, at its height, or meets the other stem of its element.
SALARIES = frozenset(["甲寅", "乙卯", "丙巳", "丁午", "戊巳", "己午", "庚申", "辛酉", "壬亥", "癸子"])
BLADES = frozenset(["甲卯", "丙午", "戊午", "庚酉", "壬子"])
ROBBERS = frozenset(["乙寅", "丁巳", "辛申", "癸亥"])


def structure_of(pillars: Pillars) -> str:
    """The structure by how the month carries the master; else by what is hidden in the month.

    That is its main stem if a stem of the chart shows it, else another that is shown, else the main one. The master's
    own element gives no name: earth in a month of earth goes by another that is shown, else it is mixed.
    """
    master_in_month = pillars.day.stem + pillars.month.branch
    for pairs, name in ((SALARIES, "建禄格"), (BLADES, "月刃格"), (ROBBERS, "月劫格")):
        if master_in_month in pairs:
            return name
    stems = {pillar.stem for pillar in pillars.all if pillar is not pillars.day}
    main, *_ = pillars.month.hidden
    visible_stems = [one for one in pillars.month.hidden if one.stem in stems and one.ten_god not in PEERS]
    if not visible_stems and main.ten_god in PEERS:
        return "杂气格"
    return f"{(visible_stems or [main])[0].ten_god}格"


WEALTH, RESOURCE = ("正财", "偏财"), ("正印", "偏印")
# An even chart has a fifth of each element.
MUCH = 30
STRONG_WEALTH = Bilingual(zh="身强见财", en="Strong with wealth")
WEAK_WEALTH = Bilingual(zh="身弱财多", en="Weak with much wealth")
MANY_PEERS = Bilingual(zh="比劫多", en="Many peers")
# A pair of ten gods: one of each side has to show.
PAIRS: tuple[tuple[Collection[str], Collection[str], Bilingual], ...] = (
    (("食神",), WEALTH, Bilingual(zh="食神生财", en="Eating God feeds wealth")),
    (("伤官",), WEALTH, Bilingual(zh="伤官生财", en="Hurting Officer feeds wealth")),
    (("食神",), ("七杀",), Bilingual(zh="食神制杀", en="Eating God holds Seven Killings")),
    (("七杀",), RESOURCE, Bilingual(zh="杀印相生", en="Seven Killings feeds resource")),
    (("正官",), ("正印",), Bilingual(zh="官印相生", en="Direct Officer feeds Direct Resource")),
    (("伤官",), ("正官",), Bilingual(zh="伤官见官", en="Hurting Officer meets Officer")),
)


def paired(pillars: Pillars, strength: Strength, gods: Collection[str]) -> Iterator[Bilingual]:
    """The strength with the day master, pairs of ten gods, what the master sits on. `gods` are those a chart shows."""
    day, grade = pillars.day, strength.grade
    strong, element = word(grade, "en"), word(day.element, "en")
    yield Bilingual(zh=f"{grade}{day.stem}{day.element}", en=f"{strong} {pinyin(day.stem)} {element}")
    yield Bilingual(zh=f"{grade}{day.element}", en=f"{strong} {element}")
    has_wealth = _shows(gods, WEALTH)
    if grade == "身强" and has_wealth:
        yield STRONG_WEALTH
    if grade == "身弱" and has_wealth and strength.weights[cycle_step(day.element, 2)] >= MUCH:
        yield WEAK_WEALTH
    if _shows(gods, PEERS) and strength.weights[day.element] >= MUCH:
        yield MANY_PEERS
    yield from (name for one, other, name in PAIRS if _shows(gods, one) and _shows(gods, other))
    seat = day.hidden[0].ten_god
    yield Bilingual(zh=f"日坐{seat}", en=f"{word(seat, 'en')} in the day branch")


def _shows(gods: Collection[str], targets: Collection[str]) -> bool:
    return any(god in gods for god in targets)


ANIMALS = dict(zip(BRANCHES, "鼠牛虎兔龙蛇马羊猴鸡狗猪", strict=True))
LATE_ZI_WORDS = {
    "next_day": Bilingual(zh="23点起换日柱", en="the day's pillar turns at 23:00"),
    "same_day": Bilingual(zh="零点换日柱，晚子时日柱不变", en="the day's pillar turns at midnight"),
}


@dataclass(frozen=True, kw_only=True)
class YearPillar:
    """The pillar of a year. It begins in February, so in January it is still the year before."""

    year: int
    pillar: Pillar


@dataclass(frozen=True, kw_only=True)
class BaziChart:
    """Four pillars and what follows from them. `clock` is the time that day and hour go by."""

    birth: Birth
    clock: datetime
    sun: SundialTime | None
    late_zi: LateZi
    pillars: Pillars
    structure: str
    strength: Strength
    luck: Luck | None
    today: date | None
    this_year: YearPillar | None
    notes: tuple[Bilingual, ...]

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
        places = zip(PLACES, (pillars.year, pillars.month, pillars.day, pillars.hour), strict=True)
        return {
            "bazi": pillars.name,
            "pillars": {place: pillar.row(locale) if pillar else None for place, pillar in places},
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
    yield from (chart.strength.grade, chart.structure, *_gods(chart))
    yield from (pair.zh for pair in paired(chart.pillars, chart.strength, _gods(chart)))
    yield from (f"缺{element}" for element in chart.missing)
    yield from ("五行有缺",) if chart.missing else ()
    yield from (f"喜{element}" for element in chart.strength.favourable)
    yield f"属{ANIMALS[chart.pillars.year.branch]}"


def _english_features(chart: BaziChart) -> Iterator[str]:
    day = chart.pillars.day
    yield f"{pinyin(day.stem)} {word(day.element, 'en')} day master"
    yield from (f"{word(chart.strength.grade, 'en')} day master", word(chart.structure, "en"))
    yield from (word(god, "en") for god in _gods(chart))
    yield from (pair.en for pair in paired(chart.pillars, chart.strength, _gods(chart)))
    yield from (f"Lacks {word(element, 'en')}" for element in chart.missing)
    yield from ("Lacks an element",) if chart.missing else ()


def _gods(chart: BaziChart) -> list[str]:
    """The ten gods a chart shows: of its stems, then of the main stem of each branch."""
    pillars = chart.pillars.all
    stems = [pillar.ten_god for pillar in pillars if pillar is not chart.pillars.day]
    return stems + [pillar.hidden[0].ten_god for pillar in pillars]
