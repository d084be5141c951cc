"""Repair (R10): no call without its result and no result without its call reaches a model.

A result answers the newest earlier call of its id that has no answer yet; it is moved up to that call when something
came between, because providers want results right behind their calls. Repairing twice changes nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from recto.page.draft import Draft, unchanged
from recto.page.growing import grow
from recto.page.manifest import Note
from recto.page.messages import (
    AssistantMessage,
    AssistantPart,
    File,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolMessage,
    remember_last,
)

RULE = "R10"
NO_RESULT = "{count} of {total} calls never got a result"
NO_CALL = "no call before it waits for this result"
MOVED = "moved up to its call, as providers demand"
SILENT = "nothing is said in it"
# Never sent to a model, so they never stand between a call and its result.
FOR_PEOPLE = ("reasoning", "activity")


@dataclass(frozen=True, kw_only=True)
class _Pairs:
    """Which result answers which call, after some number of messages.

    `results` are places of results by the place of their caller; `waiting` are callers by the id of a call that has no
    result yet; `suspects` are assistant's messages that are empty or lost a call to another of the same id.
    """

    count: int = 0
    last_caller: int = -1
    waiting: Mapping[str, int] = field(default_factory=dict[str, int])
    results: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    suspects: frozenset[int] = frozenset()
    orphans: frozenset[int] = frozenset()
    moved: frozenset[int] = frozenset()


def repair(messages: Sequence[Message]) -> Draft:
    """The conversation without orphans: answered pairs, all words, and the order of everything else stay."""
    pairs = grow(messages, _pair)
    broken = sorted(pairs.suspects.union(pairs.waiting.values()))
    if not (broken or pairs.orphans or pairs.moved):
        return unchanged(messages)
    shown = list(messages)
    notes = {place: Note(decision="dropped", rule=RULE, reason=NO_CALL) for place in pairs.orphans}
    notes |= {place: Note(decision="repaired", rule=RULE, reason=MOVED) for place in pairs.moved}
    for place in broken:
        said, reason = _say(messages[place], [messages[result] for result in pairs.results.get(place, ())])
        shown[place] = said or messages[place]
        if reason:
            notes[place] = Note(decision="repaired" if said else "dropped", rule=RULE, reason=reason)
    left_out = {place for place, note in notes.items() if note.decision == "dropped"}
    order = [place for place in range(len(shown)) if place not in left_out]
    if pairs.moved:
        behind = _places_to_stand_behind(pairs)
        order.sort(key=lambda place: (behind.get(place, place), place))
    return Draft(messages=tuple([shown[place] for place in order]), origins=order, notes=notes)


def _pair(known: _Pairs | None, messages: Sequence[Message]) -> _Pairs:
    known = known or _Pairs()
    waiting, results, last_caller = dict(known.waiting), dict(known.results), known.last_caller
    suspects, orphans, moved = list[int](), list[int](), list[int]()
    for place, message in enumerate(messages, start=known.count):
        if message.role == "tool":
            caller = waiting.pop(message.tool_call_id, None)
            if caller is None:
                orphans.append(place)
                continue
            results[caller] = (*results.get(caller, ()), place)
            if caller != last_caller:
                moved.append(place)
        elif message.role == "assistant":
            last_caller = place if message.tool_calls else -1
            if not message.tool_calls and _is_silent(message):
                suspects.append(place)
            for call in message.tool_calls:
                suspects += [waiting[call.id]] if call.id in waiting else []
                waiting[call.id] = place
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
    )


def _places_to_stand_behind(pairs: _Pairs) -> dict[int, int]:
    """Of each moved result the last of its caller and of the results that stayed with it."""
    return {
        result: max({caller, *results} - pairs.moved)
        for caller, results in pairs.results.items()
        for result in pairs.moved.intersection(results)
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
