"""The state of a claimed run: its row and what was counted since. Beside it, what its pages are made of and its log."""

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
from recto.page.body import Page
from recto.store.ports import StoredRun
from recto.tracing.spans import NO_SPAN, TraceSpan
from recto.worker.account import Account, account_of, charge
from recto.worker.log_writer import LogWriter
from recto.worker.page_inputs import PageInputs
from recto.worker.runtime import Runtime


@dataclass(kw_only=True)
class RunState:
    """The row of a run as it was claimed, what it may use, and its counters as they are now.

    `full`: the page that comes next has no room, so it is not sent. `problem` is what users read of the last fault.
    `broken_off` means what was said so far is kept. `page` is the one that was sent last. `unusable` counts replies in
    a row that could not be used, `correction` is what the model is told of the last of them: who takes the run over
    starts at none.
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
    full: bool = False
    broken_off: bool = False
    is_named: bool = False
    page: Page | None = None

    @classmethod
    def of(cls, row: StoredRun, limits: Limits, signal: Signal, clock: Callable[[], datetime]) -> RunState:
        """A run as its row has it."""
        return cls(
            row=row,
            limits=limits,
            signal=signal,
            clock=clock,
            failures=row.failures,
            too_long=row.too_long,
            can_compact=row.can_compact,
            calls=row.calls,
            account=account_of(row.usage),
            problem=row.error,
        )

    @property
    def deadline(self) -> datetime:
        """When the run has to be over."""
        return (self.row.started or self.row.created) + timedelta(seconds=self.limits.seconds)

    @property
    def seconds_left(self) -> float:
        """Until then."""
        return max(0.0, (self.deadline - self.clock()).total_seconds())

    def count_call(self) -> int:
        """The number of a call that is about to be made."""
        self.calls += 1
        return self.calls

    def note_sent(self, page: Page) -> None:
        """What the page is made of is stored: the next one shares it."""
        self.page = page

    def note_full(self, *, is_full: bool) -> None:
        """Whether the page that comes next has no room."""
        self.full = is_full

    def give_up_compacting(self) -> None:
        """There is no summary to be had: the run goes on without."""
        self.can_compact = False

    def succeed(self) -> None:
        """A call was answered: what failed before it counts no more."""
        self.failures = self.too_long = self.unusable = 0
        self.problem, self.correction = None, ""

    def fail(self, error: ModelError, problem: str, *, is_for_pictures: bool) -> None:
        """Count a call that failed. One that failed for its pictures is made again without them."""
        self.problem = problem
        if isinstance(error, ReplyUnusable):
            self.unusable += 1
            self.correction = error.told
        elif isinstance(error, PageTooLong) and not is_for_pictures:
            self.too_long += 1
        elif error.may_retry or is_for_pictures:
            self.failures += 1
        else:
            self.failures = self.limits.failures

    def spend(self, model: str, usage: Usage | None, prices: Prices) -> Account:
        """Put a call on the run's account. Returns what the call alone used."""
        spent = charge(model, usage, prices)
        self.account = self.account.plus(spent)
        return spent

    def break_off(self) -> None:
        """The run is to end now: what was said so far is kept."""
        self.broken_off = True

    def note_named(self) -> None:
        """A title was asked for: once is enough."""
        self.is_named = True


async def is_done_in_time(state: RunState, doing: asyncio.Task[object]) -> bool:
    """Wait for it. False: the run was cancelled, or its time is up, before it was done. It is left as it is."""
    cancelled = state.signal.cancelled.future
    await asyncio.wait((doing, cancelled), timeout=state.seconds_left, return_when=asyncio.FIRST_COMPLETED)
    return doing.done()


@dataclass(frozen=True, kw_only=True)
class LoadedRun:
    """A claimed run while it is worked on: its state, what its pages are made of, and its log with the way to write.

    Whoever changes the state that is shared with clients waits for `state_turn`. `span` is the run's.
    """

    runtime: Runtime
    state: RunState
    inputs: PageInputs
    writer: LogWriter
    span: TraceSpan = NO_SPAN
    state_turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def snapshot(self) -> Run:
        """What `next_step` decides by, as it is now."""
        return snapshot(self.state, self.inputs)


def snapshot(state: RunState, inputs: PageInputs) -> Run:
    """What `next_step` decides by, as it is now."""
    limits = state.limits
    return Run(
        id=state.row.id,
        cancel=state.signal.cancelled.is_set(),
        now=state.clock(),
        deadline=state.deadline,
        failures=state.failures,
        too_long=state.too_long,
        unusable=state.unusable,
        full=state.full,
        can_compact=state.can_compact,
        compact=inputs.asked.compact,
        calls=state.calls,
        client_tools=inputs.client_tools,
        repeatable=frozenset(name for name, tool in inputs.tools.items() if tool.mark.safe_to_repeat),
        confirm=frozenset(name for name, tool in inputs.tools.items() if tool.mark.confirm) - inputs.agreed,
        changing=frozenset(name for name, tool in inputs.tools.items() if tool.mark.changes),
        reading=frozenset(name for name, tool in inputs.tools.items() if tool.mark.reads),
        max_steps=limits.steps,
        max_failures=limits.failures,
        max_bad_arguments=limits.bad_arguments,
        max_unusable=limits.unusable_replies,
        max_calls=limits.calls,
    )
