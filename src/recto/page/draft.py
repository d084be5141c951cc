"""Intermediate conversations: the messages after a step, their origins, and the step's notes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recto.conversation.memo import memoise_prefix
from recto.conversation.messages import Message, ToolMessage
from recto.page.manifest import Note, merge_notes


class Gap(NamedTuple):
    """Neighbours that a step left out together, by their places before the step. There may be thousands."""

    places: range
    note: Note


@dataclass(frozen=True, kw_only=True)
class Draft:
    """Messages after a step. `origins[i]` is the place of `messages[i]` before the step; `notes` use those places too.

    `gaps` are ranges of messages that the first step left out, with one note for each range.
    """

    messages: tuple[Message, ...]
    origins: Sequence[int]
    notes: Mapping[int, Note]
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _ChangedResults:
    """Changed tool results by place, among the first `count` messages."""

    count: int = 0
    changes: Mapping[int, Message] = field(default_factory=dict[int, Message])


def unchanged(messages: Sequence[Message]) -> Draft:
    """Return a draft without changes."""
    return Draft(messages=tuple(messages), origins=range(len(messages)), notes={})


def replaced(messages: Sequence[Message], changed: Mapping[int, Message], note: Note) -> Draft:
    """Return the conversation with some messages replaced, by place. Identical replacements get no note."""
    differing = {place: message for place, message in changed.items() if message is not messages[place]}
    if not differing:
        return unchanged(messages)
    new_messages = list(messages)
    for place, message in differing.items():
        new_messages[place] = message
    return Draft(messages=tuple(new_messages), origins=range(len(new_messages)), notes=dict.fromkeys(differing, note))


def change_results(messages: Sequence[Message], change: Callable[[ToolMessage], ToolMessage], note: Note) -> Draft:
    """Apply `change` to each tool result and note those it changed."""
    return replaced(messages, memoise_prefix(messages, _find_changed, change).changes, note)


def then(first: Draft, second: Draft) -> Draft:
    """Combine two steps. `origins` and `notes` of the result are places before the first step."""
    if isinstance(first.origins, range):
        origins, notes = second.origins, second.notes
    else:
        plain = isinstance(second.origins, range)
        origins = first.origins if plain else [first.origins[middle] for middle in second.origins]
        notes = {first.origins[middle]: note for middle, note in second.notes.items()}
    return Draft(messages=second.messages, origins=origins, notes=join_notes(first.notes, notes), gaps=first.gaps)


def join_notes(first: Mapping[int, Note], second: Mapping[int, Note]) -> Mapping[int, Note]:
    """Merge the notes of two steps that use the same places."""
    if not first:
        return second
    both = {place: merge_notes(first[place], second[place]) for place in first.keys() & second.keys()}
    return {**first, **second, **both}


def place_of(origin: int, origins: Sequence[int]) -> int:
    """Return the place of a message by its origin. Origins are sorted except for moved messages."""
    place = bisect_left(origins, origin)
    return place if place < len(origins) and origins[place] == origin else origins.index(origin)


def behind(injected: tuple[Message, ...], draft: Draft) -> Draft:
    """Put the injected messages before those of a draft, and shift its places."""
    if not injected:
        return draft
    shift = len(injected)
    plain = isinstance(draft.origins, range)
    origins = range(shift + len(draft.messages)) if plain else [*range(shift), *[shift + o for o in draft.origins]]
    notes = dict(zip(map(shift.__add__, draft.notes), draft.notes.values(), strict=True))
    gaps = tuple([Gap(range(gap.start + shift, gap.stop + shift), note) for gap, note in draft.gaps])
    return Draft(messages=(*injected, *draft.messages), origins=origins, notes=notes, gaps=gaps)


def _find_changed(
    previous: _ChangedResults | None, messages: Sequence[Message], change: Callable[[ToolMessage], ToolMessage]
) -> _ChangedResults:
    previous = previous or _ChangedResults()
    tools = [(place, one) for place, one in enumerate(messages, start=previous.count) if isinstance(one, ToolMessage)]
    changes = {place: changed for place, one in tools if (changed := change(one)) is not one}
    return _ChangedResults(count=previous.count + len(messages), changes={**previous.changes, **changes})
