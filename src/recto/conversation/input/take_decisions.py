"""Decisions taken into the log: what people said to the interrupts of the current turn, each once, the first wins.

Words of a new turn leave nothing waiting: what nobody agreed to is answered with that, before they are said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from recto.conversation.input.resume_items import PersonDecision, ResumeItem, decision_of
from recto.conversation.input.take_input import EXPIRED, AdmittedRun
from recto.conversation.interrupts import DENIED, UNANSWERED, Interrupt, denial_text, interrupts_of
from recto.conversation.log import ConfirmDecided, Entry, ToolStarted, View, view
from recto.conversation.messages import Message, Text, ToolMessage, UserMessage
from recto.errors import Conflict, NotFound

SAID_MORE = "{name} was not called: nobody agreed to it, and the user said something else instead."
ANSWERED = "Interrupt {id!r} does not wait any more: its call has a result."
OTHERWISE = "Interrupt {id!r} was answered before, in another way. The first answer counts."
TOO_LATE = "Interrupt {id!r} has expired. Send it as cancelled, or send a message, to go on."


@dataclass(frozen=True, kw_only=True)
class Brought:
    """What a run brings of decisions: its own id, its `resume` items and its messages."""

    run: str
    resume: Sequence[ResumeItem] = ()
    messages: Sequence[Message] = ()


def take_decisions(
    log: Sequence[Entry], brought: Brought, run: AdmittedRun, entering: Sequence[Entry]
) -> Iterator[Entry]:
    """The entries to append before those that are `entering`: decisions, and results of calls that wait no longer."""
    asked = interrupts_of(view(log))
    waiting = [one for one in asked if one.waits and not one.is_late(run.admitted)]
    decided = {one.id: answer for one in waiting if (answer := _decision_on(one, brought))}
    marked = {id: _decided(id, answer, brought.run, run) for id, answer in decided.items()}
    yield from marked.values()
    if any(isinstance(entry, UserMessage) for entry in entering):
        started = {(entry.message, entry.call) for entry in log if isinstance(entry, ToolStarted)}
        newest = {(one.message, one.call.id): one for one in asked}
        for place, one in newest.items():
            if not one.is_answered and place not in started:
                yield _settled(replace(one, decision=marked.get(one.id, one.decision)), run)


def _decision_on(interrupt: Interrupt, brought: Brought) -> PersonDecision | None:
    items = (item.decision for item in brought.resume if item.interrupt == interrupt.id)
    results = (message for message in brought.messages if isinstance(message, ToolMessage))
    said = (decision_of(message) for message in results if message.tool_call_id == interrupt.call.id)
    return next(items, None) or next(said, None)


def _decided(id: str, decision: PersonDecision, by: str, run: AdmittedRun) -> ConfirmDecided:
    return ConfirmDecided(
        id=run.new_id(),
        time=run.admitted,
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
    elif decision is None and interrupt.is_late(run.admitted):
        text, error = UNANSWERED.format(name=name), EXPIRED
    else:
        text = SAID_MORE.format(name=name)
    parts = (Text(text=text),)
    return ToolMessage(id=run.new_id(), time=run.admitted, tool_call_id=interrupt.call.id, error=error, parts=parts)


def check_resume(seen: View, items: Sequence[ResumeItem], now: datetime, *, has_messages: bool) -> str | None:
    """Raise for the first item that answers nothing that waits. Where all were taken before: the run that took them.

    Who has words to say may give up what waits no longer: stock clients send nothing else before they have.
    """
    known = {one.id: one for one in interrupts_of(seen)}
    judged = [_judged(item, known.get(item.interrupt), now, has_messages=has_messages) for item in items]
    return judged[-1] if judged and all(judged) else None


def _judged(item: ResumeItem, found: Interrupt | None, now: datetime, *, has_messages: bool) -> str | None:
    if found and found.waits and (not item.decision.approved or not found.is_late(now)):
        return None
    if found and found.decision and _is_same(found.decision, item.decision):
        return found.decision.run
    if item.is_cancelled and has_messages:
        return None
    if found is None:
        raise NotFound(what="interrupt", id=item.interrupt[:64])
    words = OTHERWISE if found.decision else TOO_LATE if found.waits else ANSWERED
    raise Conflict(words.format(id=item.interrupt[:64]))


def _is_same(decided: ConfirmDecided, decision: PersonDecision) -> bool:
    return (decided.approved, decided.text, decided.arguments) == (decision.approved, decision.text, decision.arguments)
