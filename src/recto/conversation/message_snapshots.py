"""A thread's messages as AG-UI clients get them: whole, each file by a url that is signed when it is told.

They go by the log's own ids: those a client gave may stand for several messages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TypeAlias

from recto.conversation.events import (
    DISCARDED,
    Event,
    MessagesSnapshot,
    RunFailed,
    RunFinished,
    RunStarted,
    ViewSnapshot,
    encode_event,
    ends_run,
)
from recto.conversation.history import FileUrlSigner, file_row, history_row, statuses_of, time_text
from recto.conversation.input import agui
from recto.conversation.input.input_entries import pending_calls
from recto.conversation.interrupts import interrupt_event, interrupts_of
from recto.conversation.json import Json, load_object
from recto.conversation.locale import DEFAULT_LOCALE
from recto.conversation.log import Entry, Interrupted, View, view
from recto.conversation.message_files import FileRef, arguments_for, clean_files, file_of, refs_in
from recto.conversation.messages import (
    ActivityMessage,
    AssistantMessage,
    File,
    Message,
    ReasoningMessage,
    Text,
    ToolCall,
    ToolMessage,
    Url,
    UserMessage,
    words_of,
)
from recto.conversation.thread_state import state_events
from recto.conversation.ui.compile_ui import load_hinted, ui_events

MessageRow: TypeAlias = Mapping[str, Json]
_Encoded: TypeAlias = tuple[Message, bytes]


@dataclass(frozen=True, kw_only=True)
class RenderContext:
    """How files are rendered: the url of each, what the ids in calls stand for, and whose calls keep their ids.

    `locale` is the agent's, for what is shown by hints. `most_bytes` is how much of a thread is told
    at once; None: all of it.
    """

    url_of: FileUrlSigner
    refs: Sequence[FileRef] = ()
    own_tools: frozenset[str] = frozenset()
    locale: str = DEFAULT_LOCALE
    most_bytes: int | None = None

    def arguments_of(self, call: ToolCall) -> str:
        """The arguments of a call as its tool gets them: those of clients' tools with urls (F8)."""
        if not call.is_for_client(otherwise=call.name not in self.own_tools):
            return call.arguments
        found = [(ref, self.url_of(file_of(ref))) for ref in refs_in(call.name, call.arguments, self.refs)]
        return arguments_for(call.name, call.arguments, {ref.id: url for ref, url in found if url is not None})


def message_rows(seen: View, context: RenderContext) -> tuple[MessageRow, ...]:
    """What is in view, in order; a reply that is not whole says so. Of more than is told at once, the newest turns."""
    return tuple([row for _, row in _rows(seen, context)])


def detailed_rows(seen: View, context: RenderContext, runs: Mapping[str, str]) -> tuple[MessageRow, ...]:
    """The rows of `message_rows` with what AG-UI has no place for: when and by which run, cards, files by their ids.

    `runs` are ids of runs by the messages they wrote.
    """
    return tuple([_detailed(row, message, context, runs.get(message.id)) for message, row in _rows(seen, context)])


def _detailed(row: MessageRow, message: Message, context: RenderContext, run: str | None) -> MessageRow:
    told = {**row, "timestamp": time_text(message.time) if message.time else None, "run": run}
    match message:
        case UserMessage():
            files = _files(message, context.url_of)
            return {**told, "files": files} if files else told
        case AssistantMessage() | ToolMessage():
            shown = history_row(message, context.url_of, context.locale)
            card = {"uiSchema": shown["uiSchema"]} if shown["uiSchema"] is not None else {}
            # A result is told as its event told it; an answer that says how it is shown has words of its own.
            has_words = isinstance(message, AssistantMessage) and "content" in row
            return {**told, **({"content": shown["content"]} if has_words else {}), **card}
        case _:
            return told


