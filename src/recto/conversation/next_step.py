"""What a run does next, by the log and the run alone.

Resuming after a crash, going on after tools and going on after a client's result are the same question, so they have
the same answer. A tool that was started is never started again unless it says that it may be; one that a person has
to agree to is started only by the run that brought their approval.
"""

from __future__ import annotations

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
# The error of a result whose call had arguments the tool cannot take; the model is asked to write them again.
INVALID_ARGUMENTS = "invalid_arguments"


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run's row says. Everything else is in the log.

    `id` is the run's own. `client_tools` are answered by the client, for calls that do not say it themselves;
    `repeatable` may be started twice; to calls of `confirm` a person has to agree. Those of `changing` may change
    files, and those of `reading` read them, so both wait for the former that were written before them. `full` says that
    the next page would not fit; `can_compact` is false once compacting has failed. `too_long` counts how often the
    provider found the page too long, `failures` how often a call of the model failed, `unusable` how often its reply
    could not be used, all since the model last replied. A run to `compact` does nothing else; `calls` are those of the
    model that the run has made.
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
    """Set a page and call the model."""


@dataclass(frozen=True, kw_only=True)
class DeniedCall:
    """A call that a person denied, and what they said to it."""

    call: ToolCall
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class RunTools:
    """Start these calls; settle those that were started and lost, were cut off, or are more than a reply may have.

    Calls in `start` have the arguments that a person approved. `denied` are those that were not, `expired` those that
    nobody decided on in time.
    """

    start: tuple[ToolCall, ...] = ()
    interrupted: tuple[ToolCall, ...] = ()
    cut_off: tuple[ToolCall, ...] = ()
    too_many: tuple[ToolCall, ...] = ()
    denied: tuple[DeniedCall, ...] = ()
    expired: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Compact:
    """Summarise, then ask again what is next."""


