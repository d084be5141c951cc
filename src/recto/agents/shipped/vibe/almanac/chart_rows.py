"""Charts and draws as a skill keeps them and a model reads them: short rows in one language. Refuses to compute any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TypeAlias

from recto.agents.shipped.vibe.almanac.bilingual import Bilingual
from recto.conversation.json import Json
from recto.page.prompt.reminder import Locale

ChartRow: TypeAlias = dict[str, Json]

PLACES = ("year", "month", "day", "hour")
NONE = "—"
AGES = Bilingual(zh="{ages}岁", en="age {ages}")
NOW = Bilingual(zh="，当前", en=", now")
BETWEEN = Bilingual(zh="、", en=", ")


def short_bazi(chart: ChartRow, locale: Locale) -> ChartRow:
    """A chart's row, shorter, in the language it is in.

    What is not of the chart itself, such as the ten gods of luck cycles, stands in lines of several words: a word of
    its own would pass for a feature of the user. How strength is weighed is the same for everybody, and left out.
    """
    between, shares = BETWEEN.in_locale(locale), at(chart, "elements", "weights")
    weights = shares.items() if isinstance(shares, Mapping) else ()
    year = at(chart, "this_year")
    return {
        **features_in_locale(chart, locale),
        "pillars": {place: _pillar(at(chart, "pillars", place), between) for place in PLACES},
        "elements": between.join(f"{name} {share}%" for name, share in weights),
        "strength": {name: at(chart, "strength", name) for name in ("verdict", "score", "reasons")},
        "favourable": between.join(map(text_at, items(chart, "favourable"))),
        "luck": _luck(chart, locale),
        "this_year": (
            None
            if year is None
            else f"{text_at(year, 'year')}: {_words(year, ('pillar', 'ten_god', 'branch_ten_god'))}"
        ),
    }


def features_in_locale(chart: ChartRow, locale: Locale) -> ChartRow:
    """A row with its features in one language: they come in both, and cases have tags of one."""
    features = [feature for feature in items(chart, "features") if text_at(feature).isascii() == (locale == "en")]
    return {**chart, "features": features}


def brief_draw(draw: Mapping[str, Json], day: date, locale: Locale) -> ChartRow:
    """A draw in a line or two, for a list of those before."""
    cards = BETWEEN.in_locale(locale).join(
        f"{text_at(card, 'card')} {text_at(card, 'orientation')}" for card in items(draw, "cards")
    )
    facts = {name: draw.get(name) for name in ("spread", "seed", "question")}
    return {"day": day.isoformat(), **facts, "cards": cards}


def at(value: Json, *path: str) -> Json:
    """What stands at a path of keys; None where nothing does."""
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def items(value: Json, *path: str) -> Sequence[Json]:
    """The list at a path of keys; none where there is no list."""
    value_at = at(value, *path)
    return value_at if isinstance(value_at, Sequence) and not isinstance(value_at, str) else ()


def text_at(value: Json, *path: str) -> str:
    """What stands at a path, in words; a dash where nothing does."""
    value_at = at(value, *path)
    return NONE if value_at is None or value_at == "" else str(value_at)


def lines(values: Mapping[str, Json]) -> list[str]:
    """Every value in words, those of a list a line each."""
    return [line for value in values.values() for line in map(text_at, items(value) or (value,))]


def _pillar(pillar: Json, between: str) -> ChartRow | None:
    if pillar is None:
        return None
    hidden = (_words(one, ("stem", "ten_god")) for one in items(pillar, "hidden"))
    return {**{name: at(pillar, name) for name in ("pillar", "ten_god", "na_yin")}, "hidden": between.join(hidden)}


def _luck(chart: ChartRow, locale: Locale) -> ChartRow | None:
    luck = at(chart, "luck")
    if luck is None:
        return None
    facts: ChartRow = {name: at(luck, name) for name in ("direction", "starts_after", "starts_on", "ages_are")}
    return {**facts, "cycles": [_cycle(cycle, locale) for cycle in items(luck, "cycles")]}


def _cycle(cycle: Json, locale: Locale) -> str:
    ages = AGES.in_locale(locale).format(ages=text_at(cycle, "ages"))
    now = NOW.in_locale(locale) if at(cycle, "now") else ""
    return f"{text_at(cycle, 'years')} ({ages}{now}): {_words(cycle, ('pillar', 'ten_god', 'branch_ten_god'))}"


def _words(value: Json, names: Iterable[str]) -> str:
    return " ".join(text_at(value, name) for name in names)
