"""The tools that a reply may call, and matching of names that models write for them (P11)."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import cast

from recto.conversation.json import Json, Object, load_object
from recto.conversation.messages import ToolOffer
from recto.page.prompt.tools_prompt import PromptCall

# Prefixes that some models put before the name of a tool.
PREFIXES = ("functions.", "function.", "tools.", "default_api.")


class OfferedTools:
    """The tools that a reply may call. `chooser` is the tool that activates skills.

    A call with the name of a skill becomes a call of the `chooser`.
    """

    def __init__(self, offers: Sequence[ToolOffer] = (), *, chooser: str = "") -> None:
        self._offers = {offer.name: offer for offer in offers}
        self._chooser = chooser

    def __bool__(self) -> bool:
        return bool(self._offers)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name) is not None

    def is_skill(self, name: str) -> bool:
        """Return True if a skill has this name and no tool does."""
        return name in self.skills and name not in self._offers

    @cached_property
    def skills(self) -> frozenset[str]:
        """The skills that the reply may activate."""
        choices = self.properties(self._chooser).get("skill")
        skills = choices.get("enum") if isinstance(choices, dict) else None
        return frozenset(map(str, skills)) if isinstance(skills, list) else frozenset()

    @cached_property
    def _names_by_fold(self) -> Mapping[str, tuple[str, ...]]:
        names_by_fold: dict[str, tuple[str, ...]] = {}
        for name in (*self._offers, *[skill for skill in self.skills if skill not in self._offers]):
            names_by_fold[_fold(name)] = (*names_by_fold.get(_fold(name), ()), name)
        return names_by_fold

    def find(self, tool_name: str) -> str | None:
        """Return the tool or skill of this name, else the only one whose name differs just in case and punctuation."""
        for name in (tool_name, *[tool_name.removeprefix(one) for one in PREFIXES if tool_name.startswith(one)]):
            if name in self._offers or name in self.skills:
                return name
            names = self._names_by_fold.get(_fold(name), ())
            if len(names) == 1:
                return names[0]
        return None

    def may_begin(self, tool_name: str) -> bool:
        """Return True if this text may be the beginning of the name of a tool or skill."""
        prefix = next((one for one in PREFIXES if tool_name.startswith(one)), "")
        starts = (*self._names_by_fold, *map(_fold, PREFIXES))
        return any(name.startswith(_fold(tool_name.removeprefix(prefix))) for name in starts)

    def properties(self, tool: str) -> Object:
        """Return the schemas of the arguments of a tool, by name."""
        offer = self._offers.get(tool)
        properties = (load_object(offer.parameters) or {}).get("properties") if offer else None
        return properties if isinstance(properties, dict) else {}

    def only_argument(self, tool: str) -> str | None:
        """Return the argument of a tool that has only one argument or requires only one."""
        offer = self._offers.get(tool)
        needed = (load_object(offer.parameters) or {}).get("required") if offer else None
        names = list(self.properties(tool))
        required = [str(name) for name in needed] if isinstance(needed, list) else []
        return names[0] if len(names) == 1 else required[0] if len(required) == 1 else None

    def call(self, tool_name: str, arguments: Object) -> PromptCall | None:
        """Return the call of a tool or skill. Return None if neither exists or the arguments have no JSON form."""
        name = self.find(tool_name)
        if name is None:
            return None
        if name not in self._offers:
            scenario = arguments.get("scenario")
            name, arguments = self._chooser, {"skill": name, **({"scenario": scenario} if scenario else {})}
        text = as_json(arguments)
        return None if text is None else PromptCall(name=name, arguments=text)

    def settle(self, call: PromptCall) -> PromptCall:
        """Return the call with the name of the matching tool. A call of an unknown tool stays unchanged."""
        name = self.find(call.name)
        if name is None or (name == call.name and name in self._offers):
            return call
        if name in self._offers:
            return PromptCall(name=name, arguments=call.arguments)
        return self.call(name, load_object(call.arguments) or {}) or call


def as_json(value: Object) -> str | None:
    """Return arguments as JSON text, or None if they have no JSON form."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return None
    return text


def _fold(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


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
