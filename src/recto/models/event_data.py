"""The data of one event of a reply's stream, as JSON. Refuses what is none: a reply of that is cut off. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from recto.errors import ModelCutOff
from recto.models.ports import Usage
from recto.page.canonical import Json, dump, load

# A hundred times the largest window there is. Whatever is added up from less has room in a database's numbers.
MOST_TOKENS = 1_000_000_000


def parse_event(data: str, model: str) -> Mapping[str, Json]:
    """The object an event carries."""
    try:
        event = load(data)
    except ValueError:
        event = _with_halves(data, model)
    if not isinstance(event, Mapping):
        raise ModelCutOff(model=model, problem="an event of its stream is no JSON object.")
    return event


def _with_halves(data: str, model: str) -> Json:
    """Halves of surrogate pairs are JSON, if no text: they become U+FFFD."""
    try:
        return load(dump(json.loads(data)))
    except (ValueError, RecursionError) as error:
        raise ModelCutOff(model=model, problem="an event of its stream is no JSON.") from error


def object_of(value: Json) -> Mapping[str, Json]:
    """An object; an empty one where there is none."""
    return value if isinstance(value, Mapping) else {}


def text_of(value: Json) -> str:
    """A text; an empty one where there is none."""
    return value if isinstance(value, str) else ""


def count_of(value: Json) -> int:
    """A number of tokens; 0 where there is none."""
    return max(int(value), 0) if isinstance(value, (int, float)) else 0


def credible(usage: Usage) -> Usage | None:
    """The usage a provider reports. One with a count that no call can have is as good as none."""
    counts = (usage.input, usage.output, usage.cached, usage.cache_written, usage.reasoning)
    return usage if max(counts) <= MOST_TOKENS else None
