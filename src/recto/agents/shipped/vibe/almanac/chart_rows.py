"""Stored rows of charts, draws and profiles: short, in one language, as the model reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TypeAlias

from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.agents.shipped.vibe.almanac.birth.birth import read_gender
from recto.conversation.json import Json
from recto.errors import ToolError
from recto.page.prompt.reminder import Locale

ChartRow: TypeAlias = dict[str, Json]

PLACES = ("year", "month", "day", "hour")
EXPECTED = ("date", "time", "place", "gender")
NONE = "—"
AGES = Bilingual(zh="{ages}岁", en="age {ages}")
NOW = Bilingual(zh="，当前", en=", now")
BETWEEN = Bilingual(zh="、", en=", ")


def short_bazi(chart: ChartRow, locale: Locale) -> ChartRow:
    """Shorten the row of a chart.

    Facts that are not about the birth itself, such as the ten gods of luck cycles, are joined to lines, because single
    words would count as features of the user. The weighing of strength is omitted, because it is the same for all
    users.
    """
    between, shares = BETWEEN.in_locale(locale), at(chart, "elements", "weights")
    weights = shares.items() if isinstance(shares, Mapping) else ()
    pillars = {place: at(chart, "pillars", place) for place in PLACES}
    year, luck = at(chart, "this_year"), at(chart, "luck")
    return {
        **features_in_locale(chart, locale),
        "pillars": {place: pillar and _pillar(pillar, between) for place, pillar in pillars.items()},
        "elements": between.join(f"{name} {share}%" for name, share in weights),
        "strength": {name: at(chart, "strength", name) for name in ("verdict", "score", "reasons")},
        "favourable": between.join(map(text_at, items(chart, "favourable"))),
        "luck": luck
        and {
            **{name: at(luck, name) for name in ("direction", "starts_after", "starts_on", "ages_are")},
            "cycles": [_cycle(cycle, locale) for cycle in items(luck, "cycles")],
        },
        "this_year": (
            None
            if year is None
            else f"{text_at(year, 'year')}: {_words(year, ('pillar', 'ten_god', 'branch_ten_god'))}"
        ),
    }


def features_in_locale(chart: ChartRow, locale: Locale) -> ChartRow:
    """Return a chart with its features in one language.

    Rows have them in both languages, but cases have tags in only one.
    """
    features = [feature for feature in items(chart, "features") if text_at(feature).isascii() == (locale == "en")]
    return {**chart, "features": features}


def brief_draw(draw: Mapping[str, Json], day: date, locale: Locale) -> ChartRow:
    """Return a short row of a draw, for the list of earlier draws."""
    cards = BETWEEN.in_locale(locale).join(
        f"{text_at(card, 'card')} {text_at(card, 'orientation')}" for card in items(draw, "cards")
    )
    facts = {name: draw.get(name) for name in ("spread", "seed", "question")}
    return {"day": day.isoformat(), **facts, "cards": cards}


def at(value: Json, *path: str) -> Json:
    """Return the value at a path of keys, or None."""
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def items(value: Json, *path: str) -> Sequence[Json]:
    """Return the list at a path of keys, else an empty list."""
    value_at = at(value, *path)
    return value_at if isinstance(value_at, Sequence) and not isinstance(value_at, str) else ()


def text_at(value: Json, *path: str) -> str:
    """Return the value at a path as text. Return a dash if the value is empty."""
    value_at = at(value, *path)
    return NONE if value_at is None or value_at == "" else str(value_at)


def lines(values: Mapping[str, Json]) -> list[str]:
    """Return all values as lines, with one line for each item of a list."""
    return [line for value in values.values() for line in map(text_at, items(value) or (value,))]


def _pillar(pillar: Json, between: str) -> ChartRow:
    hidden = (_words(one, ("stem", "ten_god")) for one in items(pillar, "hidden"))
    return {**{name: at(pillar, name) for name in ("pillar", "ten_god", "na_yin")}, "hidden": between.join(hidden)}


def _cycle(cycle: Json, locale: Locale) -> str:
    ages = AGES.in_locale(locale).format(ages=text_at(cycle, "ages"))
    now = NOW.in_locale(locale) if at(cycle, "now") else ""
    return f"{text_at(cycle, 'years')} ({ages}{now}): {_words(cycle, ('pillar', 'ten_god', 'branch_ten_god'))}"


def _words(value: Json, names: Iterable[str]) -> str:
    return " ".join(text_at(value, name) for name in names)


MOST_FACTS = 100
NOTHING_GIVEN = "Nothing was given to save. Call the tool again with at least one of its arguments."
NO_GENDER = "{gender!r} is neither male nor female, so no gender is kept and there are no luck cycles. Do not press."


def is_withdrawal(changes: Mapping[str, Json]) -> bool:
    """Return True if changes delete a birth: an empty date, and no other value."""
    return changes.get("date") is not None and not any(str(changes.get(name) or "").strip() for name in EXPECTED)


def without_other_gender(birth: Mapping[str, Json]) -> tuple[ChartRow, ChartRow]:
    """Return a birth and a note. If the gender is not a known one, the birth has no gender and the note says so."""
    gender = str(birth.get("gender") or "")
    try:
        read_gender(gender)
    except ToolError:
        return {**birth, "gender": None}, {"left_out": {"gender": NO_GENDER.format(gender=gender)}}
    return {**birth}, {}


def merge_changes(values_before: Mapping[str, Json], changes: Mapping[str, Json]) -> ChartRow:
    """Merge changes over known values. An empty text or list deletes a value."""
    if all(value is None for value in changes.values()):
        raise ToolError(NOTHING_GIVEN)
    values = {**values_before, **{name: value for name, value in changes.items() if value is not None}}
    return {name: value for name, value in values.items() if value not in ("", [])}


def update_facts(facts_before: Json, new: Sequence[str], removals: Sequence[str]) -> tuple[list[Json], list[Json]]:
    """Return the distinct remaining facts, oldest first, and the removed facts."""
    if not new and not removals:
        raise ToolError(NOTHING_GIVEN)
    before = items(facts_before) or ([facts_before] if facts_before else [])
    words = {fact.strip() for fact in removals}
    removed_facts = [
        fact
        for fact in before
        if any(line.strip() in words for line in lines(fact if isinstance(fact, Mapping) else {"fact": fact}))
    ]
    stay = [fact for fact in before if fact not in removed_facts]
    return [*stay, *(fact for fact in dict.fromkeys(new) if fact not in stay)][-MOST_FACTS:], removed_facts
