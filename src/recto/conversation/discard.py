"""Discarded replies: what readers are told where events were said of messages that the log does not have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from recto.conversation.events import (
    DISCARDED,
    CallAnswered,
    CallClosed,
    Discarded,
    Event,
    ReasoningEnded,
    StepFinished,
    TextEnded,
    ViewSnapshot,
)
from recto.conversation.json import load_object


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
                still_open["call", call] = CallClosed(call=call)
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
        yield CallAnswered(message=f"{call}-discarded", call=call, content=reason)
    for id in lost:
        yield Discarded(message=id, reason=reason)


def _as_logged(lost: Collection[str], thoughts: Collection[str], upto: str) -> Iterator[Event]:
    if lost:
        yield ViewSnapshot(upto=upto, thoughts=tuple([id for id in lost if id in thoughts]))
