"""Tools for models that have no native calls (P11): the prompt's block, calls read from text, results as text.

It judges the form of a call only. Whether a tool exists and its arguments match is for the tools to say.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from recto.conversation.input_files import one_line
from recto.conversation.json import dump, load
from recto.conversation.locale import language
from recto.conversation.messages import ToolOffer
from recto.errors import WireError
from recto.page.prompt.reminder import FRAME_TAGS, escape, neutralise

BLOCK = """\
<!-- TOOLS_START -->
{tools}
Note: tool arguments must strictly match args_schema.
<!-- TOOLS_END -->"""
HOW_TO_CALL = {
    "zh": """\
需要使用工具时，按下面的格式写出调用，每个调用一个标签，可以有多个：
<tool_call>{"name": "工具名", "arguments": {"参数名": "参数值"}}</tool_call>
写完调用就停下。结果会在下一条消息的 <tool_result> 中返回，不要自己编写结果。""",
    "en": """\
To use a tool, write the call as below, one tag for each call; there may be several:
<tool_call>{"name": "tool name", "arguments": {"argument name": "value"}}</tool_call>
Stop after the calls. Results come back in <tool_result> in the next message; never write a result yourself.""",
}
RESULT = '<tool_result name="{name}">\n{content}\n</tool_result>'
PROBLEM = """\
A tool call could not be read: {reason}. It began with: {beginning}
Write the whole call again between the tool_call tags, as one JSON object with "name" and "arguments"."""
SHOWN = 120

OPEN, CLOSE = "<tool_call>", "</tool_call>"
# A block without an object is a mistaken call only if it is closed so soon: words about the tag need not wait longer.
LONGEST_MISTAKE = 500
# The line that opens a fence. All its parts are bounded, so a line soon is one or is not.
FENCE = r"[ \t]{0,99}(?P<fence>`{3,99})(?P<info>[^`\n]{0,200})\n"
# A tag right after a backtick is talked about, not used.
_OPENS = re.compile(rf"(?<!`){OPEN}")
_INVENTED = re.compile(r"(?<!`)<tool_result\b")
_TAGS = re.compile(rf"{OPEN}|{CLOSE}|<tool_result\b")
_STARTS = re.compile(rf"(?<!`){OPEN}|^{FENCE}", re.MULTILINE)
_FENCE_ENDS = re.compile(r"^[ \t]{0,99}(?P<fence>`{3,99})[ \t\r]{0,99}$", re.MULTILINE)
_SPACE = re.compile(r"\s*")
_BETWEEN = re.compile(r"[\s,:]*")
JSON_FENCES = frozenset({"", "json"})
TAG_FENCES = JSON_FENCES | {"xml", "tool_call"}
CALL_KEYS = frozenset({"name", "arguments"})
_FIRST_KEYS = tuple(f'"{key}"' for key in sorted(CALL_KEYS))


@dataclass(frozen=True, kw_only=True)
class PromptCall:
    """A call read from text. `arguments` is the JSON object the model wrote, letter for letter."""

    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """What a reply says: its words without the calls, the calls, and for each unreadable call what to tell the model.

    Words before, between and after calls are trimmed and stand a blank line apart; a reply without calls is its words.
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
    """The block that offers the tools; no tools, no block. Parameters that are no JSON are a WireError.

    Nothing in a tool can end the block or add a line to it: line breaks in names and descriptions become spaces, and
    the `<` of our own tags and markers becomes `&lt;`, in schemas too.
    """
    return BLOCK.format(tools="\n".join(map(_offer, tools))) if tools else ""


def tools_section(tools: Sequence[ToolOffer], locale: str) -> str:
    """The end of the system prompt: the block, then how to call, in the locale's language."""
    return f"{build_tools_prompt(tools)}\n\n{HOW_TO_CALL[language(locale)]}" if tools else ""


def _offer(tool: ToolOffer) -> str:
    try:
        schema = dump(load(tool.parameters)).decode()
    except ValueError as error:
        raise WireError(where=f"tools.{tool.name}.parameters", problem=f"no JSON: {error}. Give a schema.") from error
    lines = (f"- {one_line(tool.name)}: {one_line(tool.description)}", f"- args_schema: {schema}")
    return "\n".join(neutralise(line, FRAME_TAGS) for line in lines)


def tool_result_text(name: str, content: str) -> str:
    """A result as the user text that brings it back. Our own tags in it are neutralised: one result stays one."""
    return RESULT.format(name=escape(one_line(name)), content=neutralise(content, FRAME_TAGS))


