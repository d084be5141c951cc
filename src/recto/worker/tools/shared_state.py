"""The state a thread shares with its clients, in the hands of a tool: changes are noted, and stored with its result."""

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

REFUSED = "The shared state cannot be changed: {problem}."
TOO_LONG = "it would have {size} bytes, and up to {most} are kept; keep less in it"


class SharedState:
    """The state as one call of a tool sees it: the thread's, with what this call has changed so far."""

    def __init__(self, writer: LogWriter, limit_bytes: int) -> None:
        self._writer = writer
        self._limit_bytes = limit_bytes
        self._changes: list[ValueChange] = []

    @property
    def changes(self) -> tuple[ValueChange, ...]:
        """What the call has changed, in its order."""
        return tuple(self._changes)

    def get(self, path: str = "") -> Json:
        """What stands at a place; None where there is nothing."""
        try:
            return value_at(self._now(), path)
        except WireError as error:
            raise ToolError(REFUSED.format(problem=error)) from error

    def put(self, path: str, value: Json) -> None:
        """Have a value stand at a place."""
        try:
            self._note(ValueChange(path=path, value=state_text(value)))
        except WireError as error:
            raise ToolError(REFUSED.format(problem=error)) from error

    def remove(self, path: str) -> None:
        """Have nothing stand at a place."""
        self._note(ValueChange(path=path))

    def _now(self) -> Json:
        return apply_changes(view(self._writer.log).state, self._changes)

    def _note(self, change: ValueChange) -> None:
        _changed(self._now(), [change], self._limit_bytes)
        self._changes.append(change)


@dataclass(frozen=True, kw_only=True)
class SettledResult:
    """A tool's result, what its changes of the state come to in the log, and what readers hear of that."""

    result: ToolResult
    entries: tuple[StateChanged, ...] = ()
    events: tuple[StateSnapshot | StateDelta, ...] = ()


def settle_state(runtime: Runtime, log: Sequence[Entry], result: ToolResult) -> SettledResult:
    """Make a tool's changes to the state as it is by now: other calls may have changed it meanwhile.

    Where they leave no place for them, the model is told, and nothing is changed.
    """
    if result.error or not result.changes:
        return SettledResult(result=replace(result, changes=()))
    before = view(log).state
    try:
        after = _changed(before, result.changes, runtime.tools.state_bytes)
    except ToolError as error:
        return SettledResult(result=text_result(str(error), FAILED))
    if is_same(before, after):
        return SettledResult(result=replace(result, changes=()))
    marker = StateChanged(id=runtime.new_id(), time=runtime.clock(), value=state_text(after))
    return SettledResult(result=result, entries=(marker,), events=change_events(before, after))


def _changed(state: Json, changes: Sequence[ValueChange], limit_bytes: int) -> Json:
    try:
        after = apply_changes(state, changes)
        size = len(state_text(after).encode())
    except WireError as error:
        raise ToolError(REFUSED.format(problem=error)) from error
    if size > limit_bytes:
        raise ToolError(REFUSED.format(problem=TOO_LONG.format(size=size, most=limit_bytes)))
    return after
