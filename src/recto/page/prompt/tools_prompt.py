"""Tools for models without native calls (P11): the prompt block, parsing of calls, and results as text.

Only the form of a call is checked here. The tools check names and arguments.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast

from recto.conversation.json import Json, dump, load, load_object
from recto.conversation.locale import language
from recto.conversation.memo import memoise
from recto.conversation.message_files import one_line
from recto.conversation.messages import (
    FAILED,
    AssistantMessage,
    AssistantPart,
    CallForm,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolMessage,
    ToolOffer,
    ToolPart,
    UserMessage,
)
from recto.errors import WireError
from recto.page.draft import Draft
from recto.page.manifest import Note
from recto.page.prompt.reminder import FRAME_TAGS, escape, file_mark, neutralise

BLOCK = """\
<!-- TOOLS_START -->
{tools}
Note: tool arguments must strictly match args_schema.
<!-- TOOLS_END -->"""
HOW_TO_CALL = {
    "zh": """\
需要使用工具时，只写调用本身，格式如下（可以有多个，每个单独写）：
{example}
写完调用就停下，等待结果。不要自己编写结果。""",
    "en": """\
To use a tool, write nothing but the call, in this form (there may be several, each in its own):
{example}
Stop after the call and wait for its result. Never write a result yourself.""",
}
# Sent with the first result of a page, not earlier: a model that knows the format of results may invent them.
RESULTS_COME_SO = {
    "zh": "工具的结果在 <tool_result> 中返回，只有工具会写它。请根据结果回答，或继续调用工具。",
    "en": "Results of tools come in <tool_result>, which tools alone write. Answer from it, or call another tool.",
}
RESULT = '<tool_result name="{name}">\n{content}\n</tool_result>'
PROBLEM = """\
A tool call could not be read: {reason}. It began with: {beginning}
Write the whole call again, as one JSON object with "name" and "arguments"."""
BEGINNING_LENGTH = 120
# Example values by type.
EXAMPLES: Mapping[str, Json] = {"number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}

OPEN, CLOSE = "<tool_call>", "</tool_call>"
# A block without an object is a mistaken call if it is closed within this many characters, otherwise text. The limit
# bounds how long streamed text about the tag is held back.
LONGEST_MISTAKE = 500
# The opening line of a fence. All repetitions are bounded, so a limited prefix of a stream decides.
FENCE = r"[ \t]{0,99}(?P<fence>`{3,99})(?P<info>[^`\n]{0,200})\n"
# A tag right after a backtick is quoted text, not a call.
_OPENS = re.compile(rf"(?<!`){OPEN}")
# Names that models use for invented results, as tags and fences. Small models also put invented results into reminders.
RESULT_NAMES = (
    "tool_result",
    "tool_response",
    "tool_output",
    "function_response",
    "function_result",
    "system-reminder",
)
INVENTED_TAG = rf"(?i:<(?:{'|'.join(RESULT_NAMES)})s?\b|\[TOOL_RESULTS\])"
# The beginning of an invented result in a line after a call.
RESULT_LINE = r"(?i:<results?>|(?:Observation|(?:tool |function )?(?:result|output|response)s?):)"
_INVENTED = re.compile(
    rf"(?<!`){INVENTED_TAG}|^{RESULT_LINE}|^[ \t]{{0,99}}`{{3,99}}(?:{'|'.join(RESULT_NAMES)})", re.MULTILINE
)
_TAGS = re.compile(rf"{OPEN}|{CLOSE}|{INVENTED_TAG}")
_STARTS = re.compile(rf"(?<!`){OPEN}|^{FENCE}", re.MULTILINE)
_FENCE_ENDS = re.compile(r"^[ \t]{0,99}(?P<fence>`{3,99})[ \t\r]{0,99}$", re.MULTILINE)
# The beginning of a call in GLM's form: a tool name, then its arguments.
_KEYED = re.compile(r"\s*[\w.:-]{1,200}\s*<arg_key>")
_SPACE = re.compile(r"\s*")
_BETWEEN = re.compile(r"[\s,:]*")
JSON_FENCES = frozenset({"", "json"})
TAG_FENCES = JSON_FENCES | {"xml", "tool_call"}
CALL_KEYS = frozenset({"name", "arguments"})
_FIRST_KEYS = tuple(f'"{key}"' for key in sorted(CALL_KEYS))


@dataclass(frozen=True, kw_only=True)
class PromptCall:
    """A call parsed from text. `arguments` is the JSON object exactly as the model wrote it."""

    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class ParsedReply:
    """A parsed reply: its text without the calls, the calls, and an error text for each unreadable call.

    Text before the first call is stripped. A reply without calls is unchanged.
    """

    words: str
    calls: tuple[PromptCall, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Words:
    text: str


@dataclass(frozen=True, kw_only=True)
class _Problem:
    text: str


_Piece: TypeAlias = _Words | PromptCall | _Problem


def build_tools_prompt(tools: Sequence[ToolOffer]) -> str:
    """Return the block that offers the tools; empty without tools. Raise a WireError if parameters are not JSON.

    Line breaks in names and descriptions become spaces, and the `<` of Recto's tags and markers becomes `&lt;`, in
    schemas too. A tool can therefore not end the block or add a line to it.
    """
    lines = list[str]()
    for tool in tools:
        try:
            schema = dump(load(tool.parameters)).decode()
        except ValueError as error:
            problem = f"no JSON: {error}. Give a schema."
            raise WireError(where=f"tools.{tool.name}.parameters", problem=problem) from error
        lines += [f"- {one_line(tool.name)}: {one_line(tool.description)}", f"- args_schema: {schema}"]
    return BLOCK.format(tools="\n".join([neutralise(line, FRAME_TAGS) for line in lines])) if tools else ""


def tools_section(tools: Sequence[ToolOffer], locale: str, form: CallForm = "fenced") -> str:
    """Return the end of the system prompt: the block with the tools, and instructions with an example call of the first
    tool.
    """
    if not tools:
        return ""
    # Build example arguments from a tool's schema: the required ones, else the first
    schema = load_object(tools[0].parameters) or {}
    properties, required = schema.get("properties"), schema.get("required")
    schemas = properties if isinstance(properties, dict) else {}
    needed = [str(name) for name in required if name in schemas] if isinstance(required, list) else []
    arguments = dict[str, Json]()
    for name in needed or list(schemas)[:1]:
        match schemas[name]:
            case {"enum": [first, *_]} | {"examples": [first, *_]} | {"const": first} | {"default": first}:
                arguments[name] = first
            case {"type": str(kind)}:
                arguments[name] = EXAMPLES.get(kind, "...")
            case _:
                arguments[name] = "..."
    example = call_text(tools[0].name, dump(arguments).decode(), form)
    return f"{build_tools_prompt(tools)}\n\n{HOW_TO_CALL[language(locale)].format(example=example)}"


def call_text(name: str, arguments: str, form: CallForm) -> str:
    """Return a call as text; `arguments` is its JSON."""
    call = f'{{"name": {dump(name).decode()}, "arguments": {arguments}}}'
    return f"{OPEN}{call}{CLOSE}" if form == "tags" else f"```json\n{call}\n```"


def tool_result_text(name: str, content: str) -> str:
    """Return a result as user text. Recto's own tags in it are neutralised, so that one result stays one."""
    return RESULT.format(name=escape(one_line(name)), content=neutralise(content, FRAME_TAGS))


