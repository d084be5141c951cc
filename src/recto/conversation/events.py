"""Events of a run: what readers hear of it, as values and as the AG-UI JSON that is stored and sent.

Neighbouring deltas become one. Stored events are AG-UI 1.0; older clients die on a few of its fields, and get what
`for_older_client` makes of them, under the same numbers. What was heard of a message that no log has is discarded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from recto.conversation.attachment import FileRef, with_files
from recto.conversation.json import Json, dump, load_object

DISCARDED, UI = "recto.discarded", "recto.ui"
# Whoever reads an event has to hold it.
MOST_SAID = 8_192
ENDS = (b'{"type":"RUN_FINISHED"', b'{"type":"RUN_ERROR"')
NAMES_THREAD = (b'{"type":"RUN_STARTED"', b'{"type":"RUN_FINISHED"')


@dataclass(frozen=True, kw_only=True)
class RunStarted:
    """The run is being worked on."""

    thread: str
    run: str
    parent: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunFinished:
    """The run ended as it should. `pending` are calls that are the client's to answer."""

    thread: str
    run: str
    outcome: Literal["success", "cancelled"] = "success"
    pending: tuple[str, ...] = ()
    finish: str | None = None
    usage: Mapping[str, Json] | None = None


@dataclass(frozen=True, kw_only=True)
class RunFailed:
    """The run ended otherwise: why, in words and as a code."""

    message: str
    code: str
    usage: Mapping[str, Json] | None = None


@dataclass(frozen=True, kw_only=True)
class TextStarted:
    """The model begins to answer."""

    message: str


@dataclass(frozen=True, kw_only=True)
class TextSaid:
    """More words."""

    message: str
    delta: str


@dataclass(frozen=True, kw_only=True)
class TextEnded:
    """The answer is whole."""

    message: str


@dataclass(frozen=True, kw_only=True)
class ReasoningStarted:
    """The model begins to think aloud."""

    message: str


@dataclass(frozen=True, kw_only=True)
class ReasoningSaid:
    """More thoughts."""

    message: str
    delta: str


@dataclass(frozen=True, kw_only=True)
class ReasoningEnded:
    """The thoughts are whole."""

    message: str


@dataclass(frozen=True, kw_only=True)
class CallOpened:
    """The model begins a call."""

    call: str
    name: str
    message: str


