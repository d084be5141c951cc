"""Snapshots of a thread's messages for AG-UI clients: for a running run, for one that ended, and for message lists.

Messages have the ids of the log, because one client id may denote several messages. Files get signed URLs.
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
# Suffixes of event types that open something, and of those that close it.
STARTS, ENDS = ("START", "STARTED"), ("END", "FINISHED")
STATE = b'{"type":"STATE_'
# The number of events that every run needs: the first event, the snapshot, and the last event.
LEAST_EVENTS = 3
FINISHED = {
    **dict.fromkeys(("done", "success", "waiting")),
    **{outcome: outcome for outcome in ("length", "refused", "nothing_to_compact")},
}


@dataclass(frozen=True, kw_only=True)
class RenderContext:
    """Inputs of rendering: signed URLs of files, file ids, the server's own tools, and the agent's locale.

    `most_bytes` limits the size of a message list; None sets no limit.
    """

    url_of: FileUrlSigner
    refs: Sequence[FileRef] = ()
    own_tools: frozenset[str] = frozenset()
    locale: str = DEFAULT_LOCALE
    most_bytes: int | None = None

    def arguments_of(self, call: ToolCall) -> str:
        """Return the arguments of a call as its tool gets them. Tools of the client get URLs (F8)."""
        if not call.is_for_client(otherwise=call.name not in self.own_tools):
            return call.arguments
        urls = [(ref, self.url_of(file_of(ref))) for ref in refs_in(call.name, call.arguments, self.refs)]
        return arguments_for(call.name, call.arguments, {ref.id: url for ref, url in urls if url is not None})


def message_rows(log_view: View, context: RenderContext) -> tuple[MessageRow, ...]:
    """Return the visible messages in order, with the status of incomplete replies; only the newest turns that fit."""
    return tuple([row for _, row in _rows(log_view, context)])


def detailed_rows(log_view: View, context: RenderContext, runs: Mapping[str, str]) -> tuple[MessageRow, ...]:
    """Return the rows of `message_rows` with fields that AG-UI lacks: time, run, cards, and file ids.

    `runs` maps ids of messages to the runs that wrote them.
    """
    return tuple(
        [_add_details(row, message, context, runs.get(message.id)) for message, row in _rows(log_view, context)]
    )


def _add_details(row: MessageRow, message: Message, context: RenderContext, run: str | None) -> MessageRow:
    detailed = {**row, "timestamp": time_text(message.time) if message.time else None, "run": run}
    match message:
        case UserMessage(response_id=prefix):
            # Files that still exist, under the ids that the model sees (F4).
            urls = [(file, place, context.url_of(file)) for place, file in enumerate(clean_files(message))]
            files = [file_row(file, f"{prefix}-{place}" if prefix else None, url) for file, place, url in urls if url]
            return {**detailed, "files": files} if files else detailed
        case AssistantMessage() | ToolMessage():
            shown_row = history_row(message, context.url_of, context.locale)
            card = {"uiSchema": shown_row["uiSchema"]} if shown_row["uiSchema"] is not None else {}
            # Replace the text of an answer with hints by its text for people. A result keeps the text of its event.
            has_text = isinstance(message, AssistantMessage) and "content" in row
            return {**detailed, **({"content": shown_row["content"]} if has_text else {}), **card}
        case _:
            return detailed


def _rows(log_view: View, context: RenderContext) -> Sequence[tuple[Message, MessageRow]]:
    messages = _without_abandoned_calls(log_view)
    newest = [(message, encoded) for message in messages if (encoded := _encode(message, context))]
    sizes, most = list(accumulate(len(encoded) for _, encoded in reversed(newest))), context.most_bytes
    if most is not None and sizes and sizes[-1] > most:
        # Begin at a user message, so that every result has its call. Always keep the last message.
        newest = newest[-max(1, sum(size <= most for size in sizes)) :]
        first = next((place for place, (message, _) in enumerate(newest) if isinstance(message, UserMessage)), 0)
        newest = newest[first:]
    statuses, rows = statuses_of(log_view.markers), list[tuple[Message, MessageRow]]()
    for message, encoded in newest:
        row = load_object(encoded) or {}
        status = statuses.get(str(row["id"]))
        rows.append((message, {**row, "status": status} if status else row))
    return rows


def _without_abandoned_calls(log_view: View) -> Sequence[Message]:
    """Return the visible messages without the unanswered calls of interrupted replies and past turns.

    Clients treat a call without a result as waiting and ask about it again.
    """
    messages = log_view.messages
    interrupted = {marker.message for marker in log_view.markers if isinstance(marker, Interrupted)}
    answered_calls = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    last = max((place for place, message in enumerate(messages) if isinstance(message, UserMessage)), default=-1)
    abandoned = frozenset(
        call.id
        for place, message in enumerate(messages)
        if isinstance(message, AssistantMessage) and (place < last or message.id in interrupted)
        for call in message.tool_calls
        if call.id not in answered_calls
    )

    def remove_calls(message: Message) -> Message:
        if not isinstance(message, AssistantMessage) or abandoned.isdisjoint(call.id for call in message.tool_calls):
            return message
        parts = [part for part in message.parts if not (isinstance(part, ToolCall) and part.id in abandoned)]
        return replace(message, parts=tuple(parts))

    return list(map(remove_calls, messages)) if abandoned else messages


def _encode(message: Message, context: RenderContext) -> bytes | None:
    """Encode a message in AG-UI form, without provider state and lost files. Return None if nothing is left."""
    match message:
        case UserMessage() | ToolMessage():
            parts = list[Text | File]()
            for part in message.parts:
                if isinstance(part, Text):
                    parts.append(part)
                elif isinstance(part, File) and (url := context.url_of(part)) is not None:
                    parts.append(replace(part, source=Url(url=url)))
            texts = [part.text for part in parts if isinstance(part, Text)]
            if isinstance(message, ToolMessage) and texts and len(texts) == len(parts):
                # Join the texts, as in the event of the result.
                parts = [Text(text="\n".join(texts))]
            return agui.encode(replace(message, parts=tuple(parts), encrypted_value=None))
        case AssistantMessage():
            words = words_of(message)
            calls = [
                replace(call, state=None, encrypted_value=None, arguments=context.arguments_of(call))
                for call in message.tool_calls
            ]
            content = (*([Text(text=words)] if words else []), *calls)
            return agui.encode(replace(message, parts=content, encrypted_value=None)) if content else None
        case ReasoningMessage():
            return agui.encode(replace(message, encrypted_value=None)) if message.text else None
        case ActivityMessage():
            return agui.encode(message) if load_object(message.content) is not None else None
        case _:
            return None


# A run in progress


def join_events(log: Sequence[Entry], stored_events: Sequence[bytes], context: RenderContext) -> tuple[bytes, ...]:
    """Return the events for a client that joins a run, between its first event and those after the stored ones.

    `log` is the thread's log as of the last stored event. The client ends with the same messages as one that read all
    events: those of the log, and those that only events contain so far.
    """
    replay = _EventReplay(logged=frozenset([entry.id for entry in log]))
    for body in stored_events:
        replay.add(body)
    rows = _insert_unlogged(message_rows(view(log), context), replay.rows())
    end = [body for body in stored_events[-1:] if ends_run(body)]
    snapshot = encode_event(MessagesSnapshot(messages=rows))
    return (*snapshot, *replay.other_events, *(end or replay.still_open.values()))


def view_event(log: Sequence[Entry], snapshot: ViewSnapshot, context: RenderContext) -> bytes:
    """Render a stored view snapshot from the log up to its entry.

    If the snapshot has no reasoning, lost reasoning messages are emptied, because clients would keep them.
    """
    rows = message_rows(view(log), context)
    lost_ids = () if any(row["role"] == "reasoning" for row in rows) else snapshot.thoughts
    emptied: list[MessageRow] = [{"id": id, "role": "reasoning", "content": ""} for id in lost_ids]
    return encode_event(MessagesSnapshot(messages=[*rows, *emptied]))[0]


def _insert_unlogged(rows: Sequence[MessageRow], event_rows: Mapping[str, MessageRow | None]) -> list[MessageRow]:
    """Insert rows that only events contain after the logged row that preceded them.

    Results stay directly after the message with their calls, as in clients.
    """
    places = {str(row["id"]): place for place, row in enumerate(rows)}
    first = min((id for id in event_rows if id in places), key=places.__getitem__, default=None)
    after: dict[str | None, list[MessageRow]] = {}
    last: str | None = None
    for id, row in event_rows.items():
        # The log has a reply's reasoning before the reply, whatever the order of their events.
        last = id if places.get(id, -1) > places.get(last or "", -1) else last
        if row is not None:
            after.setdefault(last, []).append(row)
    all_rows, waiting = list[MessageRow](), list[MessageRow]()
    for row in rows:
        waiting += after.pop(None, []) if row["id"] == first else []
        if row["role"] != "tool":
            all_rows += waiting
            waiting = []
        all_rows.append(row)
        waiting += after.pop(str(row["id"]), [])
    return [*all_rows, *waiting, *after.pop(None, [])]


@dataclass(kw_only=True)
class _PartialMessage:
    """A message that is not in the log yet: its text, and its calls by id."""

    role: str
    words: list[str] = field(default_factory=list[str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    arguments: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def row(self, id: str) -> MessageRow:
        calls: list[Json] = [
            {"id": call, "type": "function", "function": {"name": name, "arguments": "".join(self.arguments[call])}}
            for call, name in self.names.items()
        ]
        # A message with only calls has no content, as in the log.
        content: dict[str, Json] = {"content": "".join(self.words)} if self.words or not calls else {}
        return {"id": id, "role": self.role} | content | ({"toolCalls": calls} if calls else {})


@dataclass(kw_only=True)
class _EventReplay:
    """Messages and open steps after all stored events. `other_events` are sent again unchanged."""

    logged: Collection[str]
    other_events: list[bytes] = field(default_factory=list[bytes])
    still_open: dict[tuple[str, str], bytes] = field(default_factory=dict[tuple[str, str], bytes])
    # Messages in the order of their events. None for messages in the log and for activities.
    _messages: dict[str, _PartialMessage | None] = field(default_factory=dict[str, "_PartialMessage | None"])
    _activities: dict[str, MessageRow] = field(default_factory=dict[str, MessageRow])
    _parents: dict[str, str] = field(default_factory=dict[str, str])

    def rows(self) -> Mapping[str, MessageRow | None]:
        """Return all messages in the order of their events, with the rows of those that only events contain."""
        messages = self._messages.items()
        return {id: message.row(id) if message else self._activities.get(id) for id, message in messages}

    def add(self, body: bytes) -> None:
        event = load_object(body) or {}
        kind, _, phase = str(event.get("type")).rpartition("_")
        id = next((str(event[name]) for name in ("toolCallId", "messageId", "stepName") if name in event), "")
        if phase in STARTS and kind != "RUN":
            self.still_open[kind, id] = body
        elif phase in ENDS:
            self.still_open.pop((kind, id), None)
        match event:
            case {"type": "TEXT_MESSAGE_START" | "REASONING_MESSAGE_START", "role": str(role)}:
                self._start_message(id, role)
            case {"type": "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT", "delta": str(delta)}:
                if message := self._messages.get(id):
                    message.words.append(delta)
            case {"type": "TOOL_CALL_START", "toolCallName": str(name), "parentMessageId": str(parent)}:
                self._parents[id] = parent
                if message := self._start_message(parent, "assistant"):
                    message.names[id] = name
                    message.arguments.setdefault(id, [])
            case {"type": "TOOL_CALL_ARGS", "delta": str(delta)}:
                if message := self._messages.get(self._parents.get(id, "")):
                    message.arguments[id].append(delta)
            case {"type": "ACTIVITY_SNAPSHOT", "activityType": activity, "content": content}:
                self._messages.setdefault(id, None)
                self._activities[id] = {"id": id, "role": "activity", "activityType": activity, "content": content}
            case {"type": "CUSTOM", "name": name, "value": {"messageId": str(lost_id)}} if name == DISCARDED:
                self._messages.pop(lost_id, None)
            case {"type": "STATE_SNAPSHOT"}:
                self.other_events = [*[one for one in self.other_events if not one.startswith(STATE)], body]
            case {"type": "STATE_DELTA" | "CUSTOM"}:
                self.other_events.append(body)
            case _:
                pass

    def _start_message(self, id: str, role: str) -> _PartialMessage | None:
        return self._messages.setdefault(id, None if id in self.logged else _PartialMessage(role=role))


# A run that ended, from the log: for readers after its events were deleted (P7)


@dataclass(frozen=True, kw_only=True)
class EndedRun:
    """The row of a run that ended. `run` is the client's name of it, `events` the number of its events."""

    thread: str
    run: str
    outcome: str
    events: int = 0
    error: str | None = None
    usage: Mapping[str, Json] | None = None


