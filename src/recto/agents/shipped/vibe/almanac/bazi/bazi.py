"""Bazi chart of a birth: four pillars, strength, luck cycles, notes, and tags that select cases.

Strength: each sign has a weight (WEIGHTS). The weight of a branch is divided among its hidden stems. The score is the
percentage of two elements: the day master's own element and the element that generates it. A score below 40 is weak,
from 50 strong, else balanced. An even chart has 40. Special structures (从格, 化格) are not judged.

Favourable elements, scarcest first. Weak: the two supporting elements; strong: all others; balanced: the two scarcest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from recto.agents.shipped.vibe.almanac.bazi.bazi_words import (
    BRANCHES,
    ELEMENTS,
    PEERS,
    PLACES,
    cycle_step,
    pinyin,
    word,
)
from recto.agents.shipped.vibe.almanac.bazi.pillars import (
    BEIJING,
    YANG_STEMS,
    Luck,
    Pillar,
    Pillars,
    SundialTime,
    luck_of,
    pillar_from,
    pillars_of,
    sixty_cycle_at,
    solar_time,
    stem_of,
)
from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.agents.shipped.vibe.almanac.birth.birth import NOON, Birth, LateZi
from recto.agents.shipped.vibe.almanac.birth.places import capital_note
from recto.conversation.json import Json
from recto.page.prompt.reminder import Locale

# Weights of the stem and the branch of each pillar. The month's branch, which is the season, has the greatest weight.
# The day's stem is the day master itself and has none.
WEIGHTS: Mapping[str, tuple[int, int]] = {"year": (6, 9), "month": (9, 40), "day": (0, 15), "hour": (9, 12)}
SHARES: Mapping[int, tuple[float, ...]] = {1: (1.0,), 2: (0.7, 0.3), 3: (0.6, 0.3, 0.1)}
STRONG, WEAK = 50, 40
METHOD = Bilingual(
    zh="月令40、日支15、时支12、年支9、月干时干各9、年干6，地支按藏干分配；"
    "同我生我所占百分比≥50为身强，<40为身弱，其间为中和；不论从格、化格。",
    en="Month branch 40, day branch 15, hour branch 12, year branch 9, month and hour stems 9 each, year stem 6, each "
    "branch shared out over its hidden stems. The per cent that is the day master's element or brings it forth: 50 or "
    "more is strong, below 40 weak, else balanced. Special structures are not judged.",
)


@dataclass(frozen=True, kw_only=True)
class Strength:
    """Grade (身强, 身弱, 中和), score and reasons, and the weight of each element."""

    grade: str
    score: int
    reasons: tuple[Bilingual, ...]
    weights: Mapping[str, int]
    favourable: tuple[str, ...]


def strength_of(pillars: Pillars) -> Strength:
    """Return the strength of the day master."""
    own = pillars.day.element
    supporting = (own, cycle_step(own, 4))
    weights = element_weights(pillars)
    # Round to remove floating-point errors. The shown score is rounded down, so that it agrees with the grade.
    score = round(sum(weights[element] for element in supporting), 6)
    grade = "身强" if score >= STRONG else "身弱" if score < WEAK else "中和"
    scarce_first = sorted(ELEMENTS, key=lambda element: weights[element])
    match grade:
        case "身弱":
            favourable = [element for element in scarce_first if element in supporting]
        case "身强":
            favourable = [element for element in scarce_first if element not in supporting]
        case _:
            favourable = scarce_first[:2]
    return Strength(
        grade=grade,
        score=int(score),
        reasons=tuple(_reasons(pillars, supporting)),
        weights={element: round(weight) for element, weight in weights.items()},
        favourable=tuple(favourable),
    )


def element_weights(pillars: Pillars) -> dict[str, float]:
    """Return the percentage of each element in a chart."""
    weights = dict.fromkeys(ELEMENTS, 0.0)
    by_place = {"year": pillars.year, "month": pillars.month, "day": pillars.day}
    for place, pillar in (by_place if pillars.hour is None else {**by_place, "hour": pillars.hour}).items():
        stem, branch = WEIGHTS[place]
        weights[pillar.element] += stem
        for hidden, part in zip(pillar.hidden, SHARES[len(pillar.hidden)], strict=True):
            weights[hidden.element] += branch * part
    total = sum(weights.values())
    return {element: weight * 100 / total for element, weight in weights.items()}


def visible_counts(pillars: Pillars) -> dict[str, int]:
    """Count the stems and branches of each element, without hidden stems."""
    signs = [element for pillar in pillars.all for element in (pillar.element, pillar.branch_element)]
    return {element: signs.count(element) for element in ELEMENTS}


def strength_row(strength: Strength, locale: Locale) -> dict[str, Json]:
    """Return the row of a strength in a language."""
    return {
        "verdict": word(strength.grade, locale),
        "score": strength.score,
        "reasons": [reason.in_locale(locale) for reason in strength.reasons],
        "method": METHOD.in_locale(locale),
    }


def _reasons(pillars: Pillars, supporting: tuple[str, str]) -> Iterator[Bilingual]:
    """Yield the reasons of a grade: the season, the roots of the day master, and supporting stems."""
    own = word(pillars.day.element, "en")
    branch, season = pillars.month.branch, pillars.month.hidden[0].element
    month = f"the month {word(branch, 'en')} is {word(season, 'en')}"
    if season in supporting:
        zh = f"得令：生于{branch}月，月令{season}生扶日主"
        yield Bilingual(zh=zh, en=f"In season: {month}, which supports the day master")
    else:
        zh = f"失令：生于{branch}月，月令{season}不助日主"
        yield Bilingual(zh=zh, en=f"Out of season: {month}, no support for the day master")
    roots = [one.branch for one in pillars.all if any(hidden.element == pillars.day.element for hidden in one.hidden)]
    if roots:
        en = f"Rooted: {own} is hidden in {', '.join(word(branch, 'en') for branch in roots)}"
        yield Bilingual(zh=f"得地：日主通根于{'、'.join(roots)}", en=en)
    else:
        yield Bilingual(zh="不得地：四支无日主之根", en=f"No root: no branch hides {own}")
    stems = [one.stem for one in pillars.all if one is not pillars.day and one.element in supporting]
    if stems:
        en = f"Supported by the stems {', '.join(word(stem, 'en') for stem in stems)}"
        yield Bilingual(zh=f"天干有助：{'、'.join(stems)}生扶日主", en=en)
    else:
        yield Bilingual(zh="天干无助：无印比透出", en="No stem supports the day master")


NO_TIME = Bilingual(
    zh="出生时间未知：没有时柱，其余按当天正午推算；若生于23点后，日柱可能不同。",
    en="The time of birth is not known: there is no hour pillar, the rest is of noon; after 23:00 the day may differ.",
)
TERM_DAY = Bilingual(
    zh="出生当天交节，月柱（或年柱）取决于出生时间，请确认时间。",
    en="A solar term begins on the day of birth: the month (or year) pillar depends on the time. Ask for it.",
)
NO_SUN = Bilingual(zh="没有出生时间，未作真太阳时校正。", en="Without a time nothing is corrected to true solar time.")
NO_GENDER = Bilingual(
    zh="性别未知：大运的顺逆无法确定，未排大运。",
    en="The gender is not known: which way the luck cycles run cannot be told, so there are none.",
)
ABOUT_LUCK = Bilingual(
    zh="出生时间未知：起运时间约有两个月的出入。",
    en="The time of birth is not known: the start of the luck cycles may be two months off.",
)
UNKNOWN_PLACE = Bilingual(
    zh="出生地未识别，按 {zone} 的时间计算；若不在中国，请补充附近的大城市或时区。",
    en="The place of birth is not recognised, so the clock is taken to be that of {zone}. If it was not in China, "
    "ask for a large city nearby or the time zone.",
)
NO_PLACE = Bilingual(
    zh="未提供出生地名或时区，按 {zone} 的时间计算；若不在中国，请补充出生地或时区。",
    en="Neither a place of birth nor a time zone was given, so the clock is taken to be that of {zone}. If it was not "
    "in China, ask for the place or the time zone.",
)
SUMMER_TIME = Bilingual(
    zh="出生时当地实行夏令时，钟表快{minutes}分钟，排盘已减去。",
    en="Summer time was in force: the clock was {minutes} minutes ahead, which has been taken off.",
)
TWICE = Bilingual(
    zh="当天钟表拨回{minutes}分钟，{clock} 出现过两次：按第一次（拨回前）计算，请确认。",
    en="The clock was put back {minutes} minutes that day, so {clock} came twice: it is taken to be the first, before "
    "that. Ask which.",
)
SECOND = Bilingual(zh="若是第二次，时区请填 {zone}。", en="If it was the second, give {zone} as the time zone.")
SKIPPED = Bilingual(
    zh="当天钟表拨快{minutes}分钟，没有 {clock} 这一时刻：按拨快前的时间计算，请确认出生时间。",
    en="The clock was put on {minutes} minutes that day, so there was no {clock}: it is taken to be by the clock as it "
    "was before. Ask for the time again.",
)


def notes_of(birth: Birth, by_sun: bool) -> Iterator[Bilingual]:
    """Yield notes on assumptions and gaps of a chart. `by_sun` is True if true solar time was requested."""
    if birth.zone_assumed:
        yield _fill(UNKNOWN_PLACE if birth.place else NO_PLACE, zone=birth.zone_name)
    if birth.capital:
        yield capital_note(birth.place, birth.capital)
    if ahead := _minutes(birth.summer_time):
        yield _fill(SUMMER_TIME, minutes=ahead)
    if birth.has_time and (minutes := _minutes(birth.clock_turned)):
        yield _fill(TWICE if minutes < 0 else SKIPPED, minutes=abs(minutes), clock=f"{birth.local:%H:%M}")
        offset = birth.local.replace(tzinfo=birth.zone, fold=1).utcoffset() or timedelta()
        hours, rest = divmod(offset, timedelta(hours=1))
        # Fixed zones exist only for whole hours; their names count hours west.
        if minutes < 0 and not rest:
            yield _fill(SECOND, zone=f"Etc/GMT{-hours:+}")
    if not birth.has_time:
        yield NO_TIME
        morning = datetime.combine(birth.local.date(), time(), tzinfo=birth.zone).astimezone(BEIJING)
        months = (sixty_cycle_at(moment).get_month() for moment in (morning, morning + timedelta(days=1)))
        if next(months).get_name() != next(months).get_name():
            yield TERM_DAY
    if by_sun and not birth.has_time:
        yield NO_SUN
    if birth.gender is None:
        yield NO_GENDER
    elif not birth.has_time:
        yield ABOUT_LUCK


def _fill(note: Bilingual, **values: int | str) -> Bilingual:
    return Bilingual(zh=note.zh.format(**values), en=note.en.format(**values))


def _minutes(time_apart: timedelta) -> int:
    return round(time_apart.total_seconds() / 60)


# Pairs of the day's stem and the month's branch that have a structure of their own.
SALARIES = frozenset(["甲寅", "乙卯", "丙巳", "丁午", "戊巳", "己午", "庚申", "辛酉", "壬亥", "癸子"])
BLADES = frozenset(["甲卯", "丙午", "戊午", "庚酉", "壬子"])
ROBBERS = frozenset(["乙寅", "丁巳", "辛申", "癸亥"])


def structure_of(pillars: Pillars) -> str:
    """Return the structure of a chart.

    The relation of the month to the day master decides, else a stem hidden in the month: the first hidden stem that
    also appears as a stem of the chart, else the main hidden stem. Stems of the day master's own element do not count.
    If there are no others, the structure is mixed.
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
# Percentage from which an element is plentiful. An even chart has a fifth of each element.
MUCH = 30
STRONG_WEALTH = Bilingual(zh="身强见财", en="Strong with wealth")
WEAK_WEALTH = Bilingual(zh="身弱财多", en="Weak with much wealth")
MANY_PEERS = Bilingual(zh="比劫多", en="Many peers")
# Names for pairs of ten gods. One god of each side must be visible.
PAIRS: tuple[tuple[Collection[str], Collection[str], Bilingual], ...] = (
    (("食神",), WEALTH, Bilingual(zh="食神生财", en="Eating God feeds wealth")),
    (("伤官",), WEALTH, Bilingual(zh="伤官生财", en="Hurting Officer feeds wealth")),
    (("食神",), ("七杀",), Bilingual(zh="食神制杀", en="Eating God holds Seven Killings")),
    (("七杀",), RESOURCE, Bilingual(zh="杀印相生", en="Seven Killings feeds resource")),
    (("正官",), ("正印",), Bilingual(zh="官印相生", en="Direct Officer feeds Direct Resource")),
    (("伤官",), ("正官",), Bilingual(zh="伤官见官", en="Hurting Officer meets Officer")),
)


