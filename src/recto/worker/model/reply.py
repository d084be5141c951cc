"""A streamed reply of the model: its deltas become events for readers, and entries of the log when it ends."""

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
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, ReplyUsage, TextDelta, Usage

FINISHES: dict[str, Finish] = {"length": "length", "refused": "refused", "filtered": "filtered"}


def find_no_files(_tool: str, _arguments: str) -> tuple[FileRef, ...]:
    """Return no files, for a thread without any."""
    return ()


def run_on_server(_tool: str) -> Runner:
    """Return "server", for a run without client tools."""
    return "server"


def keep_id(id: str) -> str:
    """Return the provider's id unchanged, for a thread in which every call has a unique id."""
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
    """The part of a reply that has arrived. `id` is the id of its message, `reasoning_id` the id of its reasoning.

    Of the calls beyond `max_calls`, only the first is stored; it is answered with an error. Readers get the arguments
    of `buffered_tools` when they are complete, with the files that `files_of` finds in them. `runner_of` returns who
    runs a tool, and `call_id` converts a provider's id. `announced_events` are the events that readers have seen about
    starts and ends of parts.
    """

    id: str
    reasoning_id: str
    max_calls: int = 128
    buffered_tools: frozenset[str] = frozenset()
    files_of: Callable[[str, str], tuple[FileRef, ...]] = find_no_files
    runner_of: Callable[[str], Runner] = run_on_server
    call_id: Callable[[str], str] = keep_id
    words: list[str] = field(default_factory=list[str])
    thoughts: list[str] = field(default_factory=list[str])
    calls: dict[int, _Call] = field(default_factory=dict[int, _Call])
    usage: Usage | None = None
    end: ReplyEnd | None = None
    announced_events: list[Event] = field(default_factory=list[Event])
    # The start events of the open text or reasoning, and of each open call.
    _open_text: Event | None = None
    _open_calls: dict[ToolCallStarted, None] = field(default_factory=dict[ToolCallStarted, None])

    @property
    def is_empty(self) -> bool:
        """True if readers have seen nothing of the reply."""
        return not (self.words or self.thoughts or self.calls)

    @property
    def text(self) -> str:
        """Everything the model wrote: reasoning, text, arguments of calls."""
        arguments = [piece for call in self.calls.values() for piece in call.arguments]
        return "".join((*self.thoughts, *self.words, *arguments))

    def add(self, delta: Delta) -> list[Event]:
        """Add a delta and return its events for readers."""
        match delta:
            case TextDelta(text=text):
                self.words.append(text)
                content = TextContent(message=self.id, delta=text)
                # Fast path: most deltas continue the open text.
                if isinstance(self._open_text, TextStarted):
                    return [content]
                return [*self._begin(TextStarted(message=self.id)), content]
            case ReasoningDelta(text=text):
                self.thoughts.append(text)
                reasoning = ReasoningContent(message=self.reasoning_id, delta=text)
                return [*self._begin(ReasoningStarted(message=self.reasoning_id)), reasoning]
            case CallStarted() if len(self.calls) > self.max_calls:
                return []
            case CallStarted(index=index, id=provider_id, name=name):
                id = self.call_id(provider_id)
                self.calls[index] = _Call(id=id, provider_id=provider_id, name=name, runner=self.runner_of(name))
                return list(self._begin(ToolCallStarted(call=id, name=name, message=self.id)))
            case CallDelta(index=index) if index not in self.calls:
                return []
            case CallDelta(index=index, arguments=arguments):
                call = self.calls[index]
                call.arguments.append(arguments)
                is_buffered = call.name in self.buffered_tools
                return [] if is_buffered else [ToolCallArguments(call=call.id, delta=arguments)]
            case ReplyUsage(usage=usage):
                self.usage = usage
                return []
            case ReplyEnd():
                self.end = delta
                return []

    def close(self) -> list[Event]:
        """Return the events that end all open parts."""
        calls = {call.id: call for call in self.calls.values()}
        events = list[Event]()
        for start in self._open_calls:
            call = calls[start.call]
            arguments = "".join(call.arguments) if call.name in self.buffered_tools else ""
            if arguments:
                files = self.files_of(call.name, arguments)
                events.append(ToolCallArguments(call=call.id, delta=arguments, files=files))
            events.append(_end_of(start))
        events += [_end_of(self._open_text)] if self._open_text else []
        self._open_calls.clear()
        self._open_text = None
        return events

    def _begin(self, start: Event) -> Iterator[Event]:
        """Yield the events that begin a part, unless it is already open.

        End open text and reasoning; calls stay open.
        """
        if start == self._open_text or start in self._open_calls:
            return
        if self._open_text:
            yield self._announce(_end_of(self._open_text))
            self._open_text = None
        if isinstance(start, ToolCallStarted):
            self._open_calls[start] = None
        else:
            self._open_text = start
        yield self._announce(start)

    def _announce(self, event: Event) -> Event:
        self.announced_events.append(event)
        return event

    def entries(self, now: datetime, marker_id: str) -> list[Entry]:
        """Return the entries of the log: the reasoning, an unusual end of the reply, and its message."""
        finish = FINISHES.get(self.end.finish) if self.end else None
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
                own = next(calls, None) if isinstance(part, ToolCall) else part
                if own is not None:
                    yield own
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
