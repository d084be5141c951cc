"""Values of `AGENT.md` checked as settings: every fault with its line, what is wrong and what is allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from recto.agents.file_input import FileInput
from recto.agents.problem import Fault
from recto.agents.tables import FREE, OURS, TABLES, AgentTable, FileInputTable, SummaryTable
from recto.agents.yaml_values import Place, Values
from recto.errors import SettingsError
from recto.page import SummarySettings, summary_pieces
from recto.page.canonical import Json, dump
from recto.page.tokens import OFFLINE

SHOWN = 100
# What is allowed where a value may be of more than one type.
MIXED: Mapping[Place, str] = {
    ("file_input",): "it is true, false or a table",
    ("history",): "it is `all` or a number of messages, 0 or more",
    ("fold",): "it is `eager`, `off` or a table",
    ("fold", "reads"): "it is true, false or a table",
    ("fold", "terminal"): "it is true, false or a table",
    ("fold", "search"): "it is true, false or a table",
}
# What is allowed, by the kind of error; names in braces are bounds.
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
NO_VALUE = "{name} has no value; give it one, or take the line out."


def check_settings(found: Values, folder_name: str) -> tuple[AgentTable, tuple[Fault, ...]]:
    """The settings, and every fault in them. What is wrong has its default."""
    empty = [place for place in found.lines if _is_empty(found.values, place)]
    faults = [Fault(line=found.lines[place], text=NO_VALUE.format(name=_dotted(place))) for place in empty]
    try:
        table = AgentTable.model_validate(found.values)
    except ValidationError as error:
        wrong = error.errors()
        faults += [_fault(found, details) for details in wrong if tuple(details["loc"]) not in (*empty, *found.unread)]
        bad = {details["loc"][0] for details in wrong}
        table = AgentTable.model_validate({name: value for name, value in found.values.items() if name not in bad})
    return table, (*found.faults, *faults, *_further(table, found, folder_name))


def check_tools(found: Values, table: AgentTable, known: Collection[str]) -> Iterator[Fault]:
    """Tools that are named and do not exist."""
    named = found.values.get("tools", table.tools)
    for number, name in enumerate(named if isinstance(named, list) else ()):
        if isinstance(name, str) and name not in known:
            allowed = "there is no such tool built in" + _nearest(name, known)
            yield _told(found, ("tools", number), name, f"{allowed}. Those of tools.py need no mention")


def _is_empty(values: Mapping[str, Json], place: Place) -> bool:
    if place[0] in FREE and len(place) > 1:
        return False
    value: Json = values
    for step in place:
        match value, step:
            case dict(), str():
                value = value[step]
            case list(), int():
                value = value[step]
            case _:
                return False
    return value is None


def _fault(found: Values, details: ErrorDetails) -> Fault:
    place = tuple(details["loc"])
    if details["type"] == "extra_forbidden":
        return _unknown(found, place)
    return _told(found, place, details["input"], MIXED.get(place) or _allowed(details))


def _allowed(details: ErrorDetails) -> str:
    template = ALLOWED.get(details["type"])
    if template is None:
        return details["msg"].lower()
    bounds = cast("Mapping[str, object]", details.get("ctx", {}))
    return template.format(
        **{name: f"{bound:.15g}" if isinstance(bound, float) else bound for name, bound in bounds.items()}
    )


def _unknown(found: Values, place: Place) -> Fault:
    table = TABLES[tuple(str(step) for step in place[:-1])]
    where = f" in {_dotted(place[:-1])}" if place[:-1] else ""
    text = f"there is no setting {_short(str(place[-1]))}{where}{_nearest(str(place[-1]), table.model_fields)}."
    return Fault(line=found.names[place], text=text)


def _nearest(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name.lower(), known, n=1)
    mean = f"; did you mean {near[0]}?" if near else ";"
    return f"{mean} Known: {', '.join(sorted(known)) or 'none'}"


def _further(table: AgentTable, found: Values, folder_name: str) -> Iterator[Fault]:
    """What the type of a single value does not tell."""
    if table.name is not None and table.name != folder_name:
        allowed = f"the folder's name decides, and it is {folder_name!r}. Take the line out or rename the folder"
        yield _told(found, ("name",), table.name, allowed)
    for name, values in (("tools", table.tools), ("datasets", table.datasets)):
        for number in [number for number, value in enumerate(values) if value in values[:number]]:
            yield _told(found, (name, number), values[number], "it is in the list already")
    for name in table.options:
        if name in OURS:
            text = f"options.{name} cannot be given: the page says it itself. Take the line out."
            yield Fault(line=found.names["options", name], text=text)
    if table.output is not None:
        yield from _schema_faults(table.output, found)
    if table.summary != SummaryTable():
        yield from _summary_faults(table.summary, found)


def _schema_faults(schema: Mapping[str, object], found: Values) -> Iterator[Fault]:
    import jsonschema_rs  # here: few agents have a schema, and every command would wait for it

    try:
        jsonschema_rs.validator_for(dict(schema), offline=True)
    except jsonschema_rs.ValidationError as error:
        place: Place = ("output", *error.instance_path)
        yield Fault(line=_line(found, place), text=f"{_dotted(place)} is no JSON Schema: {_short(error.message)}")
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        yield Fault(line=_line(found, ("output",)), text=f"output is no JSON Schema: {_short(str(error))}")


def _summary_faults(table: SummaryTable, found: Values) -> Iterator[Fault]:
    """A request too small for any text would fail only when the first summary is asked for."""
    try:
        summary_pieces((), settings=summary_settings(table, "en"), counter=OFFLINE)
    except SettingsError as error:
        yield Fault(line=_line(found, ("summary", "tokens")), text=str(error).removeprefix("Setting "))


def file_input(table: FileInputTable) -> FileInput:
    """What files the agent takes."""
    given = table.model_dump(exclude_none=True, exclude={"on", "endings", "urls"})
    endings, urls = tuple(table.endings or ()), tuple(table.urls or ())
    return FileInput(is_on=table.on, endings=endings, urls=urls, **given)


def summary_settings(table: SummaryTable, locale: str) -> SummarySettings:
    """How a summary is asked for, in the agent's language."""
    return SummarySettings(locale=locale, **table.model_dump(exclude_none=True))


def _told(found: Values, place: Place, value: object, allowed: str) -> Fault:
    return Fault(line=_line(found, place), text=f"{_dotted(place)} is {_short(dump(value).decode())}; {allowed}.")


def _line(found: Values, place: Place) -> int:
    """The line of a value, or of the nearest thing around it that has one."""
    while place not in found.lines and len(place) > 1:
        place = place[:-1]
    return found.lines.get(place, 1)


def _dotted(place: Place) -> str:
    return ".".join(map(str, place))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]} ..."