@dataclass(frozen=True, kw_only=True)
class CallSaid:
    """More of a call's arguments. `files` are those its ids stand for, where whoever gets it needs their urls (F8)."""

    call: str
    delta: str
    files: tuple[FileRef, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CallClosed:
    """The call is whole."""

    call: str


@dataclass(frozen=True, kw_only=True)
class CallAnswered:
    """A tool's result. `content` is what AG-UI calls the content of a tool message."""

    message: str
    call: str
    content: Json


@dataclass(frozen=True, kw_only=True)
class ActivityUpdate:
    """How something goes that is no part of the conversation. It takes the place of what stood under this id."""

    message: str
    activity: str
    content: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class Discarded:
    """What was said under this message id does not count: the log never had it whole, and it is said again."""

    message: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class UiUpdate:
    """How a message can be shown: the `uiSchema` of the hints in it."""

    message: str
    schema: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class MessagesSnapshot:
    """The conversation as it is, in AG-UI form: readers put it in the place of what they have."""

    messages: Sequence[Json]


Event: TypeAlias = (
    RunStarted
    | RunFinished
    | RunFailed
    | TextStarted
    | TextSaid
    | TextEnded
    | ReasoningStarted
    | ReasoningSaid
    | ReasoningEnded
    | CallOpened
    | CallSaid
    | CallClosed
    | CallAnswered
    | ActivityUpdate
    | Discarded
    | UiUpdate
    | MessagesSnapshot
)
DeltaEvent: TypeAlias = TextSaid | ReasoningSaid | CallSaid


def merge(events: Sequence[Event]) -> list[Event]:
    """The same story in fewer events: deltas of one thing that follow each other become one, activities the last.

    One event says up to `MOST_SAID` characters.
    """
    merged: list[Event] = []
    pieces: list[str] = []
    for event in events:
        if merged and isinstance(event, ActivityUpdate) and _is_newer(merged[-1], event):
            merged[-1] = event
            continue
        if merged and isinstance(event, DeltaEvent) and _is_more_of(merged[-1], event):
            pieces.append(event.delta)
            continue
        _join(merged, pieces)
        pieces = [event.delta] if isinstance(event, DeltaEvent) else []
        merged.append(event)
    _join(merged, pieces)
    return merged


def _is_newer(last: Event, event: ActivityUpdate) -> bool:
    return isinstance(last, ActivityUpdate) and last.message == event.message


def _is_more_of(last: Event, event: DeltaEvent) -> bool:
    if isinstance(last, CallSaid) and isinstance(event, CallSaid):
        # Ids are put in the place of urls in whole arguments only.
        return last.call == event.call and not (last.files or event.files)
    if isinstance(last, (TextSaid, ReasoningSaid)) and not isinstance(event, CallSaid):
        return type(last) is type(event) and last.message == event.message
    return False


def _join(merged: list[Event], pieces: Sequence[str]) -> None:
    last, words = merged[-1] if merged else None, "".join(pieces)
    if not isinstance(last, DeltaEvent) or (isinstance(last, CallSaid) and last.files):
        return
    merged[-1:] = [replace(last, delta=words[at : at + MOST_SAID]) for at in range(0, len(words) or 1, MOST_SAID)]


def encode_event(event: Event) -> list[bytes]:
    """An event as the AG-UI events it is made of; `type` always comes first."""
    match event:
        case TextSaid():
            return [dump({"type": "TEXT_MESSAGE_CONTENT", "messageId": event.message, "delta": event.delta})]
        case CallSaid():
            said = {"type": "TOOL_CALL_ARGS", "toolCallId": event.call, "delta": event.delta}
            return [with_files(said, event.files) if event.files else dump(said)]
        case ReasoningSaid():
            return [dump({"type": "REASONING_MESSAGE_CONTENT", "messageId": event.message, "delta": event.delta})]
        case TextStarted():
            return [dump({"type": "TEXT_MESSAGE_START", "messageId": event.message, "role": "assistant"})]
        case TextEnded():
            return [dump({"type": "TEXT_MESSAGE_END", "messageId": event.message})]
        case ReasoningStarted(message=message):
            start = {"type": "REASONING_MESSAGE_START", "messageId": message, "role": "reasoning"}
            return [dump({"type": "REASONING_START", "messageId": message}), dump(start)]
        case ReasoningEnded(message=message):
            return [dump({"type": f"REASONING_{end}", "messageId": message}) for end in ("MESSAGE_END", "END")]
        case CallOpened() | CallClosed() | CallAnswered():
            return [dump(_call(event))]
        case ActivityUpdate(message=message, activity=activity):
            snapshot = {"type": "ACTIVITY_SNAPSHOT", "messageId": message, "activityType": activity}
            return [dump(snapshot | {"content": event.content, "replace": True})]
        case Discarded():
            value = {"messageId": event.message, "reason": event.reason}
            return [dump({"type": "CUSTOM", "name": DISCARDED, "value": value})]
        case UiUpdate():
            value = {"messageId": event.message, "uiSchema": event.schema}
            return [dump({"type": "CUSTOM", "name": UI, "value": value})]
        case MessagesSnapshot():
            return [dump({"type": "MESSAGES_SNAPSHOT", "messages": event.messages})]
        case RunStarted() | RunFinished() | RunFailed():
            return [dump(_run(event))]


def _call(event: CallOpened | CallClosed | CallAnswered) -> Mapping[str, Json]:
    match event:
        case CallOpened(call=call, name=name, message=message):
            return {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": name, "parentMessageId": message}
        case CallClosed():
            return {"type": "TOOL_CALL_END", "toolCallId": event.call}
        case CallAnswered(message=message, call=call):
            result = {"type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": call}
            return result | {"content": event.content, "role": "tool"}


def _run(event: RunStarted | RunFinished | RunFailed) -> Mapping[str, Json]:
    match event:
        case RunStarted():
            start = {"type": "RUN_STARTED", "threadId": event.thread, "runId": event.run}
            return start | ({"parentRunId": event.parent} if event.parent else {})
        case RunFailed():
            failure: dict[str, Json] = {"type": "RUN_ERROR", "message": event.message, "code": event.code}
            return failure | ({"usage": [event.usage]} if event.usage else {})
        case RunFinished():
            pending: dict[str, Json] = {"pendingToolCallIds": event.pending} if event.pending else {}
            finish: dict[str, Json] = {"type": "RUN_FINISHED", "threadId": event.thread, "runId": event.run}
            finish |= {"result": {"finish": event.finish}} if event.finish else {}
            finish |= {"outcome": {"type": event.outcome} | pending}
            return finish | ({"usage": [event.usage]} if event.usage else {})


def ends_run(body: bytes) -> bool:
    """Whether nothing follows this event."""
    return body.startswith(ENDS)


def in_thread(body: bytes, thread: str) -> bytes:
    """The event with another name for its thread."""
    if not body.startswith(NAMES_THREAD):
        return body
    return dump({**(load_object(body) or {}), "threadId": thread})


def for_older_client(body: bytes) -> bytes:
    """The event as clients before AG-UI 1.0 take it. Most are the same; the end of a run is not."""
    if not ends_run(body):
        return body
    event = dict(load_object(body) or {})
    event.pop("usage", None)
    match event.pop("outcome", None):
        case {"type": "cancelled"}:
            return dump({"type": "RUN_ERROR", "message": "The run was cancelled.", "code": "cancelled"})
        case _:
            return dump(event)


def discard_lost(stored: Iterable[bytes], *, logged: Collection[str], reason: str) -> tuple[Event, ...]:
    """The events that close what stored events left open and name the messages the log does not have.

    A call belongs to the message that asked for it. What was discarded before is not discarded again.
    """
    still_open: dict[tuple[str, str], Event] = {}
    messages: dict[str, None] = {}
    for body in stored:
        match load_object(body):
            case {"type": "TEXT_MESSAGE_START", "messageId": str(id)}:
                still_open["text", id], messages[id] = TextEnded(message=id), None
            case {"type": "REASONING_START", "messageId": str(id)}:
                still_open["reasoning", id], messages[id] = ReasoningEnded(message=id), None
            case {"type": "TOOL_CALL_START", "toolCallId": str(call), "parentMessageId": str(id)}:
                still_open["call", call], messages[id] = CallClosed(call=call), None
            case {"type": "TEXT_MESSAGE_END", "messageId": str(id)}:
                still_open.pop(("text", id), None)
            case {"type": "REASONING_END", "messageId": str(id)}:
                still_open.pop(("reasoning", id), None)
            case {"type": "TOOL_CALL_END", "toolCallId": str(call)}:
                still_open.pop(("call", call), None)
            case {"type": "CUSTOM", "name": name, "value": {"messageId": str(id)}} if name == DISCARDED:
                messages.pop(id, None)
            case _:
                pass
    lost = [Discarded(message=id, reason=reason) for id in messages if id not in logged]
    return (*still_open.values(), *lost)
