"""Repair (R10): providers receive no call without its result and no result without its call.

A result answers the newest earlier call of its id that has no answer yet. It is moved up to that call if other messages
came between, because providers require results right after their calls. Results of one message follow the order of its
calls, so that a page does not depend on the speed of tools. Repair is idempotent.

For messages of other agents (`is_ours` is False), only what providers reject is repaired: results keep their order, and
empty messages stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import NamedTuple

from recto.conversation.memo import memoise_last, memoise_prefix
from recto.conversation.messages import (
    AssistantMessage,
    AssistantPart,
    File,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolMessage,
)
from recto.page.draft import Draft, unchanged
from recto.page.manifest import Note

RULE = "R10"
NO_RESULT = "{count} of {total} calls never got a result"
NO_CALL = "no call before it waits for this result"
MOVED = "moved up to its call, as providers demand"
ORDERED = "results put in the order of their calls"
SILENT = "nothing is said in it"
# Never sent to a model, so they do not separate a call from its result.
FOR_PEOPLE = ("reasoning", "activity")


class _Call(NamedTuple):
    """The place of a call's message, and the call's number in it."""

    caller: int
    number: int


class _Answer(NamedTuple):
    """The number of a call in its message, and the place of its result."""

    number: int
    place: int


@dataclass(frozen=True, kw_only=True)
class _Pairs:
    """Matched calls and results of the first `count` messages.

    `results` are results by the place of their caller, in order of arrival; `waiting` are unanswered calls by id;
    `suspects` are assistant messages that are empty or lost a call to another of the same id; `mixed` are callers whose
    results came in another order than their calls.
    """

    count: int = 0
    last_caller: int = -1
    waiting: Mapping[str, _Call] = field(default_factory=dict[str, _Call])
    results: Mapping[int, tuple[_Answer, ...]] = field(default_factory=dict[int, tuple[_Answer, ...]])
    suspects: frozenset[int] = frozenset()
    orphans: frozenset[int] = frozenset()
    moved: frozenset[int] = frozenset()
    mixed: frozenset[int] = frozenset()


def repair(messages: Sequence[Message], *, is_ours: bool = True) -> Draft:
    """Return the conversation without unanswered calls and orphaned results. Answered pairs, all text and the order of
    everything else stay.
    """
    pairs = memoise_prefix(messages, _pair)
    broken = sorted(pairs.suspects.union([call.caller for call in pairs.waiting.values()]))
    if not is_ours:
        broken = [place for place in broken if _has_calls(messages[place])]
    slots = _slots(pairs) if is_ours else {}
    if not (broken or pairs.orphans or pairs.moved or slots):
        return unchanged(messages)
    shown = list(messages)
    notes = {place: Note(decision="dropped", rule=RULE, reason=NO_CALL) for place in pairs.orphans}
    notes |= _notes_of_order(pairs.moved, slots)
    for place in broken:
        said, reason = _say(messages[place], [messages[result.place] for result in pairs.results.get(place, ())])
        shown[place] = said or messages[place]
        if reason:
            notes[place] = Note(decision="repaired" if said else "dropped", rule=RULE, reason=reason)
    stays = bytearray(b"\1") * len(shown)
    for place in [place for place, note in notes.items() if note.decision == "dropped"]:
        stays[place] = 0
    order = list(compress(range(len(shown)), stays))
    if pairs.moved or slots:
        behind = _places_to_stand_behind(pairs)
        order.sort(key=lambda place: (behind.get(slot := slots.get(place, place), slot), slot))
    return Draft(messages=tuple(map(shown.__getitem__, order)), origins=order, notes=notes)


def _pair(known: _Pairs | None, messages: Sequence[Message]) -> _Pairs:
    known = known or _Pairs()
    waiting, results, last_caller = dict(known.waiting), dict(known.results), known.last_caller
    suspects, orphans, moved, mixed = list[int](), list[int](), list[int](), list[int]()
    for place, message in enumerate(messages, start=known.count):
        if message.role == "tool":
            call = waiting.pop(message.tool_call_id, None)
            if call is None:
                orphans.append(place)
                continue
            earlier = results.get(call.caller, ())
            results[call.caller] = (*earlier, _Answer(call.number, place))
            moved += [place] if call.caller != last_caller else []
            mixed += [call.caller] if earlier and earlier[-1].number > call.number else []
        elif message.role == "assistant":
            last_caller = place if message.tool_calls else -1
            if not message.tool_calls and _is_silent(message):
                suspects.append(place)
            for number, asked in enumerate(message.tool_calls):
                older = waiting.get(asked.id)
                suspects += [older.caller] if older else []
                # Of two calls with one id in a message, the first stays.
                waiting[asked.id] = older if older and older.caller == place else _Call(place, number)
        elif message.role not in FOR_PEOPLE:
            last_caller = -1
    return _Pairs(
        count=known.count + len(messages),
        last_caller=last_caller,
        waiting=waiting,
        results=results,
        suspects=known.suspects.union(suspects),
        orphans=known.orphans.union(orphans),
        moved=known.moved.union(moved),
        mixed=known.mixed.union(mixed),
    )


def _slots(pairs: _Pairs) -> dict[int, int]:
    """Map each result that swaps places within its message to its new place."""
    answers = [pairs.results[caller] for caller in pairs.mixed]
    swaps = [(one.place, slot.place) for came in answers for one, slot in zip(sorted(came), came, strict=True)]
    return {place: slot for place, slot in swaps if place != slot}


def _notes_of_order(moved: frozenset[int], slots: Mapping[int, int]) -> dict[int, Note]:
    reasons = dict.fromkeys(moved, MOVED) | dict.fromkeys(slots, ORDERED)
    reasons |= dict.fromkeys(moved & slots.keys(), f"{MOVED}; {ORDERED}")
    return {place: Note(decision="repaired", rule=RULE, reason=reason) for place, reason in reasons.items()}


def _places_to_stand_behind(pairs: _Pairs) -> dict[int, int]:
    """Map each moved result to its caller, or to the last result that stayed with it."""
    return {
        result: max({caller, *places} - pairs.moved)
        for caller, results in pairs.results.items()
        for places in [{result.place for result in results}]
        for result in pairs.moved & places
    }


def _say(message: Message, results: Sequence[Message]) -> tuple[Message | None, str]:
    if not isinstance(message, AssistantMessage):
        return message, ""
    answered = frozenset(result.tool_call_id for result in results if isinstance(result, ToolMessage))
    return memoise_last(message, _with_answered_calls, answered)


def _with_answered_calls(message: AssistantMessage, answered: frozenset[str]) -> tuple[AssistantMessage | None, str]:
    """Return the message with only answered calls, and the reason for a change if there is one."""
    parts = tuple(_without_orphans(message, answered))
    lost = len(message.parts) - len(parts)
    reason = NO_RESULT.format(count=lost, total=len(message.tool_calls)) if lost else ""
    shown = replace(message, parts=parts) if lost else message
    if shown.tool_calls or not _is_silent(shown):
        return shown, reason
    return None, "; ".join(filter(None, (reason, SILENT)))


def _without_orphans(message: AssistantMessage, answered: frozenset[str]) -> Iterator[AssistantPart]:
    left = set(answered)
    for part in message.parts:
        if not isinstance(part, ToolCall):
            yield part
        elif part.id in left:
            left.remove(part.id)  # A second call with the same id in one message has no result of its own.
            yield part


def _has_calls(message: Message) -> bool:
    return isinstance(message, AssistantMessage) and bool(message.tool_calls)


def _is_silent(message: AssistantMessage) -> bool:
    return not any(_says_something(part) for part in message.parts)


def _says_something(part: AssistantPart) -> bool:
    match part:
        case Text():
            return bool(part.text) and not part.text.isspace()
        case Opaque():
            return not part.is_thought
        case File():
            return True
        case ToolCall():
            return False