def parse_tool_calls(text: str, tool_names: Container[str] | None = None) -> ParsedReply:
    """Parse the calls in a reply: `<tool_call>` blocks, and fenced JSON with only a name and arguments.

    With `tool_names`, fenced JSON is a call only if it names one of these tools, because a model with native tools may
    show JSON.

    A block may lack its end tag if another block or the end of the reply follows. A fence that begins with a call may
    lack its end at the end of the reply. Every other fence is text up to its end, or the end of the reply. A tag
    without an object after it is text too. Text after the first call is dropped, because the model wrote it without the
    result. Parsing stops at an invented result after a call.
    """
    words, calls, problems = list[str](), list[PromptCall](), list[str]()
    for piece in _pieces(text, _STARTS, tool_names):
        match piece:
            case PromptCall():
                calls.append(piece)
            case _Problem():
                problems.append(piece.text)
            case _Words() if not calls and not problems:
                words.append(piece.text.strip())
            case _Words() if _INVENTED.search(piece.text):
                # The model made later calls without the real result.
                break
            case _:
                pass
    if not calls and not problems:
        return ParsedReply(words=text)
    return ParsedReply(words="\n\n".join(filter(None, words)), calls=tuple(calls), problems=tuple(problems))


def tag_holds(text: str, at: int) -> Literal["call", "words"] | None:
    """Classify the tag that ends at `at`: a call, readable or not, or text. None means that more text is needed."""
    limit = at + LONGEST_MISTAKE
    if text.startswith("{", _past(_SPACE, text, at, limit), limit) or _KEYED.match(text, at, limit):
        return "call"
    tag = _TAGS.search(text, at, limit)
    if tag is None:
        return "words" if len(text) >= limit else None
    return "call" if tag[0] == CLOSE else "words"


