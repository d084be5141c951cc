"""Tools made from typed Python functions: the signature becomes the schema, the docstring the description."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from recto.config.problem import FileProblem
from recto.conversation.messages import ToolOffer
from recto.conversation.next_step import INVALID_ARGUMENTS
from recto.errors import SettingsError
from recto.tools.call import catch_tool_errors, text_result
from recto.tools.daemon_thread import run_in_thread
from recto.tools.mark import Mark, get_mark
from recto.tools.ports import Tool, ToolContext, ToolResult
from recto.tools.signature import Function, format_answer, format_origin, read_signature, tool_error

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def make_tool(function: Function) -> Tool:
    """Return a tool for a typed function. Raise SettingsError if it cannot be a tool."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise SettingsError(name="tool", value=function, allowed="a tool is made from a function")
    mark = get_mark(function) or Mark()
    name = function.__name__ if mark.name is None else mark.name
    if not NAME.fullmatch(name):
        raise tool_error(function, f"its name {name!r} is none for a tool: 1 to 64 letters, digits, _ or -, all ASCII")
    signature = read_signature(function, ToolContext)

    async def act(arguments: str, context: ToolContext) -> ToolResult:
        values = signature.arguments.read(arguments)
        if isinstance(values, str):
            return text_result(values, INVALID_ARGUMENTS)
        parameters = {**values, **dict.fromkeys(signature.injected, context)}
        return await catch_tool_errors(name, _answer(function, parameters))

    code = inspect.unwrap(function).__code__
    file, line = Path(code.co_filename), code.co_firstlineno
    return Tool(
        offer=ToolOffer(name=name, description=signature.description, parameters=signature.arguments.schema),
        act=act,
        mark=mark,
        origin=format_origin(function),
        warnings=tuple([FileProblem(file=file, line=line, text=text) for text in signature.warnings]),
    )


async def _answer(function: Function, parameters: Mapping[str, object]) -> ToolResult:
    def call() -> object:
        try:
            return function(**parameters)
        except StopIteration as error:
            # A future cannot hold StopIteration and would never be done.
            raise RuntimeError("the function raised StopIteration") from error

    is_async = inspect.iscoroutinefunction(function)
    value = function(**parameters) if is_async else await run_in_thread(call, name=function.__name__)
    value = cast("object", await value) if inspect.isawaitable(value) else value
    return value if isinstance(value, ToolResult) else text_result(format_answer(value))
