"""P11, X4: whatever people, workers and clocks do, a call that needs a person is made for an approval, and once."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.input.input_entries import AdmittedRun, DecisionInput, admit_decisions
from recto.conversation.input.run_input import PersonDecision, ResumeItem
from recto.conversation.interrupts import interrupts_of
from recto.conversation.log import ConfirmAsked, Entry, RolledBack, ToolStarted, Undone, view
from recto.conversation.messages import ToolCall, UserMessage
from recto.conversation.next_step import CallModel, Run, RunTools, WaitForClient, next_step
from tests.page.talk import asks, call, result, says, user

HOUR = timedelta(hours=1)
WHAT = ("say", "approve", "deny", "go on", "cancelled", "back", "undo", "later", "repeat")


@dataclass(kw_only=True)
class Walk:
    """A thread, and what was approved in it: which run may make which call."""

    deaths: list[bool]
    log: list[Entry] = field(default_factory=list[Entry])
    now: datetime = datetime(2026, 5, 14, tzinfo=UTC)
    numbers: Iterator[int] = field(default_factory=count)
    approved: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    acted: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    def id(self) -> str:
        return f"n{next(self.numbers)}"

    def happen(self, what: str) -> None:
        match what:
            case "say":
                self.run(has_spoken=True)
            case "approve" | "deny":
                self.run(*self.answers(approved=what == "approve"))
            case "repeat":
                self.run(*self.answers(approved=True), *self.answers(approved=True))
            case "go on":
                self.run()
            case "cancelled":
                self.run(*self.answers(approved=True), cancel=True)
            case "back":
                users = [one.id for one in view(self.log).messages if isinstance(one, UserMessage)]
                self.log += [RolledBack(id=self.id(), to=users[-1])] if users else []
            case "undo":
                self.log.append(Undone(id=self.id()))
            case _:
                self.now += 2 * HOUR

    def answers(self, *, approved: bool) -> list[ResumeItem]:
        """An answer to the first that waits; the others stay."""
        waiting = [one for one in interrupts_of(view(self.log)) if one.is_waiting]
        return [ResumeItem(interrupt=one.id, decision=PersonDecision(approved=approved)) for one in waiting[:1]]

    def run(self, *items: ResumeItem, has_spoken: bool = False, cancel: bool = False) -> None:
        """One run, by as many workers as die over it."""
        name, entering = self.id(), [user(self.id())] if has_spoken else []
        admitted_run = AdmittedRun(admitted_at=self.now, response_id="r", new_id=self.id)
        before = {one.id: one for one in interrupts_of(view(self.log))}
        new = list(admit_decisions(self.log, DecisionInput(run=name, resume=items), admitted_run, entering))
        for item in items:
            if item.decision.approved and not before[item.interrupt].is_late(self.now):
                interrupt = before[item.interrupt]
                self.approved.add((name, interrupt.message, interrupt.call.id))
        self.log += [*new, *entering]
        row = Run(id=name, now=self.now, cancel=cancel, confirm=frozenset({"send"}))
        while self.step(row):
            pass

    def step(self, row: Run) -> bool:
        reply = view(self.log).reply
        match next_step(self.log, row):
            case CallModel() if reply is None or view(self.log).messages[-1].role == "user":
                self.log.append(
                    asks(self.id(), call(self.id(), "send"), call(self.id(), "note"), call(self.id(), "send"))
                )
            case CallModel():
                self.log.append(says(self.id()))
            case RunTools() as step:
                message = reply.id if reply else ""
                self.act(row, message, step)
            case WaitForClient(confirm=confirm):
                waiting_ids = {one.call.id for one in interrupts_of(view(self.log)) if one.is_waiting}
                message = reply.id if reply else ""
                seconds = HOUR.total_seconds()
                self.log += [
                    ConfirmAsked(id=self.id(), time=self.now, message=message, call=one.id, run=row.id, seconds=seconds)
                    for one in confirm
                    if one.id not in waiting_ids
                ]
                return False
            case _:
                return False
        return True

    def act(self, row: Run, message: str, step: RunTools) -> None:
        closed = (*step.interrupted, *step.expired, *[denied.call for denied in step.denied])
        self.log += [result(self.id(), one.id) for one in closed]
        self.log += [ToolStarted(id=self.id(), message=message, call=one.id) for one in step.start]
        for one in step.start:
            self.make(row, message, one)
            if self.deaths and self.deaths.pop():
                return
            self.log.append(result(self.id(), one.id))

    def make(self, row: Run, message: str, one: ToolCall) -> None:
        if one.name == "send":
            self.acted.append((row.id, message, one.id))


@given(st.lists(st.sampled_from(WHAT), max_size=14), st.lists(st.booleans(), max_size=6))
def test_P11_nothing_is_made_without_an_approval_for_it_and_nothing_twice(happens: list[str], deaths: list[bool]):
    walk = Walk(deaths=deaths)
    for what in ("say", *happens):
        walk.happen(what)
        assert set(walk.acted) <= walk.approved
    assert set(Counter((message, id) for _, message, id in walk.acted).values()) <= {1}


@given(st.lists(st.sampled_from(WHAT), max_size=10))
def test_P11_what_was_approved_in_time_is_made(happens: list[str]):
    walk = Walk(deaths=[])
    for what in ("say", *happens):
        walk.happen(what)
    walk.happen("say")
    before = len(walk.acted)
    walk.happen("approve")
    walk.happen("approve")
    assert len(walk.acted) == before + 2
    assert view(walk.log).messages[-1].role == "assistant"
