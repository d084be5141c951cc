"""Extraction of calls that a model writes into its text (P11), from a stream of deltas.

Text passes through immediately until a possible call begins. Later text waits until it is certainly not a call. A reply
with unreadable calls or an invented result has a `problem` instead of an end.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cache
from typing import Literal, TypeAlias

from recto.conversation.messages import AssistantPart, Text, ToolCall
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, ReplyUsage, TextDelta
from recto.page.prompt.tools_prompt import (
    CLOSE,
    FENCE,
    INVENTED_TAG,
    OPEN,
    RESULT_NAMES,
    TAG_FENCES,
    ParsedReply,
    PromptCall,
    fence_holds,
    parse_tool_calls,
    tag_holds,
)
from recto.worker.tools.call_forms import is_only_marks, may_be_shown, opening_holds, read_leading_calls
from recto.worker.tools.offered_tools import OfferedTools

_RESULT_FENCE = re.compile(FENCE)
_CODE = re.compile(r"``[^`\n]*``|`[^`\n]*`")
_TAG = re.compile(rf"[\s>*_#-]*{INVENTED_TAG}")
_RESULT_OPENS = re.compile(INVENTED_TAG)
_RESULT_CLOSES = re.compile(rf"(?i:</(?:{'|'.join(RESULT_NAMES)})s?\s*>|\[/TOOL_RESULTS\])")
# A result tag on a line of its own, possibly in a list, a quote or bold type.
_RESULT_LINE = re.compile(rf"^[ \t>*_#-]{{0,20}}{INVENTED_TAG}(?:[^<>\n]{{0,200}}>)?[*_ \t]{{0,9}}$", re.MULTILINE)
_ACTS = re.compile(r"^Action:", re.MULTILINE)
_OBSERVES = re.compile(r"^Observation:", re.MULTILINE)


def has_invented_result(text: str) -> bool:
    """Return True if a text contains a result: in tags, in a result fence, or after "Observation:".

    A result in backticks is only a mention.
    """
    words: list[str] = []
    # The closing mark of the open fence, and whether the next line is its first one, which may be a result.
    closing, is_judged = "", False
    for line in text.splitlines(keepends=True):
        if closing:
            if is_judged and _TAG.match(line):
                return True
            is_judged = is_judged and line.isspace()
            closing = "" if line.strip() == closing else closing
        elif opening := _RESULT_FENCE.fullmatch(line):
            kind = opening["info"].strip().lower()
            if kind.removesuffix("s") in RESULT_NAMES:
                return True
            closing, is_judged = opening["fence"], kind in TAG_FENCES or kind.startswith("tool_")
        else:
            words.append(line)
    plain = _CODE.sub("", "".join(words))
    opening, action = _RESULT_OPENS.search(plain), _ACTS.search(plain)
    return bool(
        (opening and (_RESULT_CLOSES.search(plain, opening.end()) or _RESULT_LINE.search(plain)))
        or (action and _OBSERVES.search(plain, action.end()))
    )


_NAMES = ("think", "thinking")
_OPENS = re.compile(rf"\s*<({'|'.join(_NAMES)})>\s*", re.IGNORECASE)
_LONGEST_TAG = max(map(len, _NAMES)) + len("</>")


class ThoughtInText:
    """Splitter of one reply into the reasoning in `<think>` tags and the text.

    A partial tag waits for the next piece.
    """

    def __init__(self) -> None:
        self._waits = ""
        self._place: Literal["start", "thought", "words"] = "start"
        self._closing = ""

    @property
    def is_open(self) -> bool:
        """True while the reply is inside its reasoning."""
        return self._place == "thought"

    def split(self, text: str) -> tuple[str, str]:
        """Return the reasoning and the text in the next piece of the reply."""
        text, self._waits = self._waits + text, ""
        if self._place == "start":
            if opening := _OPENS.match(text):
                self._place, self._closing = "thought", f"</{opening[1]}>"
                text = text[opening.end() :]
            elif not any(f"<{name}>".startswith(text.strip().lower()) for name in _NAMES):
                self._place = "words"
        if self._place == "words":
            return "", text
        thinking, closing, words = text.partition(self._closing) if self.is_open else (text, "", "")
        if closing:
            self._place = "words"
            return thinking, words
        return self._hold_back(thinking), ""

    def end(self) -> tuple[str, str]:
        """Return the text that is still waiting at the end of the reply, as reasoning or text."""
        waits, self._waits = self._waits, ""
        return (waits, "") if self.is_open else ("", waits)

    def _hold_back(self, thinking: str) -> str:
        """Return reasoning without a partial closing tag. Hold back a partial opening tag completely."""
        if not self.is_open:
            self._waits = thinking
            return ""
        for size in range(min(_LONGEST_TAG, len(thinking)), 0, -1):
            if self._closing.startswith(thinking[-size:]):
                self._waits = thinking[-size:]
                return thinking[:-size]
        return thinking


INVENTED = (
    "You wrote the result of a tool yourself. Tools alone write results. Call the tool and wait, or answer without one."
)
THOUGHT_ONLY = (
    "Your reply ended inside of your thought. End the thought with its closing tag, then call a tool or answer."
)
# Pattern for partial opening tags.
_OPEN_STARTS = "|".join(OPEN[:end] for end in range(1, len(OPEN)))
_RESULTS = ("[TOOL_RESULTS]", *[f"<{name}s" for name in RESULT_NAMES])
_RESULT_BEGUN = "|".join(sorted({re.escape(mark[:end]) for mark in _RESULTS for end in range(1, len(mark) + 1)}))
# Pattern for possible calls and results. A result at the start of a line is invented. A result within a line may be a
# mention, which only the end of the reply shows.
_MAYBE = re.compile(
    rf"(?<!`)(?:(?P<tag>{OPEN})|(?:{_OPEN_STARTS})\Z)"
    rf"|^[ \t]{{0,99}}(?:(?P<fence>`{{3}})|`{{0,2}}\Z|(?P<result>{INVENTED_TAG}[^`])|(?i:{_RESULT_BEGUN})\Z)",
    re.MULTILINE,
)
_FENCE = re.compile(FENCE)
_FENCE_BEGUN = re.compile(r"[ \t]{0,99}`{3,99}[^`\n]{0,200}\Z")
_BACKTICKS = re.compile(r"[ \t]*`+")
_CLOSING_BEGUN = re.compile(r"[ \t]{0,99}`{0,99}[ \t\r]{0,99}\Z")

# Place in a reply: in text, in a fence of text, in a fence that may contain a call, or after the first call, where all
# text waits.
_Place: TypeAlias = Literal["words", "fence", "maybe", "call"]


NO_TOOLS = OfferedTools()


class CallsInText:
    """The text of one reply. `feed` returns the text that can be passed on. `end` returns the remaining text and the
    calls.

    If the reply is interrupted, call `rest` instead of `end`. Waiting text is short or examined by whole lines, so any
    reply takes linear time.
    """

    def __init__(self, new_id: Iterator[str], tools: OfferedTools = NO_TOOLS, *, is_native: bool = False) -> None:
        """With `is_native`, tools are offered natively too, and fenced JSON is a call only if its tool is offered."""
        self._new_id = new_id
        self._thoughts = ThoughtInText()
        self._tools = tools
        self._native_tools = tools if is_native else None
        # Native calls that have the name of a skill. They are renamed and emitted at the end.
        self._renamed: dict[int, list[str]] = {}
        # The kind of the beginning once it is certain, and the length at which to check the beginning again.
        self._opening_is: Literal["call", "words"] | None = None if tools else "words"
        self._until_look = 1
        self._beginning: list[str] = []
        # The reason why the reply is unusable.
        self.problem = ""
        self._is_invented = False
        self._words: list[str] = []
        self._passed = 0
        # The last character that was passed on (a line end at the start), then the examined text that waits.
        self._ahead = "\n"
        # The position in `_ahead` up to which the text is certainly not a call.
        self._safe: int = 1
        # Text that is not examined yet, and the newest line of a fence that may contain a call.
        self._more: list[str] = []
        self._line: list[str] = []
        self._place: _Place = "words"
        self._closing = _closing(3)
        # The length of the line that opened the current fence.
        self._opening: int = 0
        self._is_broken_off = False
        # Index of the next call. Native calls have the lower indexes.
        self._index = 0

    async def read(self, deltas: AsyncGenerator[Delta]) -> AsyncGenerator[Delta]:
        """Yield the deltas with the calls extracted from the text. Closing this generator closes the model's stream.

        A reply with a `problem` ends without a ReplyEnd, and the caller asks the model again.
        """
        async with aclosing(deltas):
            async for delta in deltas:
                for one in self.add(delta):
                    yield one

    def add(self, delta: Delta) -> list[Delta]:
        """Add a delta of the model and return the deltas that can be passed on now."""
        match delta:
            case TextDelta(text=text):
                return self._emit(*self._thoughts.split(text))
            case CallStarted(index=index):
                self._index = max(self._index, index + 1)
                name = self._tools.find(delta.name) or delta.name
                if self._tools.is_skill(name):
                    self._renamed[index] = [delta.id, name]
                return [] if index in self._renamed else [replace(delta, name=name)]
            case CallDelta(index=index) if index in self._renamed:
                self._renamed[index].append(delta.arguments)
                return []
            case ReplyEnd():
                if self._thoughts.is_open and delta.finish == "stop" and not self._index:
                    self.problem = THOUGHT_ONLY
                    return [ReplyUsage(usage=delta.usage)] if delta.usage else []
                return [*self._emit(*self._thoughts.end()), *self.end(delta)]
            case _:
                return [delta]

    def _emit(self, thoughts: str, words: str) -> list[Delta]:
        """Return the deltas for more reasoning and text that can be passed on."""
        passed = self.feed(words)
        deltas: list[Delta] = [TextDelta(text=passed)] if passed else []
        return [ReasoningDelta(text=thoughts), *deltas] if thoughts else deltas

    def feed(self, words: str) -> str:
        """Add text and return the part that is certainly not a call."""
        words = words if self._words else words.lstrip()
        if not words:
            return ""
        self._words.append(words)
        if self._opening_is is None:
            words = self._judge_opening(words)
        if self._opening_is != "words":
            return ""
        self._more.append(words)
        return self._pass_on() if self._is_worth_a_look(words) else ""

    def end(self, end: ReplyEnd) -> list[Delta]:
        """Return the remaining text, the calls, and the end. For a reply with a problem, return only its usage."""
        passed, reply = self._passed, self._parse("".join(self._words), is_cut=end.finish == "length")
        if reply.problems:
            self.problem = "\n".join(reply.problems)
            return [ReplyUsage(usage=end.usage)] if end.usage else []
        words = reply.words.rstrip()
        if reply.calls and is_only_marks(words[passed:]):
            words = words[:passed]
        calls = [
            ToolCall(id=next(self._new_id), name=call.name, arguments=call.arguments)
            for call in map(self._tools.settle, reply.calls)
        ]
        finish = "tool_calls" if calls and end.finish == "stop" else end.finish
        deltas: list[Delta] = [TextDelta(text=words[passed:])] if words[passed:] else []
        for index, (id, name, *pieces) in self._renamed.items():
            call = self._tools.settle(PromptCall(name=name, arguments="".join(pieces)))
            deltas += [CallStarted(index=index, id=id, name=call.name)]
            deltas += [CallDelta(index=index, arguments=call.arguments)]
        for index, call in enumerate(calls, self._index):
            deltas += [CallStarted(index=index, id=call.id, name=call.name)]
            deltas += [CallDelta(index=index, arguments=call.arguments)]
        parts = list[AssistantPart]()
        for part in end.parts:
            if isinstance(part, ToolCall):
                call = self._tools.settle(PromptCall(name=part.name, arguments=part.arguments))
                parts.append(replace(part, name=call.name, arguments=call.arguments))
            else:
                parts.append(part)
        return [*deltas, replace(end, finish=finish, parts=_in_order(parts, words, calls))]

    def _parse(self, text: str, *, is_cut: bool) -> ParsedReply:
        """Return the text and the calls of a complete reply, including calls in other forms than ours.

        If the reply reached its maximum length, drop a partial call at its end.
        """
        reply = parse_tool_calls(text, self._native_tools)
        half = text.rfind(OPEN)
        if is_cut and reply.problems and CLOSE not in text[half:]:
            reply = parse_tool_calls(text[:half], self._native_tools)
        if reply.problems or not reply.calls:
            leading = read_leading_calls(text[self._passed :], self._tools, is_cut=is_cut)
            if leading and leading.problem:
                return replace(reply, problems=reply.problems or (leading.problem,))
            if leading and ((leading.are_known or not self._passed) and not (reply.problems and leading.has_rest)):
                return self._check(ParsedReply(words=text[: self._passed], calls=leading.calls))
        if self._opening_is != "words":
            self._opening_is, self._more = "words", [text]
            self._pass_on()
        return self._check(reply)

    def _check(self, reply: ParsedReply) -> ParsedReply:
        """Reject a reply with an invented result if tools are offered, even if some of it was passed on."""
        is_made_up = self._is_invented or (bool(self._tools) and has_invented_result(reply.words))
        return replace(reply, problems=(INVENTED,)) if is_made_up else reply

    def _judge_opening(self, words: str) -> str:
        """Check if the reply begins with a call. Return the waiting text once it is certainly not a call.

        Check again only after the text has grown by an eighth, so that all checks together take linear time.
        """
        self._beginning.append(words)
        self._until_look -= len(words)
        if self._until_look > 0:
            return ""
        text = "".join(self._beginning)
        self._beginning = [text]
        self._until_look = max(1, len(text) // 8)
        self._opening_is = opening_holds(text, self._tools)
        return text

    def rest(self) -> str:
        """Return the waiting text of an interrupted reply that does not belong to a call. Drop text after a call."""
        self._is_broken_off = True
        if self._opening_is is None and may_be_shown("".join(self._beginning), self._tools):
            self._opening_is = "words"
            self._more += self._beginning
        return self._pass_on() if self._place in ("words", "fence") else ""

    def _is_worth_a_look(self, words: str) -> bool:
        match self._place:
            case "call":
                return False
            case "maybe":
                self._line.append(words)
                if "\n" not in words:
                    return False
                lines = "".join(self._line)
                self._line = [lines[lines.rfind("\n") + 1 :]]
                return self._closing.search(lines) is not None
            case _:
                # White space waits, because text before a call ends without trailing white space.
                return not words.isspace()

    def _pass_on(self) -> str:
        self._ahead += "".join(self._more)
        self._more.clear()
        while self._move():
            pass
        words = self._ahead[1 : self._safe].rstrip()
        self._ahead, self._safe = self._ahead[len(words) :], self._safe - len(words)
        self._passed += len(words)
        return words

    def _move(self) -> bool:
        """Advance over text, or to another place of the reply. Return False if more text is needed."""
        match self._place:
            case "call":
                return False
            case "maybe":
                return self._judge_fence()
            case "fence":
                return self._close_fence()
            case "words":
                match = _MAYBE.search(self._ahead, self._safe)
                self._safe = match.start() if match else len(self._ahead)
                if match and match["tag"]:
                    end = match.end()
                    holds = tag_holds(self._ahead, end)
                    if holds is None and self._is_broken_off and self._ahead[end:].strip():
                        holds = "words"
                    if holds == "call":
                        self._place = "call"
                    if holds == "words":
                        self._safe = end
                    return holds is not None
                if match and match["result"]:
                    # If tools are offered, a result in a reply is invented.
                    if self._tools:
                        self._is_invented, self._place = True, "call"
                    else:
                        self._safe = match.end()
                    return True
                return bool(match and match["fence"]) and self._open_fence()

    def _open_fence(self) -> bool:
        opening = _FENCE.match(self._ahead, self._safe)
        if opening is None:
            backticks = _BACKTICKS.match(self._ahead, self._safe)
            if backticks is None or _FENCE_BEGUN.match(self._ahead, self._safe):
                return False
            self._safe = backticks.end()
            return True
        holds = fence_holds(opening["info"], self._ahead, opening.end())
        if holds is None:
            return False
        self._closing = _closing(len(opening["fence"]))
        if holds == "words":
            self._place, self._safe = "fence", opening.end()
        else:
            self._place = "maybe"
            self._opening = opening.end() - self._safe
        return True

    def _close_fence(self) -> bool:
        """Advance to the end of a fence of text."""
        closing = self._closing.search(self._ahead, self._safe)
        if closing:
            self._place, self._safe = "words", closing.end()
            return True
        # The newest line may become the closing one.
        line = self._ahead.rfind("\n", self._safe - 1) + 1
        may_close = line and not self._is_broken_off and _CLOSING_BEGUN.match(self._ahead, line)
        self._safe = line if may_close else len(self._ahead)
        return False

    def _judge_fence(self) -> bool:
        """Decide if a closed fence is a call or text."""
        closing = self._closing.search(self._ahead, self._safe + self._opening)
        if closing is None:
            self._line = [self._ahead[self._ahead.rfind("\n") + 1 :]]
            return False
        fence = self._ahead[self._safe : closing.end()]
        reply = parse_tool_calls(fence, self._native_tools)
        leading = read_leading_calls(fence, self._tools)
        if reply.calls or reply.problems or (leading and (leading.are_known or leading.problem)):
            self._place = "call"
        else:
            self._place, self._safe = "words", closing.end()
        return True


@cache
def _closing(length: int) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]{{0,99}}`{{{length}}}[ \t\r]{{0,99}}\n", re.MULTILINE)


def _in_order(parts: Sequence[AssistantPart], words: str, calls: Sequence[ToolCall]) -> tuple[AssistantPart, ...]:
    """Return the parts of a reply: its text without calls replaces the first text, and the calls are at the end."""
    if not parts:
        return ()
    first = next((place for place, part in enumerate(parts) if isinstance(part, Text)), len(parts))
    texts = [Text(text=words)] if words else []
    others = [part for part in parts[first:] if not isinstance(part, Text)]
    return (*parts[:first], *texts, *others, *calls)
