"""Interrupts: calls that a person has to agree to before they are made, as the log has them and as clients do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from recto.conversation.history import time_text
from recto.conversation.json import Json
from recto.conversation.locale import language
from recto.conversation.log import ConfirmAsked, ConfirmDecided, View
from recto.conversation.messages import AssistantMessage, ToolCall, ToolMessage

# AG-UI's word for an interrupt that is about a call.
REASON = "tool_call"
QUESTION = {
    "en": "May {name} be called with these arguments?",
    "zh": "是否允许以这些参数调用 {name}?",
}
# What the model reads of a call that was not made, and what that is called.
DENIED = "denied"
DENIAL = "{name} was not called: a person was asked, and denied it."
SAYING = " They said: {words}"
WITHOUT_WORDS = " Do not call it again unless they ask for it."
UNANSWERED = "{name} was not called: a person has to agree first, and nobody did in time. Go on without, or call again."
# What the payload of a `resume` item has to be.
RESPONSE: Json = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "message": {"type": "string"},
        "arguments": {"type": "object"},
    },
    "required": ["approved"],
}


@dataclass(frozen=True, kw_only=True)
class Interrupt:
    """A call that a person was asked about. `run` is the client's name for the run that asked.

    `expires` is when an answer comes too late. `decision` is what was decided; `is_answered` says that the call has a
    result, whoever it is from.
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
        """Whether nobody has decided, and nothing has made it needless."""
        return self.decision is None and not self.is_answered

    def is_late(self, now: datetime | None) -> bool:
        """Whether an answer would come too late."""
        return now is not None and self.expires_at is not None and now > self.expires_at


def interrupts_of(seen: View) -> tuple[Interrupt, ...]:
    """The interrupts of the current turn, in the order they were asked."""
    asked = [marker for marker in seen.markers if isinstance(marker, ConfirmAsked)]
    if not asked:
        return ()
    decided = {one.interrupt: one for one in reversed(seen.markers) if isinstance(one, ConfirmDecided)}
    calls, answered = _calls_of_turn(seen)
    return tuple(
        Interrupt(
            id=one.id,
            message=one.message,
            call=calls[one.message, one.call],
            run=one.run,
            asked_at=one.time,
            expires_at=one.time + timedelta(seconds=one.seconds) if one.time else None,
            decision=decided.get(one.id),
            is_answered=(one.message, one.call) in answered,
        )
        for one in asked
        if (one.message, one.call) in calls
    )


def _calls_of_turn(seen: View) -> tuple[dict[tuple[str, str], ToolCall], set[tuple[str, str]]]:
    """The calls of a turn by message and id, and which have a result. Ids alone may come again in each reply."""
    calls, answered, reply = dict[tuple[str, str], ToolCall](), set[tuple[str, str]](), ""
    for message in seen.messages[seen.turn_start :] or seen.messages:
        if isinstance(message, AssistantMessage):
            reply = message.id
            calls |= {(reply, call.id): call for call in message.tool_calls}
        elif isinstance(message, ToolMessage):
            answered.add((reply, message.tool_call_id))
    return calls, answered


def denial_text(name: str, words: str) -> str:
    """What the model reads of a call that a person denied, with what they said to it."""
    return DENIAL.format(name=name) + (SAYING.format(words=words) if words else WITHOUT_WORDS)


def question(interrupt: Interrupt, locale: str) -> str:
    """What people are asked."""
    return QUESTION[language(locale)].format(name=interrupt.call.name)


def interrupt_event(interrupt: Interrupt, locale: str) -> dict[str, Json]:
    """An interrupt as AG-UI has it in the end of a run."""
    row: dict[str, Json] = {
        "id": interrupt.id,
        "reason": REASON,
        "message": question(interrupt, locale),
        "toolCallId": interrupt.call.id,
        "responseSchema": RESPONSE,
    }
    return row | ({"expiresAt": time_text(interrupt.expires_at)} if interrupt.expires_at else {})
