"""Log entries from client input (P3): user messages, results of the client's calls, and decisions on interrupts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from recto.conversation.input.run_input import PersonDecision, ResumeItem, decision_of
from recto.conversation.interrupts import DENIED, UNANSWERED, denial_text, interrupts_of
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
# The maximum length of an id that fits into an index.
MAX_ID = 255
MessageT = TypeVar("MessageT", UserMessage, ToolMessage)
# Texts of results for calls without an answer, which the model reads.
CALL_TOO_LATE = (
    "The client did not answer the call of {name} in time, so there is no result. Go on without, or call again."
)
SAID_MORE = "{name} was not called: nobody agreed to it, and the user said something else instead."
# Errors of `resume` items.
HAS_RESULT = "Interrupt {id!r} does not wait any more: its call has a result."
DECIDED_OTHERWISE = "Interrupt {id!r} was answered before, in another way. The first answer counts."
ANSWER_TOO_LATE = "Interrupt {id!r} has expired. Send it as cancelled, or send a message, to go on."


@dataclass(frozen=True, kw_only=True)
class AdmittedRun:
    """An admitted run.

    `response_id` is the id of its answer and the prefix of its file ids. Clients may not answer for `own_tools`.
    `turn_id` replaces the id of the user message if that id is used already. `used_ids` are used ids besides those in
    the loaded log. The client's calls expire after `patience`, or never if it is None.
    """

    admitted_at: datetime
    response_id: str
    turn_id: str = ""
    new_id: Callable[[], str]
    own_tools: Collection[str] = ()
    used_ids: Collection[str] = ()
    patience: timedelta | None = None


def admit_input(log: Sequence[Entry], messages: Sequence[Message], run: AdmittedRun) -> tuple[Entry, ...]:
    """Return the entries to append. Ignore copies of messages that the client did not write.

    A repeated user message of an unanswered current turn continues that turn. Any other user message starts a new turn,
    with a new id if its own is used. If a continued turn has expired calls, they get a result that says so.
    """
    log_view = view(log)
    waiting = pending_calls(log_view, run.own_tools)
    ids = {call.id for call in waiting}
    asked_at = log_view.reply.time if log_view.reply else None
    is_late = False
    if waiting and asked_at is not None and run.patience is not None:
        is_late = run.admitted_at - asked_at > run.patience
    used_ids = {*run.used_ids, *[entry.id for entry in log]}
    entries: list[Entry] = []
    for message in messages:
        if isinstance(message, ToolMessage) and message.tool_call_id in ids and not is_late:
            ids.remove(message.tool_call_id)
            error = message.error if (message.error or "").strip() else None
            # Mark an error that equals one of Recto's own statuses, because these are only for results that Recto
            # wrote.
            error = f"{FAILED}{error}" if error in STATUSES else error
            entries.append(_with_free_id(replace(message, time=run.admitted_at, error=error), used_ids, run))
        elif isinstance(message, UserMessage) and not _continues_turn(log_view, message):
            entries.append(_new_turn(message, used_ids, run))
    if is_late and not any(isinstance(entry, UserMessage) for entry in entries):
        entries += [_result(call, CALL_TOO_LATE.format(name=call.name), EXPIRED, run) for call in waiting]
    return tuple(entries)


def queued_turn(
    log_view: View, messages: Sequence[Message], run: AdmittedRun, used_ids: Collection[str]
) -> UserMessage | None:
    """Return the user message of a queued run as the log will contain it, or None if the run continues the turn."""
    message = next((one for one in messages if isinstance(one, UserMessage)), None)
    brings_results = any(isinstance(one, ToolMessage) for one in messages)
    if message is None or (brings_results and _continues_turn(log_view, message)):
        return None
    return _new_turn(message, set(used_ids), run)


def pending_calls(log_view: View, own_tools: Collection[str] = ()) -> tuple[ToolCall, ...]:
    """Return the client's unanswered calls of the last reply; none if that reply was interrupted.

    A call without a runner belongs to the client unless its tool is in `own_tools`.
    """
    interrupted = {marker.message for marker in log_view.markers if isinstance(marker, Interrupted)}
    results: set[str] = set()
    for message in reversed(log_view.messages):
        if isinstance(message, ToolMessage):
            results.add(message.tool_call_id)
        elif isinstance(message, UserMessage) or message.id in interrupted:
            break
        elif isinstance(message, AssistantMessage):
            waiting = [call for call in message.tool_calls if call.id not in results]
            return tuple(call for call in waiting if call.is_for_client(otherwise=call.name not in own_tools))
    return ()


def _continues_turn(log_view: View, message: UserMessage) -> bool:
    """Return True for a copy of the newest user message, if its turn is not answered yet."""
    messages, start = log_view.messages, log_view.turn_start
    current = messages[start] if start < len(messages) else None
    if not isinstance(current, UserMessage) or current.parts != message.parts:
        return False
    client_id = current.id if current.client_id is None else current.client_id
    return client_id == message.id and find_turn_finish(log_view) is None


def _new_turn(message: UserMessage, used_ids: set[str], run: AdmittedRun) -> UserMessage:
    turn = _with_free_id(replace(message, time=run.admitted_at, response_id=run.response_id), used_ids, run)
    return turn if turn.id == message.id else replace(turn, client_id=message.id)


def _with_free_id(message: MessageT, used_ids: set[str], run: AdmittedRun) -> MessageT:
    """Return the message under its own id if that is free, else under a new one."""
    turn_id = run.turn_id if isinstance(message, UserMessage) else ""
    free = (id for id in (message.id, turn_id) if id and len(id) <= MAX_ID and id not in used_ids)
    id = next(free, None) or run.new_id()
    used_ids.add(id)
    return message if id == message.id else replace(message, id=id)


def _result(call: ToolCall, text: str, error: str, run: AdmittedRun) -> ToolMessage:
    parts = (Text(text=text),)
    return ToolMessage(id=run.new_id(), time=run.admitted_at, tool_call_id=call.id, error=error, parts=parts)


# Decisions on interrupts


@dataclass(frozen=True, kw_only=True)
class DecisionInput:
    """Input of a run that may contain decisions: its `resume` items and messages."""

    run: str
    resume: Sequence[ResumeItem] = ()
    messages: Sequence[Message] = ()


def admit_decisions(
    log: Sequence[Entry], decision_input: DecisionInput, run: AdmittedRun, entering: Sequence[Entry]
) -> Iterator[Entry]:
    """Yield the first decisions on waiting interrupts, to append before the `entering` entries.

    If a new turn enters, all interrupts of the old turn end: their calls get a result that says so.
    """
    interrupts = interrupts_of(view(log))
    waiting = [one for one in interrupts if one.is_waiting and not one.is_late(run.admitted_at)]
    markers = dict[str, ConfirmDecided]()
    for one in waiting:
        items = (item.decision for item in decision_input.resume if item.interrupt == one.id)
        results = (message for message in decision_input.messages if isinstance(message, ToolMessage))
        answers = (decision_of(message) for message in results if message.tool_call_id == one.call.id)
        if decision := (next(items, None) or next(answers, None)):
            markers[one.id] = ConfirmDecided(
                id=run.new_id(),
                time=run.admitted_at,
                interrupt=one.id,
                run=decision_input.run,
                approved=decision.approved,
                text=decision.text,
                arguments=decision.arguments,
            )
    yield from markers.values()
    if any(isinstance(entry, UserMessage) for entry in entering):
        started = {(entry.message, entry.call) for entry in log if isinstance(entry, ToolStarted)}
        newest = {(one.message, one.call.id): one for one in interrupts}
        for place, one in newest.items():
            if one.is_answered or place in started:
                continue
            name, decision = one.call.name, markers.get(one.id, one.decision)
            if decision and not decision.approved:
                yield _result(one.call, denial_text(name, decision.text), DENIED, run)
            elif decision is None and one.is_late(run.admitted_at):
                yield _result(one.call, UNANSWERED.format(name=name), EXPIRED, run)
            else:
                yield _result(one.call, SAID_MORE.format(name=name), DENIED, run)


def check_resume(log_view: View, items: Sequence[ResumeItem], now: datetime, *, has_messages: bool) -> str | None:
    """Raise an error for the first item without a waiting interrupt.

    If an earlier run delivered all these decisions already, return that run. With messages, a client may cancel
    interrupts that no longer wait: stock clients require this before they send a message.
    """
    interrupts = {one.id: one for one in interrupts_of(log_view)}
    runs = list[str | None]()
    for item in items:
        interrupt = interrupts.get(item.interrupt)
        before = interrupt.decision if interrupt else None
        answer = (
            PersonDecision(approved=before.approved, text=before.text, arguments=before.arguments) if before else None
        )
        if before and answer == item.decision:
            runs.append(before.run)
            continue
        runs.append(None)
        is_timely = interrupt and interrupt.is_waiting and not (item.decision.approved and interrupt.is_late(now))
        if is_timely or (item.is_cancelled and has_messages):
            continue
        if interrupt is None:
            raise NotFound(what="interrupt", id=item.interrupt[:64])
        problem = DECIDED_OTHERWISE if before else ANSWER_TOO_LATE if interrupt.is_waiting else HAS_RESULT
        raise Conflict(problem.format(id=item.interrupt[:64]))
    return runs[-1] if runs and all(runs) else None
