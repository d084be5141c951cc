"""Replayed events of a run that has ended, made from the log: for readers who come when its own are gone (P7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from recto.conversation.attachment import FileRef, file_of, refs_in
from recto.conversation.events import Event, MessagesSnapshot, RunFailed, RunFinished, RunStarted, encode_event
from recto.conversation.history import FileUrlSigner, statuses_of
from recto.conversation.input import agui
from recto.conversation.input.take_input import pending_calls
from recto.conversation.input_files import arguments_for
from recto.conversation.interrupts import interrupt_event, interrupts_of
from recto.conversation.json import Json, load
from recto.conversation.locale import DEFAULT_LOCALE
from recto.conversation.log import Entry, View, view
from recto.conversation.messages import (
    AssistantMessage,
    File,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
    words_of,
)
from recto.conversation.ui.compile_ui import hinted, ui_events

# Its start, the snapshot, and its end.
LEAST_EVENTS = 3
FINISHED = {"done": None, "success": None, "length": "length", "refused": "refused", "waiting": None}


@dataclass(frozen=True, kw_only=True)
class EndedRun:
    """A run as its row has it. `run` is the client's name for it, `events` how many it had."""

    thread: str
    run: str
    outcome: str
    events: int = 0
    error: str | None = None
    usage: Mapping[str, Json] | None = None


@dataclass(frozen=True, kw_only=True)
class RenderContext:
    """How files are rendered: the url of each, what the ids in calls stand for, and whose calls keep their ids.

    `locale` is the agent's, for what is shown by hints.
    """

    url_of: FileUrlSigner
    refs: Sequence[FileRef] = ()
    own_tools: frozenset[str] = frozenset()
    locale: str = DEFAULT_LOCALE

    def arguments_of(self, call: ToolCall) -> str:
        """The arguments of a call as its tool gets them: those of clients' tools with urls (F8)."""
        if not call.is_for_client(otherwise=call.name not in self.own_tools):
            return call.arguments
        found = [(ref, self.url_of(file_of(ref))) for ref in refs_in(call.name, call.arguments, self.refs)]
        return arguments_for(call.name, call.arguments, {ref.id: url for ref, url in found if url is not None})


def snapshot_events(ended: EndedRun, log: Sequence[Entry], context: RenderContext) -> tuple[bytes, ...]:
    """That it started, the conversation as it left it, and how it ended. `log` is the thread's up to its last entry."""
    seen = view(log)
    start = RunStarted(thread=ended.thread, run=ended.run)
    statuses = statuses_of(seen.markers)
    rows = [_marked(row, statuses) for message in seen.messages for row in _rows(message, context)]
    snapshot = MessagesSnapshot(messages=rows)
    events = (start, snapshot, *_shown_by_hints(seen, ended.events, context.locale), _end(ended, seen, context.locale))
    return tuple(body for event in events for body in encode_event(event))


def _shown_by_hints(seen: View, events: int, locale: str) -> tuple[Event, ...]:
    """How messages are shown that have hints: the newest, no more of them than the run had events to be numbered by."""
    found = [(message.id, words) for message in seen.messages if hinted(words := _spoken(message))]
    first = max(0, len(found) - max(0, events - LEAST_EVENTS))
    return tuple(event for id, words in found[first:] for event in ui_events(id, words, locale))


def _spoken(message: Message) -> str:
    return words_of(message) if isinstance(message, (AssistantMessage, ToolMessage)) else ""


def _end(ended: EndedRun, seen: View, locale: str) -> RunFinished | RunFailed:
    if ended.outcome == "cancelled":
        return RunFinished(thread=ended.thread, run=ended.run, outcome="cancelled", usage=ended.usage)
    if ended.outcome not in FINISHED:
        return RunFailed(message=ended.error or "The run failed.", code=ended.outcome, usage=ended.usage)
    calls = pending_calls(seen) if ended.outcome == "waiting" else ()
    waiting = [one for one in interrupts_of(seen) if one.waits] if ended.outcome == "waiting" else ()
    return RunFinished(
        thread=ended.thread,
        run=ended.run,
        pending=tuple(call.id for call in calls),
        interrupts=tuple([interrupt_event(one, locale) for one in waiting]),
        finish=FINISHED[ended.outcome],
        usage=ended.usage,
    )


def _marked(row: Json, statuses: Mapping[str, str]) -> Json:
    """A reply that is not whole says so."""
    status = statuses.get(str(row["id"])) if isinstance(row, dict) else None
    return {**row, "status": status} if isinstance(row, dict) and status else row


def _rows(message: Message, context: RenderContext) -> Sequence[Json]:
    """A message in AG-UI form. What clients have no place for is left out: thoughts, provider state, lost files."""
    match message:
        case UserMessage() | ToolMessage():
            shown = [_shown(part, context.url_of) for part in message.parts if isinstance(part, (Text, File))]
            parts = tuple(part for part in shown if part is not None)
            return (load(agui.encode(replace(message, parts=parts, encrypted_value=None))),)
        case AssistantMessage():
            words = words_of(message)
            calls = [
                replace(call, state=None, encrypted_value=None, arguments=context.arguments_of(call))
                for call in message.tool_calls
            ]
            said = (*([Text(text=words)] if words else []), *calls)
            return (load(agui.encode(replace(message, parts=said, encrypted_value=None))),) if said else ()
        case _:
            return ()


def _shown(part: Text | File, url_of: FileUrlSigner) -> Text | File | None:
    if isinstance(part, Text):
        return part
    url = url_of(part)
    return replace(part, source=Url(url=url)) if url is not None else None
