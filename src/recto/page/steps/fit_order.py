"""Order and ids as providers demand them: instructions first, a user to begin with, call ids they accept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from recto.conversation.memo import remember_last
from recto.conversation.messages import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from recto.page.draft import Draft, then, unchanged
from recto.page.manifest import Note

BEFORE_USER = "before the first user message, where this provider's conversations begin"
HOISTED = "instructions stand before the conversation"
NEW_IDS = "call ids rewritten to what the provider gave or accepts"
# Characters of a call id and its length, as the providers check them.
ID_RULES = {"openai": (re.compile(r".*", re.DOTALL), 40), "anthropic": (re.compile(r"[a-zA-Z0-9_-]*"), 64)}


@dataclass(frozen=True, kw_only=True)
class ProviderOrder:
    """Whether a conversation is as the provider wants it so far, and what that depends on when it goes on."""

    good: bool = True
    has_user: bool = False
    has_talk: bool = False
    ids: frozenset[str] = frozenset()


def is_in_order(known: ProviderOrder | None, messages: Sequence[Message], wire: str) -> ProviderOrder:
    """Carry the look at order and ids on over more messages."""
    order = known or ProviderOrder()
    good, has_user, has_talk = order.good, order.has_user, order.has_talk
    ids: list[str] = []
    for message in messages:
        if message.role in ("system", "developer"):
            good = good and not (wire == "anthropic" and has_talk)
            continue
        has_user, has_talk = has_user or message.role == "user", True
        good = good and (has_user or wire != "anthropic")
        if message.role == "assistant":
            ids += [call.id for call in message.tool_calls]
            good = good and not any(call.provider_id for call in message.tool_calls)
    good = good and _ids_are_good(ids, wire) and not (wire == "anthropic" and order.ids.intersection(ids))
    return ProviderOrder(good=good, has_user=has_user, has_talk=has_talk, ids=order.ids.union(ids))


def fit_order(messages: Sequence[Message], wire: str) -> Draft:
    """The conversation in the order the provider demands, with call ids it accepts."""
    ordered = _begin_with_user(messages) if wire == "anthropic" else unchanged(messages)
    return then(ordered, _fit_ids(ordered.messages, wire))


def _begin_with_user(messages: Sequence[Message]) -> Draft:
    instructions = [i for i, message in enumerate(messages) if isinstance(message, (SystemMessage, DeveloperMessage))]
    first_user = next((i for i, message in enumerate(messages) if isinstance(message, UserMessage)), len(messages))
    late = [place for order, place in enumerate(instructions) if place != order]
    early = [place for place in range(first_user) if place not in instructions]
    if not late and not early:
        return unchanged(messages)
    notes = {place: Note(decision="repaired", rule="fit", reason=HOISTED) for place in late}
    notes |= {place: Note(decision="dropped", rule="S2", reason=BEFORE_USER) for place in early}
    instruction_places = set(instructions)
    talk = [place for place in range(first_user, len(messages)) if place not in instruction_places]
    origins = [*instructions, *talk]
    return Draft(messages=tuple(messages[place] for place in origins), origins=origins, notes=notes)


def _fit_ids(messages: Sequence[Message], wire: str) -> Draft:
    used: set[str] = set()
    renamed: dict[str, str] = {}
    shown = list(messages)
    notes: dict[int, Note] = {}
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            ids = tuple(_new_ids(message, used, wire))
            renamed = {call.id: new for call, new in zip(message.tool_calls, ids, strict=True)}
            shown[place] = remember_last(message, _with_call_ids, ids)
        elif isinstance(message, ToolMessage):
            shown[place] = remember_last(message, _with_result_id, renamed.get(message.tool_call_id, ""))
        if shown[place] is not message:
            notes[place] = Note(decision="repaired", rule="fit", reason=NEW_IDS)
    return Draft(messages=tuple(shown), origins=range(len(shown)), notes=notes)


def _ids_are_good(ids: Sequence[str], wire: str) -> bool:
    alphabet, longest = ID_RULES[wire]
    # Only Anthropic wants ids unique over the whole conversation; others re-use them from turn to turn.
    unique = wire != "anthropic" or len(set(ids)) == len(ids)
    return unique and all(ids) and max(map(len, ids), default=0) <= longest and bool(alphabet.fullmatch("".join(ids)))


def _new_ids(message: AssistantMessage, used: set[str], wire: str) -> Iterator[str]:
    """What the provider called each of them, where it takes that; else their own ids; else others."""
    taken = used if wire == "anthropic" else set[str]()
    for call in message.tool_calls:
        wanted = [id for id in (call.provider_id, call.id) if id and id not in taken and _ids_are_good((id,), wire)]
        new = wanted[0] if wanted else _new_id(call.id, used)
        used.add(new)
        taken.add(new)
        yield new


def _new_id(id: str, used: set[str]) -> str:
    stem = re.sub(r"[^a-zA-Z0-9_-]", "_", id)[:24]
    hashes = (hashlib.sha256(f"{id}#{n}".encode(errors="replace")).hexdigest()[:8] for n in range(len(used) + 1))
    return next(new for new in (f"{stem}_{tail}" for tail in hashes) if new not in used)


def _with_call_ids(message: AssistantMessage, ids: tuple[str, ...]) -> AssistantMessage:
    if ids == tuple(call.id for call in message.tool_calls):
        return message
    left = iter(ids)
    parts = tuple(
        replace(part, id=next(left), provider_id="") if isinstance(part, ToolCall) else part for part in message.parts
    )
    return replace(message, parts=parts)


def _with_result_id(message: ToolMessage, id: str) -> ToolMessage:
    return message if id in ("", message.tool_call_id) else replace(message, tool_call_id=id)
