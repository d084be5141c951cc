"""A typed Python function becomes a tool: its signature the schema, its docstring the description."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import cast

from recto.config.problem import FileProblem
from recto.conversation.messages import ToolOffer
from recto.conversation.next_step import INVALID_ARGUMENTS
from recto.errors import SettingsError
from recto.tools.blocking import in_thread
from recto.tools.call import catch_tool_errors, text_result
from recto.tools.mark import Mark, mark_of
from recto.tools.ports import Tool, ToolContext, ToolResult
from recto.tools.signature import Function, FunctionSignature, answer_text, origin_of, refused, signature_of

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def tool_from(function: Function) -> Tool:
    """The tool a typed function is. Raises SettingsError, with function and file, for one that cannot be a tool."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise SettingsError(name="tool", value=function, allowed="a tool is made from a function")
    mark = mark_of(function) or Mark()
    name = function.__name__ if mark.name is None else mark.name
    if not NAME.fullmatch(name):
        raise refused(function, f"its name {name!r} is none for a tool: 1 to 64 letters, digits, _ or -, all ASCII")
    signature = signature_of(function, ToolContext)

    async def act(arguments: str, context: ToolContext) -> ToolResult:
        values = signature.arguments.read(arguments)
        if isinstance(values, str):
            return text_result(values, INVALID_ARGUMENTS)
        given = {**values, **dict.fromkeys(signature.given, context)}
        return await catch_tool_errors(name, _answer(function, given))

    return Tool(
        offer=ToolOffer(name=name, description=signature.description, parameters=signature.arguments.schema),
        act=act,
        mark=mark,
        origin=origin_of(function),
        warnings=tuple(_warnings(function, signature)),
    )


def _warnings(function: Function, signature: FunctionSignature) -> Iterator[FileProblem]:
    code = inspect.unwrap(function).__code__
    for text in signature.warnings:
        yield FileProblem(file=Path(code.co_filename), line=code.co_firstlineno, text=text)


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
    return value if isinstance(value, ToolResult) else text_result(answer_text(value))