def _files(message: UserMessage, url_of: FileUrlSigner) -> Sequence[Json]:
    """Those of its files that are there, by the ids that the model knows them by (F4)."""
    prefix = message.response_id
    found = [(file, place, url_of(file)) for place, file in enumerate(clean_files(message))]
    return [file_row(file, f"{prefix}-{place}" if prefix else None, url) for file, place, url in found if url]


def _rows(seen: View, context: RenderContext) -> Sequence[tuple[Message, MessageRow]]:
    statuses = statuses_of(seen.markers)
    given_up = _given_up(seen)
    shown = [_without(message, given_up) for message in seen.messages] if given_up else seen.messages
    found = [(message, encoded) for message in shown if (encoded := _encoded(message, context))]
    newest = _newest(found, context.most_bytes)
    return [(message, _marked(load_object(encoded) or {}, statuses)) for message, encoded in newest]


def _given_up(seen: View) -> frozenset[str]:
    """The calls that nobody will answer any more: of replies that were broken off, and of turns that others followed.

    Clients take a call without a result for one that waits for them, and ask about it again.
    """
    broken_off = {marker.message for marker in seen.markers if isinstance(marker, Interrupted)}
    answered = {message.tool_call_id for message in seen.messages if isinstance(message, ToolMessage)}
    last = max((place for place, message in enumerate(seen.messages) if isinstance(message, UserMessage)), default=-1)
    return frozenset(
        call.id
        for place, message in enumerate(seen.messages)
        if isinstance(message, AssistantMessage) and (place < last or message.id in broken_off)
        for call in message.tool_calls
        if call.id not in answered
    )


def _without(message: Message, calls: frozenset[str]) -> Message:
    if not isinstance(message, AssistantMessage) or calls.isdisjoint(call.id for call in message.tool_calls):
        return message
    kept = tuple(part for part in message.parts if not (isinstance(part, ToolCall) and part.id in calls))
    return replace(message, parts=kept)


def _newest(found: Sequence[_Encoded], most: int | None) -> Sequence[_Encoded]:
    """What fits, from a user message on: what stands before it are results whose calls may not be here.

    The last message is told whatever its size.
    """
    sizes = list(accumulate(len(encoded) for _, encoded in reversed(found)))
    if most is None or not sizes or sizes[-1] <= most:
        return found
    kept = found[len(found) - max(1, sum(size <= most for size in sizes)) :]
    first = next((place for place, (message, _) in enumerate(kept) if isinstance(message, UserMessage)), 0)
    return kept[first:]


def _marked(row: MessageRow, statuses: Mapping[str, str]) -> MessageRow:
    status = statuses.get(str(row["id"]))
    return {**row, "status": status} if status else row


def _encoded(message: Message, context: RenderContext) -> bytes | None:
    """A message in AG-UI form. What clients have no place for is left out: provider state, files that are lost."""
    match message:
        case UserMessage() | ToolMessage():
            shown = [_shown(part, context.url_of) for part in message.parts if isinstance(part, (Text, File))]
            parts = tuple([part for part in shown if part is not None])
            told = _as_one(parts) if isinstance(message, ToolMessage) else parts
            return agui.encode(replace(message, parts=told, encrypted_value=None))
        case AssistantMessage():
            words = words_of(message)
            calls = [
                replace(call, state=None, encrypted_value=None, arguments=context.arguments_of(call))
                for call in message.tool_calls
            ]
            said = (*([Text(text=words)] if words else []), *calls)
            return agui.encode(replace(message, parts=said, encrypted_value=None)) if said else None
        case ReasoningMessage():
            return agui.encode(replace(message, encrypted_value=None)) if message.text else None
        case ActivityMessage():
            return agui.encode(message) if load_object(message.content) is not None else None
        case _:
            return None


def _shown(part: Text | File, url_of: FileUrlSigner) -> Text | File | None:
    if isinstance(part, Text):
        return part
    url = url_of(part)
    return replace(part, source=Url(url=url)) if url is not None else None


