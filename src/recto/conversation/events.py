"""Events of a run: what readers hear of it, as values and as the AG-UI JSON that is stored and sent.

Neighbouring deltas become one. Stored events are AG-UI 1.0; older clients die on a few of its fields, and get what
`for_older_client` makes of them, under the same numbers. What was heard of a message that no log has is discarded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from recto.conversation.json import Json, dump, load_object
from recto.conversation.message_files import FileRef, encode_with_files

DISCARDED, UI = "recto.discarded", "recto.ui"
# Under this name in a stored event; nobody is ever sent it.
VIEW = "rectoView"
_VIEW = f'{{"type":"MESSAGES_SNAPSHOT","{VIEW}":'.encode()
# Whoever reads an event has to hold it.
MAX_DELTA = 8_192
ENDS = (b'{"type":"RUN_FINISHED"', b'{"type":"RUN_ERROR"')
_STARTED = b'{"type":"RUN_STARTED"'
_RESULTS = (b'{"type":"TOOL_CALL_RESULT"', b'{"type":"MESSAGES_SNAPSHOT"')


@dataclass(frozen=True, kw_only=True)
class RunStarted:
    """The run is being worked on."""

    thread: str
    run: str
    parent: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunFinished:
    """The run ended as it should. `pending` are calls that are the client's to answer.

    With `interrupts`, as AG-UI has them, it waits for what people decide.
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
    """The run ended otherwise: why, in words and as a code."""

    message: str
    code: str
    usage: Mapping[str, Json] | None = None


@dataclass(frozen=True, kw_only=True)
class TextStarted:
    """The model begins to answer."""

    message: str


@dataclass(frozen=True, kw_only=True)
class TextContent:
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
class ReasoningContent:
    """More thoughts."""

    message: str
    delta: str


@dataclass(frozen=True, kw_only=True)
class ReasoningEnded:
    """The thoughts are whole."""

    message: str


@dataclass(frozen=True, kw_only=True)
class ToolCallStarted:
    """The model begins a call."""

    call: str
    name: str
    message: str


