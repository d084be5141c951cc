"""Events of a run, as values and as the AG-UI JSON that Recto stores and sends.

Stored events follow AG-UI 1.0. `for_older_client` adapts them to older clients, under the same numbers. Messages that
only events contain are discarded if they never reach the log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from recto.conversation.json import Json, dump, load_object
from recto.conversation.message_files import FileRef, encode_with_files

DISCARDED, UI = "recto.discarded", "recto.ui"
# The field of a stored view snapshot. Clients never receive it.
VIEW = "rectoView"
_VIEW = f'{{"type":"MESSAGES_SNAPSHOT","{VIEW}":'.encode()
# The largest delta in characters, because readers hold whole events in memory.
MAX_DELTA = 8_192
ENDS = (b'{"type":"RUN_FINISHED"', b'{"type":"RUN_ERROR"')
_STARTED = b'{"type":"RUN_STARTED"'
_RESULTS = (b'{"type":"TOOL_CALL_RESULT"', b'{"type":"MESSAGES_SNAPSHOT"')


@dataclass(frozen=True, kw_only=True)
class RunStarted:
    """The start of a run."""

    thread: str
    run: str
    parent: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunFinished:
    """The regular end of a run. `pending` are calls that the client must answer.

    With `interrupts`, in AG-UI form, the run waits for decisions of people.
    """

    thread: str
    run: str
    outcome: Literal["success", "cancelled"] = "success"
    pending: tuple[str, ...] = ()
    interrupts: tuple[Mapping[str, Json], ...] = ()
    finish: str | None = None
    usage: Mapping[str, Json] | None = None


@dataclass(frozen=True, kw_only=True)
class RunFailed:
    """The failure of a run, as a message and a code."""

    message: str
    code: str
    usage: Mapping[str, Json] | None = None


@dataclass(frozen=True, kw_only=True)
class TextStarted:
    """The start of an answer."""

    message: str


@dataclass(frozen=True, kw_only=True)
class TextContent:
    """A piece of an answer."""

    message: str
    delta: str


@dataclass(frozen=True, kw_only=True)
class TextEnded:
    """The end of an answer."""

    message: str


@dataclass(frozen=True, kw_only=True)
class ReasoningStarted:
    """The start of visible reasoning."""

    message: str


@dataclass(frozen=True, kw_only=True)
class ReasoningContent:
    """A piece of visible reasoning."""

    message: str
    delta: str


@dataclass(frozen=True, kw_only=True)
class ReasoningEnded:
    """The end of visible reasoning."""

    message: str


@dataclass(frozen=True, kw_only=True)
class ToolCallStarted:
    """The start of a tool call."""

    call: str
    name: str
    message: str


@dataclass(frozen=True, kw_only=True)
class ToolCallArguments:
    """A piece of a call's arguments. `files` are the files in complete arguments whose readers need URLs (F8)."""

    call: str
    delta: str
    files: tuple[FileRef, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ToolCallEnded:
    """The end of a tool call."""

    call: str


@dataclass(frozen=True, kw_only=True)
class ToolCallResult:
    """The result of a tool call. `content` is the content of an AG-UI tool message."""

    message: str
    call: str
    content: Json


@dataclass(frozen=True, kw_only=True)
class ActivityUpdate:
    """Progress outside the conversation. It replaces the previous content of its message id."""

    message: str
    activity: str
    content: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class Discarded:
    """The withdrawal of an incomplete message that is not in the log. The model writes it again."""

    message: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class UiUpdate:
    """The `uiSchema` of a message."""

    message: str
    schema: Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class MessagesSnapshot:
    """The whole conversation in AG-UI form. It replaces the client's messages."""

    messages: Sequence[Json]


@dataclass(frozen=True, kw_only=True)
class ViewSnapshot:
    """A snapshot of the log up to an entry, stored as the id of that entry and rendered when it is sent.

    `thoughts` are ids of lost reasoning messages. They are listed because clients keep reasoning that a snapshot lacks.
    """

    upto: str
    thoughts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StateSnapshot:
    """The whole state that the thread shares with its clients."""

    state: Json


@dataclass(frozen=True, kw_only=True)
class StateDelta:
    """Changes of the shared state, as JSON Patch."""

    operations: Sequence[Mapping[str, Json]]


@dataclass(frozen=True, kw_only=True)
class StepStarted:
    """The start of a slow step that has no other events."""

    step: str


@dataclass(frozen=True, kw_only=True)
class StepFinished:
    """The end of a step, successful or not."""

    step: str


Event: TypeAlias = (
    RunStarted
    | RunFinished
    | RunFailed
    | TextStarted
    | TextContent
    | TextEnded
    | ReasoningStarted
    | ReasoningContent
    | ReasoningEnded
    | ToolCallStarted
    | ToolCallArguments
    | ToolCallEnded
    | ToolCallResult
    | ActivityUpdate
    | Discarded
    | UiUpdate
    | MessagesSnapshot
    | ViewSnapshot
    | StateSnapshot
    | StateDelta
    | StepStarted
    | StepFinished
)
DeltaEvent: TypeAlias = TextContent | ReasoningContent | ToolCallArguments


def merge(events: Sequence[Event]) -> list[Event]:
    """Merge neighbouring deltas of one message or call, and keep only the last of consecutive activity updates.

    A merged delta has at most `MAX_DELTA` characters.
    """
    merged_events: list[Event] = []
    pieces: list[str] = []
    for event in events:
        last = merged_events[-1] if merged_events else None
        if isinstance(event, ActivityUpdate) and isinstance(last, ActivityUpdate) and last.message == event.message:
            merged_events[-1] = event
        elif last and isinstance(event, DeltaEvent) and _continues(last, event):
            pieces.append(event.delta)
        else:
            _join_pieces(merged_events, pieces)
            pieces = [event.delta] if isinstance(event, DeltaEvent) else []
            merged_events.append(event)
    _join_pieces(merged_events, pieces)
    return merged_events


def _continues(last: Event, event: DeltaEvent) -> bool:
    if isinstance(last, ToolCallArguments) and isinstance(event, ToolCallArguments):
        # Keep arguments with files separate, because file ids are replaced by URLs in complete arguments only.
        return last.call == event.call and not (last.files or event.files)
    if isinstance(last, (TextContent, ReasoningContent)) and not isinstance(event, ToolCallArguments):
        return type(last) is type(event) and last.message == event.message
    return False


def _join_pieces(events: list[Event], pieces: Sequence[str]) -> None:
    last, text = events[-1] if events else None, "".join(pieces)
    if not isinstance(last, DeltaEvent) or (isinstance(last, ToolCallArguments) and last.files):
        return
    events[-1:] = [replace(last, delta=text[at : at + MAX_DELTA]) for at in range(0, len(text) or 1, MAX_DELTA)]


def encode_event(event: Event) -> list[bytes]:
    """Encode an event as AG-UI events; `type` always comes first."""
    bodies = _event_bodies(event)
    if isinstance(event, ToolCallArguments) and event.files:
        return [encode_with_files(body, event.files) for body in bodies]
    return list(map(dump, bodies))


def _event_bodies(event: Event) -> Sequence[Mapping[str, Json]]:
    match event:
        case TextContent():
            return [{"type": "TEXT_MESSAGE_CONTENT", "messageId": event.message, "delta": event.delta}]
        case ToolCallArguments():
            return [{"type": "TOOL_CALL_ARGS", "toolCallId": event.call, "delta": event.delta}]
        case ReasoningContent():
            return [{"type": "REASONING_MESSAGE_CONTENT", "messageId": event.message, "delta": event.delta}]
        case TextStarted():
            return [{"type": "TEXT_MESSAGE_START", "messageId": event.message, "role": "assistant"}]
        case TextEnded():
            return [{"type": "TEXT_MESSAGE_END", "messageId": event.message}]
        case ToolCallStarted(call=call, name=name, message=message):
            return [{"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": name, "parentMessageId": message}]
        case ToolCallEnded():
            return [{"type": "TOOL_CALL_END", "toolCallId": event.call}]
        case ToolCallResult(message=message, call=call):
            result = {"type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": call}
            return [result | {"content": event.content, "role": "tool"}]
        case ActivityUpdate(message=message, activity=activity):
            snapshot = {"type": "ACTIVITY_SNAPSHOT", "messageId": message, "activityType": activity}
            return [snapshot | {"content": event.content, "replace": True}]
        case Discarded():
            value: dict[str, Json] = {"messageId": event.message, "reason": event.reason}
            return [{"type": "CUSTOM", "name": DISCARDED, "value": value}]
        case UiUpdate():
            value = {"messageId": event.message, "uiSchema": event.schema}
            return [{"type": "CUSTOM", "name": UI, "value": value}]
        case MessagesSnapshot():
            # Omit the status: AG-UI has no such field, and its clients warn about unknown fields.
            rows = [
                {name: value for name, value in row.items() if name != "status"} if isinstance(row, dict) else row
                for row in event.messages
            ]
            return [{"type": "MESSAGES_SNAPSHOT", "messages": rows}]
        case ViewSnapshot(upto=upto, thoughts=thoughts):
            return [{"type": "MESSAGES_SNAPSHOT", VIEW: {"upto": upto, "thoughts": thoughts}}]
        case StateSnapshot():
            return [{"type": "STATE_SNAPSHOT", "snapshot": event.state}]
        case StateDelta():
            return [{"type": "STATE_DELTA", "delta": event.operations}]
        case StepStarted():
            return [{"type": "STEP_STARTED", "stepName": event.step}]
        case StepFinished():
            return [{"type": "STEP_FINISHED", "stepName": event.step}]
        case ReasoningStarted(message=message):
            start = {"type": "REASONING_MESSAGE_START", "messageId": message, "role": "reasoning"}
            return [{"type": "REASONING_START", "messageId": message}, start]
        case ReasoningEnded(message=message):
            return [{"type": f"REASONING_{end}", "messageId": message} for end in ("MESSAGE_END", "END")]
        case RunStarted() | RunFinished() | RunFailed():
            return [_run_body(event)]


def _run_body(event: RunStarted | RunFinished | RunFailed) -> Mapping[str, Json]:
    match event:
        case RunStarted():
            start = {"type": "RUN_STARTED", "threadId": event.thread, "runId": event.run}
            return start | ({"parentRunId": event.parent} if event.parent else {})
        case RunFailed():
            failure: dict[str, Json] = {"type": "RUN_ERROR", "message": event.message, "code": event.code}
            return failure | ({"usage": [event.usage]} if event.usage else {})
        case RunFinished():
            finish: dict[str, Json] = {"type": "RUN_FINISHED", "threadId": event.thread, "runId": event.run}
            finish |= {"result": {"finish": event.finish}} if event.finish else {}
            if event.interrupts:
                finish["outcome"] = {"type": "interrupt", "interrupts": event.interrupts}
            else:
                pending = {"pendingToolCallIds": event.pending} if event.pending else {}
                finish["outcome"] = {"type": event.outcome} | pending
            return finish | ({"usage": [event.usage]} if event.usage else {})


def ends_run(body: bytes) -> bool:
    """Return True if this is the last event of a run."""
    return body.startswith(ENDS)


def starts_run(body: bytes) -> bool:
    """Return True if this is the first event of a run."""
    return body.startswith(_STARTED)


def rename_thread(body: bytes, name: str) -> bytes:
    """Return the event with the client's name of the thread."""
    event = load_object(body) if starts_run(body) or ends_run(body) else None
    return dump({**event, "threadId": name}) if event and "threadId" in event else body


def for_older_client(body: bytes) -> bytes:
    """Adapt an event for clients older than AG-UI 1.0. Only ends of runs and results with parts differ."""
    if body.startswith(_RESULTS) and b'"content":[' in body:
        event = dict(load_object(body) or {})
        if isinstance(messages := event.get("messages"), list):
            rows = [_flatten(row) if isinstance(row, dict) and row.get("role") == "tool" else row for row in messages]
            return dump(event | {"messages": rows})
        return dump(_flatten(event))
    if not ends_run(body):
        return body
    event = dict(load_object(body) or {})
    event.pop("usage", None)
    match event.pop("outcome", None):
        case {"type": "cancelled"}:
            return dump({"type": "RUN_ERROR", "message": "The run was cancelled.", "code": "cancelled"})
        case _:
            return dump(event)


def _flatten(result: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return a result with its parts joined to one text: older clients crash on a list."""
    parts = result.get("content")
    if not isinstance(parts, list):
        return result
    texts = [part.get("text") if "text" in part else dump(part).decode() for part in parts if isinstance(part, dict)]
    return {**result, "content": "\n".join(map(str, texts))}


def read_view_snapshot(body: bytes) -> ViewSnapshot | None:
    """Return the view snapshot in a stored event, or None."""
    if not body.startswith(_VIEW):
        return None
    match (load_object(body) or {}).get(VIEW):
        case {"upto": str(upto), "thoughts": list(thoughts)}:
            return ViewSnapshot(upto=upto, thoughts=tuple([str(id) for id in thoughts]))
        case _:
            return None


def discard_lost(
    stored_events: Iterable[bytes], *, logged: Collection[str], reason: str, upto: str
) -> tuple[Event, ...]:
    """Return events that close what stored events left open and discard messages that the log does not contain.

    The calls of a lost message get a result, so that no client runs them. A snapshot of the log up to the entry `upto`
    comes last. Messages that were discarded before are skipped.
    """
    still_open: dict[tuple[str, str], Event] = {}
    messages: dict[str, list[str]] = {}
    thoughts: set[str] = set()
    for body in stored_events:
        match load_object(body):
            case {"type": "TEXT_MESSAGE_START", "messageId": str(id)}:
                still_open["text", id] = TextEnded(message=id)
                messages.setdefault(id, [])
            case {"type": "REASONING_START", "messageId": str(id)}:
                still_open["reasoning", id] = ReasoningEnded(message=id)
                messages.setdefault(id, [])
                thoughts.add(id)
            case {"type": "TOOL_CALL_START", "toolCallId": str(call), "parentMessageId": str(id)}:
                still_open["call", call] = ToolCallEnded(call=call)
                messages.setdefault(id, []).append(call)
            case {"type": "TEXT_MESSAGE_END", "messageId": str(id)}:
                still_open.pop(("text", id), None)
            case {"type": "REASONING_END", "messageId": str(id)}:
                still_open.pop(("reasoning", id), None)
            case {"type": "TOOL_CALL_END", "toolCallId": str(call)}:
                still_open.pop(("call", call), None)
            case {"type": "STEP_STARTED", "stepName": str(step)}:
                still_open["step", step] = StepFinished(step=step)
            case {"type": "STEP_FINISHED", "stepName": str(step)}:
                still_open.pop(("step", step), None)
            case {"type": "CUSTOM", "name": name, "value": {"messageId": str(id)}} if name == DISCARDED:
                messages.pop(id, None)
            case _:
                pass
    lost_ids = [id for id in messages if id not in logged]
    if not lost_ids:
        return tuple(still_open.values())
    calls = dict.fromkeys(call for id in lost_ids for call in messages[id])
    return (
        *still_open.values(),
        *[ToolCallResult(message=f"{call}-discarded", call=call, content=reason) for call in calls],
        *[Discarded(message=id, reason=reason) for id in lost_ids],
        ViewSnapshot(upto=upto, thoughts=tuple([id for id in lost_ids if id in thoughts])),
    )
