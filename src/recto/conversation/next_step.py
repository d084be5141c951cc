"""The next step of a run, from its log and its row alone.

Resuming after a crash, continuing after tools and continuing after a client's result all use this function. A tool that
was started is not started again unless it is repeatable. A call that needs approval starts only in the run that
delivered the approval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile
from typing import Literal, TypeAlias

from recto.conversation.interrupts import Interrupt, interrupts_of
from recto.conversation.log import Compacted, ConfirmDecided, Entry, Finish, Interrupted, ToolStarted, View, view
from recto.conversation.messages import AssistantMessage, Message, ToolCall, ToolMessage

Outcome: TypeAlias = Literal[
    "done",
    "cancelled",
    "deadline",
    "too_many_steps",
    "bad_arguments",
    "length",
    "refused",
    "filtered",
    "too_long",
    "model_failed",
    "unusable_reply",
    "compact_failed",
    "nothing_to_compact",
]
# The error of a call with invalid arguments. The model gets a chance to write them again.
INVALID_ARGUMENTS = "invalid_arguments"


@dataclass(frozen=True, kw_only=True)
class Run:
    """State of a run that is not in the log.

    The client answers calls of `client_tools` unless the call names another runner. Calls of `repeatable` tools may
    start twice, and those of `confirm` need approval. Calls of `changing` tools may change files and those of `reading`
    tools read them, so both wait for earlier calls that change files. `full` means that the next page would not fit.
    `can_compact` is False once compaction has failed. `too_long` counts pages that the provider rejected as too long,
    `failures` failed model calls, and `unusable` unusable replies, all since the last reply. With `compact`, the run
    only compacts. `calls` counts the model calls of the run.
    """

    id: str = ""
    cancel: bool = False
    now: datetime | None = None
    deadline: datetime | None = None
    failures: int = 0
    too_long: int = 0
    unusable: int = 0
    full: bool = False
    can_compact: bool = True
    compact: bool = False
    calls: int = 0
    client_tools: frozenset[str] = frozenset()
    repeatable: frozenset[str] = frozenset()
    confirm: frozenset[str] = frozenset()
    changing: frozenset[str] = frozenset()
    reading: frozenset[str] = frozenset()
    max_steps: int = 50
    max_failures: int = 3
    max_bad_arguments: int = 3
    max_unusable: int = 2
    max_calls: int = 128


@dataclass(frozen=True, kw_only=True)
class CallModel:
    """A step that builds a page and calls the model."""


@dataclass(frozen=True, kw_only=True)
class DeniedCall:
    """A call that a person denied, and their message."""

    call: ToolCall
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class RunTools:
    """A step that starts calls and settles those that cannot start.

    Calls in `start` have the arguments that a person approved. `interrupted` calls were started and lost; `cut_off`
    calls are incomplete; `too_many` exceed the limit of a reply; `expired` calls got no decision in time.
    """

    start: tuple[ToolCall, ...] = ()
    interrupted: tuple[ToolCall, ...] = ()
    cut_off: tuple[ToolCall, ...] = ()
    too_many: tuple[ToolCall, ...] = ()
    denied: tuple[DeniedCall, ...] = ()
    expired: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Compact:
    """A step that summarises the conversation. Another step follows."""


@dataclass(frozen=True, kw_only=True)
class WaitForClient:
    """A step that ends the run. The next run brings results of `calls` and decisions on calls in `confirm`."""

    calls: tuple[ToolCall, ...] = ()
    confirm: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The end of the run."""

    outcome: Outcome


Step: TypeAlias = CallModel | RunTools | Compact | WaitForClient | Finished


