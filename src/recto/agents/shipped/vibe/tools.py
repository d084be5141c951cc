"""Tools of the agent `vibe`: collect user data, compute charts, draw cards."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from datetime import date as day_of
from datetime import datetime
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import Field

from recto.agents.shipped.vibe.almanac.bazi.bazi import bazi
from recto.agents.shipped.vibe.almanac.birth.birth import check_birth, correct, normalise, read_birth
from recto.agents.shipped.vibe.almanac.cards import (
    bazi_card,
    birth_card,
    birth_fields,
    birth_form_card,
    forgotten_card,
    saved_card,
    sky_card,
    tarot_card,
    zodiac_card,
)
from recto.agents.shipped.vibe.almanac.chart_rows import (
    EXPECTED,
    ChartRow,
    at,
    brief_draw,
    features_in_locale,
    is_withdrawal,
    items,
    lines,
    merge_changes,
    short_bazi,
    text_at,
    update_facts,
    without_other_gender,
)
from recto.agents.shipped.vibe.almanac.sky.houses import HOUSE_SYSTEMS
from recto.agents.shipped.vibe.almanac.sky.zodiac import current_sky, zodiac
from recto.agents.shipped.vibe.almanac.tarot.tarot import draw
from recto.conversation.json import Json
from recto.conversation.locale import language
from recto.errors import ToolError
from recto.skills.known_data import FEATURES, MADE_OF
from recto.tools.mark import tool
from recto.tools.ports import ToolContext, ToolProfile

BIRTH_INFO, LIFE_CONTEXT, EXTRACTED = "birth_info", "life_context", "extracted"
# Skills whose stored data depends on the birth.
CHARTS = ("bazi", "zodiac")
MOST_DRAWS = 10
# At any moment, time zones share at most three calendar dates.
DAYS_AT_ONCE = 3
NO_BIRTH = "Nothing is known of the user's birth. Ask for it with collect_birth_info, then call this tool again."
CORRECT = "Correct the birth information with collect_birth_info, then call this tool again."
DECLINED = "The user would rather not say. Do not ask again, show no form again: say what can be done without it."
BIRTH_DELETED = (
    "The birth and the charts made of it are deleted. Tell the user so, and do not ask for it again unprompted."
)
NO_PROFILE = "Nothing is kept of users here, so this tool cannot work. Tell the user so, and go on without it."

Short: TypeAlias = Annotated[str, Field(max_length=100)]
ShortText: TypeAlias = Annotated[str, Field(max_length=1_000)]
OneLine: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
ManyLines: TypeAlias = Annotated[list[OneLine], Field(max_length=20)]
ResultT = TypeVar("ResultT")
SpreadName: TypeAlias = Literal["single", "three", "relationship", "choice", "celtic_cross"]

Date = Annotated[Short | None, Field(description="Such as 1990-05-15, or as the user says it: 农历1990年四月廿一.")]
Time = Annotated[Short | None, Field(description="By the clock of the place, such as 14:30 or 下午2点半, if known.")]
PlaceOfBirth = Annotated[Short | None, Field(description="City of birth, such as 北京 or Paris.")]
GenderOfBirth = Annotated[Short | None, Field(description="male or female. It decides which way luck cycles go.")]
CalendarOfBirth = Annotated[
    Short | None, Field(description="solar or lunar (Chinese), if the date's words do not say.")
]
LeapMonth = Annotated[bool | None, Field(description="Whether a lunar date lies in a leap month.")]
Latitude = Annotated[float | None, Field(description="Degrees, north is positive. Only where no city is known.")]
Longitude = Annotated[float | None, Field(description="Degrees, east is positive. Only where no city is known.")]
Timezone = Annotated[Short | None, Field(description="IANA name such as Europe/Paris. Left out: the place's.")]
SolarTime = Annotated[bool | None, Field(description="Go by true solar time. Only if the user asks for it.")]
Cancelled = Annotated[bool | None, Field(description="True where the user closed the form or would rather not say.")]
Question = Annotated[ShortText | None, Field(description="The user's question, in an open sentence.")]
Seed = Annotated[int | None, Field(ge=0, le=2**53 - 1, description="Only to repeat a draw; else leave it out.")]
Daily = Annotated[bool | None, Field(description="True for the card of the day.")]
Concerns = Annotated[ManyLines | None, Field(description="All that troubles them now, a short word each.")]
ProfileFacts = Annotated[ManyLines | None, Field(description="One sentence each.")]
Forget = Annotated[ManyLines | None, Field(description="Remembered facts to forget, worded as they are remembered.")]


# User data


def _check_profile(fields: Mapping[str, Json], now: datetime) -> None:
    info = fields.get(BIRTH_INFO)
    try:
        if isinstance(info, Mapping):
            check_birth(info, now)
    except ToolError as error:
        raise ToolError(f"{BIRTH_INFO}: {error}") from error


@tool(safe_to_repeat=True, by_client=True, in_order=True, profile_check=_check_profile)
async def collect_birth_info(
    context: ToolContext,
    *,
    date: Date = None,
    time: Time = None,
    place: PlaceOfBirth = None,
    gender: GenderOfBirth = None,
    calendar: CalendarOfBirth = None,
    leap_month: LeapMonth = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    timezone: Timezone = None,
    true_solar_time: SolarTime = None,
    cancelled: Cancelled = None,
) -> ChartRow:
    """Save what the user said of their birth, or ask for it: without arguments a form is shown. Pass on only what the
    user said; what is known already need not be repeated, and an empty text forgets a field. An empty date and nothing
    else forgets the birth, and the charts made of it.
    """
    profile, locale = _profile(context), language(context.locale)
    if cancelled:
        return {"status": "declined", "note": DECLINED}
    when: ChartRow = {"date": date, "time": time, "calendar": calendar, "leap_month": leap_month}
    where: ChartRow = {"place": place, "latitude": latitude, "longitude": longitude, "timezone": timezone}
    who: ChartRow = {"gender": gender, "true_solar_time": true_solar_time}
    changes = {name: value for name, value in {**when, **where, **who}.items() if value is not None}
    birth_before = await _field(profile, BIRTH_INFO)
    if birth_before and is_withdrawal(changes):
        # Delete the charts first, so that an interrupted deletion can be repeated.
        for skill in CHARTS:
            if await profile.skill_data(skill) is not None:
                await profile.keep(skill, None)
        await profile.change(BIRTH_INFO, None)
        return {"status": "forgotten", "note": BIRTH_DELETED, "ui_hints": forgotten_card([], locale)}
    new_birth, left_out = without_other_gender(correct(birth_before, changes))
    if not changes or not new_birth.get("date"):
        missing: list[Json] = [name for name in EXPECTED if not new_birth.get(name)]
        fields, card = birth_fields(new_birth, locale), birth_form_card(new_birth, locale)
        return {"status": "need_input", "missing": missing, **left_out, "fields": fields, "ui_hints": card}
    info = await asyncio.to_thread(normalise, new_birth)
    check_birth(info, context.now)
    await profile.change(BIRTH_INFO, info)
    return {"status": "saved", "birth_info": info, **left_out, "ui_hints": birth_card(info, locale)}


@tool(safe_to_repeat=True, in_order=True)
async def save_life_context(
    context: ToolContext,
    *,
    stage: Annotated[Short | None, Field(description="Where they stand, a word such as 在职 or employed.")] = None,
    industry: Annotated[Short | None, Field(description="Industry and role.")] = None,
    goal: Annotated[ShortText | None, Field(description="What they want to change or reach.")] = None,
    concerns: Concerns = None,
    notes: Annotated[str | None, Field(max_length=4_000, description="What else matters, in short.")] = None,
) -> ChartRow:
    """Save what the user said of their work and life. What is given takes the place of what was saved under that
    name, the rest stays; an empty text or list forgets it.
    """
    changes: ChartRow = {"stage": stage, "industry": industry, "goal": goal, "concerns": concerns, "notes": notes}
    profile = _profile(context)
    life_context = merge_changes(await _field(profile, LIFE_CONTEXT), changes)
    await profile.change(LIFE_CONTEXT, life_context or None)
    saved_lines = {name: life_context[name] for name in changes if name in life_context}
    return {
        "status": "saved",
        "life_context": life_context,
        "ui_hints": saved_card(lines(saved_lines), language(context.locale)),
    }


@tool(safe_to_repeat=True, in_order=True)
async def save_facts(context: ToolContext, facts: ProfileFacts = None, forget: Forget = None) -> ChartRow:
    """Remember facts of the user's life that they told and want kept, beside those known already; or forget some."""
    profile, locale = _profile(context), language(context.locale)
    facts_before = (await profile.fields(EXTRACTED)).get(EXTRACTED)
    kept_facts, removed_facts = update_facts(facts_before, facts or (), forget or ())
    await profile.change(EXTRACTED, kept_facts or None)
    if facts:
        return {"status": "saved", "facts": kept_facts, "ui_hints": saved_card(facts, locale)}
    card = forgotten_card([*map(text_at, removed_facts)], locale) if removed_facts else None
    return {
        "status": "forgotten" if removed_facts else "unchanged",
        "forgotten": removed_facts,
        "facts": kept_facts,
        "ui_hints": card,
    }


