"""The forms in which models write calls into their text, and the marks before and after them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from recto.conversation.json import Json
from recto.page.prompt.tools_prompt import INVENTED_TAG, RESULT_LINE, PromptCall, unreadable
from recto.worker.tools.offered_tools import (
    ARGUMENT_KEYS,
    BESIDE,
    CALL_TYPES,
    FIRST_KEYS,
    NAME_KEYS,
    NO_TOOL,
    ONLY_KEYS,
    THOUGHTS,
    WRAPPERS,
    OfferedTools,
    balanced,
    calls_in,
    has_arguments,
    load_value,
    python_arguments,
    read_parameter,
)

FENCE_WORDS = (
    *("json", "tool_calls", "tool_call", "tool_code", "tools", "tool", "function_call", "function"),
    *("xml", "python", "javascript", "js"),
)
MARKS = ("[TOOL_CALLS]", "[/TOOL_CALLS]", "[ARGS]", "function<｜tool▁sep｜>", "functools", "Action Input:", "Action:")
# Tags around calls. Answers use some of them too, so a tag counts only if it contains nothing but a call.
TAGS = (
    r"tools?|tool_calls?|tool_code|tool_use|functions?|function_?calls?|calls?|invoke|parameters?|json|response|answer"
)
# Tags that may contain the name of the tool.
NAMED_TAGS = "function|invoke|tool|tool_call|function_call|tool_use"
_AROUND = re.compile(
    rf"(?:\s|[,;\]}})]|(?:`{{3,99}}|~{{3,99}})(?:(?:{'|'.join(FENCE_WORDS)})(?![^\s{{\[<]))?"
    rf"|</?(?:{TAGS})>|</s>"
    r"|<\|[a-z_]{1,40}\|>|<｜[^｜>]{1,40}｜>|(?:\[|print\()(?=[\w.]{1,99}\()"
    rf"|{'|'.join(map(re.escape, MARKS))})*+",
    re.IGNORECASE,
)
_BEGINNINGS = tuple([mark.lower() for mark in (*MARKS, *FENCE_WORDS, "print(")])
_TAG_BEGUN = re.compile(rf"<(?:[^\s>]*|(?:{NAMED_TAGS})\s[^>]*)\Z", re.IGNORECASE)
# The maximum length of a mark around a call.
LONGEST_MARK = 48
# The maximum length of a tag with the name of a tool.
LONGEST_TAG = 250


def past_marks(text: str, at: int) -> int:
    """Return the position after the marks that begin at `at`."""
    match = _AROUND.match(text, at)
    return match.end() if match else at


def is_only_marks(text: str) -> bool:
    """Return True if a text consists of marks around calls."""
    return past_marks(text, 0) == len(text)


def may_be_mark(text: str, at: int) -> bool:
    """Return True if the text from `at` on is empty or a partial mark."""
    rest = text[at : at + LONGEST_MARK].lower()
    if not rest or set(rest) in ({"`"}, {"~"}) or any(mark.startswith(rest) for mark in _BEGINNINGS):
        return True
    return _TAG_BEGUN.match(text[at : at + LONGEST_TAG]) is not None


def without_end_marks(text: str) -> str:
    """Return a text without the fence and the tags at its end. The remaining text may lack closing brackets."""
    short = text.rstrip()
    for _ in range(4):
        opening = short.rfind("<", max(0, len(short) - LONGEST_MARK))
        mark = opening >= 0 and past_marks(short, opening) == len(short)
        short = (short[:opening] if mark else short).rstrip("`~ \n\r\t")
    return short


# The beginning of a Python list of calls, or of `print(`, up to the name of the first call.
_PYTHON_BEGUN = re.compile(r"(?:\[|print\()(?P<name>[\w.]{0,99})\Z", re.IGNORECASE)
_CALL_BEGUN = re.compile(r"[{(<]|\bAction Input:")
_NAME = re.compile(r"[\w.:-]{1,200}")
_NAMED_TAG_ENDS = re.compile(rf"\s*</(?:{NAMED_TAGS})>")
_NAMED_TAG = re.compile(rf"<(?:{NAMED_TAGS})(?:=|\s+name=)[\"']?(?P<name>[\w.:-]{{1,200}})[\"']?\s*>")
# A tag whose name is the name of a tool.
_OWN_TAG = re.compile(r"<(?P<name>[\w.:-]{1,200})>\s*+")
_PARAMETER = re.compile(
    r"\s*<(?P<tag>parameter|param|arg)(?:=|\s+name=)[\"']?(?P<name>[\w.-]{1,200})[\"']?\s*>(?P<value>.*?)</(?P=tag)>",
    re.DOTALL,
)
# An argument in the form of GLM, which follows the name of the tool.
_KEYED = re.compile(r"\s*<arg_key>(?P<name>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>", re.DOTALL)
_NAME_ALONE = re.compile(r"\s*</tool_call>")
# The label before the input of a tool in ReAct, and the label after that input.
_ACTS = re.compile(r"\s*+Action Input:[ \t]*", re.IGNORECASE)
_ACTED = re.compile(r"\n\s*(?:Observation|Thought|Action|Final Answer):")
_NOTHING = frozenset({"", "none", "null", "n/a"})
_KEY = re.compile(r"[\[{\s,]*+[\"'](?P<key>[^\"'\\]{0,200})[\"']\s*+:\s*+")
_KEY_BEGUN = re.compile(r"[\"'](?P<key>[^\"'\\]{0,200})(?:[\"']\s*+)?\Z")
_STRING = re.compile(r"[\"'](?P<value>[^\"'\\]{0,200})[\"']")
_THOUGHT_STRING = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|(?P<open>\\?\Z))', re.DOTALL)
_NUMBER = re.compile(r"(?:\d{1,40}|null)(?=[\s,}])")
# A partial value: an unclosed string, or a number at the end of the text.
_VALUE_BEGUN = re.compile(r"(?:[\"'][^\"'\\]{0,200}|\d{1,40}|n?u?l{0,2})\Z")
QUOTED_ONLY_KEYS = tuple(f'"{key}"' for key in ONLY_KEYS)
_NAMES = re.compile(rf"[\"'](?:{'|'.join(NAME_KEYS)})[\"']\s*:\s*[\"'](?P<name>[^\"'\\]{{1,200}})[\"']")
# An invented result after a call. Text after an invented result is based on it, and so is worthless.
_INVENTED = re.compile(rf"{INVENTED_TAG}|{RESULT_LINE}", re.IGNORECASE)
# Number of characters after which an object that names no tool counts as an answer.
LONGEST_LEAD = 4_000


@dataclass(frozen=True, kw_only=True)
class LeadingCalls:
    """The calls at the start of a reply. `are_known` is True if all of their tools are offered.

    `has_rest` means that text follows, which the model wrote without knowing the results. `problem` describes a call of
    a known tool with unreadable arguments.
    """

    calls: tuple[PromptCall, ...]
    are_known: bool
    has_rest: bool
    problem: str = ""


def read_leading_calls(text: str, tools: OfferedTools, *, is_cut: bool = False) -> LeadingCalls | None:
    """Return the calls at the start of a reply, in any usual form. Return None if the reply begins with text.

    If text follows the calls, only forms that are never an answer count: an object with a name and arguments, or tags.
    A JSON object with only a name and arguments is a call even if the tool is unknown; the tools then report the
    unknown name. If the text is cut, drop a partial call at its end and add no missing brackets.
    """
    calls: list[PromptCall] = []
    reader = _Reader(text, tools, is_whole=not is_cut)
    at, is_sure, is_half, problem = past_marks(text, 0), False, False, ""
    while at < len(text) and not problem:
        try:
            item = reader.item(at)
        except _Unfinished:
            is_half, at = _CALL_BEGUN.search(text, at) is not None, len(text)
            break
        if item is None:
            break
        calls += item.calls
        at, is_sure, problem = past_marks(text, item.end), item.is_sure, item.problem
    has_rest = at < len(text)
    is_answer = not calls or (has_rest and not is_sure and not _INVENTED.match(text, at))
    if is_answer and not is_half and not problem:
        return None
    are_known = all(call.name in tools for call in calls)
    return LeadingCalls(calls=tuple(calls), are_known=are_known, has_rest=has_rest, problem=problem)


def opening_holds(text: str, tools: OfferedTools) -> Literal["call", "words"] | None:
    """Return the kind of a reply with this beginning. Return None if more text is needed."""
    at = past_marks(text, 0)
    python = _PYTHON_BEGUN.match(text, at)
    if may_be_mark(text, at) or (python and tools.may_begin(python["name"])):
        return None
    try:
        item = _Reader(text, tools, is_whole=False).item(at)
    except _Unfinished:
        return None
    return "call" if item else "words"


def may_be_shown(opening: str, tools: OfferedTools) -> bool:
    """Return True if the start of an interrupted reply is text: it names no tool and is more than a mark."""
    is_named = any(tools.find(word[0]) for word in _NAME.finditer(opening))
    return not is_named and (opening[:1].isalnum() or len(opening) > LONGEST_MARK)


class _Unfinished(Exception):
    """Raised if the text ends inside a possible call."""


@dataclass(frozen=True, kw_only=True)
class _Item:
    """One call or a list of calls.

    `is_sure` is True if no answer has this form. `problem` says why a call is unreadable.
    """

    calls: tuple[PromptCall, ...] = ()
    end: int
    is_sure: bool = False
    problem: str = ""


class _Reader:
    """Reader of one item of a text. Raises `_Unfinished` if the text is incomplete and more of it may matter."""

    def __init__(self, text: str, tools: OfferedTools, *, is_whole: bool) -> None:
        self._text = text
        self._tools = tools
        self._is_whole = is_whole

    def item(self, at: int) -> _Item | None:
        if self._text[at] in "{[":
            return self._json(at)
        if tag := _NAMED_TAG.match(self._text, at):
            return self._read_named_tag(tag)
        if tag := _OWN_TAG.match(self._text, at):
            return self._read_own_tag(tag)
        name = _NAME.match(self._text, at)
        return self._read_named(name) if name else None

    def _json(self, at: int) -> _Item | None:
        """Read an object that names its tool, or a list of such objects."""
        if not self._may_call(at):
            return None
        match = self._value(at)
        if match is None:
            return self._unreadable(at)
        calls = calls_in(match[0], self._tools)
        if not calls:
            return None
        is_sure = has_arguments(match[0]) and all(call.name in self._tools for call in calls)
        return _Item(calls=tuple(calls), end=match[1], is_sure=is_sure)

    def _unreadable(self, at: int, *, is_named: bool = False) -> _Item | None:
        """Return an item with a problem if a text names a tool but is not JSON, so that the model is asked again."""
        piece = self._text[at : balanced(self._text, at)[0]]
        names = [name for name in _NAMES.finditer(piece[:LONGEST_LEAD]) if self._tools.find(name["name"])]
        if not names and not is_named:
            return None
        return _Item(end=at + len(piece), problem=unreadable(piece))

    def _may_call(self, at: int) -> bool:
        """Return True if the first keys may belong to a call.

        Other objects are answers, which then stream without delay.
        """
        text, place = self._text[at : at + LONGEST_LEAD], 0
        while key := _KEY.match(text, place):
            verdict = self._may_name(key["key"], text, key.end())
            if isinstance(verdict, bool):
                return verdict
            place = verdict
        rest = text[place:].lstrip("[{, \t\r\n")
        beginning = _KEY_BEGUN.match(rest)
        if len(text) == LONGEST_LEAD or (rest and not beginning):
            return False
        key_start = beginning["key"] if beginning else ""
        return any(one.startswith(key_start) for one in FIRST_KEYS) or self._tools.may_begin(key_start)

    def _may_name(self, key: str, text: str, at: int) -> bool | int:
        """Return True if a key and its value may belong to a call, else False.

        Return the position of the next key if this key does not decide.
        """
        value = _STRING.match(text, at)
        if key in NAME_KEYS and value:
            is_known = self._tools.find(value["value"]) is not None
            may_be = key == "name" and NO_TOOL.fullmatch(value["value"]) is not None
            if is_known or not may_be:
                return is_known
            # After the name of an unknown tool, arguments must follow.
            next_key = text[value.end() :].lstrip(" ,\t\r\n")[:LONGEST_MARK]
            is_partial = not next_key or any(one.startswith(next_key) for one in QUOTED_ONLY_KEYS)
            return (is_partial and not self._is_whole) or next_key.startswith(QUOTED_ONLY_KEYS)
        if key in THOUGHTS and (string := _THOUGHT_STRING.match(text, at)):
            return string.end() if string["open"] is None else len(text) < LONGEST_LEAD
        if key in BESIDE:
            beside = value or _NUMBER.match(text, at)
            if beside is None or (key == "type" and beside[0][1:-1] not in CALL_TYPES):
                return _begins_value(text, at)
            return beside.end()
        if key in ARGUMENT_KEYS:
            end, missing = balanced(text, at) if text.startswith("{", at) else (at, "")
            is_whole = end > at and not missing
            return end if is_whole else len(text) < LONGEST_LEAD and text[at : at + 1] in ("", "{", '"', "'", "n")
        if key in WRAPPERS:
            return at if text.startswith(("{", "["), at) else _begins_value(text, at)
        return (key in NAME_KEYS and _begins_value(text, at)) or self._tools.find(key) is not None

    def _read_named_tag(self, tag: re.Match[str]) -> _Item | None:
        """Read `<function=name>` with an object, or with parameters in tags."""
        if self._tools.find(tag["name"]) is None:
            return None
        at = past_marks(self._text, tag.end())
        if self._text.startswith("{", at):
            return self._with_object(tag["name"], at, is_sure=True)
        arguments, at = self._parameters(_PARAMETER, tag["name"], tag.end())
        closed = _NAMED_TAG_ENDS.match(self._text, at)
        if closed is None and not self._is_whole:
            raise _Unfinished
        call = self._tools.call(tag["name"], arguments)
        return _Item(calls=(call,), end=at, is_sure=True) if call and (closed or arguments) else None

    def _read_own_tag(self, tag: re.Match[str]) -> _Item | None:
        """Read a tag that has the name of a tool and contains an object."""
        if self._tools.find(tag["name"]) is None:
            return None
        if not self._is_whole and tag.end() == len(self._text):
            raise _Unfinished
        if not self._text.startswith("{", tag.end()):
            return None
        item = self._with_object(tag["name"], tag.end(), is_sure=True)
        closing = re.compile(rf"\s*+</{re.escape(tag['name'])}>").match(self._text, item.end) if item else None
        return replace(item, end=closing.end()) if item and closing else item

    def _parameters(self, form: re.Pattern[str], tool: str, at: int) -> tuple[dict[str, Json], int]:
        arguments: dict[str, Json] = {}
        schemas = self._tools.properties(self._tools.find(tool) or "")
        while match := form.match(self._text, at):
            name = match["name"].strip()
            arguments[name] = read_parameter(match["value"].strip("\n"), schemas.get(name))
            at = match.end()
        return arguments, at

    def _read_named(self, name: re.Match[str]) -> _Item | None:
        """Read `name {...}`, `name(...)`, and the forms of GLM and ReAct after a name."""
        if not self._is_whole and name.end() == len(self._text) and self._tools.may_begin(name[0]):
            raise _Unfinished
        tool_name = name[0].rstrip(":")
        if self._tools.find(tool_name) is None:
            return None
        if self._text.startswith("(", name.end()):
            return self._python(name)
        at = past_marks(self._text, name.end())
        if not self._is_whole and may_be_mark(self._text, at):
            raise _Unfinished
        if self._text.startswith("<arg_key>", at):
            arguments, end = self._parameters(_KEYED, tool_name, at)
            if not self._is_whole and not self._text.startswith("</", past_marks(self._text, end)):
                raise _Unfinished
            call = self._tools.call(tool_name, arguments)
            return _Item(calls=(call,), end=end, is_sure=True) if call and arguments else None
        acts = _ACTS.match(self._text, name.end())
        if self._text.startswith("{", at):
            return self._with_object(tool_name, at, is_sure=acts is not None)
        if acts:
            return self._read_react_input(tool_name, acts.end())
        is_alone = self._text[: name.start()].endswith("<tool_call>") and _NAME_ALONE.match(self._text, name.end())
        call = self._tools.call(tool_name, {}) if is_alone else None
        return _Item(calls=(call,), end=at) if call else None

    def _read_react_input(self, name: str, at: int) -> _Item | None:
        """Read the text after "Action Input:" as the only argument of a tool."""
        end = _ACTED.search(self._text, at)
        if end is None and not self._is_whole:
            raise _Unfinished
        stop = end.start() if end else len(self._text)
        text = self._text[at:stop].strip().strip("`\"'").strip()
        only = self._tools.only_argument(self._tools.find(name) or "")
        if text.lower() in _NOTHING:
            call = self._tools.call(name, {})
        elif only:
            call = self._tools.call(name, {only: text})
        else:
            return _Item(end=stop, problem=unreadable(text))
        return _Item(calls=(call,), end=stop, is_sure=True) if call else None

    def _python(self, name: re.Match[str]) -> _Item | None:
        """Read a call in Python syntax with literal arguments. No code is run."""
        end, missing = balanced(self._text, name.end())
        if missing:
            if not self._is_whole:
                raise _Unfinished
            return None
        arguments = python_arguments(self._text[name.end() : end], self._tools, self._tools.find(name[0]) or "")
        call = None if arguments is None else self._tools.call(name[0], arguments)
        return _Item(calls=(call,), end=end) if call else None

    def _with_object(self, name: str, at: int, *, is_sure: bool = False) -> _Item | None:
        match = self._value(at)
        if match is None or not isinstance(match[0], dict):
            return self._unreadable(at, is_named=True) if is_sure else None
        call = self._tools.call(name, match[0])
        return _Item(calls=(call,), end=match[1], is_sure=is_sure) if call else None

    def _value(self, at: int) -> tuple[Json, int] | None:
        """Return the value at `at` and the position of its end. Add missing brackets if the text is complete."""
        end, missing = balanced(self._text, at)
        if missing and not self._is_whole:
            raise _Unfinished
        piece = self._text[at:end]
        if missing:
            piece = without_end_marks(piece)
            piece += balanced(piece, 0)[1]
        # Chat templates escape brackets by doubling them, and models copy that.
        value = load_value(piece[1:-1] if piece.startswith("{{") else piece)
        return None if value is None else (value, end)


def _begins_value(text: str, at: int) -> bool:
    """Return True if the text from `at` on is an unfinished string or number."""
    return _VALUE_BEGUN.match(text, at) is not None