def _as_one(parts: tuple[Text | File, ...]) -> tuple[Text | File, ...]:
    """The parts of a result as its event told them: words alone are one text."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    return (Text(text="\n".join(texts)),) if texts and len(texts) == len(parts) else parts


# How types end that open something, and those that close it.
BEGUN, DONE = ("START", "STARTED"), ("END", "FINISHED")
STATE = b'{"type":"STATE_'


def join_events(log: Sequence[Entry], stored: Sequence[bytes], context: RenderContext) -> tuple[bytes, ...]:
    """What is told of a run, once it is said that it started, before the events that follow the stored ones.

    `log` is its thread's as it was when these were all its events.
    """
    told = _Told(logged=frozenset([entry.id for entry in log]))
    for body in stored:
        told.take(body)
    rows = _placed(message_rows(view(log), context), told.rows())
    end = [body for body in stored[-1:] if ends_run(body)]
    snapshot = encode_event(MessagesSnapshot(messages=rows))
    return (*snapshot, *told.again, *(end or told.still_open.values()))


def view_event(log: Sequence[Entry], snapshot: ViewSnapshot, context: RenderContext) -> bytes:
    """The event that a stored one stands for, of the log up to its entry. Lost thoughts are emptied, if need be."""
    rows = message_rows(view(log), context)
    lost = () if any(row["role"] == "reasoning" for row in rows) else snapshot.thoughts
    emptied: list[MessageRow] = [{"id": id, "role": "reasoning", "content": ""} for id in lost]
    return encode_event(MessagesSnapshot(messages=[*rows, *emptied]))[0]


def _placed(rows: Sequence[MessageRow], told: Mapping[str, MessageRow | None]) -> list[MessageRow]:
    """The rows of the log, and behind each what was told after it and only events have.

    Clients put results right behind the message whose calls they answer.
    """
    places = {str(row["id"]): place for place, row in enumerate(rows)}
    first = min((id for id in told if id in places), key=places.__getitem__, default=None)
    behind: dict[str | None, list[MessageRow]] = {}
    last: str | None = None
    for id, row in told.items():
        # A reply's thoughts stand before it in the log, whenever they were told.
        last = id if places.get(id, -1) > places.get(last or "", -1) else last
        if row is not None:
            behind.setdefault(last, []).append(row)
    placed, waiting = list[MessageRow](), list[MessageRow]()
    for row in rows:
        waiting += behind.pop(None, []) if row["id"] == first else []
        if row["role"] != "tool":
            placed += waiting
            waiting = []
        placed.append(row)
        waiting += behind.pop(str(row["id"]), [])
    return [*placed, *waiting, *behind.pop(None, [])]


@dataclass(kw_only=True)
class _Partial:
    """A message that the log does not have yet: its words, and its calls by their ids."""

    role: str
    words: list[str] = field(default_factory=list[str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    arguments: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def row(self, id: str) -> MessageRow:
        calls: list[Json] = [
            {"id": call, "type": "function", "function": {"name": name, "arguments": "".join(self.arguments[call])}}
            for call, name in self.names.items()
        ]
        # A message that only calls has no words, as in the log.
        content: dict[str, Json] = {"content": "".join(self.words)} if self.words or not calls else {}
        return {"id": id, "role": self.role} | content | ({"toolCalls": calls} if calls else {})


@dataclass(kw_only=True)
class _Told:
    """What whoever read all events has of a run. `again` is what is no message, and is told as it was."""

    logged: Collection[str]
    again: list[bytes] = field(default_factory=list[bytes])
    still_open: dict[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes])
    # In the order they were told; None for those the log has, and for activities.
    _replies: dict[str, _Partial | None] = field(default_factory=dict[str, "_Partial | None"])
    _activities: dict[str, MessageRow] = field(default_factory=dict[str, MessageRow])
    _parents: dict[str, str] = field(default_factory=dict[str, str])

    def rows(self) -> Mapping[str, MessageRow | None]:
        """All messages in the order they were told, with what only events have of them."""
        return {id: reply.row(id) if reply else self._activities.get(id) for id, reply in self._replies.items()}

    def take(self, body: bytes) -> None:
        """One more event."""
        event = load_object(body) or {}
        kind, _, phase = str(event.get("type")).rpartition("_")
        id = next((str(event[name]) for name in ("toolCallId", "messageId", "stepName") if name in event), "")
        if phase in BEGUN and kind != "RUN":
            self.still_open[kind, id] = body
        elif phase in DONE:
            self.still_open.pop((kind, id), None)
        self._take_words(event, id)
        self._take_rest(event, id, body)

    def _take_words(self, event: MessageRow, id: str) -> None:
        match event:
            case {"type": "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START", "role": str(role)}:
                self._reply(id, role)
            case {"type": "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT", "delta": str(delta)}:
                if reply := self._replies.get(id):
                    reply.words.append(delta)
            case {"type": "TOOL_CALL_START", "toolCallName": str(name), "parentMessageId": str(parent)}:
                self._parents[id] = parent
                if reply := self._reply(parent, "assistant"):
                    reply.names[id] = name
                    reply.arguments.setdefault(id, [])
            case {"type": "TOOL_CALL_ARGS", "delta": str(delta)}:
                if reply := self._replies.get(self._parents.get(id, "")):
                    reply.arguments[id].append(delta)
            case _:
                pass

    def _take_rest(self, event: MessageRow, id: str, body: bytes) -> None:
        match event:
            case {"type": "ACTIVITY_SNAPSHOT", "activityType": kind, "content": content}:
                self._replies.setdefault(id, None)
                self._activities[id] = {"id": id, "role": "activity", "activityType": kind, "content": content}
            case {"type": "CUSTOM", "name": name, "value": {"messageId": str(lost)}} if name == DISCARDED:
                self._replies.pop(lost, None)
            case {"type": "STATE_SNAPSHOT"}:
                self.again = [*[one for one in self.again if not one.startswith(STATE)], body]
            case {"type": "STATE_DELTA" | "CUSTOM"}:
                self.again.append(body)
            case _:
                pass

    def _reply(self, id: str, role: str) -> _Partial | None:
        return self._replies.setdefault(id, None if id in self.logged else _Partial(role=role))


# Its start, the snapshot, and its end.
LEAST_EVENTS = 3
FINISHED = {
    **dict.fromkeys(("done", "success", "waiting")),
    **{outcome: outcome for outcome in ("length", "refused", "nothing_to_compact")},
}


@dataclass(frozen=True, kw_only=True)
class EndedRun:
    """A run as its row has it. `run` is the client's name for it, `events` how many it had."""

    thread: str
    run: str
    outcome: str
    events: int = 0
    error: str | None = None
    usage: Mapping[str, Json] | None = None