def paired(pillars: Pillars, strength: Strength, gods: Collection[str]) -> Iterator[Bilingual]:
    """Yield the grade with the day master, pairs of ten gods, and the day branch. `gods` are the visible ten gods."""
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
    """The pillar of a year, which begins in February."""

    year: int
    pillar: Pillar


@dataclass(frozen=True, kw_only=True)
class BaziChart:
    """Four pillars and the derived readings. `clock` is the time that determines day and hour."""

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
        """Elements without any stem or branch."""
        return tuple(element for element, count in visible_counts(self.pillars).items() if count == 0)

    @property
    def features(self) -> tuple[str, ...]:
        """Tags that select cases: in Chinese, then in English."""
        return tuple(dict.fromkeys(_features(self)))

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
            "elements": {
                "counts": {word(element, locale): count for element, count in visible_counts(pillars).items()},
                "weights": {word(element, locale): weight for element, weight in self.strength.weights.items()},
                "missing": [word(element, locale) for element in self.missing],
            },
            "strength": strength_row(self.strength, locale),
            "favourable": [word(element, locale) for element in self.strength.favourable],
            "luck": self.luck.row(locale, self.today) if self.luck else None,
            "this_year": self.this_year
            and {
                "year": self.this_year.year,
                "pillar": word(self.this_year.pillar.name, locale),
                "ten_god": word(self.this_year.pillar.ten_god, locale),
                "branch_ten_god": word(self.this_year.pillar.hidden[0].ten_god, locale),
            },
            "clock": _clock_row(self, locale),
            "notes": [note.in_locale(locale) for note in self.notes],
            "features": list(self.features),
        }


