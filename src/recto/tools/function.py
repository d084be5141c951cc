"""A typed Python function becomes a tool: its signature the schema, its docstring the description."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeAlias, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model
from pydantic_core import ErrorDetails, to_jsonable_python

from recto.conversation.json import Json, dump, scrub
from recto.conversation.messages import ToolOffer
from recto.conversation.next_step import INVALID_ARGUMENTS
from recto.errors import SettingsError
from recto.tools.blocking import in_thread
from recto.tools.call import catch_tool_errors, text_result
from recto.tools.mark import Mark, mark_of
from recto.tools.ports import Tool, ToolContext, ToolResult

ArgumentValues: TypeAlias = Mapping[str, object]
Function: TypeAlias = Callable[..., object]

# Of a call that is wrong all over, the model needs the first problems only.
PROBLEMS_SHOWN = 10
INPUT_SHOWN = 200
# Their values are data, where "title" is a key like any other.
DATA_KEYWORDS = frozenset({"default", "const", "enum", "examples"})
DONE = "Done."
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


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

    def read(self, text: str) -> ArgumentValues | str:
        """The values of what the model wrote, or, as a text for the model, what is wrong with it."""
        try:
            read = self.model.model_validate_json(scrub(text) if text.strip() else "{}")
        except ValidationError as error:
            return _advice(error.errors(include_url=False), self.schema)
        return {name: getattr(read, _field(place)) for place, name in enumerate(self.names)}


@dataclass(frozen=True, kw_only=True)
class _Signature:
    """What a function takes. `contexts` are the parameters that get the run's context instead of an argument."""

    arguments: Arguments
    contexts: tuple[str, ...]


def tool_from(function: Function) -> Tool:
    """The tool a typed function is. Raises SettingsError, with function and file, for one that cannot be a tool."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise SettingsError(name="tool", value=function, allowed="a tool is made from a function")
    mark = mark_of(function) or Mark()
    name = function.__name__ if mark.name is None else mark.name
    if not NAME.fullmatch(name):
        raise _refused(function, f"its name {name!r} is none for a tool: 1 to 64 letters, digits, _ or -, all ASCII")
    signature = _signature(function)

    async def act(arguments: str, context: ToolContext) -> ToolResult:
        values = signature.arguments.read(arguments)
        if isinstance(values, str):
            return text_result(values, INVALID_ARGUMENTS)
        given = {**values, **dict.fromkeys(signature.contexts, context)}
        return await catch_tool_errors(name, _answer(function, given))

    return Tool(
        offer=ToolOffer(name=name, description=_description(function), parameters=signature.arguments.schema),
        act=act,
        mark=mark,
        origin=_origin(function),
    )


def _signature(function: Function) -> _Signature:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise _refused(function, "it yields; return the whole answer instead")
    try:
        hints = cast("dict[str, object]", get_type_hints(function, include_extras=True))
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise _refused(function, f"a type hint cannot be read: {error}; import the type in the same file") from error
    contexts = tuple([name for name, hint in hints.items() if name != "return" and _is_context(hint)])
    given = [argument for argument in _arguments(function, hints) if argument.name not in contexts]
    try:
        return _Signature(arguments=arguments_of(given), contexts=contexts)
    except (PydanticUserError, NameError, TypeError, ValueError) as error:
        problem = str(error).partition("\n")[0]
        raise _refused(function, f"a parameter has a type that JSON has no form for: {problem}") from error


def _arguments(function: Function, hints: Mapping[str, object]) -> Iterator[Argument]:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in BY_NAME:
            raise _refused(
                function, f"parameter {parameter.name!r} cannot be given by name; a model names its arguments"
            )
        if parameter.name not in hints:
            raise _refused(function, f"parameter {parameter.name!r} has no type hint; give it one")
        default = cast("object", parameter.default)
        given = () if default is inspect.Parameter.empty else (default,)
        yield Argument(name=parameter.name, hint=hints[parameter.name], default=given)


def _is_context(hint: object) -> bool:
    return hint is ToolContext or (get_origin(hint) is Annotated and get_args(hint)[0] is ToolContext)


def _description(function: Function) -> str:
    first = (inspect.getdoc(function) or "").split("\n\n")[0]
    return " ".join(first.split())


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


async def _answer(function: Function, given: Mapping[str, object]) -> ToolResult:
    if inspect.iscoroutinefunction(function):
        return _result(cast("object", await function(**given)))
    answer = await in_thread(partial(_called, function, given), name=function.__name__)
    return _result(cast("object", await answer) if inspect.isawaitable(answer) else answer)


def _called(function: Function, given: Mapping[str, object]) -> object:
    try:
        return function(**given)
    except StopIteration as error:
        # A future cannot hold it, and would never be done.
        raise RuntimeError("the function raised StopIteration") from error


def _result(value: object) -> ToolResult:
    match value:
        case ToolResult():
            return value
        case str():
            return text_result(value)
        case None:
            return text_result(DONE)
        case _:
            return text_result(dump(to_jsonable_python(value)).decode())


def _refused(function: Function, problem: str) -> SettingsError:
    return SettingsError(name="tool", value=_origin(function), allowed=problem)


def _origin(function: Function) -> str:
    """Name, file and line, for people."""
    code = inspect.unwrap(function).__code__
    return f"{function.__qualname__} in {code.co_filename}:{code.co_firstlineno}"
