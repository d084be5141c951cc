"""Joining a run in its middle: the conversation so far, and what is open in it, so that what follows makes sense.

Whoever joins has the messages of whoever read from the start: those of the log, and those that only events have yet.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from recto.conversation.events import DISCARDED, MessagesSnapshot, ViewSnapshot, encode_event, ends_run
from recto.conversation.json import Json, load_object
from recto.conversation.log import Entry, view
from recto.conversation.snapshots.agui_messages import MessageRow, RenderContext, message_rows

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