def snapshot_events(ended_run: EndedRun, log: Sequence[Entry], context: RenderContext) -> tuple[bytes, ...]:
    """Return a start event, a snapshot, and the end event of a run. `log` ends with the last entry of the run."""
    log_view = view(log)
    state = state_events(log_view)
    # Send only the newest cards, so that there are no more events than the run had: each event needs a number.
    replies = (message for message in log_view.messages if isinstance(message, (AssistantMessage, ToolMessage)))
    cards = [(message.id, words) for message in replies if load_hinted(words := words_of(message))]
    first = max(0, len(cards) - max(0, ended_run.events - len(state) - LEAST_EVENTS))
    events: tuple[Event, ...] = (
        RunStarted(thread=ended_run.thread, run=ended_run.run),
        *state,
        MessagesSnapshot(messages=message_rows(log_view, context)),
        *[event for id, words in cards[first:] for event in ui_events(id, words, context.locale)],
        _end_event(ended_run, log_view, context.locale),
    )
    return tuple(body for event in events for body in encode_event(event))


def _end_event(ended_run: EndedRun, log_view: View, locale: str) -> RunFinished | RunFailed:
    thread, run, outcome, usage = ended_run.thread, ended_run.run, ended_run.outcome, ended_run.usage
    if outcome == "cancelled":
        return RunFinished(thread=thread, run=run, outcome="cancelled", usage=usage)
    if outcome not in FINISHED:
        return RunFailed(message=ended_run.error or "The run failed.", code=outcome, usage=usage)
    is_waiting = outcome == "waiting"
    calls = pending_calls(log_view) if is_waiting else ()
    interrupts = [one for one in interrupts_of(log_view) if one.is_waiting] if is_waiting else ()
    return RunFinished(
        thread=thread,
        run=run,
        pending=tuple(call.id for call in calls),
        interrupts=tuple([interrupt_event(one, locale) for one in interrupts]),
        finish=FINISHED[outcome],
        usage=usage,
    )
