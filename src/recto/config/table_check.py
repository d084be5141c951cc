"""Validation of settings that people write. Each fault contains its line, the value and the allowed range."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from recto.config.problem import Fault
from recto.config.zones import check_zone
from recto.conversation.json import Json, dump

if TYPE_CHECKING:
    from recto.config.yaml_values import Values, YamlPath

MAX_VALUE_LENGTH = 100
# Placeholder for user-chosen names in the last place of a path.
ANY = "*"
# Texts about the allowed values, by pydantic error type. Names in braces are bounds.
ALLOWED: Mapping[str, str] = {
    "string_type": "it is text; put it in quotes",
    "int_type": "it is a whole number",
    "int_from_float": "it is a whole number",
    "float_type": "it is a number",
    "bool_type": "it is true or false",
    "list_type": "it is a list, such as [a, b]",
    "dict_type": "it is a table of names and values",
    "model_type": "it is a table of names and values",
    "literal_error": "it is {expected}",
    "greater_than": "it is more than {gt}",
    "greater_than_equal": "it is {ge} or more",
    "less_than_equal": "it is {le} or less",
    "too_short": "it has at least {min_length}",
    "too_long": "it has at most {max_length}",
    "string_too_short": "it is not empty",
    "value_error": "{error}",
}
NO_VALUE = "{name} has no value. Add one or remove the line."


def require(is_valid: Callable[[str], object], allowed: str) -> AfterValidator:
    """Return a validator of texts."""

    def check_text(value: str) -> str:
        if not is_valid(value):
            raise ValueError(allowed)
        return value

    return AfterValidator(check_text)


def matching(pattern: re.Pattern[str], allowed: str) -> AfterValidator:
    """Return a validator of texts that must match a pattern completely."""
    return require(pattern.fullmatch, allowed)


Count = Annotated[int, Field(ge=1)]
CountOrZero = Annotated[int, Field(ge=0)]
# A year in seconds. Larger values are mistakes and would overflow the calendar.
Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]
Zone = Annotated[str, AfterValidator(check_zone)]
Word = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Table(BaseModel):
    """Settings from outside. Unknown names and other types are rejected."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Root = TypeVar("Root", bound=Table)


@dataclass(frozen=True, kw_only=True)
class TableForm(Generic[Root]):
    """Schema of a file's settings. `tables` maps paths below `root` to tables, to suggest names for unknown settings.

    `mixed` describes the allowed values of settings with several types. Below the names in `free`, null is a valid
    value.
    """

    root: type[Root]
    tables: Mapping[tuple[str, ...], type[Table]] = field(default_factory=dict[tuple[str, ...], type[Table]])
    mixed: Mapping[YamlPath, str] = field(default_factory=dict["YamlPath", str])
    free: tuple[str, ...] = ()


def check(values: Values, form: TableForm[Root]) -> tuple[Root, tuple[Fault, ...]]:
    """Return the table and all faults. Invalid values are replaced by their defaults."""
    empty = [place for place in values.lines if _is_empty(values.values, place, form.free)]
    faults = [Fault(line=values.lines[place], text=NO_VALUE.format(name=dotted(place))) for place in empty]
    try:
        table = form.root.model_validate(values.values)
    except ValidationError as error:
        wrong = error.errors()
        unsaid = {*empty, *values.unread}
        faults += [_fault(values, details, form) for details in wrong if tuple(details["loc"]) not in unsaid]
        bad = {details["loc"][0] for details in wrong}
        table = form.root.model_validate({name: value for name, value in values.values.items() if name not in bad})
    return table, (*values.faults, *faults)


def _is_empty(values: Mapping[str, Json], place: YamlPath, free: Collection[str]) -> bool:
    if place[0] in free and len(place) > 1:
        return False
    value: Json = values
    for step in place:
        match value, step:
            case dict(), str() if step in value:
                value = value[step]
            case list(), int() if step < len(value):
                value = value[step]
            # If a name is set twice, the recorded lines may belong to either value.
            case _:
                return False
    return value is None


def _fault(values: Values, details: ErrorDetails, form: TableForm[Root]) -> Fault:
    place = tuple(details["loc"])
    if details["type"] == "extra_forbidden":
        outer = tuple(map(str, place[:-1]))
        table = form.tables.get(outer) or form.tables.get((*outer[:-1], ANY), form.root)
        where = f" in {dotted(place[:-1])}" if place[:-1] else ""
        text = f"there is no setting {short(str(place[-1]))}{where}{nearest(str(place[-1]), table.model_fields)}."
        return Fault(line=values.names[place], text=text)
    return value_fault(values, place, details["input"], form.mixed.get(place) or _allowed(details))


def _allowed(details: ErrorDetails) -> str:
    template = ALLOWED.get(details["type"])
    if template is None:
        return details["msg"].lower()
    bounds = cast("Mapping[str, object]", details.get("ctx", {}))
    return template.format(
        **{name: f"{limit:.15g}" if isinstance(limit, float) else limit for name, limit in bounds.items()}
    )


def nearest(name: str, names: Collection[str]) -> str:
    """Return the end of an error text, which suggests and lists known names."""
    near = get_close_matches(name.lower(), names, n=1)
    mean = f"; did you mean {near[0]}?" if near else ";"
    return f"{mean} Known: {', '.join(sorted(names)) or 'none'}"


def value_fault(values: Values, place: YamlPath, value: object, allowed: str) -> Fault:
    """Return the fault of a value: its path, the value and the allowed range."""
    return Fault(line=line_of(values, place), text=f"{dotted(place)} is {short(dump(value).decode())}; {allowed}.")


def line_of(values: Values, place: YamlPath) -> int:
    """Return the line of a value, or of the nearest enclosing value that has one."""
    while place not in values.lines and len(place) > 1:
        place = place[:-1]
    return values.lines.get(place, 1)


def dotted(place: YamlPath) -> str:
    """Return a path in dotted form."""
    return ".".join(map(str, place))


def short(text: str) -> str:
    """Return the text on one line, shortened if necessary."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_VALUE_LENGTH else f"{line[:MAX_VALUE_LENGTH]} ..."