def snapshot_events(ended: EndedRun, log: Sequence[Entry], context: RenderContext) -> tuple[bytes, ...]:
    """That it started, the conversation as it left it, and how it ended. `log` is the thread's up to its last entry."""
    seen = view(log)
    start = RunStarted(thread=ended.thread, run=ended.run)
    state = state_events(seen)
    snapshot = MessagesSnapshot(messages=message_rows(seen, context))
    hints = _shown_by_hints(seen, ended.events - len(state), context.locale)
    events = (start, *state, snapshot, *hints, _end(ended, seen, context.locale))
    return tuple(body for event in events for body in encode_event(event))


def _shown_by_hints(seen: View, events: int, locale: str) -> tuple[Event, ...]:
    """How messages are shown that have hints: the newest, no more of them than the run had events to be numbered by."""
    found = [(message.id, words) for message in seen.messages if load_hinted(words := _spoken(message))]
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
    waiting = [one for one in interrupts_of(seen) if one.is_waiting] if ended.outcome == "waiting" else ()
    return RunFinished(
        thread=ended.thread,
        run=ended.run,
        pending=tuple(call.id for call in calls),
        interrupts=tuple([interrupt_event(one, locale) for one in waiting]),
        finish=FINISHED[ended.outcome],
        usage=ended.usage,
    )
