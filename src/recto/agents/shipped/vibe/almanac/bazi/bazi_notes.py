"""What a chart of four pillars rests on and leaves open, said in words. Refuses to change the chart."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, time, timedelta

from recto.agents.shipped.vibe.almanac.bazi.pillars import BEIJING, sixty_cycle_at
from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.agents.shipped.vibe.almanac.birth.birth import Birth
from recto.agents.shipped.vibe.almanac.birth.places import capital_note

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
    """What somebody who reads the chart should know of it. `by_sun` is whether true solar time was asked for."""
    if birth.zone_assumed:
        yield _fill(UNKNOWN_PLACE if birth.place else NO_PLACE, zone=birth.zone_name)
    if birth.capital:
        yield capital_note(birth.place, birth.capital)
    if ahead := _minutes(birth.summer_time):
        yield _fill(SUMMER_TIME, minutes=ahead)
    if birth.has_time and (minutes := _minutes(birth.clock_turned)):
        yield _fill(TWICE if minutes < 0 else SKIPPED, minutes=abs(minutes), clock=f"{birth.local:%H:%M}")
        if minutes < 0 and (zone := _zone_after(birth)):
            yield _fill(SECOND, zone=zone)
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


def _zone_after(birth: Birth) -> str | None:
    """The zone that always has the time the clock was put back to. Only whole hours have one, named by hours west."""
    offset = birth.local.replace(tzinfo=birth.zone, fold=1).utcoffset() or timedelta()
    hours, rest = divmod(offset, timedelta(hours=1))
    return None if rest else f"Etc/GMT{-hours:+}"
