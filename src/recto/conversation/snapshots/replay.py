"""Replayed events of a run that has ended, made from the log: for readers who come when its own are gone (P7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recto.conversation.events import Event, MessagesSnapshot, RunFailed, RunFinished, RunStarted, encode_event
from recto.conversation.input.take_input import pending_calls
from recto.conversation.interrupts import interrupt_event, interrupts_of
from recto.conversation.json import Json
from recto.conversation.log import Entry, View, view
from recto.conversation.messages import AssistantMessage, Message, ToolMessage, words_of
from recto.conversation.snapshots.agui_messages import RenderContext, message_rows
from recto.conversation.state.thread_state import state_events
from recto.conversation.ui.compile_ui import hinted, ui_events

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
