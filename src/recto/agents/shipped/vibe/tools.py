"""The tools of vibe: they ask, compute, draw and keep. They refuse to interpret, and to make up what nobody told."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from recto.almanac.bazi import bazi
from recto.almanac.birth import normalise, read_birth
from recto.almanac.birth_words import read_date
from recto.almanac.cards import (
    EXPECTED,
    bazi_card,
    birth_card,
    birth_fields,
    birth_form_card,
    saved_card,
    tarot_card,
    zodiac_card,
)
from recto.almanac.tarot import draw
from recto.almanac.telling import Row, at, items, said, told_bazi, told_features
from recto.almanac.zodiac import zodiac
from recto.page.canonical import Json
from recto.page.prompt import language
from recto.tools import ToolContext, ToolError, tool
from recto.tools.ports import ProfileAtHand

BIRTH_INFO, LIFE_CONTEXT, EXTRACTED = "birth_info", "life_context", "extracted"
# What goes by another field, and says nothing once that one is another.
BELONGS = {"date": ("calendar", "leap_month"), "place": ("latitude", "longitude", "timezone")}
MOST_DRAWS, MOST_FACTS = 10, 100
NO_BIRTH = "Nothing is known of the user's birth. Ask for it with collect_birth_info, then call this tool again."
NO_PROFILE = "Nothing is kept of users here, so this tool cannot work. Tell the user so, and go on without it."
NOTHING_GIVEN = "Nothing was given to save. Call the tool again with at least one of its arguments."

Short: TypeAlias = Annotated[str, Field(max_length=100)]
Text: TypeAlias = Annotated[str, Field(max_length=1_000)]
Line: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
Lines: TypeAlias = Annotated[list[Line], Field(max_length=20)]
Spread: TypeAlias = Literal["single", "three", "relationship", "choice", "celtic_cross"]

Date = Annotated[
    Short | None, Field(description="Such as 1990-05-15 or 1990年5月15日; a lunar one needs calendar: lunar.")
]
Time = Annotated[
    Short | None, Field(description="By the clock of the place, such as 14:30 or 下午2点半. Leave it out if unknown.")
]
Place = Annotated[Short | None, Field(description="City of birth, such as 北京 or Paris.")]
Gender = Annotated[Short | None, Field(description="male or female. It decides which way luck cycles go.")]
Calendar = Annotated[Short | None, Field(description="solar (default) or lunar, the Chinese calendar.")]
LeapMonth = Annotated[bool | None, Field(description="Whether a lunar date lies in a leap month.")]
Latitude = Annotated[float | None, Field(description="Degrees, north is positive. Only where no city is known.")]
Longitude = Annotated[float | None, Field(description="Degrees, east is positive. Only where no city is known.")]
Timezone = Annotated[Short | None, Field(description="IANA name such as Europe/Paris. Left out: the place's.")]
SolarTime = Annotated[bool | None, Field(description="Go by true solar time. Only if the user asks for it.")]
Question = Annotated[Text | None, Field(description="The user's question, in an open sentence.")]
Seed = Annotated[int | None, Field(ge=0, le=2**53 - 1, description="Only to repeat a draw; else leave it out.")]
Concerns = Annotated[Lines | None, Field(description="All that troubles them now, a short word each.")]
Facts = Annotated[Lines, Field(min_length=1, description="One sentence each.")]


# What is asked of the user


@tool(safe_to_repeat=True, by_client=True)
async def collect_birth_info(
    context: ToolContext,
    *,
    date: Date = None,
    time: Time = None,
    place: Place = None,
    gender: Gender = None,
    calendar: Calendar = None,
    leap_month: LeapMonth = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    timezone: Timezone = None,
    true_solar_time: SolarTime = None,
) -> Row:
    """Save what the user said of their birth, or ask for it: without arguments a form is shown. Pass on only what the
    user said; what is known already need not be repeated, and an empty text forgets a field.
    """
    when: Row = {"date": date, "time": time, "calendar": calendar, "leap_month": leap_month}
    where: Row = {"place": place, "latitude": latitude, "longitude": longitude, "timezone": timezone}
    who: Row = {"gender": gender, "true_solar_time": true_solar_time}
    given = {name: value for name, value in {**when, **where, **who}.items() if value is not None}
    profile, locale = _profile(context), language(context.locale)
    known = await _field(profile, BIRTH_INFO)
    wanted = _corrected(known, given)
    if not given or not wanted.get("date"):
        missing: list[Json] = [name for name in EXPECTED if not wanted.get(name)]
        fields, card = birth_fields(wanted, locale), birth_form_card(wanted, locale)
        return {"status": "need_input", "missing": missing, "fields": fields, "ui_hints": card}
    info = await asyncio.to_thread(normalise, wanted)
    await profile.change(BIRTH_INFO, info)
    return {"status": "saved", "birth_info": info, "ui_hints": birth_card(info, locale)}


@tool(safe_to_repeat=True)
async def save_life_context(
    context: ToolContext,
    *,
    stage: Annotated[Short | None, Field(description="Where they stand, a word such as 在职 or employed.")] = None,
    industry: Annotated[Short | None, Field(description="Industry and role.")] = None,
    goal: Annotated[Text | None, Field(description="What they want to change or reach.")] = None,
    concerns: Concerns = None,
    notes: Annotated[str | None, Field(max_length=4_000, description="What else matters, in short.")] = None,
) -> Row:
    """Save what the user said of their work and life. What is given takes the place of what was saved under that
    name, the rest stays; an empty text or list forgets it.
    """
    given: Row = {"stage": stage, "industry": industry, "goal": goal, "concerns": concerns, "notes": notes}
    profile = _profile(context)
    saved = _merged(await _field(profile, LIFE_CONTEXT), given)
    await profile.change(LIFE_CONTEXT, saved or None)
    told = {name: saved[name] for name in given if name in saved}
    return {"status": "saved", "life_context": saved, "ui_hints": _saved(told, context)}


@tool(safe_to_repeat=True)
async def save_facts(context: ToolContext, facts: Facts) -> Row:
    """Remember facts of the user's life that they told and want kept, beside those that are remembered already."""
    profile = _profile(context)
    known = (await profile.fields(EXTRACTED)).get(EXTRACTED)
    before = items(known) or ([known] if known else [])
    new = [fact for fact in dict.fromkeys(facts) if fact not in before]
    kept: list[Json] = [*before, *new][-MOST_FACTS:]
    await profile.change(EXTRACTED, kept)
    return {"status": "saved", "facts": kept, "ui_hints": saved_card(facts, language(context.locale))}


