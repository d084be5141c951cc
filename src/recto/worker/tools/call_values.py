"""Names and arguments of calls in text (P11), under any usual key, as JSON or Python literals.

No code is run. Text that is neither JSON nor a literal is not a value.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import cast

from recto.conversation.json import Json, Object
from recto.page.prompt.tools_prompt import PromptCall
from recto.worker.tools.offered_tools import OfferedTools, as_json

NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action")
ARGUMENT_KEYS = (
    *("arguments", "parameters", "args", "params", "input", "action_input", "kwargs"),
    *("tool_input", "tool_args", "tool_arguments"),
)
# Keys that may follow the name in a call of an unknown tool.
ONLY_KEYS = ("arguments", "parameters")
WRAPPERS = ("function", "function_call", "function_calls", "tool_call", "tool_calls", "tool_use", "calls", "call")
# Keys in a call that are not arguments.
THOUGHTS = ("thought", "thoughts", "thinking", "reasoning")
BESIDE = ("type", "id", "call_id", "tool_call_id", "index", *THOUGHTS)
CALL_TYPES = ("function", "function_call", "tool_call", "tool_use")
FIRST_KEYS = frozenset((*NAME_KEYS, *ARGUMENT_KEYS, *WRAPPERS, *BESIDE))
# Valid names of unknown tools.
NO_TOOL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|\'(?:[^\'\\]|\\.)*+(?:\'|\Z)|[\[\]{}()]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]", "(": ")"}
# Maximum length of Python to parse. Parsing takes much memory, and calls are never longer.
LONGEST_SOURCE = 20_000
# The maximum depth of lists and wrappers around a call.
MOST_WRAPPERS = 8


def calls_in(value: Json, tools: OfferedTools, depth: int = 0) -> list[PromptCall] | None:
    """Return the calls that a value consists of. Return None if it contains anything else."""
    if isinstance(value, list) and depth < MOST_WRAPPERS:
        call_lists = [calls_in(one, tools, depth + 1) for one in value]
        return None if not call_lists or None in call_lists else [call for calls in call_lists for call in calls or ()]
    if not isinstance(value, dict) or depth > MOST_WRAPPERS:
        return None
    fields = {key: one for key, one in value.items() if key not in BESIDE}
    match [*fields.items()]:
        case [(str(key), (dict() | list()) as inner)] if key in WRAPPERS:
            return calls_in(inner, tools, depth + 1)
        case [(str(key), dict() as arguments)] if tools.find(key):
            call = tools.call(key, arguments)
        case _:
            call = _named_call(fields, tools)
    return [call] if call else None


def _named_call(fields: Object, tools: OfferedTools) -> PromptCall | None:
    key = next((key for key in NAME_KEYS if isinstance(fields.get(key), str)), None)
    name = tools.find(str(fields[key])) if key else None
    if name is None:
        return _unknown_call(fields)
    others = {other: value for other, value in fields.items() if other != key}
    arguments = _arguments(others, tools.properties(name))
    return None if arguments is None else tools.call(name, arguments)


def _unknown_call(fields: Object) -> PromptCall | None:
    """Return a call of an unknown tool: an object that contains only a valid name and arguments."""
    match fields:
        case {"name": str(name), "arguments": dict() as given, **more} | {
            "name": str(name),
            "parameters": dict() as given,
            **more,
        } if not more:
            text = as_json(given) if NO_TOOL.fullmatch(name) else None
            return None if text is None else PromptCall(name=name, arguments=text)
        case _:
            return None


def _arguments(fields: Object, properties: Object) -> Object | None:
    """Return the arguments of a call from its other fields. They are under a usual key, or the fields are the
    arguments.

    Return None if the fields are not arguments of the tool.
    """
    match [*fields.items()]:
        case []:
            return {}
        case [(str(key), dict() as arguments)] if key in ARGUMENT_KEYS:
            return arguments
        case [(str(key), None)] if key in ARGUMENT_KEYS:
            return {}
        case [(str(key), str(text))] if key in ARGUMENT_KEYS and isinstance(decoded := load_value(text), dict):
            return decoded
        case _:
            return fields if fields.keys() <= properties.keys() else None


def has_arguments(value: Json, depth: int = 0) -> bool:
    """Return True if a value has a key for arguments, which answers do not have."""
    if depth > MOST_WRAPPERS:
        return False
    first = value[0] if isinstance(value, list) and value else value
    fields = first if isinstance(first, dict) else {}
    inner = [one for key, one in fields.items() if key in WRAPPERS and isinstance(one, (dict, list))]
    return any(key in fields for key in ARGUMENT_KEYS) or any(has_arguments(one, depth + 1) for one in inner)


def python_arguments(source: str, tools: OfferedTools, tool: str) -> Object | None:
    """Return the arguments of a Python call: keywords, one object, or the only argument of the tool."""
    if len(source) > LONGEST_SOURCE:
        return None
    if isinstance(arguments := load_value(source[1:-1].strip()), dict):
        return arguments
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call = ast.parse(f"call{source}", mode="eval").body
        if not isinstance(call, ast.Call) or any(keyword.arg is None for keyword in call.keywords):
            return None
        arguments_by_name = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        values = [ast.literal_eval(value) for value in call.args]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    if not values:
        return arguments_by_name
    only = tools.only_argument(tool)
    if tool in tools.skills and not arguments_by_name:
        return {}
    return {only: values[0]} if only and len(values) == 1 and not arguments_by_name else None


def balanced(text: str, at: int) -> tuple[int, str]:
    """Return the position after the brackets that open at `at`, and the missing closing brackets, if any."""
    open_brackets: list[str] = []
    for token in _TOKENS.finditer(text, at):
        mark = token[0]
        if mark in _CLOSING:
            open_brackets.append(_CLOSING[mark])
        elif mark in ")]}":
            if not open_brackets or open_brackets.pop() != mark:
                return token.end(), ""
            if not open_brackets:
                return token.end(), ""
        elif token.end() == len(text) and (len(mark) == 1 or mark[-1] != mark[0]):
            # The text ends inside a string.
            return len(text), "\0"
    return len(text), "".join(reversed(open_brackets)) or "\0"


def load_value(text: str) -> Json:
    """Return the value of a JSON text or a Python literal, or None if it is neither."""
    try:
        return cast("Json", json.loads(text, strict=False, parse_constant=_refuse))
    except (ValueError, RecursionError):
        pass
    if len(text) > LONGEST_SOURCE or not text.startswith(("{", "[")):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cast("Json", ast.literal_eval(text))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def read_parameter(text: str, schema: Json) -> Json:
    """Return the value of a parameter written as text, by its schema."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    value = load_value(text) if kind != "string" else None
    return text if value is None else value
