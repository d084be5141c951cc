"""Interrupts: calls that wait for a person's approval, in the log and in AG-UI."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from recto.conversation.history import time_text
from recto.conversation.json import Json
from recto.conversation.locale import language
from recto.conversation.log import ConfirmAsked, ConfirmDecided, View
from recto.conversation.messages import AssistantMessage, ToolCall, ToolMessage

# The AG-UI reason of an interrupt for a call.
REASON = "tool_call"
QUESTION = {"en": "Allow {name} with these arguments?", "zh": "是否允许以这些参数调用 {name}?"}
# The status of a denied call, and the texts that the model reads.
DENIED = "denied"
DENIAL = "{name} was not called: a person was asked, and denied it."
SAYING = " They said: {words}"
WITHOUT_WORDS = " Do not call it again unless they ask for it."
UNANSWERED = "{name} was not called: a person has to agree first, and nobody did in time. Go on without, or call again."
# The schema of the payload of a `resume` item.
RESPONSE: Json = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "message": {"type": "string"}, "arguments": {"type": "object"}},
    "required": ["approved"],
}


@dataclass(frozen=True, kw_only=True)
class Interrupt:
    """A call that needs approval. `run` is the client's name of the run that asked.

    A decision after `expires_at` is too late. `is_answered` is True once the call has a result of any kind.
    """

    id: str
    message: str
    call: ToolCall
    run: str
    asked_at: datetime | None = None
    expires_at: datetime | None = None
    decision: ConfirmDecided | None = None
    is_answered: bool = False

    @property
    def is_waiting(self) -> bool:
        """True if a decision is missing and the call has no result."""
        return self.decision is None and not self.is_answered

    def is_late(self, now: datetime | None) -> bool:
        """Return True if a decision at this time is too late."""
        return now is not None and self.expires_at is not None and now > self.expires_at


def interrupts_of(log_view: View) -> tuple[Interrupt, ...]:
    """Return the interrupts of the current turn in order."""
    requests = [marker for marker in log_view.markers if isinstance(marker, ConfirmAsked)]
    if not requests:
        return ()
    decisions = {one.interrupt: one for one in reversed(log_view.markers) if isinstance(one, ConfirmDecided)}
    # Use message and call id as key, because models reuse call ids.
    calls, results, reply = dict[tuple[str, str], ToolCall](), set[tuple[str, str]](), ""
    for message in log_view.messages[log_view.turn_start :] or log_view.messages:
        if isinstance(message, AssistantMessage):
            reply = message.id
            calls |= {(reply, call.id): call for call in message.tool_calls}
        elif isinstance(message, ToolMessage):
            results.add((reply, message.tool_call_id))
    return tuple(
        Interrupt(
            id=one.id,
            message=one.message,
            call=calls[one.message, one.call],
            run=one.run,
            asked_at=one.time,
            expires_at=one.time + timedelta(seconds=one.seconds) if one.time else None,
            decision=decisions.get(one.id),
            is_answered=(one.message, one.call) in results,
        )
        for one in requests
        if (one.message, one.call) in calls
    )


def denial_text(name: str, words: str) -> str:
    """Return the result of a denied call for the model, with the person's message."""
    return DENIAL.format(name=name) + (SAYING.format(words=words) if words else WITHOUT_WORDS)


def question(interrupt: Interrupt, locale: str) -> str:
    """Return the question for people about an interrupt."""
    return QUESTION[language(locale)].format(name=interrupt.call.name)


def interrupt_event(interrupt: Interrupt, locale: str) -> dict[str, Json]:
    """Return an interrupt in the AG-UI form for the end of a run."""
    row: dict[str, Json] = {
        "id": interrupt.id,
        "reason": REASON,
        "message": question(interrupt, locale),
        "toolCallId": interrupt.call.id,
        "responseSchema": RESPONSE,
    }
    return row | ({"expiresAt": time_text(interrupt.expires_at)} if interrupt.expires_at else {})