# What is computed and drawn


@tool(safe_to_repeat=True)
async def compute_bazi(context: ToolContext, true_solar_time: SolarTime = None) -> Row:
    """Compute the Bazi chart (four pillars, ten gods, strength, luck cycles) of the user's birth information, and
    keep it. A chart of the same birth information that is kept already is given again.
    """
    info, kept = await _birth(context), await _kept(context, "bazi")
    birth, locale = await asyncio.to_thread(read_birth, info), language(context.locale)
    today = context.now.astimezone(context.zone).date()
    asked = _wish(kept, info, "true_solar_time") if true_solar_time is None else true_solar_time
    by_sun = asked if isinstance(asked, bool) else birth.true_solar_time
    # The year's pillar and the current luck cycle change with time, so a chart is of a month.
    options: Row = {"true_solar_time": by_sun, "month": f"{today:%Y-%m}", "locale": locale}

    def compute() -> Row:
        return told_bazi(bazi(birth, true_solar_time=by_sun, today=today).row(locale), locale)

    status, chart = await _once(context, "bazi", {"birth_info": info, "options": options}, compute)
    return {"status": status, **chart, "ui_hints": bazi_card(chart, locale)}


@tool(safe_to_repeat=True)
async def compute_zodiac(
    context: ToolContext,
    house_system: Annotated[
        Literal["placidus", "whole_sign"] | None, Field(description="How houses are divided. Default: placidus.")
    ] = None,
) -> Row:
    """Compute the western birth chart (signs, planets, houses, aspects) of the user's birth information, and keep
    it. A chart of the same birth information that is kept already is given again.
    """
    info, kept = await _birth(context), await _kept(context, "zodiac")
    birth, locale = await asyncio.to_thread(read_birth, info), language(context.locale)
    asked = house_system or _wish(kept, info, "house_system")
    system = asked if isinstance(asked, str) else "placidus"

    def compute() -> Row:
        return told_features(zodiac(birth, house_system=system).row(locale), locale)

    of: Row = {"birth_info": info, "options": {"house_system": system, "locale": locale}}
    status, chart = await _once(context, "zodiac", of, compute)
    return {"status": status, **chart, "ui_hints": zodiac_card(chart, locale)}


