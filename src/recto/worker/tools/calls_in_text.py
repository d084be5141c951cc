"""Calls a model writes into its words (P11): deltas in, deltas out, with the calls taken from the words.

Words are passed on as they come, up to where a call may begin; what follows waits until it is known to be none. Pure.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cache
from typing import Literal, TypeAlias

from recto.conversation.json import dump
from recto.conversation.messages import AssistantPart, Text, ToolCall
from recto.models.ports import CallDelta, CallStarted, Delta, ReplyEnd, TextDelta
from recto.page.prompt.tools_prompt import FENCE, OPEN, Parsed, fence_holds, parse_tool_calls, tag_holds

# A call that cannot be read goes by this name; its arguments are the problem, for the model to read.
UNREADABLE = "unreadable_call"
# The beginning of a tag, as far as it goes, or of a line that may open a fence.
_BEGUN = "|".join(OPEN[:end] for end in range(1, len(OPEN)))
_MAYBE = re.compile(
    rf"(?<!`)(?:(?P<tag>{OPEN})|(?:{_BEGUN})\Z)|^[ \t]{{0,99}}(?:(?P<fence>`{{3}})|`{{0,2}}\Z)", re.MULTILINE
)
_FENCE = re.compile(FENCE)
_FENCE_BEGUN = re.compile(r"[ \t]{0,99}`{3,99}[^`\n]{0,200}\Z")
_BACKTICKS = re.compile(r"[ \t]*`+")
_CLOSING_BEGUN = re.compile(r"[ \t]{0,99}`{0,99}[ \t\r]{0,99}\Z")

# Among words; in a fence of words; in a fence that may hold a call; after the first call, where all waits for the end.
_Place: TypeAlias = Literal["words", "fence", "maybe", "call"]


class CallsInText:
    """The words of one reply. `feed` gives what can be passed on already, `end` the rest and the calls.

    If the reply is broken off instead, `rest` gives what more of it is words. Text that waits is short or is looked at
    by whole lines, so that a reply of any shape costs linear time.
    """

    def __init__(self, new_id: Iterator[str]) -> None:
        self._new_id = new_id
        self._said: list[str] = []
        self._passed = 0
        # One character that was passed on (or stands for the start), then all that was looked at and was not.
        self._ahead = "\n"
        # Up to where that is known to be words.
        self._safe = 1
        # What was not looked at yet, and the newest line of a fence that may hold a call.
        self._more: list[str] = []
        self._line: list[str] = []
        self._place: _Place = "words"
        self._closing = _closing(3)
        # The length of the line that opened such a fence.
        self._opening: int = 0
        self._is_broken_off = False
        # Calls the model makes natively all the same have the lower numbers.
        self._index = 0

    async def read(self, deltas: AsyncGenerator[Delta]) -> AsyncGenerator[Delta]:
        """The deltas with the calls taken from the words. Closing it closes the model's."""
        async with aclosing(deltas):
            async for delta in deltas:
                for one in self.take(delta):
                    yield one

    def take(self, delta: Delta) -> list[Delta]:
        """One delta of the model's: what can be passed on after it."""
        match delta:
            case TextDelta(text=words):
                passed = self.feed(words)
                return [TextDelta(text=passed)] if passed else []
            case CallStarted(index=index):
                self._index = max(self._index, index + 1)
                return [delta]
            case ReplyEnd():
                return self.end(delta)
            case _:
                return [delta]

    def feed(self, words: str) -> str:
        """More words of the model: those of them that are certainly words."""
        words = words if self._said else words.lstrip()
        if not words:
            return ""
        self._said.append(words)
        self._more.append(words)
        return self._pass_on() if self._is_worth_a_look(words) else ""

    def end(self, ended: ReplyEnd) -> list[Delta]:
        """What is left of the words, then the calls, then how it ended."""
        parsed = parse_tool_calls("".join(self._said))
        words = parsed.words.rstrip()
        calls = [ToolCall(id=next(self._new_id), name=name, arguments=given) for name, given in _written(parsed)]
        finish = "tool_calls" if calls and ended.finish == "stop" else ended.finish
        deltas: list[Delta] = [TextDelta(text=words[self._passed :])] if words[self._passed :] else []
        for index, call in enumerate(calls, self._index):
            deltas += [CallStarted(index=index, id=call.id, name=call.name)]
            deltas += [CallDelta(index=index, arguments=call.arguments)]
        return [*deltas, replace(ended, finish=finish, parts=_in_order(ended.parts, words, calls))]

    def rest(self) -> str:
        """The reply was broken off: what waits and is no part of a call. What follows a call stays unsaid."""
        self._is_broken_off = True
        return self._pass_on() if self._place in ("words", "fence") else ""

    def _is_worth_a_look(self, words: str) -> bool:
        match self._place:
            case "call":
                return False
            case "maybe":
                return self._closes(words)
            case _:
                # White space waits: words before a call end without it.
                return not words.isspace()

    def _closes(self, words: str) -> bool:
        self._line.append(words)
        if "\n" not in words:
            return False
        lines = "".join(self._line)
        self._line = [lines[lines.rfind("\n") + 1 :]]
        return self._closing.search(lines) is not None

    def _pass_on(self) -> str:
        self._ahead += "".join(self._more)
        self._more.clear()
        while self._moved():
            pass
        words = self._ahead[1 : self._safe].rstrip()
        self._ahead, self._safe = self._ahead[len(words) :], self._safe - len(words)
        self._passed += len(words)
        return words

    def _moved(self) -> bool:
        """Move on over what is known to be words, if only to another place."""
        match self._place:
            case "call":
                return False
            case "maybe":
                return self._judge_fence()
            case "fence":
                return self._close_fence()
            case "words":
                found = _MAYBE.search(self._ahead, self._safe)
                self._safe = found.start() if found else len(self._ahead)
                if found and found["tag"]:
                    return self._judge_tag(found.end())
                return bool(found and found["fence"]) and self._open_fence()

    def _judge_tag(self, end: int) -> bool:
        holds = tag_holds(self._ahead, end)
        if holds is None and self._is_broken_off and self._ahead[end:].strip():
            holds = "words"
        if holds == "call":
            self._place = "call"
        if holds == "words":
            self._safe = end
        return holds is not None

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
        """A fence of words is words to its end, whatever stands in it."""
        closing = self._closing.search(self._ahead, self._safe)
        if closing:
            self._place, self._safe = "words", closing.end()
            return True
        # The newest line may become its last.
        line = self._ahead.rfind("\n", self._safe - 1) + 1
        may_close = line and not self._is_broken_off and _CLOSING_BEGUN.match(self._ahead, line)
        self._safe = line if may_close else len(self._ahead)
        return False

    def _judge_fence(self) -> bool:
        """Once it is closed, a fence that might have held a call is one, or words."""
        closing = self._closing.search(self._ahead, self._safe + self._opening)
        if closing is None:
            self._line = [self._ahead[self._ahead.rfind("\n") + 1 :]]
            return False
        parsed = parse_tool_calls(self._ahead[self._safe : closing.end()])
        if parsed.calls or parsed.problems:
            self._place = "call"
        else:
            self._place, self._safe = "words", closing.end()
        return True


@cache
def _closing(length: int) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]{{0,99}}`{{{length}}}[ \t\r]{{0,99}}\n", re.MULTILINE)


def _written(parsed: Parsed) -> list[tuple[str, str]]:
    unreadable = [(UNREADABLE, dump({"problem": problem}).decode()) for problem in parsed.problems]
    return [*((call.name, call.arguments) for call in parsed.calls), *unreadable]


def _in_order(parts: Sequence[AssistantPart], words: str, calls: Sequence[ToolCall]) -> tuple[AssistantPart, ...]:
    """The parts of a reply with its words, without the calls in them, where words began, and those calls at the end."""
    if not parts:
        return ()
    first = next((place for place, part in enumerate(parts) if isinstance(part, Text)), len(parts))
    said = [Text(text=words)] if words else []
    others = [part for part in parts[first:] if not isinstance(part, Text)]
    return (*parts[:first], *said, *others, *calls)
