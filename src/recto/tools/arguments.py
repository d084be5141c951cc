"""The arguments of a typed function: their JSON Schema, and what the model wrote turned into values, or into advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from recto.page.canonical import Json, dump, scrub

Values: TypeAlias = Mapping[str, object]
# Of a call that is wrong all over, the model needs the first problems only.
PROBLEMS_SHOWN = 10
INPUT_SHOWN = 200
# Their values are data, where "title" is a key like any other.
DATA_KEYWORDS = frozenset({"default", "const", "enum", "examples"})


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One argument: its name, its type hint, and its default as (value,), or () when it must be given."""

    name: str
    hint: object
    default: tuple[object, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """All arguments of one function. `schema` is canonical JSON text."""

    names: tuple[str, ...]
    schema: str
    model: type[BaseModel]

    def read(self, text: str) -> Values | str:
        """The values of what the model wrote, or, as a text for the model, what is wrong with it."""
        try:
            read = self.model.model_validate_json(scrub(text) if text.strip() else "{}")
        except ValidationError as error:
            return _advice(error.errors(include_url=False), self.schema)
        return {name: getattr(read, _field(place)) for place, name in enumerate(self.names)}


def arguments_of(arguments: Sequence[Argument]) -> Arguments:
    """The arguments as pydantic reads them. Raises what pydantic raises for a type it does not know."""
    # Under names of our own: a parameter may be called `schema` or `copy`, which a model's field may not.
    fields = {_field(place): _definition(argument) for place, argument in enumerate(arguments)}
    # The types of the fields are known at run time only, which the overloads of create_model have no word for.
    make = cast("Callable[..., type[BaseModel]]", create_model)
    model = make("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
    schema = _without_titles(cast("Json", model.model_json_schema()))
    names = tuple([argument.name for argument in arguments])
    return Arguments(names=names, schema=dump(schema).decode(), model=model)


def _field(place: int) -> str:
    return f"argument_{place}"


def _definition(argument: Argument) -> tuple[object, object]:
    hint = Annotated[argument.hint, Field(alias=argument.name)]
    return hint, argument.default[0] if argument.default else ...


def _without_titles(schema: Json) -> Json:
    """Titles repeat names in other words; the model pays for each of them."""
    match schema:
        case dict():
            kept = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
            return {key: value if key in DATA_KEYWORDS else _without_titles(value) for key, value in kept.items()}
        case list():
            return [_without_titles(inner) for inner in schema]
        case _:
            return schema


def _advice(problems: Sequence[ErrorDetails], schema: str) -> str:
    lines = ["The arguments do not match the tool's schema:", *map(_line, problems[:PROBLEMS_SHOWN])]
    if len(problems) > PROBLEMS_SHOWN:
        lines.append(f"- and {len(problems) - PROBLEMS_SHOWN} more")
    return "\n".join([*lines, f"The schema is {schema}", "Call the tool again with arguments that match it."])


def _line(problem: ErrorDetails) -> str:
    where = ".".join(map(str, problem["loc"])) or "arguments"
    if problem["type"] == "missing":
        return f"- {where}: it is required, and missing"
    if problem["type"] == "extra_forbidden":
        return f"- {where}: there is no such argument"
    given = "".join(_shown(problem["input"]))
    return f"- {where}: {problem['msg']}; it was {given}"


def _shown(value: object) -> Iterator[str]:
    text = repr(value)
    yield text[:INPUT_SHOWN]
    if len(text) > INPUT_SHOWN:
        yield " ..."
