"""User data that an active skill may read: the fields it declares, its own data, and the tier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from recto.conversation.json import Json
from recto.conversation.message_files import one_line
from recto.conversation.ui.compile_ui import HINTS
from recto.page.prompt.reminder import neutralise

FREE_TIER = "free"
SKILL_DATA = "skill_data"
# Names that every skill may read.
PLAIN = ("tier", "scenario", "month", "day", "thread", "locale")
# Names in a skill's own data that no model sees: the inputs of a computation, and the words that select cases.
MADE_OF, FEATURES = "of", "features"
# Maximum depth of tables and lists. Deeper ones are dropped.
DEEPEST = 12
# Maximum characters of a list of plain values on one line.
LINE = 120


@dataclass(frozen=True, kw_only=True)
class KnownData:
    """Data that a skill may read: profile fields by name, its own data by skill name, the user's tier, the scenario.

    `month` and `day` are the current month and day in the user's calendar (`2026-05`, `2026-05-14`). `thread` is the
    current thread, `locale` the agent's language. Procedures compare these values with stored data to find outdated
    data.
    """

    profile: Mapping[str, Json] = field(default_factory=dict[str, Json])
    skill_data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    tier: str = FREE_TIER
    scenario: str | None = None
    month: str | None = None
    day: str | None = None
    thread: str | None = None
    locale: str | None = None

    def at(self, path: str) -> Json:
        """Return the value at a dotted path, such as `birth_info.date` or `tier`. Empty values are None."""
        name, *rest = path.split(".")
        plain: dict[str, Json] = {name: getattr(self, name) for name in PLAIN}
        fields: Mapping[str, Json] = {**self.profile, SKILL_DATA: self.skill_data, **plain}
        value = fields.get(name)
        for step in rest:
            value = value.get(step) if isinstance(value, Mapping) else None
        return None if is_empty(value) else value


def is_empty(value: Json) -> bool:
    """Return True for None and empty texts, lists and tables."""
    return value is None or (isinstance(value, str | Mapping | Sequence) and not value)


def without(value: Json, *names: str) -> Json:
    """Return a table without some names. Return other values unchanged."""
    return {name: one for name, one in value.items() if name not in names} if isinstance(value, Mapping) else value


def words_in(value: Json) -> Iterator[str]:
    """Yield each text and number in a value, as text."""
    match value:
        case str() if value.strip():
            yield value.strip()
        case bool() | None | str():
            return
        case int() | float():
            yield str(value)
        case Mapping():
            for inner in value.values():
                yield from words_in(inner)
        case Sequence():
            for inner in value:
                yield from words_in(inner)


def clean_value(value: Json, deepest: int = DEEPEST) -> Json:
    """Return a value for a model, with each text on one line and without `ui_hints` and empty values.

    Return None if nothing is left.
    """
    match value:
        case str():
            return one_line(value) or None
        case Mapping() if deepest:
            pairs = {one_line(key): clean_value(inner, deepest - 1) for key, inner in value.items()}
            return {key: inner for key, inner in pairs.items() if key != HINTS and inner is not None} or None
        case Sequence() if deepest:
            return [inner for one in value if (inner := clean_value(one, deepest - 1)) is not None] or None
        case Mapping() | Sequence():
            return None
        case _:
            return value


def render_value(value: Json) -> str:
    """Render a value as lines that begin with a dash, so that a text in the value cannot look like a heading."""
    return neutralise("\n".join(_lines(clean_value(value), "")))


def _lines(value: Json, indent: str) -> Iterator[str]:
    match value:
        case None:
            return
        case Mapping():
            for key, inner in value.items():
                yield from _entry(key, inner, indent)
        case Sequence() if not isinstance(value, str):
            for number, inner in enumerate(value, start=1):
                pairs = [(key, _line(one)) for key, one in inner.items()] if isinstance(inner, Mapping) else []
                row = "; ".join(f"{key}: {line}" for key, line in pairs) if pairs else _line(inner)
                # An item that does not fit on one line becomes an entry.
                is_long = row is None or any(line is None for _, line in pairs)
                yield from _entry(f"{number}", inner, indent) if is_long else (f"{indent}- {row}",)
        case _:
            yield f"{indent}- {_plain(value)}"


def _entry(key: str, value: Json, indent: str) -> Iterator[str]:
    line = _line(value)
    if line is not None:
        yield f"{indent}- {key}: {line}"
        return
    yield f"{indent}- {key}:"
    yield from _lines(value, f"{indent}  ")


def _line(value: Json) -> str | None:
    """Return a plain value, or a short list of plain values, as one line. Return None for other values."""
    match value:
        case Mapping():
            return None
        case Sequence() if not isinstance(value, str):
            if any(
                isinstance(one, Mapping) or (isinstance(one, Sequence) and not isinstance(one, str)) for one in value
            ):
                return None
            text = ", ".join(map(_plain, value))
            return text if len(text) <= LINE else None
        case _:
            return _plain(value)


def _plain(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