@dataclass(frozen=True, kw_only=True)
class ToolCallArguments:
    """More of a call's arguments. `files` are those its ids stand for, where whoever gets it needs their urls (F8)."""

    call: str
    delta: str
    files: tuple[FileRef, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ToolCallEnded:
    """The call is whole."""

    call: str


@dataclass(frozen=True, kw_only=True)
class ToolCallResult:
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


@dataclass(frozen=True, kw_only=True)
class ViewSnapshot:
    """The same, of the log up to an entry: stored by that entry's id alone, and read from the log when it is told.

    `thoughts` are lost ones: clients keep thoughts that a snapshot says nothing of, unless it has others.
    """

    upto: str
    thoughts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StateSnapshot:
    """The state that the thread shares with its clients, as a whole."""

    state: Json


@dataclass(frozen=True, kw_only=True)
class StateDelta:
    """What has changed of that state, as JSON Patch."""

    operations: Sequence[Mapping[str, Json]]


@dataclass(frozen=True, kw_only=True)
class StepStarted:
    """Something begins that takes a while, and of which readers see nothing else."""

    step: str


@dataclass(frozen=True, kw_only=True)
class StepFinished:
    """It is over, however it went."""

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
    if isinstance(last, ToolCallArguments) and isinstance(event, ToolCallArguments):
        # Ids are put in the place of urls in whole arguments only.
        return last.call == event.call and not (last.files or event.files)
    if isinstance(last, (TextContent, ReasoningContent)) and not isinstance(event, ToolCallArguments):
        return type(last) is type(event) and last.message == event.message
    return False


def _join(merged: list[Event], pieces: Sequence[str]) -> None:
    last, words = merged[-1] if merged else None, "".join(pieces)
    if not isinstance(last, DeltaEvent) or (isinstance(last, ToolCallArguments) and last.files):
        return
    merged[-1:] = [replace(last, delta=words[at : at + MAX_DELTA]) for at in range(0, len(words) or 1, MAX_DELTA)]


def encode_event(event: Event) -> list[bytes]:
    """An event as the AG-UI events it is made of; `type` always comes first."""
    match event:
        case TextContent():
            return [dump({"type": "TEXT_MESSAGE_CONTENT", "messageId": event.message, "delta": event.delta})]
        case ToolCallArguments():
            said = {"type": "TOOL_CALL_ARGS", "toolCallId": event.call, "delta": event.delta}
            return [encode_with_files(said, event.files) if event.files else dump(said)]
        case ReasoningContent():
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
        case ToolCallStarted() | ToolCallEnded() | ToolCallResult():
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
            rows = [_without_status(row) for row in event.messages]
            return [dump({"type": "MESSAGES_SNAPSHOT", "messages": rows})]
        case ViewSnapshot(upto=upto, thoughts=thoughts):
            return [dump({"type": "MESSAGES_SNAPSHOT", VIEW: {"upto": upto, "thoughts": thoughts}})]
        case StateSnapshot() | StateDelta() | StepStarted() | StepFinished():
            return [dump(_beside(event))]
        case RunStarted() | RunFinished() | RunFailed():
            return [dump(_run(event))]


def _beside(event: StateSnapshot | StateDelta | StepStarted | StepFinished) -> Mapping[str, Json]:
    match event:
        case StateSnapshot():
            return {"type": "STATE_SNAPSHOT", "snapshot": event.state}
        case StateDelta():
            return {"type": "STATE_DELTA", "delta": event.operations}
        case StepStarted():
            return {"type": "STEP_STARTED", "stepName": event.step}
        case StepFinished():
            return {"type": "STEP_FINISHED", "stepName": event.step}


def _without_status(row: Json) -> Json:
    """A message as events have it: stock clients complain of what AG-UI has no place for."""
    if not isinstance(row, dict) or "status" not in row:
        return row
    return {name: value for name, value in row.items() if name != "status"}


def _call(event: ToolCallStarted | ToolCallEnded | ToolCallResult) -> Mapping[str, Json]:
    match event:
        case ToolCallStarted(call=call, name=name, message=message):
            return {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": name, "parentMessageId": message}
        case ToolCallEnded():
            return {"type": "TOOL_CALL_END", "toolCallId": event.call}
        case ToolCallResult(message=message, call=call):
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
            finish: dict[str, Json] = {"type": "RUN_FINISHED", "threadId": event.thread, "runId": event.run}
            finish |= {"result": {"finish": event.finish}} if event.finish else {}
            finish |= {"outcome": _outcome(event)}
            return finish | ({"usage": [event.usage]} if event.usage else {})


def _outcome(event: RunFinished) -> Mapping[str, Json]:
    if event.interrupts:
        return {"type": "interrupt", "interrupts": event.interrupts}
    return {"type": event.outcome} | ({"pendingToolCallIds": event.pending} if event.pending else {})


def ends_run(body: bytes) -> bool:
    """Whether nothing follows this event."""
    return body.startswith(ENDS)


def starts_run(body: bytes) -> bool:
    """Whether this event says that a run is being worked on."""
    return body.startswith(_STARTED)


def rename_thread(body: bytes, name: str) -> bytes:
    """The event as a client gets it that calls the thread so."""
    event = load_object(body) if starts_run(body) or ends_run(body) else None
    return dump({**event, "threadId": name}) if event and "threadId" in event else body


def for_older_client(body: bytes) -> bytes:
    """The event as clients before AG-UI 1.0 take it. Most are the same; ends of runs are not, nor parts of results."""
    if body.startswith(_RESULTS) and b'"content":[' in body:
        return _with_plain_results(body)
    if not ends_run(body):
        return body
    event = dict(load_object(body) or {})
    event.pop("usage", None)
    match event.pop("outcome", None):
        case {"type": "cancelled"}:
            return dump({"type": "RUN_ERROR", "message": "The run was cancelled.", "code": "cancelled"})
        case _:
            return dump(event)


def _with_plain_results(body: bytes) -> bytes:
    """Results as words: these clients die on one that is a list of parts."""
    event = dict(load_object(body) or {})
    if isinstance(messages := event.get("messages"), list):
        rows = [_plain(row) if isinstance(row, dict) and row.get("role") == "tool" else row for row in messages]
        return dump(event | {"messages": rows})
    return dump(_plain(event))


def _plain(result: Mapping[str, Json]) -> Mapping[str, Json]:
    parts = result.get("content")
    if not isinstance(parts, list):
        return result
    texts = [part.get("text") if "text" in part else dump(part).decode() for part in parts if isinstance(part, dict)]
    return {**result, "content": "\n".join(map(str, texts))}


def read_view_snapshot(body: bytes) -> ViewSnapshot | None:
    """The view that a stored event stands for, where it stands for one."""
    if not body.startswith(_VIEW):
        return None
    match (load_object(body) or {}).get(VIEW):
        case {"upto": str(upto), "thoughts": list(thoughts)}:
            return ViewSnapshot(upto=upto, thoughts=tuple([str(id) for id in thoughts]))
        case _:
            return None


def discard_lost(stored: Iterable[bytes], *, logged: Collection[str], reason: str, upto: str) -> tuple[Event, ...]:
    """The events that close what stored events left open and take back the messages the log does not have.

    A call belongs to the message that asked for it; a lost one is answered, so that no client runs it. At last comes
    what the log has, up to the entry `upto`. What was discarded before is not discarded again.
    """
    still_open: dict[tuple[str, str], Event] = {}
    messages: dict[str, list[str]] = {}
    thoughts: set[str] = set()
    for body in stored:
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
    lost = {id: calls for id, calls in messages.items() if id not in logged}
    return (*still_open.values(), *_taken_back(lost, reason), *_as_logged(lost, thoughts, upto))


def _taken_back(lost: Mapping[str, Sequence[str]], reason: str) -> Iterator[Event]:
    for call in dict.fromkeys(call for calls in lost.values() for call in calls):
        yield ToolCallResult(message=f"{call}-discarded", call=call, content=reason)
    for id in lost:
        yield Discarded(message=id, reason=reason)


def _as_logged(lost: Collection[str], thoughts: Collection[str], upto: str) -> Iterator[Event]:
    if lost:
        yield ViewSnapshot(upto=upto, thoughts=tuple([id for id in lost if id in thoughts]))
