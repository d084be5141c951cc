"""What a stream needs when a reply is lost on the way: every open thing closed, every lost message named.

The log is what counts. What was streamed under a message id that never came into the log is said again under
another, and readers are told to drop the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from recto.page.canonical import load_object
from recto.page.events import CallClosed, Discarded, Event, ReasoningEnded, TextEnded


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
            case {"type": "CUSTOM", "name": "recto.discarded", "value": {"messageId": str(id)}}:
                messages.pop(id, None)
            case _:
                pass
    lost = [Discarded(message=id, reason=reason) for id in messages if id not in logged]
    return (*still_open.values(), *lost)
