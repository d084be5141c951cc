"""A profile with what its user has said since: merged, corrected, forgotten. It saves nothing itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recto.agents.shipped.vibe.almanac.birth.birth import read_gender
from recto.agents.shipped.vibe.almanac.cards import EXPECTED
from recto.agents.shipped.vibe.almanac.chart_rows import ChartRow, items, lines
from recto.conversation.json import Json
from recto.errors import ToolError

MOST_FACTS = 100
NOTHING_GIVEN = "Nothing was given to save. Call the tool again with at least one of its arguments."
NO_GENDER = "{gender!r} is neither male nor female, so no gender is kept and there are no luck cycles. Do not press."


def is_withdrawal(changes: Mapping[str, Json]) -> bool:
    """Whether a birth is taken back: an empty date, and nothing else that would tell of one."""
    return changes.get("date") is not None and not any(str(changes.get(name) or "").strip() for name in EXPECTED)


def without_other_gender(birth: Mapping[str, Json]) -> tuple[ChartRow, ChartRow]:
    """A birth without a gender that decides nothing, and a word on that."""
    gender = str(birth.get("gender") or "")
    try:
        read_gender(gender)
    except ToolError:
        return {**birth, "gender": None}, {"left_out": {"gender": NO_GENDER.format(gender=gender)}}
    return {**birth}, {}


def merge_changes(values_before: Mapping[str, Json], changes: Mapping[str, Json]) -> ChartRow:
    """What is known with what was given in its place; an empty text or list takes away."""
    if all(value is None for value in changes.values()):
        raise ToolError(NOTHING_GIVEN)
    values = {**values_before, **{name: value for name, value in changes.items() if value is not None}}
    return {name: value for name, value in values.items() if value not in ("", [])}


def update_facts(facts_before: Json, new: Sequence[str], removals: Sequence[str]) -> tuple[list[Json], list[Json]]:
    """The facts that are known from now on, each once and the oldest first, and those that are not any more."""
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
