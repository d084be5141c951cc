"""Calls a model writes into its words (P11): deltas in, deltas out, with the calls taken from the words.

Words are passed on as they come, up to where a call may begin; what follows waits until it is known to be none. Pure.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace

from recto.models.ports import CallDelta, CallStarted, Delta, Ended, TextDelta
from recto.page.canonical import dump
from recto.page.tools_prompt import OPEN, TAG_FENCES, parse_tool_calls

# A call that cannot be read goes by this name; its arguments are the problem, for the model to read.
UNREADABLE = "unreadable_call"
# The beginning of a tag, as far as it goes, or of a line that may open a fence.
_BEGUN = "|".join(OPEN[:end] for end in range(1, len(OPEN)))
_MAYBE = re.compile(rf"{OPEN}|(?:{_BEGUN})\Z|^[ \t]*(?:`{{3}}|`{{0,2}}\Z)", re.M)
_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,})(?P<info>[^`\n]*)(?P<end>\n?)")


async def with_calls(deltas: AsyncGenerator[Delta], new_id: Iterator[str]) -> AsyncGenerator[Delta]:
    """The deltas of a model that writes its calls as text, as those of one that has native calls."""
    text = CallsInText(new_id)
    async with aclosing(deltas):
        async for delta in deltas:
            for one in text.take(delta):
                yield one


class CallsInText:
    """The words of one reply. `feed` gives what can be told already, `end` the rest and the calls."""

    def __init__(self, new_id: Iterator[str]) -> None:
        self._new_id = new_id
        self._text = ""
        # How much was told, and up to where the rest is known to be words.
        self._told = self._safe = 0
        # The length of the fence that is open; it holds words.
        self._fence = 0
        self._lead = True

    def take(self, delta: Delta) -> list[Delta]:
        """One delta of the model's: what can be told after it."""
        match delta:
            case TextDelta(text=words):
                told = self.feed(words)
                return [TextDelta(text=told)] if told else []
            case Ended():
                return self.end(delta)
            case _:
                return [delta]

    def feed(self, words: str) -> str:
        """More words of the model: those of them that are certainly words."""
        if self._lead:
            words = words.lstrip()
            self._lead = not words
        self._text += words
        self._look()
        # White space waits: words before a call end without it.
        told = self._text[self._told : self._safe].rstrip()
        self._told += len(told)
        return told

    def end(self, ended: Ended) -> list[Delta]:
        """What is left of the words, then the calls, then how it ended."""
        parsed = parse_tool_calls(self._text)
        rest = parsed.words.rstrip()[self._told :]
        written = [(call.name, call.arguments) for call in parsed.calls]
        written += [(UNREADABLE, dump({"problem": problem}).decode()) for problem in parsed.problems]
        calls = [delta for index, call in enumerate(written) for delta in self._call(index, *call)]
        finish = "tool_calls" if written and ended.finish == "stop" else ended.finish
        return [*([TextDelta(text=rest)] if rest else []), *calls, replace(ended, finish=finish)]

    def _call(self, index: int, name: str, arguments: str) -> list[Delta]:
        return [CallStarted(index=index, id=next(self._new_id), name=name), CallDelta(index=index, arguments=arguments)]

    def _look(self) -> None:
        """Move on over what is known to be words, until it is all or something waits."""
        while self._moved():
            pass

    def _moved(self) -> bool:
        if self._fence:
            return self._leave_fence()
        found = _MAYBE.search(self._text, self._safe)
        self._safe = found.start() if found else len(self._text)
        fence = _FENCE.match(self._text, self._safe)
        if fence is None or not fence["end"] or self._may_hold_a_call(fence):
            return False
        self._fence, self._safe = len(fence["fence"]), fence.end()
        return True

    def _leave_fence(self) -> bool:
        """A fence of another language is words to its end, whatever stands in it."""
        closing = re.compile(rf"^[ \t]*`{{{self._fence}}}[ \t]*\n", re.M).search(self._text, self._safe)
        if closing is None:
            # Its newest line may become its last.
            self._safe = max(self._safe, self._text.rfind("\n") + 1)
            return False
        self._fence, self._safe = 0, closing.end()
        return True

    def _may_hold_a_call(self, fence: re.Match[str]) -> bool:
        content = self._text[fence.end() :].lstrip()
        is_other = fence["info"].strip().lower() not in TAG_FENCES
        return not is_other and (not content or content.startswith(("{", "<")))