# Charts and draws


@tool(safe_to_repeat=True, in_order=True)
async def compute_bazi(context: ToolContext, true_solar_time: SolarTime = None) -> ChartRow:
    """Compute the Bazi chart (four pillars, ten gods, strength, luck cycles) of the user's birth information, and
    keep it. A chart of the same birth and this month that is kept already is given again.
    """
    info, stored_chart = await _birth(context), await _read_skill_data(context, "bazi")
    birth, locale = await _compute(lambda: read_birth(info)), language(context.locale)
    today = _today(context)
    option = _option_kept(stored_chart, info, "true_solar_time") if true_solar_time is None else true_solar_time
    by_sun = option if isinstance(option, bool) else birth.true_solar_time

    def compute() -> ChartRow:
        return short_bazi(bazi(birth, true_solar_time=by_sun, today=today).row(locale), locale)

    # The year's pillar and the current luck cycle change with time, so a chart is valid for a month.
    of: ChartRow = {
        "birth_info": info,
        "month": f"{today:%Y-%m}",
        "locale": locale,
        "options": {"true_solar_time": by_sun},
    }
    status, chart = await _once(context, "bazi", of, compute)
    return {"status": status, **chart, "ui_hints": bazi_card(chart, locale)}


@tool(safe_to_repeat=True, in_order=True)
async def compute_zodiac(
    context: ToolContext,
    house_system: Annotated[
        Literal["placidus", "whole_sign"] | None, Field(description="How houses are divided. Default: placidus.")
    ] = None,
) -> ChartRow:
    """Compute the western birth chart (signs, planets, houses, aspects) of the user's birth information, and keep
    it. A chart of the same birth information that is kept already is given again.
    """
    info, stored_chart = await _birth(context), await _read_skill_data(context, "zodiac")
    birth, locale = await _compute(lambda: read_birth(info)), language(context.locale)
    option = house_system or _option_kept(stored_chart, info, "house_system")
    system = option if isinstance(option, str) and option in HOUSE_SYSTEMS else "placidus"

    def compute() -> ChartRow:
        return features_in_locale(zodiac(birth, house_system=system).row(locale), locale)

    of: ChartRow = {"birth_info": info, "locale": locale, "options": {"house_system": system}}
    status, chart = await _once(context, "zodiac", of, compute)
    return {"status": status, **chart, "ui_hints": zodiac_card(chart, locale)}