def fence_holds(info: str, text: str, at: int) -> Literal["tags", "object", "words"] | None:
    """Classify a fence whose content begins at `at`: calls in tags, a call as an object, or text.

    None means that more text is needed.
    """
    kind, start = info.strip().lower(), _past(_SPACE, text, at)
    if kind not in TAG_FENCES:
        return "words"
    if text.startswith(OPEN, start):
        return "tags"
    if OPEN.startswith(text[start : start + len(OPEN)]):
        return None
    if kind not in JSON_FENCES or not text.startswith("{", start):
        return "words"
    start = _past(_SPACE, text, start + 1)
    if text.startswith(_FIRST_KEYS, start):
        return "object"
    return None if any(key.startswith(text[start : start + len(key)]) for key in _FIRST_KEYS) else "words"


def _pieces(text: str, starts: re.Pattern[str], tool_names: Container[str] | None = None) -> Iterator[_Piece]:
    # Index the possible closing fences by length once. A new search for each opening fence would take quadratic time.
    ends: dict[int, list[re.Match[str]]] = defaultdict(list)
    for end in _FENCE_ENDS.finditer(text):
        ends[len(end["fence"])].append(end)
    done = at = 0
    while start := starts.search(text, at):
        fence = start.groupdict().get("fence")
        pieces, at = _fenced(text, start, ends[len(fence)], tool_names) if fence else _tagged(text, start.end())
        if pieces:
            yield _Words(text=text[done : start.start()])
            yield from pieces
            done = at
    yield _Words(text=text[done:])


def _tagged(text: str, at: int) -> tuple[list[_Piece], int]:
    """Return the contents of a block and its end. Ignore tags inside a readable object, because they belong to its
    strings.
    """
    if tag_holds(text, at) != "call":
        return [], at
    start = end = _past(_SPACE, text, at)
    if text.startswith("{", start):
        with suppress(ValueError, RecursionError):
            # Decode a copy of the rest, because an error counts the lines from the start of the text.
            end = start + _JSON.raw_decode(text[start:])[1]
    tag = _TAGS.search(text, end)
    content = text[start : tag.start() if tag else len(text)].rstrip()
    if tag is None:
        return [_call(content)], len(text)
    return [_call(content)], tag.end() if tag[0] == CLOSE else tag.start()


def _fenced(
    text: str, start: re.Match[str], ends: Sequence[re.Match[str]], tool_names: Container[str] | None
) -> tuple[list[_Piece], int]:
    """Return the calls of a fence, or none if it is text, and its end."""
    place = bisect_left(ends, start.end(), key=lambda end: end.start())
    stop, after = ends[place].span() if place < len(ends) else (len(text), len(text))
    content = text[start.end() : stop].strip()
    match fence_holds(start["info"], content, 0):
        case "tags":
            pieces = list(_pieces(content, _OPENS))
            return pieces if any(not isinstance(piece, _Words) for piece in pieces) else [], after
        case "object":
            call = _call(content, only=CALL_KEYS)
            is_call = isinstance(call, PromptCall) and (tool_names is None or call.name in tool_names)
            return [call] if is_call else [], after
        case _:
            return [], after


def _call(content: str, only: frozenset[str] | None = None) -> PromptCall | _Problem:
    """Parse a call from JSON text. With `only`, other keys are an error."""
    try:
        decoded: tuple[object, int] = _JSON.raw_decode(content)
    except RecursionError:
        return _problem(content, "it is nested too deeply")
    except ValueError as error:
        return _problem(content, f"it is no JSON ({error})")
    if content[decoded[1] :].strip():
        return _problem(content, f"after its JSON comes {_beginning(content[decoded[1] :])}")
    if not isinstance(decoded[0], dict):
        return _problem(content, "it is no JSON object")
    fields = cast("dict[str, object]", decoded[0])
    name = fields.get("name")
    if not isinstance(name, str) or not name.strip():
        return _problem(content, '"name" is not the name of a tool')
    if not isinstance(fields.get("arguments"), dict):
        return _problem(content, f'"arguments" of {one_line(name)} is no JSON object; for none write {{}}')
    if only is not None and fields.keys() != only:
        return _problem(content, f"it has other keys than {', '.join(sorted(only))}")
    return PromptCall(name=name.strip(), arguments=_written_values(content)["arguments"])