def next_step(log: Sequence[Entry], run: Run) -> Step:
    """Return the next step. A complete turn stays complete, even if the run was cancelled or its deadline passed."""
    log_view = view(log)
    # Without a user message, all messages are the turn.
    turn = log_view.messages[log_view.turn_start :] or log_view.messages
    reply = _last_reply(turn)
    if run.compact and _is_just_compacted(log_view):
        return Finished(outcome="done" if run.calls else "nothing_to_compact")
    if not run.compact and (finish := find_turn_finish(log_view)):
        return Finished(outcome=finish)
    if run.cancel:
        return Finished(outcome="cancelled")
    if run.deadline is not None and run.now is not None and run.now >= run.deadline:
        return Finished(outcome="deadline")
    if run.compact and not run.can_compact:
        return Finished(outcome="compact_failed" if run.calls else "nothing_to_compact")
    if run.compact:
        return Compact()
    entries = _entries_after(log_view, reply) if reply else ()
    results = {entry.tool_call_id for entry in entries if isinstance(entry, ToolMessage)}
    waiting = tuple(call for call in reply.tool_calls if call.id not in results) if reply else ()
    if not reply or not waiting:
        return _call_model(log_view, turn, run)
    is_cut_off = _is_cut_off(log_view, reply)
    # The last call of a reply that was cut may be incomplete.
    has_partial_call = is_cut_off or log_view.finishes.get(reply.id) == "length"
    too_many_ids = {id(call) for call in reply.tool_calls[run.max_calls :]}
    # An undo hides entries after a rollback, but not the effects of tools: search the whole log, not the view.
    since = takewhile(lambda entry: entry is not reply, reversed(log))
    state = _CallState(
        run=run,
        started={entry.call for entry in since if isinstance(entry, ToolStarted) and entry.message == reply.id},
        interrupts={one.call.id: one for one in interrupts_of(log_view) if one.message == reply.id},
        partial_call=reply.tool_calls[-1] if has_partial_call else None,
        is_cut_off=is_cut_off,
    )
    too_many = tuple(call for call in waiting if id(call) in too_many_ids)
    return _answer_calls([call for call in waiting if id(call) not in too_many_ids], too_many, state)


def find_turn_finish(log_view: View) -> Finish | Literal["done"] | None:
    """Return how the model's answer ended the current turn, or None if there is no complete answer yet."""
    reply = _last_reply(log_view.messages[log_view.turn_start :] or log_view.messages)
    finish = log_view.finishes.get(reply.id) if reply else None
    if reply is None or finish in ("refused", "filtered"):
        return finish
    return None if reply.tool_calls or _is_cut_off(log_view, reply) else finish or "done"


def _last_reply(turn: Sequence[Message]) -> AssistantMessage | None:
    return next((message for message in reversed(turn) if isinstance(message, AssistantMessage)), None)


def _is_cut_off(log_view: View, reply: AssistantMessage) -> bool:
    entries = _entries_after(log_view, reply)
    return any(isinstance(entry, Interrupted) and entry.message == reply.id for entry in entries)


def _entries_after(log_view: View, reply: AssistantMessage) -> tuple[Entry, ...]:
    # Models reuse call ids, so only entries after the reply answer its calls.
    entries = log_view.entries
    place = next(place for place in range(len(entries) - 1, -1, -1) if entries[place] is reply)
    return entries[place + 1 :]


_Kind: TypeAlias = Literal["start", "interrupted", "cut_off", "denied", "expired", "client", "confirm", "blocked"]


