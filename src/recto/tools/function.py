"""A typed Python function becomes a tool: its signature the schema, its docstring the description."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeAlias, cast, get_args, get_origin, get_type_hints

from pydantic import PydanticUserError
from pydantic_core import to_jsonable_python

from recto.errors import SettingsError
from recto.page import ToolOffer
from recto.page.canonical import dump
from recto.page.next_step import INVALID_ARGUMENTS
from recto.tools.arguments import Argument, Arguments, arguments_of
from recto.tools.mark import Mark, mark_of
from recto.tools.ports import Tool, ToolContext, ToolResult
from recto.tools.thread import in_thread
from recto.tools.wall import behind_wall, said

DONE = "Done."
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

Function: TypeAlias = Callable[..., object]


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
            return said(values, INVALID_ARGUMENTS)
        given = {**values, **dict.fromkeys(signature.contexts, context)}
        return await behind_wall(name, _answer(function, given))

    return Tool(
        offer=ToolOffer(name=name, description=_description(function), parameters=signature.arguments.schema),
        act=act,
        safe_to_repeat=mark.safe_to_repeat,
        confirm=mark.confirm,
        origin=_origin(function),
        is_external=mark.external,
        by_client=mark.by_client,
        in_order=mark.in_order,
        profile_check=mark.profile_check,
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
            return said(value)
        case None:
            return said(DONE)
        case _:
            return said(dump(to_jsonable_python(value)).decode())


def _refused(function: Function, problem: str) -> SettingsError:
    return SettingsError(name="tool", value=_origin(function), allowed=problem)


def _origin(function: Function) -> str:
    """Name, file and line, for people."""
    code = inspect.unwrap(function).__code__
    return f"{function.__qualname__} in {code.co_filename}:{code.co_firstlineno}"