@tool(safe_to_repeat=True, in_order=True)
async def sky_today(context: ToolContext) -> ChartRow:
    """Compute the sky of now: where Sun, Moon and planets stand, which of them are retrograde, and when Mercury is,
    now or next. It needs nothing of the user's birth.
    """
    locale = language(context.locale)
    sky = await asyncio.to_thread(current_sky, context.now, context.zone, locale)
    return {"status": "computed", **sky, "ui_hints": sky_card(sky, locale)}


@tool(safe_to_repeat=True, in_order=True)
async def draw_tarot(
    context: ToolContext,
    spread: SpreadName = "three",
    question: Question = None,
    seed: Seed = None,
    daily: Daily = None,
) -> ChartRow:
    """Draw tarot cards for one question, and keep the draw with its day and its seed. Spreads: single, three (past,
    present, future), relationship, choice (between two ways), celtic_cross. A new question needs a new draw. With
    daily it is the card of the day: a single one, the same until the day is over.
    """
    locale, today = language(context.locale), _today(context)
    tarot_data = await _read_skill_data(context, "tarot")
    day, stored_seeds = today.isoformat(), at(tarot_data, MADE_OF, "daily", "seeds")
    seeds: Mapping[str, Json] = stored_seeds if isinstance(stored_seeds, Mapping) else {}
    stored_seed = seeds.get(day) if daily and seed is None else None
    todays = stored_seed if isinstance(stored_seed, int) else None
    seed = seed if todays is None else todays
    # Derive the seed from the call, so that a call repeated after a crash draws the same cards. All JSON parsers
    # accept 48 bits.
    drawn_by = (
        int.from_bytes(hashlib.sha256(f"{context.thread}/{context.message}/{context.call}".encode()).digest()[:6])
        if seed is None
        else seed
    )
    spread_row = draw("single" if daily else spread, drawn_by).row(locale)
    last: ChartRow = {name: spread_row[name] for name in ("spread", "spread_name", "seed", "cards")}
    last |= {"question": question, "day": day}
    of: ChartRow = {"thread": context.thread, "daily": at(tarot_data, MADE_OF, "daily")}
    if daily:
        # Store the draws of earlier days too, because the day depends on the time zone.
        days = sorted({**seeds, day: drawn_by}.items())[-DAYS_AT_ONCE:]
        of["daily"] = {"day": day, "seeds": dict(days)}
    if (tarot_data.get("last"), tarot_data.get(MADE_OF)) != (last, of):
        brief, before = brief_draw(last, today, locale), items(tarot_data, "history")
        history: list[Json] = [*before, *(() if brief in before else (brief,))]
        # Store tags in both languages, because later turns may use another language.
        data: ChartRow = {"last": last, "history": history[-MOST_DRAWS:], FEATURES: spread_row[FEATURES], MADE_OF: of}
        await _profile(context).keep("tarot", data)
    return {"status": "drawn" if todays is None else "reused", **last, "ui_hints": tarot_card(last, locale)}