@tool(safe_to_repeat=True)
async def draw_tarot(
    context: ToolContext, spread: Spread = "three", question: Question = None, seed: Seed = None
) -> Row:
    """Draw tarot cards for one question, and keep the draw with its seed. Spreads: single, three (past, present,
    future), relationship, choice (between two ways), celtic_cross. A new question needs a new draw.
    """
    locale = language(context.locale)
    # By the call, so that one repeated after a crash draws the same cards.
    drawn_by = _seed(f"{context.thread}/{context.call}") if seed is None else seed
    kept = await _kept(context, "tarot")
    drawn = draw(spread, drawn_by).row(locale)
    last: Row = {**{name: drawn[name] for name in ("spread", "spread_name", "seed", "cards")}, "question": question}
    if kept.get("last") != last:
        history: list[Json] = [*items(kept, "history"), _brief(last, context)]
        await _profile(context).keep("tarot", {"last": last, "history": history[-MOST_DRAWS:]})
    return {"status": "drawn", **last, "ui_hints": tarot_card(last, locale)}


@tool(safe_to_repeat=True)
async def save_career_notes(
    context: ToolContext,
    strengths: Annotated[Lines | None, Field(description="A short phrase each.")] = None,
    plan: Annotated[Text | None, Field(description="The direction that was agreed on.")] = None,
    next_steps: Annotated[Lines | None, Field(description="What is to be done by when, a line each.")] = None,
) -> Row:
    """Keep the career plan the user agreed to. What is given takes the place of what was kept under that name, the
    rest stays; an empty text or list forgets it.
    """
    given: Row = {"strengths": strengths, "plan": plan, "next_steps": next_steps}
    notes = _merged(await _kept(context, "career"), given)
    told = {name: value for name, value in notes.items() if name in given}
    today = context.now.astimezone(context.zone).date().isoformat()
    await _profile(context).keep("career", {**told, "updated": today} if told else None)
    return {"status": "saved", **told, "ui_hints": _saved(told, context)}


# What is kept


def _profile(context: ToolContext) -> ProfileAtHand:
    if context.profile is None:
        raise ToolError(NO_PROFILE)
    return context.profile


async def _field(profile: ProfileAtHand, name: str) -> Mapping[str, Json]:
    value = (await profile.fields(name)).get(name)
    return value if isinstance(value, Mapping) else {}


async def _birth(context: ToolContext) -> Mapping[str, Json]:
    info = await _field(_profile(context), BIRTH_INFO)
    if not info.get("date"):
        raise ToolError(NO_BIRTH)
    return info


async def _kept(context: ToolContext, skill: str) -> Mapping[str, Json]:
    kept = await _profile(context).skill_data(skill)
    return kept if isinstance(kept, Mapping) else {}


async def _once(context: ToolContext, skill: str, of: Row, compute: Callable[[], Row]) -> tuple[str, Row]:
    """What is kept, where it is of the same; else it is computed and kept."""
    kept = await _kept(context, skill)
    if all(kept.get(name) == value for name, value in of.items()):
        return "reused", dict(kept)
    chart = {**await asyncio.to_thread(compute), **of}
    await _profile(context).keep(skill, chart)
    return "computed", chart


def _wish(kept: Mapping[str, Json], info: Mapping[str, Json], name: str) -> Json:
    """What was asked for when the chart of this birth was computed: it stays so until somebody asks otherwise."""
    return at(kept, "options", name) if kept.get(BIRTH_INFO) == info else None


def _corrected(known: Mapping[str, Json], given: Mapping[str, Json]) -> Row:
    stale = {name for field, names in BELONGS.items() if _is_other(field, known, given) for name in names}
    return {**{name: value for name, value in known.items() if name not in stale}, **given}


def _is_other(field: str, known: Mapping[str, Json], given: Mapping[str, Json]) -> bool:
    before, now = known.get(field), given.get(field)
    if not isinstance(now, str) or not isinstance(before, str) or not now or field != "date":
        return field in given and before != now
    return read_date(before) != read_date(now)


def _merged(known: Mapping[str, Json], given: Mapping[str, Json]) -> Row:
    if all(value is None for value in given.values()):
        raise ToolError(NOTHING_GIVEN)
    values = {**known, **{name: value for name, value in given.items() if value is not None}}
    return {name: value for name, value in values.items() if value not in ("", [])}


def _saved(values: Mapping[str, Json], context: ToolContext) -> Row:
    lines = [line for value in values.values() for line in (map(said, items(value)) if items(value) else [said(value)])]
    return saved_card(lines, language(context.locale))


def _seed(text: str) -> int:
    """48 bits: a number that every JSON reader takes."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6])


def _brief(drawn: Mapping[str, Json], context: ToolContext) -> Row:
    cards = ", ".join(f"{said(card, 'card')} {said(card, 'orientation')}" for card in items(drawn, "cards"))
    day = context.now.astimezone(context.zone).date().isoformat()
    return {"day": day, **{name: drawn.get(name) for name in ("spread", "seed", "question")}, "cards": cards}
