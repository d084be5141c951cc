"""Repair (R10): no call without its result and no result without its call reaches a model.

A result answers the newest earlier call of its id that has no answer yet; it is moved up to that call when something
came between, because providers want results right behind their calls. Results of one message stand in the order of its
calls, so that a page does not depend on which tool was faster. Repairing twice changes nothing more.

In what others wrote (`is_ours` is not set) only what providers refuse is repaired: results keep their order, and a
message that says nothing stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import NamedTuple

from recto.conversation.memo import grow, remember_last
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
# Never sent to a model, so they never stand between a call and its result.
FOR_PEOPLE = ("reasoning", "activity")


class _Call(NamedTuple):
    """A call by the place of its message, and its number in it."""

    caller: int
    number: int


class _Answer(NamedTuple):
    """The number of a call in its message, and the place of its result."""

    number: int
    place: int


@dataclass(frozen=True, kw_only=True)
class _Pairs:
    """Which result answers which call, after some number of messages.

    `results` are results by the place of their caller, as they came; `waiting` are calls without a result yet, by id;
    `suspects` are assistant's messages that are empty or lost a call to another of the same id; `mixed` are callers
    whose results came in another order than their calls.
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
    """The conversation without orphans: answered pairs, all words, and the order of everything else stay."""
    pairs = grow(messages, _pair)
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
                # Of two calls of one id in a message the first is the one that stays.
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
    """Of each result that has to change places with others of its message the place to take."""
    answers = [pairs.results[caller] for caller in pairs.mixed]
    swaps = [(one.place, slot.place) for came in answers for one, slot in zip(sorted(came), came, strict=True)]
    return {place: slot for place, slot in swaps if place != slot}


def _notes_of_order(moved: frozenset[int], slots: Mapping[int, int]) -> dict[int, Note]:
    reasons = dict.fromkeys(moved, MOVED) | dict.fromkeys(slots, ORDERED)
    reasons |= dict.fromkeys(moved & slots.keys(), f"{MOVED}; {ORDERED}")
    return {place: Note(decision="repaired", rule=RULE, reason=reason) for place, reason in reasons.items()}


def _places_to_stand_behind(pairs: _Pairs) -> dict[int, int]:
    """Of each moved result the last of its caller and of the results that stayed with it."""
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
    return remember_last(message, _with_answered_calls, answered)


def _with_answered_calls(message: AssistantMessage, answered: frozenset[str]) -> tuple[AssistantMessage | None, str]:
    """The message with the calls that were answered, and what was wrong with it if anything was."""
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
            left.remove(part.id)  # a second call of the same id in one message has no result of its own
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