@dataclass(frozen=True, kw_only=True)
class WaitForClient:
    """These calls are the client's to answer; the run ends and the next one brings the results.

    To those in `confirm` a person has to agree: the next one brings what was decided.
    """

    calls: tuple[ToolCall, ...] = ()
    confirm: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The run is over."""

    outcome: Outcome


Step: TypeAlias = CallModel | RunTools | Compact | WaitForClient | Finished


def next_step(log: Sequence[Entry], run: Run) -> Step:
    """The one thing to do now. What is complete stays complete, whatever was asked or is due since."""
    seen = view(log)
    if run.compact:
        return _compact_only(seen, run)
    # Where no user spoke, all that was said is the turn: it ends as any other does.
    turn = seen.messages[seen.turn_start :] or seen.messages
    reply = _last_reply(turn)
    if answer := find_turn_finish(seen):
        return Finished(outcome=answer)
    if stopped := _stopped(run):
        return stopped
    after = _entries_after(seen, reply) if reply else ()
    answered = {entry.tool_call_id for entry in after if isinstance(entry, ToolMessage)}
    waiting = tuple(call for call in reply.tool_calls if call.id not in answered) if reply else ()
    if reply and waiting:
        broken_off = _is_broken_off(seen, reply)
        # A reply that was cut may have ended inside its last call.
        half = reply.tool_calls[-1] if broken_off or seen.finishes.get(reply.id) == "length" else None
        beyond = {id(call) for call in reply.tool_calls[run.max_calls :]}
        within = [call for call in waiting if id(call) not in beyond]
        too_many = tuple(call for call in waiting if id(call) in beyond)
        state = _CallState(
            run=run,
            started=_started(log, reply),
            asked={one.call.id: one for one in interrupts_of(seen) if one.message == reply.id},
            half=half,
            broken_off=broken_off,
        )
        return _answer(within, too_many, state)
    return _call_model(seen, turn, run)


def _compact_only(seen: View, run: Run) -> Step:
    """What a run does that was asked to compact, and for nothing else. One that has not asked the model won nothing."""
    if _is_just_compacted(seen):
        return Finished(outcome="done" if run.calls else "nothing_to_compact")
    if stopped := _stopped(run):
        return stopped
    if not run.can_compact:
        return Finished(outcome="compact_failed" if run.calls else "nothing_to_compact")
    return Compact()


def _stopped(run: Run) -> Finished | None:
    if run.cancel:
        return Finished(outcome="cancelled")
    is_late = run.deadline is not None and run.now is not None and run.now >= run.deadline
    return Finished(outcome="deadline") if is_late else None


def find_turn_finish(seen: View) -> Finish | Literal["done"] | None:
    """How the current turn ended by what the model said; None while it has no answer, or half of one."""
    reply = _last_reply(seen.messages[seen.turn_start :] or seen.messages)
    finish = seen.finishes.get(reply.id) if reply else None
    if reply is None or finish in ("refused", "filtered"):
        return finish
    return None if reply.tool_calls or _is_broken_off(seen, reply) else finish or "done"


def _last_reply(turn: Sequence[Message]) -> AssistantMessage | None:
    return next((message for message in reversed(turn) if isinstance(message, AssistantMessage)), None)


def _is_broken_off(seen: View, reply: AssistantMessage) -> bool:
    return any(isinstance(entry, Interrupted) and entry.message == reply.id for entry in _entries_after(seen, reply))


def _entries_after(seen: View, reply: AssistantMessage) -> tuple[Entry, ...]:
    # Models re-use ids of calls, so only what follows the reply answers its calls.
    place = next(place for place in range(len(seen.entries) - 1, -1, -1) if seen.entries[place] is reply)
    return seen.entries[place + 1 :]


def _started(log: Sequence[Entry], reply: AssistantMessage) -> set[str]:
    # An undo hides what came after the rollback, but not what a tool did then: the whole log is asked, not the view.
    since = takewhile(lambda entry: entry is not reply, reversed(log))
    return {entry.call for entry in since if isinstance(entry, ToolStarted) and entry.message == reply.id}


_Kind: TypeAlias = Literal["start", "lost", "cut_off", "denied", "expired", "theirs", "confirm", "held"]


@dataclass(frozen=True, kw_only=True)
class _CallState:
    """What is known of the calls of a reply: by their ids, which were started and which a person was asked about."""

    run: Run
    started: set[str]
    asked: Mapping[str, Interrupt]
    half: ToolCall | None
    broken_off: bool

    def kind_of(self, call: ToolCall) -> _Kind:
        """What is to become of a call that has no result."""
        run, is_theirs = self.run, call.is_for_client(otherwise=call.name in self.run.client_tools)
        needs_person = not is_theirs and (call.name in run.confirm or call.id in self.asked)
        would_ask = is_theirs or (needs_person and call.id not in self.started)
        # Half a call is never run; and nobody is asked for anything by a reply that was broken off.
        if call is self.half or (self.broken_off and would_ask):
            return "cut_off"
        if is_theirs:
            return "theirs"
        if call.id in self.started and call.name not in run.repeatable:
            return "lost"
        return self._decided(self.asked.get(call.id)) if needs_person else "start"

    def _decided(self, asked: Interrupt | None) -> _Kind:
        match asked.decision if asked else None:
            case None:
                return "expired" if asked and asked.is_late(self.run.now) else "confirm"
            case ConfirmDecided(approved=False):
                return "denied"
            case ConfirmDecided(run=by):
                # That of a run that ended before it acted is spent, and so is one that came along with a fork.
                return "start" if by == self.run.id else "confirm"

    def changes(self, call: ToolCall) -> bool:
        """Whether a call may change files."""
        return call.name in self.run.changing

    def works_on_files(self, call: ToolCall) -> bool:
        """Whether a call finds what one before it left of files."""
        return self.changes(call) or call.name in self.run.reading

    def as_approved(self, call: ToolCall) -> ToolCall:
        """A call with the arguments that a person put in their place."""
        asked = self.asked.get(call.id)
        changed = asked.decision.arguments if asked and asked.decision else None
        return call if changed is None else replace(call, arguments=changed)

    def words_for(self, call: ToolCall) -> str:
        """What a person said to a call."""
        asked = self.asked.get(call.id)
        return asked.decision.text if asked and asked.decision else ""


def _answer(within: Sequence[ToolCall], too_many: tuple[ToolCall, ...], state: _CallState) -> Step:
    calls: dict[_Kind, list[ToolCall]] = {}
    for call in within:
        kind = state.kind_of(call)
        # What is yet to be agreed to may change what it would find.
        is_held = kind == "start" and state.works_on_files(call) and any(map(state.changes, calls.get("confirm", ())))
        calls.setdefault("held" if is_held else kind, []).append(call)
    of = {kind: tuple(some) for kind, some in calls.items()}
    if too_many or of.keys() - {"theirs", "confirm", "held"}:
        return RunTools(
            start=tuple(map(state.as_approved, of.get("start", ()))),
            interrupted=of.get("lost", ()),
            cut_off=of.get("cut_off", ()),
            too_many=too_many,
            denied=tuple([DeniedCall(call=call, words=state.words_for(call)) for call in of.get("denied", ())]),
            expired=of.get("expired", ()),
        )
    return WaitForClient(calls=of.get("theirs", ()), confirm=of.get("confirm", ()))


def _call_model(seen: View, turn: Sequence[Message], run: Run) -> Step:
    if not turn:
        return Finished(outcome="done")
    replies = sum(1 for message in turn if isinstance(message, AssistantMessage))
    if replies >= run.max_steps:
        return Finished(outcome="too_many_steps")
    if _bad_arguments_in_a_row(turn) > run.max_bad_arguments:
        return Finished(outcome="bad_arguments")
    if run.failures >= run.max_failures:
        return Finished(outcome="model_failed")
    if run.unusable > run.max_unusable:
        return Finished(outcome="unusable_reply")
    may_compact = run.can_compact and not _is_just_compacted(seen)
    if may_compact and (run.full or run.too_long):
        return Compact()
    # One compaction and one retry: a provider that finds the page too long even then ends the run.
    return Finished(outcome="too_long") if run.too_long > (1 if run.can_compact else 0) else CallModel()


def _is_just_compacted(seen: View) -> bool:
    """Whether nothing was said since the last summary: a second one would win nothing."""
    newest = next((entry for entry in reversed(seen.entries) if isinstance(entry, (Compacted, Message))), None)
    return isinstance(newest, Compacted)


def _bad_arguments_in_a_row(turn: Sequence[Message]) -> int:
    """How many replies, counted from the last, asked for nothing but calls that no tool could take."""
    count, results = 0, list[ToolMessage]()
    for message in reversed(turn):
        if isinstance(message, ToolMessage):
            results.append(message)
        elif isinstance(message, AssistantMessage):
            if not results or any(result.error != INVALID_ARGUMENTS for result in results):
                break
            count, results = count + 1, []
    return count
