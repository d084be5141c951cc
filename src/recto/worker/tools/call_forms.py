"""Calls in the forms that models write by habit (P11): other tags, bare JSON, Python, whatever they were trained on.

A reply is a call only where it begins with one and names a tool that is offered. What runs is for the tools to say.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from dataclasses import dataclass
from typing import Literal, cast

from recto.conversation.json import Json, Object
from recto.page.prompt.tools_prompt import INVENTED_TAG, PromptCall
from recto.worker.tools.offered_tools import OfferedTools, as_json

NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action")
ARGUMENT_KEYS = ("arguments", "parameters", "args", "params", "input", "action_input", "tool_input", "kwargs")
# What stands beside the name in a call of a tool that is not offered.
ONLY_KEYS = ("arguments", "parameters")
WRAPPERS = ("function", "function_call", "function_calls", "tool_call", "tool_calls", "tool_use", "calls", "call")
# What may stand beside a call and says nothing.
BESIDE = ("type", "id", "call_id", "tool_call_id", "index")
CALL_TYPES = ("function", "function_call", "tool_call", "tool_use")
FIRST_KEYS = frozenset((*NAME_KEYS, *ARGUMENT_KEYS, *WRAPPERS, *BESIDE))
# What stands around a call and is no part of it: fences, tags, marks of models, a bracket too many.
FENCE_WORDS = ("json", "tool_calls", "tool_call", "tool_code", "tools", "function_call", "xml", "python")
MARKS = ("[TOOL_CALLS]", "[/TOOL_CALLS]", "[ARGS]", "function<｜tool▁sep｜>", "functools", "Action Input:", "Action:")
_AROUND = re.compile(
    rf"(?:\s|[,;\]}})]|`{{3,99}}(?:(?:{'|'.join(FENCE_WORDS)})(?![^\s{{\[<]))?"
    r"|</?(?:tools?|tool_calls?|functions?|function_?calls?|calls?|invoke|parameters?)>|</s>"
    r"|<\|[a-z_]{1,40}\|>|<｜[^｜>]{1,40}｜>|(?:\[|print\()(?=[\w.]{1,99}\()"
    rf"|{'|'.join(map(re.escape, MARKS))})*+",
    re.IGNORECASE,
)
_BEGINNINGS = tuple([mark.lower() for mark in (*MARKS, *FENCE_WORDS, "print(")])
# A list of calls in Python, or one whose result is printed, as far as the first name.
_PYTHON_BEGUN = re.compile(r"(?:\[|print\()(?P<name>[\w.]{0,99})\Z", re.IGNORECASE)
_CALL_BEGUN = re.compile(r"[{(<]")
_NAME = re.compile(r"[\w.:-]{1,200}")
_TAG_BEGUN = re.compile(r"<(?:[^\s>]*|(?:function|invoke|tool)\s[^>]*)\Z")
_NAMED_TAG_ENDS = re.compile(r"\s*</(?:function|invoke|tool)>")
_NAMED_TAG = re.compile(r"<(?:function|invoke|tool)(?:=|\s+name=)[\"']?(?P<name>[\w.:-]{1,200})[\"']?\s*>")
_PARAMETER = re.compile(
    r"\s*<(?P<tag>parameter|param|arg)(?:=|\s+name=)[\"']?(?P<name>[\w.-]{1,200})[\"']?\s*>(?P<value>.*?)</(?P=tag)>",
    re.DOTALL,
)
_KEY = re.compile(r"[\[{\s,]*+[\"'](?P<key>[^\"'\\]{0,200})[\"']\s*+:\s*+")
_KEY_BEGUN = re.compile(r"[\"'](?P<key>[^\"'\\]{0,200})(?:[\"']\s*+)?\Z")
_STRING = re.compile(r"[\"'](?P<value>[^\"'\\]{0,200})[\"']")
_NUMBER = re.compile(r"(?:\d{1,40}|null)(?=[\s,}])")
# Of a value: no string that is closed, no number that is at its end.
_VALUE_BEGUN = re.compile(r"(?:[\"'][^\"'\\]{0,200}|\d{1,40}|n?u?l{0,2})\Z")
_NO_TOOL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|\'(?:[^\'\\]|\\.)*+(?:\'|\Z)|[\[\]{}()]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]", "(": ")"}
# What a model makes up once it has called. All that follows was said without the real result.
_INVENTED = re.compile(rf"{INVENTED_TAG}|Observation:", re.IGNORECASE)
# Longer ones are never calls in Python, and a compiler of source takes memory.
LONGEST_SOURCE = 20_000
# Lists and wrappers around a call, one in another; deeper ones are no call.
MOST_WRAPPERS = 8
# How much is looked at to learn whether an object is a call: one that names no tool until then is an answer.
LONGEST_LEAD = 4_000
# No mark around a call, and no beginning of one, is longer.
LONGEST_MARK = 48


@dataclass(frozen=True, kw_only=True)
class LeadingCalls:
    """The calls a reply begins with, and whether all of them are of tools that are offered.

    `has_rest`: words follow them, which were said without their results.
    """

    calls: tuple[PromptCall, ...]
    are_known: bool
    has_rest: bool


def read_leading_calls(text: str, tools: OfferedTools, *, is_cut: bool = False) -> LeadingCalls | None:
    """The calls of offered tools that a reply begins with, in any usual form; None where it begins with words.

    Where words follow, only a form that is never an answer counts: an object with a name and arguments, or tags. JSON
    that is nothing but these two is a call whatever the name: the tools say that there is none of it. Of a text that is
    cut, half a call at its end is left out, and nothing is put there that may be missing.
    """
    calls: list[PromptCall] = []
    reader = _Reader(text, tools, is_whole=not is_cut)
    at, is_sure, is_half = _past_marks(text, 0), False, False
    while at < len(text):
        try:
            item = reader.item(at)
        except _Unfinished:
            is_half, at = _CALL_BEGUN.search(text, at) is not None, len(text)
            break
        if item is None:
            break
        calls += item.calls
        at, is_sure = _past_marks(text, item.end), item.is_sure
    has_rest = at < len(text)
    if is_half:
        return LeadingCalls(calls=tuple(calls), are_known=all(call.name in tools for call in calls), has_rest=False)
    if not calls or (has_rest and not is_sure and not _INVENTED.match(text, at)):
        return None
    return LeadingCalls(calls=tuple(calls), are_known=all(call.name in tools for call in calls), has_rest=has_rest)


def opening_holds(text: str, tools: OfferedTools) -> Literal["call", "words"] | None:
    """What a reply that begins so is: a call, or words. None: it takes more text to know."""
    at = _past_marks(text, 0)
    python = _PYTHON_BEGUN.match(text, at)
    if _may_be_mark(text, at) or (python and tools.may_begin(python["name"])):
        return None
    try:
        item = _Reader(text, tools, is_whole=False).item(at)
    except _Unfinished:
        return None
    return "call" if item else "words"


def may_be_shown(opening: str, tools: OfferedTools) -> bool:
    """Whether an opening that nobody knows the rest of is of use to a reader: it names no tool, and is no mere mark."""
    is_named = any(tools.find(word[0]) for word in _NAME.finditer(opening))
    return not is_named and (opening[:1].isalnum() or len(opening) > LONGEST_MARK)


def is_only_marks(text: str) -> bool:
    """Whether a text is nothing but marks that stand around calls."""
    return _past_marks(text, 0) == len(text)


class _Unfinished(Exception):
    """The text ends inside of what may be a call."""


@dataclass(frozen=True, kw_only=True)
class _Item:
    """One thing that calls. `is_sure`: nothing else has its form, whatever follows."""

    calls: tuple[PromptCall, ...]
    end: int
    is_sure: bool = False


class _Reader:
    """Reads one item of a text. Where the text is not whole yet, what it cannot know is `_Unfinished`."""

    def __init__(self, text: str, tools: OfferedTools, *, is_whole: bool) -> None:
        self._text = text
        self._tools = tools
        self._is_whole = is_whole

    def item(self, at: int) -> _Item | None:
        if self._text[at] in "{[":
            return self._json(at)
        if tag := _NAMED_TAG.match(self._text, at):
            return self._tagged(tag)
        name = _NAME.match(self._text, at)
        return self._named(name) if name else None

    def _json(self, at: int) -> _Item | None:
        """An object that names its tool, or a list of them."""
        if not self._may_call(at):
            return None
        found = self._value(at)
        calls = _calls_in(found[0], self._tools) if found else None
        if not found or not calls:
            return None
        is_sure = _has_arguments(found[0]) and all(call.name in self._tools for call in calls)
        return _Item(calls=tuple(calls), end=found[1], is_sure=is_sure)

    def _may_call(self, at: int) -> bool:
        """Whether the first key, and what it names, may be those of a call: an answer need not wait for its end."""
        text, place = self._text[at : at + LONGEST_LEAD], 0
        while key := _KEY.match(text, place):
            found = self._may_name(key["key"], text, key.end())
            if isinstance(found, bool):
                return found
            place = found
        rest = text[place:].lstrip("[{, \t\r\n")
        begun = _KEY_BEGUN.match(rest)
        if len(text) == LONGEST_LEAD or (rest and not begun):
            return False
        known = begun["key"] if begun else ""
        return any(one.startswith(known) for one in FIRST_KEYS) or self._tools.may_begin(known)

    def _may_name(self, key: str, text: str, at: int) -> bool | int:
        """Whether a key and its value may be those of a call; where to look on if they only stand beside it."""
        value = _STRING.match(text, at)
        if key in NAME_KEYS and value:
            is_known = self._tools.find(value["value"]) is not None
            may_be = key == "name" and _NO_TOOL.fullmatch(value["value"]) is not None
            return is_known or (may_be and self._has_only(text, value.end()))
        if key in BESIDE:
            beside = value or _NUMBER.match(text, at)
            if beside is None or (key == "type" and beside[0][1:-1] not in CALL_TYPES):
                return _begins_value(text, at)
            return beside.end()
        if key in ARGUMENT_KEYS:
            end, missing = _balanced(text, at) if text.startswith("{", at) else (at, "")
            is_whole = end > at and not missing
            return end if is_whole else len(text) < LONGEST_LEAD and text[at : at + 1] in ("", "{", '"', "'", "n")
        if key in WRAPPERS:
            return at if text.startswith(("{", "["), at) else _begins_value(text, at)
        return (key in NAME_KEYS and _begins_value(text, at)) or self._tools.find(key) is not None

    def _has_only(self, text: str, at: int) -> bool:
        """Whether arguments follow the name of a tool that there is not, or may."""
        key = text[at:].lstrip(" ,\t\r\n")[:LONGEST_MARK]
        if not self._is_whole and (not key or any(f'"{known}"'.startswith(key) for known in ONLY_KEYS)):
            return True
        return key.startswith(tuple([f'"{known}"' for known in ONLY_KEYS]))

    def _tagged(self, tag: re.Match[str]) -> _Item | None:
        """`<function=name>` with an object or parameters in tags."""
        if self._tools.find(tag["name"]) is None:
            return None
        at = _past_marks(self._text, tag.end())
        if self._text.startswith("{", at):
            return self._with_object(tag["name"], at, is_sure=True)
        arguments, at = self._parameters(tag["name"], tag.end())
        closed = _NAMED_TAG_ENDS.match(self._text, at)
        if closed is None and not self._is_whole:
            raise _Unfinished
        call = self._tools.call(tag["name"], arguments)
        return _Item(calls=(call,), end=at, is_sure=True) if call and (closed or arguments) else None

    def _parameters(self, tool: str, at: int) -> tuple[dict[str, Json], int]:
        arguments: dict[str, Json] = {}
        schemas = self._tools.properties(self._tools.find(tool) or "")
        while given := _PARAMETER.match(self._text, at):
            arguments[given["name"]] = _typed(given["value"].strip("\n"), schemas.get(given["name"]))
            at = given.end()
        return arguments, at

    def _named(self, name: re.Match[str]) -> _Item | None:
        """`name {...}` and `name(...)`."""
        if not self._is_whole and name.end() == len(self._text) and self._tools.may_begin(name[0]):
            raise _Unfinished
        written = name[0].rstrip(":")
        if self._tools.find(written) is None:
            return None
        if self._text.startswith("(", name.end()):
            return self._python(name)
        at = _past_marks(self._text, name.end())
        if not self._is_whole and _may_be_mark(self._text, at):
            raise _Unfinished
        return self._with_object(written, at) if self._text.startswith("{", at) else None

    def _python(self, name: re.Match[str]) -> _Item | None:
        """A call as Python has it, of values alone: nothing in it is ever run."""
        end, missing = _balanced(self._text, name.end())
        if missing:
            if not self._is_whole:
                raise _Unfinished
            return None
        arguments = _python_arguments(self._text[name.end() : end], self._tools, self._tools.find(name[0]) or "")
        call = None if arguments is None else self._tools.call(name[0], arguments)
        return _Item(calls=(call,), end=end) if call else None

    def _with_object(self, name: str, at: int, *, is_sure: bool = False) -> _Item | None:
        found = self._value(at)
        if found is None or not isinstance(found[0], dict):
            return None
        call = self._tools.call(name, found[0])
        return _Item(calls=(call,), end=found[1], is_sure=is_sure) if call else None

    def _value(self, at: int) -> tuple[Json, int] | None:
        """The value that begins here. Of a whole text, brackets that are missing at its end are put there."""
        end, missing = _balanced(self._text, at)
        if missing and not self._is_whole:
            raise _Unfinished
        piece = self._text[at:end]
        if missing:
            piece = _without_end_marks(piece)
            piece += _balanced(piece, 0)[1]
        # Brackets are doubled where a template of a chat escapes them, and models write what they saw.
        found = _load(piece[1:-1] if piece.startswith("{{") else piece)
        return None if found is None else (found, end)


def _begins_value(text: str, at: int) -> bool:
    """Whether a text ends where a string or a number may go on."""
    return _VALUE_BEGUN.match(text, at) is not None


def _past_marks(text: str, at: int) -> int:
    found = _AROUND.match(text, at)
    return found.end() if found else at


def _may_be_mark(text: str, at: int) -> bool:
    """Whether all that follows may be the beginning of a mark, or nothing follows yet."""
    rest = text[at : at + LONGEST_MARK].lower()
    if not rest or set(rest) == {"`"} or any(mark.startswith(rest) for mark in _BEGINNINGS):
        return True
    return len(rest) < LONGEST_MARK and _TAG_BEGUN.match(rest) is not None


def _without_end_marks(text: str) -> str:
    """A text without the fence and the tag it ends with: behind them, brackets may be missing."""
    short = text.rstrip()
    for _ in range(4):
        opening = short.rfind("<", max(0, len(short) - LONGEST_MARK))
        mark = opening >= 0 and _past_marks(short, opening) == len(short)
        short = (short[:opening] if mark else short).rstrip("` \n\r\t")
    return short


def _calls_in(value: Json, tools: OfferedTools, depth: int = 0) -> list[PromptCall] | None:
    """The calls a value is, all of it; None where any of it is something else."""
    if isinstance(value, list) and depth < MOST_WRAPPERS:
        found = [_calls_in(one, tools, depth + 1) for one in value]
        return None if not found or None in found else [call for calls in found for call in calls or ()]
    if not isinstance(value, dict) or depth > MOST_WRAPPERS:
        return None
    fields = {key: one for key, one in value.items() if key not in BESIDE}
    match [*fields.items()]:
        case [(str(key), (dict() | list()) as inner)] if key in WRAPPERS:
            return _calls_in(inner, tools, depth + 1)
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
    given = {other: value for other, value in fields.items() if other != key}
    arguments = _arguments(given, tools.properties(name))
    return None if arguments is None else tools.call(name, arguments)


def _unknown_call(fields: Object) -> PromptCall | None:
    """A call of a tool that is not offered: nothing but a name that a tool may have, and arguments."""
    match fields:
        case {"name": str(name), "arguments": dict() as given, **more} | {
            "name": str(name),
            "parameters": dict() as given,
            **more,
        } if not more:
            text = as_json(given) if _NO_TOOL.fullmatch(name) else None
            return None if text is None else PromptCall(name=name, arguments=text)
        case _:
            return None


def _arguments(given: Object, properties: Object) -> Object | None:
    """What stands beside a name: arguments under a usual key, none at all, or the arguments themselves."""
    match [*given.items()]:
        case []:
            return {}
        case [(str(key), dict() as arguments)] if key in ARGUMENT_KEYS:
            return arguments
        case [(str(key), None)] if key in ARGUMENT_KEYS:
            return {}
        case [(str(key), str(text))] if key in ARGUMENT_KEYS and isinstance(found := _load(text), dict):
            return found
        case _:
            return given if given.keys() <= properties.keys() else None


def _has_arguments(value: Json, depth: int = 0) -> bool:
    """Whether a value says what the arguments of a call are: an answer that does so is none."""
    if depth > MOST_WRAPPERS:
        return False
    first = value[0] if isinstance(value, list) and value else value
    fields = first if isinstance(first, dict) else {}
    inner = [one for key, one in fields.items() if key in WRAPPERS and isinstance(one, (dict, list))]
    return any(key in fields for key in ARGUMENT_KEYS) or any(_has_arguments(one, depth + 1) for one in inner)


def _python_arguments(source: str, tools: OfferedTools, tool: str) -> Object | None:
    """The arguments of a call in Python: names with values, one object, or the only one that the tool takes."""
    if len(source) > LONGEST_SOURCE:
        return None
    if isinstance(found := _load(source[1:-1].strip()), dict):
        return found
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call = ast.parse(f"call{source}", mode="eval").body
        if not isinstance(call, ast.Call) or any(keyword.arg is None for keyword in call.keywords):
            return None
        named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        values = [ast.literal_eval(value) for value in call.args]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    if not values:
        return named
    only = tools.only_argument(tool)
    if tool in tools.skills and not named:
        return {}
    return {only: values[0]} if only and len(values) == 1 and not named else None


def _balanced(text: str, at: int) -> tuple[int, str]:
    """Where the brackets that open here are closed, and which are missing if that is nowhere."""
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
            # It ends inside of a string, of which nobody knows the rest.
            return len(text), "\0"
    return len(text), "".join(reversed(open_brackets)) or "\0"


def _load(text: str) -> Json:
    """A value as JSON has it, or as Python writes the same; None where it is neither."""
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


def _typed(text: str, schema: Json) -> Json:
    """A parameter that came as text, as its schema has it."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    found = _load(text) if kind != "string" else None
    return text if found is None else found