def parse_tool_calls(text: str) -> Parsed:
    """The calls in a reply: `<tool_call>` blocks, and fenced JSON that is nothing but a name and arguments.

    A block without its end tag is read if it is the last thing before another block or the end; so is a fence that
    begins with a call. Every other fence is words to its end, or to that of the reply, with whatever stands in it; so
    is a tag with no object after it. From a result that the model made up after a call, nothing is read.
    """
    pieces = tuple(_until_invented(_pieces(text, _STARTS)))
    calls = tuple(piece for piece in pieces if isinstance(piece, PromptCall))
    problems = tuple(piece.text for piece in pieces if isinstance(piece, _Problem))
    if not calls and not problems:
        return Parsed(words=text)
    words = (piece.text.strip() for piece in pieces if isinstance(piece, _Words))
    return Parsed(words="\n\n".join(filter(None, words)), calls=calls, problems=problems)


def tag_holds(text: str, at: int) -> Literal["call", "words"] | None:
    """What the tag that ends at `at` begins: a call, readable or not, or words. None: it takes more text to know."""
    limit = at + LONGEST_MISTAKE
    if text.startswith("{", _past(_SPACE, text, at, limit), limit):
        return "call"
    tag = _TAGS.search(text, at, limit)
    if tag is None:
        return "words" if len(text) >= limit else None
    return "call" if tag[0] == CLOSE else "words"


def fence_holds(info: str, text: str, at: int) -> Literal["tags", "object", "words"] | None:
    """What a fence with the content that begins at `at` may hold: calls in tags, a call as an object, or words alone.

    None: it takes more text to know.
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


def _until_invented(pieces: Iterable[_Piece]) -> Iterator[_Piece]:
    """What was said before a made up result. Even calls after it go: they were asked for without the real one."""
    called = False
    for piece in pieces:
        if not isinstance(piece, _Words):
            called = True
        elif called and (invented := _INVENTED.search(piece.text)):
            yield _Words(text=piece.text[: invented.start()])
            return
        yield piece


def _pieces(text: str, starts: re.Pattern[str]) -> Iterator[_Piece]:
    ends = _fence_ends(text)
    done = at = 0
    while start := starts.search(text, at):
        fence = start.groupdict().get("fence")
        found, at = _fenced(text, start, ends[len(fence)]) if fence else _tagged(text, start.end())
        if found:
            yield _Words(text=text[done : start.start()])
            yield from found
            done = at
    yield _Words(text=text[done:])


def _fence_ends(text: str) -> Mapping[int, list[re.Match[str]]]:
    """The lines that may end a fence, by its length, found once: a text of nothing but fences costs linear time."""
    ends: dict[int, list[re.Match[str]]] = defaultdict(list)
    for end in _FENCE_ENDS.finditer(text):
        ends[len(end["fence"])].append(end)
    return ends


def _tagged(text: str, at: int) -> tuple[list[_Piece], int]:
    """What a block holds, and where it ends. Tags inside a readable object belong to its strings."""
    if tag_holds(text, at) != "call":
        return [], at
    start = _past(_SPACE, text, at)
    tag = _TAGS.search(text, _object_end(text, start))
    content = text[start : tag.start() if tag else len(text)].rstrip()
    if tag is None:
        return [_call(content)], len(text)
    return [_call(content)], tag.end() if tag[0] == CLOSE else tag.start()


def _fenced(text: str, start: re.Match[str], ends: Sequence[re.Match[str]]) -> tuple[list[_Piece], int]:
    """The calls a fence holds, or nothing if it is words, and where it ends."""
    place = bisect_left(ends, start.end(), key=lambda end: end.start())
    stop, after = ends[place].span() if place < len(ends) else (len(text), len(text))
    content = text[start.end() : stop].strip()
    match fence_holds(start["info"], content, 0):
        case "tags":
            found = list(_pieces(content, _OPENS))
            return found if any(not isinstance(piece, _Words) for piece in found) else [], after
        case "object":
            call = _call(content, only=CALL_KEYS)
            return [call] if isinstance(call, PromptCall) else [], after
        case _:
            return [], after


def _object_end(text: str, start: int) -> int:
    if not text.startswith("{", start):
        return start
    try:
        # An error counts the lines before it, so a copy of the rest is the cheaper thing to hand over.
        return start + _JSON.raw_decode(text[start:])[1]
    except (ValueError, RecursionError):
        return start


def _call(content: str, only: frozenset[str] | None = None) -> PromptCall | _Problem:
    """The call a JSON text asks for. With `only`, it may have no other keys."""
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
    """The values of a JSON object known to be valid, each as it is written. Of equal keys the last wins, as in JSON."""
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
    found = spaces.match(text, at, len(text) if limit is None else limit)
    return found.end() if found else at


def _problem(content: str, reason: str) -> _Problem:
    return _Problem(text=PROBLEM.format(reason=reason, beginning=_beginning(content)))


def _beginning(text: str) -> str:
    start = one_line(text)
    return start if len(start) <= SHOWN else f"{start[:SHOWN]}…"


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


# Numbers are only skipped over; as floats they may have any number of digits.
_JSON = json.JSONDecoder(parse_int=float, parse_constant=_refuse_constant)
