"""State of a claimed run: the counters of its row, its inputs, and the writer of its log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from recto.config.settings import Limits
from recto.conversation.next_step import Run
from recto.engine.ports import Signal
from recto.errors import ModelError, PageTooLong, ReplyUnusable
from recto.models.ports import Usage
from recto.models.prices import Prices
from recto.store.ports import StoredRun
from recto.tracing.spans import NO_SPAN, TraceSpan
from recto.worker.account import Account, charge, parse_account
from recto.worker.log_writer import LogWriter
from recto.worker.run_inputs import RunInputs
from recto.worker.runtime import Runtime


@dataclass(kw_only=True)
class RunState:
    """The row of a claimed run, its limits, and its current counters.

    `problem` is the text of the last failure, for users. `unusable` counts unusable replies in a row, and `correction`
    tells the model why its last reply was unusable; neither is stored. `is_page_full` means that the next page needs a
    summary first. `is_stopping` means that the current step stores its partial result and ends.
    """

    row: StoredRun
    limits: Limits
    signal: Signal
    clock: Callable[[], datetime]
    failures: int
    too_long: int
    can_compact: bool
    calls: int
    account: Account
    problem: str | None = None
    unusable: int = 0
    correction: str = ""
    is_page_full: bool = False
    is_stopping: bool = False
    is_named: bool = False

    @classmethod
    def of(cls, row: StoredRun, limits: Limits, signal: Signal, clock: Callable[[], datetime]) -> RunState:
        """Return the initial state from the row of a run."""
        return cls(
            row=row,
            limits=limits,
            signal=signal,
            clock=clock,
            failures=row.failures,
            too_long=row.too_long,
            can_compact=row.can_compact,
            calls=row.calls,
            account=parse_account(row.usage),
            problem=row.error,
        )

    @property
    def deadline(self) -> datetime:
        """The time at which the run must end."""
        return (self.row.started or self.row.created) + timedelta(seconds=self.limits.seconds)

    @property
    def seconds_left(self) -> float:
        """The seconds until the deadline."""
        return max(0.0, (self.deadline - self.clock()).total_seconds())

    def count_call(self) -> int:
        """Return the number of the next model call."""
        self.calls += 1
        return self.calls

    def note_full(self, *, is_full: bool) -> None:
        """Record whether the next page is full."""
        self.is_page_full = is_full

    def give_up_compacting(self) -> None:
        """Continue the run without a summary."""
        self.can_compact = False

    def succeed(self) -> None:
        """Reset the failure counters after an answered call."""
        self.failures = self.too_long = self.unusable = 0
        self.problem, self.correction = None, ""

    def fail(self, error: ModelError, problem: str, *, is_for_pictures: bool) -> None:
        """Count a failed call. If the page failed because of its pictures, send it again without them."""
        self.problem = problem
        if isinstance(error, ReplyUnusable):
            self.unusable += 1
            self.correction = error.correction
        elif isinstance(error, PageTooLong) and not is_for_pictures:
            self.too_long += 1
        elif error.may_retry or is_for_pictures:
            self.failures += 1
        else:
            self.failures = self.limits.failures

    def spend(self, model: str, usage: Usage | None, prices: Prices) -> Account:
        """Add a call to the account of the run and return the account of the call alone."""
        spending = charge(model, usage, prices)
        self.account = self.account.plus(spending)
        return spending

    def stop(self) -> None:
        """Stop the run and store its partial results."""
        self.is_stopping = True

    def note_named(self) -> None:
        """Note that the model was asked for a title, because one request is enough."""
        self.is_named = True


async def is_done_in_time(state: RunState, task: asyncio.Task[object]) -> bool:
    """Wait for a task. Return False if the run is cancelled or its time ends first; the task then continues."""
    cancelled = state.signal.cancelled.future
    await asyncio.wait((task, cancelled), timeout=state.seconds_left, return_when=asyncio.FIRST_COMPLETED)
    return task.done()


@dataclass(frozen=True, kw_only=True)
class LoadedRun:
    """A claimed run while the worker processes it.

    Hold `state_lock` while you change the state that the thread shares with clients.
    """

    runtime: Runtime
    state: RunState
    inputs: RunInputs
    writer: LogWriter
    span: TraceSpan = NO_SPAN
    state_lock: asyncio.Lock = field(default_factory=asyncio.Lock)


def snapshot(state: RunState, inputs: RunInputs) -> Run:
    """Return the values from which `next_step` chooses a step."""
    limits, tools = state.limits, inputs.pages.tools
    return Run(
        id=state.row.id,
        cancel=state.signal.cancelled.is_set(),
        now=state.clock(),
        deadline=state.deadline,
        failures=state.failures,
        too_long=state.too_long,
        unusable=state.unusable,
        full=state.is_page_full,
        can_compact=state.can_compact,
        compact=inputs.request.compact,
        calls=state.calls,
        client_tools=inputs.client_tools,
        repeatable=frozenset(name for name, tool in tools.items() if tool.mark.safe_to_repeat),
        confirm=frozenset(name for name, tool in tools.items() if tool.mark.confirm) - inputs.approved_tools,
        changing=frozenset(name for name, tool in tools.items() if tool.mark.changes),
        reading=frozenset(name for name, tool in tools.items() if tool.mark.reads),
        max_steps=limits.steps,
        max_failures=limits.failures,
        max_bad_arguments=limits.bad_arguments,
        max_unusable=limits.unusable_replies,
        max_calls=limits.calls,
    )
