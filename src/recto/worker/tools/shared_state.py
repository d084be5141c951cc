"""State that a thread shares with its clients, for tools. The changes of a call are stored with its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recto.conversation.events import StateDelta, StateSnapshot
from recto.conversation.json import Json
from recto.conversation.log import Entry, StateChanged, view
from recto.conversation.thread_state import ValueChange, apply_changes, change_events, is_same, state_text, value_at
from recto.errors import ToolError, WireError
from recto.tools.call import FAILED, text_result
from recto.tools.ports import ToolResult
from recto.worker.log_writer import LogWriter
from recto.worker.runtime import Runtime

STATE_REJECTED = "The shared state cannot be changed: {problem}."
TOO_LONG = "it would have {size} bytes, and up to {most} are kept; keep less in it"


class SharedState:
    """The state as one tool call sees it: the state of the thread with the changes of this call."""

    def __init__(self, writer: LogWriter, limit_bytes: int) -> None:
        self._writer = writer
        self._limit_bytes = limit_bytes
        self._changes: list[ValueChange] = []

    @property
    def changes(self) -> tuple[ValueChange, ...]:
        """The changes of the call, in order."""
        return tuple(self._changes)

    def get(self, path: str = "") -> Json:
        """Return the value at a path, or None."""
        try:
            return value_at(self._current(), path)
        except WireError as error:
            raise ToolError(STATE_REJECTED.format(problem=error)) from error

    def put(self, path: str, value: Json) -> None:
        """Set the value at a path."""
        try:
            self._add(ValueChange(path=path, value=state_text(value)))
        except WireError as error:
            raise ToolError(STATE_REJECTED.format(problem=error)) from error

    def remove(self, path: str) -> None:
        """Delete the value at a path."""
        self._add(ValueChange(path=path))

    def _current(self) -> Json:
        return apply_changes(view(self._writer.log).state, self._changes)

    def _add(self, change: ValueChange) -> None:
        _apply(self._current(), [change], self._limit_bytes)
        self._changes.append(change)


@dataclass(frozen=True, kw_only=True)
class StateUpdate:
    """A tool's result, with the log entry and the events of its state changes."""

    result: ToolResult
    entries: tuple[StateChanged, ...] = ()
    events: tuple[StateSnapshot | StateDelta, ...] = ()


def apply_state_changes(runtime: Runtime, log: Sequence[Entry], result: ToolResult) -> StateUpdate:
    """Apply a tool's changes to the current state, which other calls may have changed meanwhile.

    If the changes no longer fit, apply none of them and return an error for the model.
    """
    if result.error or not result.changes:
        return StateUpdate(result=replace(result, changes=()))
    before = view(log).state
    try:
        after = _apply(before, result.changes, runtime.tools.state_bytes)
    except ToolError as error:
        return StateUpdate(result=text_result(str(error), FAILED))
    if is_same(before, after):
        return StateUpdate(result=replace(result, changes=()))
    marker = StateChanged(id=runtime.new_id(), time=runtime.clock(), value=state_text(after))
    return StateUpdate(result=result, entries=(marker,), events=change_events(before, after))


def _apply(state: Json, changes: Sequence[ValueChange], limit_bytes: int) -> Json:
    try:
        after = apply_changes(state, changes)
        size = len(state_text(after).encode())
    except WireError as error:
        raise ToolError(STATE_REJECTED.format(problem=error)) from error
    if size > limit_bytes:
        raise ToolError(STATE_REJECTED.format(problem=TOO_LONG.format(size=size, most=limit_bytes)))
    return after
