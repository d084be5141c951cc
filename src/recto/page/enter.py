"""What of a run's input enters the log: the user's words, and results of calls that wait for the client (P3)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recto.page.failures import FAILED
from recto.page.log import Entry, Interrupted, View, view
from recto.page.messages import STATUSES, AssistantMessage, Message, Text, ToolCall, ToolMessage, UserMessage

EXPIRED = "expired"
# A longer name would fit into no index.
MAX_ID = 255
TOO_LATE = "The client did not answer the call of {name} in time, so there is no result. Go on without, or call again."


@dataclass(frozen=True, kw_only=True)
class Entering:
    """When the run was admitted, the id its answer and its files go by, and the tools no client may answer for.

    `patience` is how long a call waits for the client; without it, for ever.
    """

    admitted: datetime
    response_id: str
    new_id: Callable[[], str]
    own_tools: Collection[str] = ()
    patience: timedelta | None = None


def enter(log: Sequence[Entry], messages: Sequence[Message], run: Entering) -> tuple[Entry, ...]:
    """The entries to append. A client's copies of what others said are never taken.

    The user message of the current turn, sent again as it was, goes on with that turn; any other is a new turn, under
    a new id where its own is taken. A turn that goes on with calls that waited too long has them answered by us.
    """
    seen = view(log)
    waiting = {call.id for call in pending_calls(seen, run.own_tools)}
    late = waiting and _is_late(seen, run)
    taken = {entry.id for entry in log}
    entries: list[Entry] = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id in waiting and not late:
            waiting.remove(message.tool_call_id)
            entries.append(_named(replace(message, time=run.admitted, error=_error_of(message)), taken, run))
        elif isinstance(message, UserMessage) and not _goes_on(seen, message):
            turn = replace(message, time=run.admitted, response_id=run.response_id)
            entries.append(_named(turn, taken, run))
    if late and not any(isinstance(entry, UserMessage) for entry in entries):
        entries += _too_late(seen, run)
    return tuple(entries)


def pending_calls(seen: View, own_tools: Collection[str] = ()) -> tuple[ToolCall, ...]:
    """The client's calls of the last reply that have no result yet. One that was broken off asked for none."""
    broken_off = {marker.message for marker in seen.markers if isinstance(marker, Interrupted)}
    answered: set[str] = set()
    for message in reversed(seen.messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, UserMessage) or message.id in broken_off:
            break
        elif isinstance(message, AssistantMessage):
            return tuple(call for call in message.tool_calls if call.id not in answered and call.name not in own_tools)
    return ()


def _error_of(message: ToolMessage) -> str | None:
    """What a client calls a failure, never one of our own names for it: those mean that we answered."""
    return f"{FAILED}{message.error}" if message.error in STATUSES else message.error


def _is_late(seen: View, run: Entering) -> bool:
    reply = next(message for message in reversed(seen.messages) if isinstance(message, AssistantMessage))
    return run.patience is not None and reply.time is not None and run.admitted - reply.time > run.patience


def _too_late(seen: View, run: Entering) -> Iterator[ToolMessage]:
    for call in pending_calls(seen, run.own_tools):
        text = Text(text=TOO_LATE.format(name=call.name))
        yield ToolMessage(id=run.new_id(), time=run.admitted, tool_call_id=call.id, error=EXPIRED, parts=(text,))


def _goes_on(seen: View, message: UserMessage) -> bool:
    current = seen.messages[seen.turn_start] if seen.turn_start < len(seen.messages) else None
    return isinstance(current, UserMessage) and current.id == message.id and current.parts == message.parts


def _named(message: UserMessage | ToolMessage, taken: set[str], run: Entering) -> UserMessage | ToolMessage:
    is_good = message.id and len(message.id) <= MAX_ID and message.id not in taken
    named = message if is_good else replace(message, id=run.new_id())
    taken.add(named.id)
    return named