@tool(safe_to_repeat=True, in_order=True)
async def save_career_notes(
    context: ToolContext,
    strengths: Annotated[ManyLines | None, Field(description="A short phrase each.")] = None,
    plan: Annotated[ShortText | None, Field(description="The direction that was agreed on.")] = None,
    next_steps: Annotated[ManyLines | None, Field(description="What is to be done by when, a line each.")] = None,
) -> ChartRow:
    """Keep the career plan the user agreed to. What is given takes the place of what was kept under that name, the
    rest stays; an empty text or list forgets it.
    """
    changes: ChartRow = {"strengths": strengths, "plan": plan, "next_steps": next_steps}
    notes = merge_changes(await _read_skill_data(context, "career"), changes)
    saved_notes = {name: value for name, value in notes.items() if name in changes}
    await _profile(context).keep(
        "career", {**saved_notes, "updated": _today(context).isoformat()} if saved_notes else None
    )
    return {"status": "saved", **saved_notes, "ui_hints": saved_card(lines(saved_notes), language(context.locale))}


# Storage


def _profile(context: ToolContext) -> ToolProfile:
    if context.profile is None:
        raise ToolError(NO_PROFILE)
    return context.profile


async def _field(profile: ToolProfile, name: str) -> Mapping[str, Json]:
    value = (await profile.fields(name)).get(name)
    return value if isinstance(value, Mapping) else {}


async def _birth(context: ToolContext) -> Mapping[str, Json]:
    info = await _field(_profile(context), BIRTH_INFO)
    if not info.get("date"):
        raise ToolError(NO_BIRTH)
    await _compute(lambda: check_birth(info, context.now))
    return info


async def _read_skill_data(context: ToolContext, skill: str) -> Mapping[str, Json]:
    data = await _profile(context).skill_data(skill)
    return data if isinstance(data, Mapping) else {}


async def _once(
    context: ToolContext, skill: str, of: ChartRow, compute: Callable[[], ChartRow]
) -> tuple[str, ChartRow]:
    """Return the stored chart of the same inputs, else compute and store it, without the entries hidden from models."""
    stored_chart = await _read_skill_data(context, skill)
    is_same = stored_chart.get(MADE_OF) == of
    chart = stored_chart if is_same else {**await _compute(compute), MADE_OF: of}
    if not is_same:
        await _profile(context).keep(skill, chart)
    read = {name: value for name, value in chart.items() if name not in (MADE_OF, FEATURES)}
    return "reused" if is_same else "computed", read


async def _compute(make: Callable[[], ResultT]) -> ResultT:
    """Compute something from a birth in a thread. Errors say how to correct the birth."""
    try:
        return await asyncio.to_thread(make)
    except ToolError as error:
        raise ToolError(f"{error} {CORRECT}") from error


def _option_kept(chart: Mapping[str, Json], info: Mapping[str, Json], name: str) -> Json:
    """Return an option of the stored chart of this birth, which stays in force until changed."""
    return at(chart, MADE_OF, "options", name) if at(chart, MADE_OF, BIRTH_INFO) == info else None


def _today(context: ToolContext) -> day_of:
    return context.now.astimezone(context.zone).date()
