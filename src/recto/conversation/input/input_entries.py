"""Input taken into the log: the user's words, and results of calls that wait for the client (P3). Nothing else is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from recto.conversation.input.run_input import PersonDecision, ResumeItem, decision_of
from recto.conversation.interrupts import DENIED, UNANSWERED, Interrupt, denial_text, interrupts_of
from recto.conversation.log import ConfirmDecided, Entry, Interrupted, ToolStarted, View, view
from recto.conversation.messages import (
    FAILED,
    STATUSES,
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from recto.conversation.next_step import find_turn_finish
from recto.errors import Conflict, NotFound

EXPIRED = "expired"
# A longer name would fit into no index.
MAX_ID = 255
Sent = TypeVar("Sent", UserMessage, ToolMessage)
CALL_TOO_LATE = (
    "The client did not answer the call of {name} in time, so there is no result. Go on without, or call again."
)


@dataclass(frozen=True, kw_only=True)
class AdmittedRun:
    """When the run was admitted, the id its answer and its files go by, and the tools no client may answer for.

    `turn_id` is the user message's where its own is taken; `taken` are ids that are, beside those of the log at hand.
    `patience` is how long a call waits for the client; without it, for ever.
    """

    admitted_at: datetime
    response_id: str
    turn_id: str = ""
    new_id: Callable[[], str]
    own_tools: Collection[str] = ()
    used_ids: Collection[str] = ()
    patience: timedelta | None = None


def admit_input(log: Sequence[Entry], messages: Sequence[Message], run: AdmittedRun) -> tuple[Entry, ...]:
    """The entries to append. A client's copies of what others said are never taken.

    The user message of the current turn, sent again as it was, goes on with that turn until that is answered; any other
    is a new turn, under a new id where its own is taken. A turn that goes on with calls that waited too long has them
    answered by us.
    """
    seen = view(log)
    waiting = {call.id for call in pending_calls(seen, run.own_tools)}
    late = waiting and _is_late(seen, run)
    taken = {*run.used_ids, *[entry.id for entry in log]}
    entries: list[Entry] = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id in waiting and not late:
            waiting.remove(message.tool_call_id)
            entries.append(_named(replace(message, time=run.admitted_at, error=_error_of(message)), taken, run))
        elif isinstance(message, UserMessage) and not _goes_on(seen, message):
            entries.append(_new_turn(message, taken, run))
    if late and not any(isinstance(entry, UserMessage) for entry in entries):
        entries += _too_late(seen, run)
    return tuple(entries)


def queued_turn(
    seen: View, messages: Sequence[Message], run: AdmittedRun, taken: Collection[str]
) -> UserMessage | None:
    """The user message of a run that waits, as it will stand in the log where these ids are taken.

    None for one that only brings results to the turn that is current now.
    """
    message = next((one for one in messages if isinstance(one, UserMessage)), None)
    brings_results = any(isinstance(one, ToolMessage) for one in messages)
    if message is None or (brings_results and _goes_on(seen, message)):
        return None
    return _new_turn(message, set(taken), run)


def pending_calls(seen: View, own_tools: Collection[str] = ()) -> tuple[ToolCall, ...]:
    """The client's calls of the last reply that have no result yet. One that was broken off asked for none.

    `own_tools` decide whose calls are that do not say it themselves.
    """
    broken_off = {marker.message for marker in seen.markers if isinstance(marker, Interrupted)}
    answered: set[str] = set()
    for message in reversed(seen.messages):
        if isinstance(message, ToolMessage):
            answered.add(message.tool_call_id)
        elif isinstance(message, UserMessage) or message.id in broken_off:
            break
        elif isinstance(message, AssistantMessage):
            waiting = [call for call in message.tool_calls if call.id not in answered]
            return tuple(call for call in waiting if call.is_for_client(otherwise=call.name not in own_tools))
    return ()


def _error_of(message: ToolMessage) -> str | None:
    """What a client calls a failure, never one of our own names for it: those are our answers. A blank is none."""
    if not (message.error or "").strip():
        return None
    return f"{FAILED}{message.error}" if message.error in STATUSES else message.error


def _is_late(seen: View, run: AdmittedRun) -> bool:
    said = seen.reply.time if seen.reply else None
    return run.patience is not None and said is not None and run.admitted_at - said > run.patience


def _too_late(seen: View, run: AdmittedRun) -> Iterator[ToolMessage]:
    for call in pending_calls(seen, run.own_tools):
        text = Text(text=CALL_TOO_LATE.format(name=call.name))
        yield ToolMessage(id=run.new_id(), time=run.admitted_at, tool_call_id=call.id, error=EXPIRED, parts=(text,))


def _goes_on(seen: View, message: UserMessage) -> bool:
    """Whether it is the newest that came under its id, as it was, and its turn is the current one and not answered."""
    current = seen.messages[seen.turn_start] if seen.turn_start < len(seen.messages) else None
    if not isinstance(current, UserMessage) or current.parts != message.parts:
        return False
    came_as = current.id if current.client_id is None else current.client_id
    return came_as == message.id and find_turn_finish(seen) is None


def _new_turn(message: UserMessage, taken: set[str], run: AdmittedRun) -> UserMessage:
    turn = replace(message, time=run.admitted_at, response_id=run.response_id)
    named = _named(turn, taken, run)
    return named if named is turn else replace(named, client_id=message.id)


def _named(message: Sent, taken: set[str], run: AdmittedRun) -> Sent:
    """Under an id nobody has: its own, if that is one."""
    mine = run.turn_id if isinstance(message, UserMessage) else ""
    free = [id for id in (message.id, mine) if id and len(id) <= MAX_ID and id not in taken]
    id = free[0] if free else run.new_id()
    taken.add(id)
    return message if id == message.id else replace(message, id=id)


SAID_MORE = "{name} was not called: nobody agreed to it, and the user said something else instead."
ANSWERED = "Interrupt {id!r} does not wait any more: its call has a result."
OTHERWISE = "Interrupt {id!r} was answered before, in another way. The first answer counts."
ANSWER_TOO_LATE = "Interrupt {id!r} has expired. Send it as cancelled, or send a message, to go on."


@dataclass(frozen=True, kw_only=True)
class DecisionInput:
    """What a run brings of decisions: its own id, its `resume` items and its messages."""

    run: str
    resume: Sequence[ResumeItem] = ()
    messages: Sequence[Message] = ()


def admit_decisions(
    log: Sequence[Entry], brought: DecisionInput, run: AdmittedRun, entering: Sequence[Entry]
) -> Iterator[Entry]:
    """The entries to append before those that are `entering`: decisions, and results of calls that wait no longer."""
    asked = interrupts_of(view(log))
    waiting = [one for one in asked if one.is_waiting and not one.is_late(run.admitted_at)]
    decided = {one.id: answer for one in waiting if (answer := _decision_on(one, brought))}
    marked = {id: _decided(id, answer, brought.run, run) for id, answer in decided.items()}
    yield from marked.values()
    if any(isinstance(entry, UserMessage) for entry in entering):
        started = {(entry.message, entry.call) for entry in log if isinstance(entry, ToolStarted)}
        newest = {(one.message, one.call.id): one for one in asked}
        for place, one in newest.items():
            if not one.is_answered and place not in started:
                yield _settled(replace(one, decision=marked.get(one.id, one.decision)), run)


def _decision_on(interrupt: Interrupt, brought: DecisionInput) -> PersonDecision | None:
    items = (item.decision for item in brought.resume if item.interrupt == interrupt.id)
    results = (message for message in brought.messages if isinstance(message, ToolMessage))
    said = (decision_of(message) for message in results if message.tool_call_id == interrupt.call.id)
    return next(items, None) or next(said, None)


def _decided(id: str, decision: PersonDecision, by: str, run: AdmittedRun) -> ConfirmDecided:
    return ConfirmDecided(
        id=run.new_id(),
        time=run.admitted_at,
        interrupt=id,
        run=by,
        approved=decision.approved,
        text=decision.text,
        arguments=decision.arguments,
    )


def _settled(interrupt: Interrupt, run: AdmittedRun) -> ToolMessage:
    """The result of a call that is not made, as words of a new turn come after it."""
    name, decision, error = interrupt.call.name, interrupt.decision, DENIED
    if decision and not decision.approved:
        text = denial_text(name, decision.text)
    elif decision is None and interrupt.is_late(run.admitted_at):
        text, error = UNANSWERED.format(name=name), EXPIRED
    else:
        text = SAID_MORE.format(name=name)
    parts = (Text(text=text),)
    return ToolMessage(id=run.new_id(), time=run.admitted_at, tool_call_id=interrupt.call.id, error=error, parts=parts)


def check_resume(seen: View, items: Sequence[ResumeItem], now: datetime, *, has_messages: bool) -> str | None:
    """Raise for the first item that answers nothing that waits. Where all were taken before: the run that took them.

    Who has words to say may give up what waits no longer: stock clients send nothing else before they have.
    """
    known = {one.id: one for one in interrupts_of(seen)}
    judged = [_judged(item, known.get(item.interrupt), now, has_messages=has_messages) for item in items]
    return judged[-1] if judged and all(judged) else None


def _judged(item: ResumeItem, found: Interrupt | None, now: datetime, *, has_messages: bool) -> str | None:
    if found and found.is_waiting and (not item.decision.approved or not found.is_late(now)):
        return None
    if found and found.decision and _is_same(found.decision, item.decision):
        return found.decision.run
    if item.is_cancelled and has_messages:
        return None
    if found is None:
        raise NotFound(what="interrupt", id=item.interrupt[:64])
    words = OTHERWISE if found.decision else ANSWER_TOO_LATE if found.is_waiting else ANSWERED
    raise Conflict(words.format(id=item.interrupt[:64]))


def _is_same(decided: ConfirmDecided, decision: PersonDecision) -> bool:
    return (decided.approved, decided.text, decided.arguments) == (decision.approved, decision.text, decision.arguments)
