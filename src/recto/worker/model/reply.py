"""A reply of the model while it comes in: deltas in, events out, and in the end the entries it is in the log. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from recto.conversation.events import (
    Event,
    ReasoningContent,
    ReasoningEnded,
    ReasoningStarted,
    TextContent,
    TextEnded,
    TextStarted,
    ToolCallArguments,
    ToolCallEnded,
    ToolCallStarted,
)
from recto.conversation.log import Entry, Finish, ReplyEnded
from recto.conversation.message_files import FileRef
from recto.conversation.messages import AssistantMessage, AssistantPart, ReasoningMessage, Runner, Text, ToolCall
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta, Usage, Used

FINISHES: dict[str, Finish] = {"length": "length", "refused": "refused", "filtered": "filtered"}


def find_no_files(_tool: str, _arguments: str) -> tuple[FileRef, ...]:
    """A thread without files."""
    return ()


def run_on_server(_tool: str) -> Runner:
    """A run without tools of the client's."""
    return "server"


def keep_id(id: str) -> str:
    """A thread in which every call has another id."""
    return id


@dataclass(kw_only=True)
class _Call:
    id: str
    provider_id: str
    name: str
    runner: Runner
    arguments: list[str] = field(default_factory=list[str])


@dataclass(kw_only=True)
class Reply:
    """What the model has said so far. Its ids are given: `id` is the message's, `reasoning_id` that of its thoughts.

    Of calls beyond `most_calls` only the first is kept, so that it can be answered with that; others were never made.
    `announced` are the starts and ends readers have seen. Of the tools in `whole`, readers get the arguments once they
    are complete; `files_of` says, by the tool's name and the arguments, what files the ids in them stand for.
    `runner_of` says by the tool's name who is to run a call, `call_id` by the provider's id what it goes by.
    """

    id: str
    reasoning_id: str
    most_calls: int = 128
    whole: frozenset[str] = frozenset()
    files_of: Callable[[str, str], tuple[FileRef, ...]] = find_no_files
    runner_of: Callable[[str], Runner] = run_on_server
    call_id: Callable[[str], str] = keep_id
    words: list[str] = field(default_factory=list[str])
    thoughts: list[str] = field(default_factory=list[str])
    calls: dict[int, _Call] = field(default_factory=dict[int, _Call])
    usage: Usage | None = None
    end: ReplyEnd | None = None
    announced: list[Event] = field(default_factory=list[Event])
    # The words or thoughts that are open, behind the calls that are.
    _speaking: Event | None = None
    _open_calls: dict[ToolCallStarted, None] = field(default_factory=dict[ToolCallStarted, None])

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said that a reader has seen."""
        return not (self.words or self.thoughts or self.calls)

    @property
    def text(self) -> str:
        """Everything the model wrote: thoughts, words, calls."""
        arguments = [piece for call in self.calls.values() for piece in call.arguments]
        return "".join((*self.thoughts, *self.words, *arguments))

    def add(self, delta: Delta) -> list[Event]:
        """One more delta: the events that readers get of it."""
        match delta:
            case TextDelta(text=text):
                self.words.append(text)
                said = TextContent(message=self.id, delta=text)
                # Most deltas are more words of the text that is open.
                if isinstance(self._speaking, TextStarted):
                    return [said]
                return [*self._begin(TextStarted(message=self.id)), said]
            case ReasoningDelta(text=text):
                self.thoughts.append(text)
                thought = ReasoningContent(message=self.reasoning_id, delta=text)
                return [*self._begin(ReasoningStarted(message=self.reasoning_id)), thought]
            case CallStarted() if len(self.calls) > self.most_calls:
                return []
            case CallStarted(index=index, id=given, name=name):
                id = self.call_id(given)
                self.calls[index] = _Call(id=id, provider_id=given, name=name, runner=self.runner_of(name))
                return list(self._begin(ToolCallStarted(call=id, name=name, message=self.id)))
            case CallDelta(index=index) if index not in self.calls:
                return []
            case CallDelta(index=index, arguments=arguments):
                call = self.calls[index]
                call.arguments.append(arguments)
                return [] if call.name in self.whole else [ToolCallArguments(call=call.id, delta=arguments)]
            case Used(usage=usage):
                self.usage = usage
                return []
            case ReplyEnd():
                self.end = delta
                return []

    def close(self) -> list[Event]:
        """The events that end what is still open."""
        calls = {call.id: call for call in self.calls.values()}
        closed = [event for start in self._open_calls for event in (*self._rest(calls[start.call]), _end_of(start))]
        closed += [_end_of(self._speaking)] if self._speaking else []
        self._open_calls.clear()
        self._speaking = None
        return closed

    def _rest(self, call: _Call) -> Iterator[ToolCallArguments]:
        """The arguments of a call that readers have not heard any of yet."""
        arguments = "".join(call.arguments) if call.name in self.whole else ""
        if arguments:
            yield ToolCallArguments(call=call.id, delta=arguments, files=self.files_of(call.name, arguments))

    def _begin(self, start: Event) -> Iterator[Event]:
        """Begin a thing, unless it has begun. Words and thoughts end where another thing begins; calls go on."""
        if start == self._speaking or start in self._open_calls:
            return
        if self._speaking:
            yield self._announce(_end_of(self._speaking))
            self._speaking = None
        if isinstance(start, ToolCallStarted):
            self._open_calls[start] = None
        else:
            self._speaking = start
        yield self._announce(start)

    def _announce(self, event: Event) -> Event:
        self.announced.append(event)
        return event

    def entries(self, now: datetime, marker_id: str) -> list[Entry]:
        """The reply as the log has it: thoughts for people, the message, and how it ended if not by itself."""
        ended = self.end
        finish = FINISHES.get(ended.finish) if ended else None
        entries: list[Entry] = []
        if self.thoughts:
            entries.append(ReasoningMessage(id=self.reasoning_id, time=now, text="".join(self.thoughts)))
        if finish:
            entries.append(ReplyEnded(id=marker_id, time=now, message=self.id, finish=finish))
        return [*entries, AssistantMessage(id=self.id, time=now, parts=tuple(self._parts()))]

    def _parts(self) -> Iterator[AssistantPart]:
        calls = (self._call(index) for index in sorted(self.calls))
        if self.end and self.end.parts:
            for part in self.end.parts:
                kept = next(calls, None) if isinstance(part, ToolCall) else part
                if kept is not None:
                    yield kept
            return
        if self.end:
            yield from self.end.state
        if self.words:
            yield Text(text="".join(self.words))
        yield from calls

    def _call(self, index: int) -> ToolCall:
        call, state = self.calls[index], self.end.call_state.get(index) if self.end else None
        return ToolCall(
            id=call.id,
            name=call.name,
            arguments="".join(call.arguments),
            state=state,
            runner=call.runner,
            provider_id=call.provider_id if call.provider_id != call.id else "",
        )


def _end_of(start: Event) -> Event:
    match start:
        case ReasoningStarted(message=message):
            return ReasoningEnded(message=message)
        case ToolCallStarted(call=call):
            return ToolCallEnded(call=call)
        case TextStarted(message=message):
            return TextEnded(message=message)
        case _:
            raise AssertionError(start)
