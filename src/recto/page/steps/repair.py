"""Repair (R10): providers receive no call without its result and no result without its call.

A result answers the newest earlier call of its id that has no answer yet. It is moved up to that call if other messages
came between, because providers require results right after their calls. Results of one message follow the order of its
calls, so that a page does not depend on the speed of tools. Repair is idempotent.

For messages of other agents (`is_ours` is False), only what providers reject is repaired: results keep their order, and
empty messages stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import NamedTuple

from recto.conversation.memo import memoise_last, memoise_prefix
from recto.conversation.messages import AssistantMessage, AssistantPart, Message, Opaque, Text, ToolCall, ToolMessage
from recto.page.draft import Draft, unchanged
from recto.page.manifest import Note

RULE = "R10"
NO_RESULT = "{count} of {total} calls never got a result"
NO_CALL = "no call before it waits for this result"
MOVED_RESULT = "moved up to its call, as providers demand"
REORDERED_RESULTS = "results put in the order of their calls"
SILENT = "nothing is said in it"
# Roles that are never sent to a model, so they do not separate a call from its result.
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
    `suspects` are assistant messages that are empty or have an unanswered call whose id another call uses; `mixed` are
    callers whose results came in another order than their calls.
    """

    count: int = 0
    last_caller: int = -1
    waiting: Mapping[str, _Call] = field(default_factory=dict[str, _Call])
    results: Mapping[int, tuple[_Answer, ...]] = field(default_factory=dict[int, tuple[_Answer, ...]])
    suspects: frozenset[int] = frozenset()
    orphans: frozenset[int] = frozenset()
    moved_results: frozenset[int] = frozenset()
    mixed: frozenset[int] = frozenset()


def repair(messages: Sequence[Message], *, is_ours: bool = True) -> Draft:
    """Remove unanswered calls and orphaned results. Answered pairs, all text and the order of everything else stay."""
    pairs = memoise_prefix(messages, _pair)
    broken = sorted(pairs.suspects.union([call.caller for call in pairs.waiting.values()]))
    slots: dict[int, int] = {}
    if is_ours:
        # Map each result that changes its order within its message to its new place
        groups = [pairs.results[caller] for caller in pairs.mixed]
        swaps = [(one.place, slot.place) for group in groups for one, slot in zip(sorted(group), group, strict=True)]
        slots = {place: slot for place, slot in swaps if place != slot}
    else:
        replies = [(place, messages[place]) for place in broken]
        broken = [place for place, one in replies if isinstance(one, AssistantMessage) and one.tool_calls]
    if not (broken or pairs.orphans or pairs.moved_results or slots):
        return unchanged(messages)
    new_messages = list(messages)
    notes = {place: Note(decision="dropped", rule=RULE, reason=NO_CALL) for place in pairs.orphans}
    reasons = dict.fromkeys(pairs.moved_results, MOVED_RESULT) | dict.fromkeys(slots, REORDERED_RESULTS)
    reasons |= dict.fromkeys(pairs.moved_results & slots.keys(), f"{MOVED_RESULT}; {REORDERED_RESULTS}")
    notes |= {place: Note(decision="repaired", rule=RULE, reason=reason) for place, reason in reasons.items()}
    for place in broken:
        message, results = messages[place], [messages[result.place] for result in pairs.results.get(place, ())]
        if not isinstance(message, AssistantMessage):
            continue
        answered_ids = frozenset(result.tool_call_id for result in results if isinstance(result, ToolMessage))
        new_message, reason = memoise_last(message, _with_answered_calls, answered_ids)
        new_messages[place] = new_message or message
        if reason:
            notes[place] = Note(decision="repaired" if new_message else "dropped", rule=RULE, reason=reason)
    stays = bytearray(b"\1") * len(new_messages)
    for place in [place for place, note in notes.items() if note.decision == "dropped"]:
        stays[place] = 0
    order = list(compress(range(len(new_messages)), stays))
    if pairs.moved_results or slots:
        # Map each moved result to the place it follows: its caller, or the last result of the caller that was not moved
        behind = {
            result: max({caller, *places} - pairs.moved_results)
            for caller, results in pairs.results.items()
            for places in [{result.place for result in results}]
            for result in pairs.moved_results & places
        }
        order.sort(key=lambda place: (behind.get(slot := slots.get(place, place), slot), slot))
    return Draft(messages=tuple(map(new_messages.__getitem__, order)), origins=order, notes=notes)


def _pair(previous: _Pairs | None, messages: Sequence[Message]) -> _Pairs:
    previous = previous or _Pairs()
    waiting, results, last_caller = dict(previous.waiting), dict(previous.results), previous.last_caller
    suspects, orphans, moved_results, mixed = list[int](), list[int](), list[int](), list[int]()
    for place, message in enumerate(messages, start=previous.count):
        if message.role == "tool":
            call = waiting.pop(message.tool_call_id, None)
            if call is None:
                orphans.append(place)
                continue
            earlier = results.get(call.caller, ())
            results[call.caller] = (*earlier, _Answer(call.number, place))
            moved_results += [place] if call.caller != last_caller else []
            mixed += [call.caller] if earlier and earlier[-1].number > call.number else []
        elif message.role == "assistant":
            last_caller = place if message.tool_calls else -1
            if not message.tool_calls and _is_silent(message):
                suspects.append(place)
            for number, tool_call in enumerate(message.tool_calls):
                older = waiting.get(tool_call.id)
                suspects += [older.caller] if older else []
                # If one message has two calls with the same id, keep the first.
                waiting[tool_call.id] = older if older and older.caller == place else _Call(place, number)
        elif message.role not in FOR_PEOPLE:
            last_caller = -1
    return _Pairs(
        count=previous.count + len(messages),
        last_caller=last_caller,
        waiting=waiting,
        results=results,
        suspects=previous.suspects.union(suspects),
        orphans=previous.orphans.union(orphans),
        moved_results=previous.moved_results.union(moved_results),
        mixed=previous.mixed.union(mixed),
    )


def _with_answered_calls(
    message: AssistantMessage, answered_ids: frozenset[str]
) -> tuple[AssistantMessage | None, str]:
    """Return the message with only answered calls, and the reason for a change if there is one."""
    parts, open_ids = list[AssistantPart](), set(answered_ids)
    for part in message.parts:
        if not isinstance(part, ToolCall):
            parts.append(part)
        elif part.id in open_ids:
            open_ids.remove(part.id)  # A second call with the same id in one message has no result of its own.
            parts.append(part)
    missing_count = len(message.parts) - len(parts)
    reason = NO_RESULT.format(count=missing_count, total=len(message.tool_calls)) if missing_count else ""
    new_message = replace(message, parts=tuple(parts)) if missing_count else message
    if new_message.tool_calls or not _is_silent(new_message):
        return new_message, reason
    return None, "; ".join(filter(None, (reason, SILENT)))


def _is_silent(message: AssistantMessage) -> bool:
    """Return True if the message has nothing besides calls, thinking and blank text."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    others = [part for part in message.parts if not isinstance(part, (Text, ToolCall))]
    return not any(map(str.strip, texts)) and all(isinstance(part, Opaque) and part.is_thought for part in others)
