"""Sessions as sequences of calls: whole, or in stretches that restart at the agent's compactions.

Each message is counted once. System prompt and tools are not in session files: they are estimated as the difference
from the provider's count at the first call. Thinking is counted without signatures, as providers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from recto.cli.sessions.session import Session, SessionCompaction
from recto.conversation.json import load_object
from recto.conversation.messages import AssistantMessage, AssistantPart, Message, Opaque, Text, UserMessage
from recto.models.prices import Prices
from recto.page.text.tokens import OFFLINE, TokenCounter, count_messages, tokens_of


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """Parameters of a replay. `model` overrides the models named in sessions.

    A prefix stays cached for `cache_life` after the call that used it. Above `clear_over` tokens, the policy `clear`
    keeps the newest `clear_keep` results. With `cut`, a session restarts where its agent compacted it; without,
    compactions are ignored.
    """

    prices: Prices
    policies: tuple[str, ...]
    model: str = ""
    window: int = 200_000
    cache_life: timedelta = timedelta(minutes=5)
    clear_over: int = 100_000
    clear_keep: int = 3
    cut: bool = False
    counter: TokenCounter = OFFLINE


BEGIN = SessionCompaction(place=0, first_kept=0, summary="")


@dataclass(frozen=True, kw_only=True)
class SessionCall:
    """A model call. `place` is the place of its reply. The messages before the reply are its page.

    `number` counts the calls of the session from 1. `is_cold` is True if nothing can be cached: first call of a
    stretch, expired cache, or another model.
    """

    place: int
    number: int
    model: str
    output: int
    is_cold: bool


@dataclass(frozen=True, kw_only=True)
class CallStretch:
    """Calls whose pages extend each other. `tokens` counts each message, `before` the system prompt and tools.

    `origin` is the place of the first message in the session. For a summary, which is not in the session, it is the
    place before the next message.
    """

    messages: tuple[Message, ...]
    calls: tuple[SessionCall, ...]
    tokens: tuple[int, ...]
    before: int = 0
    origin: int = 0


def stretches_of(session: Session, settings: ReplaySettings) -> tuple[CallStretch, ...]:
    """Split a session into stretches, without those that have no calls."""
    all_messages = tuple([_unsigned(message) for message in session.messages])
    count_messages(all_messages, settings.counter)
    first = next((place for place, one in enumerate(all_messages) if isinstance(one, AssistantMessage)), 0)
    usage = session.usages.get(all_messages[first].id) if all_messages else None
    tokens = [tokens_of(message, settings.counter) for message in all_messages[:first]]
    before = max(usage.input - sum(tokens), 0) if usage else 0
    cuts = [BEGIN, *(session.compactions if settings.cut else ())]
    ends = [*[cut.place for cut in cuts[1:]], len(all_messages)]
    stretches: list[CallStretch] = []
    number = 0
    for cut, end in zip(cuts, ends, strict=True):
        summary = (UserMessage(parts=(Text(text=cut.summary),)),) if cut.summary else ()
        messages = (*summary, *all_messages[cut.first_kept : end])
        origin = cut.first_kept - len(summary)
        calls = tuple(_calls(session, messages, cut.place - origin, number, settings))
        number += len(calls)
        tokens = tuple([tokens_of(message, settings.counter) for message in messages])
        stretches.append(CallStretch(messages=messages, calls=calls, tokens=tokens, before=before, origin=origin))
    return tuple(stretch for stretch in stretches if stretch.calls)


def _unsigned(message: Message) -> Message:
    """Return a message with its thinking as unsigned text, as the provider counts it."""
    if not isinstance(message, AssistantMessage) or not any(isinstance(part, Opaque) for part in message.parts):
        return message
    parts: list[AssistantPart] = []
    for part in message.parts:
        match load_object(part.data) if isinstance(part, Opaque) else None:
            case {"type": "thinking", "thinking": str(text)}:
                parts.append(Text(text=text))
            case _:
                parts.append(part)
    return replace(message, parts=tuple(parts))


def _calls(
    session: Session, messages: Sequence[Message], begin: int, number: int, settings: ReplaySettings
) -> Iterator[SessionCall]:
    """Yield the calls from `begin` on. The time of a call is the newest time in its page."""
    newest: datetime | None = None
    previous_time: datetime | None = None
    model, some_model = "", session.model or next(iter(session.models.values()), "")
    for place, message in enumerate(messages):
        if place >= begin and isinstance(message, AssistantMessage):
            number += 1
            name = settings.model or session.models.get(message.id) or model or some_model
            is_over = newest is not None and previous_time is not None and newest - previous_time > settings.cache_life
            output = tokens_of(message, settings.counter)
            is_cold = is_over or name != model
            yield SessionCall(place=place, number=number, model=name, output=output, is_cold=is_cold)
            model, previous_time = name, newest
        newest = max(filter(None, (newest, message.time)), default=None)