def bazi(
    birth: Birth, *, true_solar_time: bool | None = None, late_zi: LateZi | None = None, today: date | None = None
) -> BaziChart:
    """Return the chart of a birth. Options default to those of the birth; `today` adds the pillar of its year."""
    by_sun = birth.true_solar_time if true_solar_time is None else true_solar_time
    late = late_zi or birth.late_zi
    sun = solar_time(birth) if by_sun and birth.has_time else None
    clock = sun.local if sun else birth.standard
    pillars = pillars_of(birth.moment, clock, late, birth.has_time)
    this_year = None
    if today:
        month = sixty_cycle_at(datetime.combine(today, NOON)).get_sixty_cycle_day().get_sixty_cycle_month()
        year = month.get_sixty_cycle_year()
        pillar = pillar_from(year.get_sixty_cycle(), stem_of(pillars.day))
        this_year = YearPillar(year=year.get_year(), pillar=pillar)
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
        this_year=this_year,
        notes=tuple(notes_of(birth, by_sun)),
    )


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


def _features(chart: BaziChart) -> Iterator[str]:
    day, grade, pillars = chart.pillars.day, chart.strength.grade, chart.pillars.all
    # The visible ten gods: of the stems, then of the main stem of each branch.
    gods = [pillar.ten_god for pillar in pillars if pillar is not day]
    gods += [pillar.hidden[0].ten_god for pillar in pillars]
    pairs = tuple(paired(chart.pillars, chart.strength, gods))
    yield from (f"日主{day.stem}{day.element}", f"{day.stem}{day.element}", day.stem, day.element)
    yield from (grade, chart.structure, *gods)
    yield from (pair.zh for pair in pairs)
    yield from (f"缺{element}" for element in chart.missing)
    yield from ("五行有缺",) if chart.missing else ()
    yield from (f"喜{element}" for element in chart.strength.favourable)
    yield f"属{ANIMALS[chart.pillars.year.branch]}"
    yield f"{pinyin(day.stem)} {word(day.element, 'en')} day master"
    yield from (f"{word(grade, 'en')} day master", word(chart.structure, "en"))
    yield from (word(god, "en") for god in gods)
    yield from (pair.en for pair in pairs)
    yield from (f"Lacks {word(element, 'en')}" for element in chart.missing)
    yield from ("Lacks an element",) if chart.missing else ()