def _written_values(content: str) -> dict[str, str]:
    """Return the raw text of each value of a valid JSON object. Of equal keys the last wins, as in JSON."""
    values: dict[str, str] = {}
    at = _past(_BETWEEN, content, 1)
    while content[at] != "}":
        key, end = cast("tuple[str, int]", _JSON.raw_decode(content, at))
        start = _past(_BETWEEN, content, end)
        end = _JSON.raw_decode(content, start)[1]
        values[key] = content[start:end]
        at = _past(_BETWEEN, content, end)
    return values


def _past(spaces: re.Pattern[str], text: str, at: int, limit: int | None = None) -> int:
    match = spaces.match(text, at, len(text) if limit is None else limit)
    return match.end() if match else at


def unreadable(content: str, reason: str = "it is no JSON") -> str:
    """Return the error text for the model about an unreadable call."""
    return PROBLEM.format(reason=reason, beginning=_beginning(content))


def _problem(content: str, reason: str) -> _Problem:
    return _Problem(text=unreadable(content, reason))


def _beginning(text: str) -> str:
    start = one_line(text)
    return start if len(start) <= BEGINNING_LENGTH else f"{start[:BEGINNING_LENGTH]}…"


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


# Only the text of the numbers is used. Parsed as floats, they may have any number of digits.
_JSON = json.JSONDecoder(parse_int=float, parse_constant=_refuse_constant)


RULE = "P11"
CALLS = "calls written as text, for a model without native ones"
RESULT_AS_TEXT = "result written as text, for a model without native calls"
STATE_LEFT_OUT = "{name} of {maker} left out: words cannot carry it"


def as_prompted(messages: Sequence[Message], locale: str = "en", form: CallForm = "fenced") -> Draft:
    """Write calls as text after a blank line, and results as user messages, each with a note.

    The first result comes with an explanation of the format. Files in results become marks. Provider state of calls and
    results is left out, and the note says so.
    """
    names: dict[str, str] = {}
    explanation = RESULTS_COME_SO[language(locale)]
    new_messages: list[Message] = []
    notes: dict[int, Note] = {}
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            names |= {call.id: call.name for call in message.tool_calls}
            new_messages.append(memoise(message, _with_calls_in_words, form))
            notes[place] = _note(CALLS, [call.state for call in message.tool_calls])
        elif isinstance(message, ToolMessage):
            new_messages.append(memoise(message, _result_in_words, names.get(message.tool_call_id, ""), explanation))
            explanation = ""
            notes[place] = _note(RESULT_AS_TEXT, message.parts)
        else:
            new_messages.append(message)
    return Draft(messages=tuple(new_messages), origins=range(len(new_messages)), notes=notes)


def _note(reason: str, parts: Sequence[ToolPart | None]) -> Note:
    states = [part for part in parts if isinstance(part, Opaque)]
    omissions = [STATE_LEFT_OUT.format(name=state.name, maker=state.model or state.provider) for state in states]
    return Note(decision="repaired", rule=RULE, reason="; ".join(dict.fromkeys((reason, *omissions))))


def _with_calls_in_words(message: AssistantMessage, form: CallForm) -> AssistantMessage:
    parts = list[AssistantPart]()
    for part in message.parts:
        text = call_text(part.name, part.arguments, form) if isinstance(part, ToolCall) else ""
        text = part.text if isinstance(part, Text) else text
        if not isinstance(part, (Text, ToolCall)):
            parts.append(part)
        elif parts and isinstance(before := parts[-1], Text):
            # Merge neighbouring texts: simple servers need a string, and only a single text is sent as a string
            parts[-1] = Text(text=f"{before.text}\n\n{text}")
        else:
            parts.append(Text(text=text))
    return replace(message, parts=tuple(parts))


def _result_in_words(message: ToolMessage, name: str, explanation: str) -> UserMessage:
    shown_parts = [part for part in message.parts if not isinstance(part, Opaque)]
    content = "\n".join([part.text if isinstance(part, Text) else file_mark(part) for part in shown_parts])
    # Text has no error flag, so the text itself must report the failure.
    if message.error is not None and not content.startswith(FAILED):
        content = f"{FAILED}{content or message.error}"
    text = "\n\n".join(filter(None, (explanation, tool_result_text(name, content))))
    return UserMessage(id=message.id, seq=message.seq, time=message.time, parts=(Text(text=text),))