@dataclass(frozen=True, kw_only=True)
class _CallState:
    """State of the calls of a reply: ids of started calls, interrupts by call id, and an incomplete call."""

    run: Run
    started: set[str]
    interrupts: Mapping[str, Interrupt]
    partial_call: ToolCall | None
    is_cut_off: bool

    def classify(self, call: ToolCall) -> _Kind:
        """Return what to do with a call that has no result."""
        run, is_for_client = self.run, call.is_for_client(otherwise=call.name in self.run.client_tools)
        needs_approval = not is_for_client and (call.name in run.confirm or call.id in self.interrupts)
        would_ask = is_for_client or (needs_approval and call.id not in self.started)
        # An incomplete call never runs. A reply that was cut off waits neither for the client nor for approval.
        if call is self.partial_call or (self.is_cut_off and would_ask):
            return "cut_off"
        if is_for_client:
            return "client"
        if call.id in self.started and call.name not in run.repeatable:
            return "interrupted"
        interrupt = self.interrupts.get(call.id)
        match interrupt.decision if interrupt else None:
            case _ if not needs_approval:
                return "start"
            case None:
                return "expired" if interrupt and interrupt.is_late(run.now) else "confirm"
            case ConfirmDecided(approved=False):
                return "denied"
            case ConfirmDecided(run=decided_by):
                # Ask again if the run with the approval ended before the call started, or if the approval was copied to
                # a fork.
                return "start" if decided_by == run.id else "confirm"

    def changes_files(self, call: ToolCall) -> bool:
        return call.name in self.run.changing

    def uses_files(self, call: ToolCall) -> bool:
        return self.changes_files(call) or call.name in self.run.reading

    def with_approved_arguments(self, call: ToolCall) -> ToolCall:
        """Return the call with the arguments that a person set instead of the original ones, if any."""
        decision = self.decision_on(call)
        return replace(call, arguments=decision.arguments) if decision and decision.arguments is not None else call

    def decision_on(self, call: ToolCall) -> ConfirmDecided | None:
        interrupt = self.interrupts.get(call.id)
        return interrupt.decision if interrupt else None


def _answer_calls(calls: Sequence[ToolCall], too_many: tuple[ToolCall, ...], state: _CallState) -> Step:
    by_kind: defaultdict[_Kind, list[ToolCall]] = defaultdict(list)
    for call in calls:
        kind = state.classify(call)
        # A call that waits for approval may change the files that this one uses.
        is_blocked = kind == "start" and state.uses_files(call) and any(map(state.changes_files, by_kind["confirm"]))
        by_kind["blocked" if is_blocked else kind].append(call)
    if too_many or by_kind.keys() - {"client", "confirm", "blocked"}:
        denied = [(call, state.decision_on(call)) for call in by_kind["denied"]]
        return RunTools(
            start=tuple(map(state.with_approved_arguments, by_kind["start"])),
            interrupted=tuple(by_kind["interrupted"]),
            cut_off=tuple(by_kind["cut_off"]),
            too_many=too_many,
            denied=tuple([DeniedCall(call=call, words=decision.text if decision else "") for call, decision in denied]),
            expired=tuple(by_kind["expired"]),
        )
    return WaitForClient(calls=tuple(by_kind["client"]), confirm=tuple(by_kind["confirm"]))


def _call_model(log_view: View, turn: Sequence[Message], run: Run) -> Step:
    if not turn:
        return Finished(outcome="done")
    replies = sum(1 for message in turn if isinstance(message, AssistantMessage))
    if replies >= run.max_steps:
        return Finished(outcome="too_many_steps")
    if _count_bad_replies(turn) > run.max_bad_arguments:
        return Finished(outcome="bad_arguments")
    if run.failures >= run.max_failures:
        return Finished(outcome="model_failed")
    if run.unusable > run.max_unusable:
        return Finished(outcome="unusable_reply")
    may_compact = run.can_compact and not _is_just_compacted(log_view)
    if may_compact and (run.full or run.too_long):
        return Compact()
    # If the provider rejects the page as too long even after one compaction and one retry, the run ends.
    return Finished(outcome="too_long") if run.too_long > (1 if run.can_compact else 0) else CallModel()


def _is_just_compacted(log_view: View) -> bool:
    """Return True if no message follows the last summary, so that another summary would save nothing."""
    newest = next((entry for entry in reversed(log_view.entries) if isinstance(entry, (Compacted, Message))), None)
    return isinstance(newest, Compacted)


def _count_bad_replies(turn: Sequence[Message]) -> int:
    """Count the last consecutive replies whose calls all had invalid arguments."""
    count, results = 0, list[ToolMessage]()
    for message in reversed(turn):
        if isinstance(message, ToolMessage):
            results.append(message)
        elif isinstance(message, AssistantMessage):
            if not results or any(result.error != INVALID_ARGUMENTS for result in results):
                break
            count, results = count + 1, []
    return count
