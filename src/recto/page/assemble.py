"""The one function every page goes through: facts in, page and manifest out."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from recto.conversation.log import View, view
from recto.conversation.memo import grow, remember, remember_last
from recto.conversation.messages import Message
from recto.page.body import (
    EncodedPart,
    EncodedParts,
    Page,
    Segment,
    closing_brackets,
    encode_message,
    encode_messages,
    encode_tools,
    envelope,
    kept_part,
    segment,
)
from recto.page.draft import Draft, behind, then
from recto.page.facts import Facts
from recto.page.fold.fold import fold
from recto.page.fold.observations import BEFORE_ALL
from recto.page.manifest import Manifest, Note, Part
from recto.page.preamble import Injected, preamble
from recto.page.steps.add_error_texts import add_error_texts
from recto.page.steps.closing import CONTINUED, closing_word, trim_end
from recto.page.steps.compact import compact
from recto.page.steps.fit import fit
from recto.page.steps.prompted import as_prompted
from recto.page.steps.remind import files_shown, guard, remind
from recto.page.steps.repair import repair
from recto.page.steps.strip_ui_hints import strip_ui_hints
from recto.page.steps.window import window
from recto.page.text.tokens import TokenCounter, calibrate, count_text, tokens_of
from recto.page.wire.base import WireName

SOURCE, TOKENS_AFTER = attrgetter("source"), attrgetter("tokens_after")


class _At(NamedTuple):
    wire: WireName
    counter: TokenCounter


class _Base(NamedTuple):
    """Everything a page may show, before any step: what was injected, then what is seen of the log, from `first` on.

    What `is_closed` has a last message that is not in the log either.
    """

    front: tuple[Injected, ...]
    first: int
    messages: tuple[Message, ...]
    is_closed: bool = False


def assemble(facts: Facts) -> tuple[Page, Manifest]:
    """Set the page of one model call.

    View, compaction and window say what is shown of the log; repair, guard, reminders and fit make it fit to be sent;
    folding makes it small; then it is written out with its manifest.
    """
    seen = view(facts.log)
    base, draft = _choose(facts, seen)
    draft = then(draft, repair(draft.messages))
    draft = then(draft, strip_ui_hints(draft.messages)) if facts.turn else draft
    draft = then(draft, add_error_texts(draft.messages))
    draft = then(draft, guard(draft.messages))
    draft = then(draft, remind(draft.messages, facts, files_shown(facts) if facts.turn else {}))
    draft = then(draft, fit(draft.messages, facts.target))
    base, draft = _end(facts, base, draft)
    tools = encode_tools(facts.tools if facts.tool_calling == "native" else (), facts.target.wire, facts.counter)
    talk = encode_messages(draft.messages, tools.last, facts.target.wire, facts.counter)
    folded = fold(
        draft.messages, settings=facts.fold, now=facts.now or grow(seen.messages, _newest), counter=facts.counter
    )
    draft = then(draft, folded.draft)
    if facts.tool_calling == "prompt":
        draft = then(draft, as_prompted(draft.messages))
        talk = encode_messages(draft.messages, tools.last, facts.target.wire, facts.counter)
    page, manifest = _set_page(facts, tools, _set_changes(facts, base, talk, draft))
    return page, replace(manifest, left_alone=folded.left_alone, skill=seen.skill.skill if seen.skill else None)


def _newest(known: datetime | None, messages: Sequence[Message]) -> datetime:
    return max([known or BEFORE_ALL, *[message.time for message in messages if message.time]])


def _choose(facts: Facts, seen: View) -> tuple[_Base, Draft]:
    """What is shown of the log (R12-R14, S1, S2), behind what stands before it."""
    compacted = compact(seen)
    turn_start = bisect_left(compacted.origins, seen.turn_start)
    chosen = then(compacted, window(compacted.messages, turn_start, facts.history))
    front = preamble(facts, seen)
    injected = tuple([one.message for one in front if one.message])
    return _Base(front, len(injected), (*injected, *seen.messages)), behind(injected, chosen)


def _end(facts: Facts, base: _Base, draft: Draft) -> tuple[_Base, Draft]:
    """A conversation that ends as the model takes it; what is added stands behind all others."""
    word = closing_word(draft.messages, facts)
    if word is None:
        return base, then(draft, trim_end(draft.messages, facts))
    origin, notes = len(base.messages), {**draft.notes, len(base.messages): CONTINUED}
    is_plain = isinstance(draft.origins, range) and len(draft.origins) == origin
    origins = range(origin + 1) if is_plain else [*draft.origins, origin]
    messages = (*draft.messages, word)
    closed = base._replace(messages=(*base.messages, word), is_closed=True)
    return closed, Draft(messages=messages, origins=origins, notes=notes)


def _set_changes(facts: Facts, base: _Base, talk: EncodedParts, draft: Draft) -> EncodedParts:
    """The conversation with what was noted of each message, its folded bytes, and those left out where they stood."""
    parts, sizes, segments = list(talk.parts), list(talk.sizes), list(talk.segments)
    origins = draft.origins
    _name_the_nameless(parts, origins, base.first)
    places = origins if isinstance(origins, range) else dict(zip(origins, range(len(origins)), strict=True))
    at, left_out = _At(facts.target.wire, facts.counter), list[int]()
    for origin, note in draft.notes.items():
        if note.decision == "dropped":
            left_out.append(origin)
            continue
        place = places[origin]
        before = tokens_of(base.messages[origin], facts.counter)
        setting = remember_last(draft.messages[place], _set_changed, note, parts[place], before, at)
        sizes[place] += len(setting.segment.data) - len(segments[2 * place + 1].data)
        parts[place], segments[2 * place + 1] = setting
    if base.is_closed:
        parts[-1] = replace(parts[-1], kind="closing")
    asides = _tell_the_front(parts, places, base.front)
    ordered = origins if isinstance(origins, range) else sorted(origins)
    for origin in sorted(left_out):
        smaller = bisect_left(ordered, origin) - 1
        beside = places[ordered[smaller]] if smaller >= 0 else -1
        asides.setdefault(beside, []).append(_left_out(facts, base, origin, draft.notes[origin]))
    for place in sorted(asides, reverse=True):
        parts[place + 1 : place + 1] = asides[place]
        sizes[place + 1 : place + 1] = [0] * len(asides[place])
    return EncodedParts(parts=tuple(parts), sizes=tuple(sizes), segments=tuple(segments), last=talk.last)


def _tell_the_front(
    parts: list[Part], places: Sequence[int] | Mapping[int, int], front: Sequence[Injected]
) -> dict[int, list[Part]]:
    """Say of what was injected why it is there. Returns what its budget took from it, by the place it stands behind."""
    asides: dict[int, list[Part]] = {}
    origin, place = 0, -1
    for one in front:
        if one.message is None:
            nothing = kept_part(one.kind, one.kind, "system", 0)
            lost = replace(nothing, decision="dropped", rule=one.rule, reason=one.reason)
            asides.setdefault(place, []).append(replace(lost, tokens_before=one.tokens_before or 0))
            continue
        place = places[origin]
        part, before = parts[place], one.tokens_before
        told = replace(part, kind=one.kind, rule=one.rule, reason=one.reason)
        whole = replace(told, decision="injected", tokens_before=part.tokens_after)
        parts[place] = whole if before is None else replace(told, decision="cut", tokens_before=before)
        asides.setdefault(place, []).extend(one.changes)
        origin += 1
    return asides


def _name_the_nameless(parts: list[Part], origins: Sequence[int], front: int) -> None:
    if not all(map(SOURCE, parts)):
        for place, (part, origin) in enumerate(zip(parts, origins, strict=True)):
            if not part.source:
                parts[place] = replace(part, source=f"messages[{origin - front}]")


def _set_changed(shown: Message, note: Note, base: Part, tokens_before: int, at: _At) -> EncodedPart:
    piece = remember(shown, encode_message, at.wire, at.counter)
    return EncodedPart(_changed(note, base, tokens_before, piece.part.tokens_after), piece.segment)


def _changed(note: Note, base: Part, tokens_before: int, tokens_after: int) -> Part:
    # Written out, because `replace` costs as much as all the rest, and a page may have hundreds of folds.
    return Part(
        kind=base.kind,
        source=base.source,
        role=base.role,
        tokens_before=tokens_before,
        tokens_after=tokens_after,
        decision=note.decision,
        rule=note.rule,
        reason=note.reason,
        receipts=note.receipts,
    )


def _left_out(facts: Facts, base: _Base, origin: int, note: Note) -> Part:
    message = base.messages[origin]
    nothing = kept_part("message", message.id or f"messages[{origin - base.first}]", message.role, 0)
    return _changed(note, nothing, tokens_of(message, facts.counter), 0)


def _set_page(facts: Facts, tools: EncodedParts, talk: EncodedParts) -> tuple[Page, Manifest]:
    head, tail = segment(envelope(facts.target.model, facts.options)), closing_brackets(talk.last)
    page = Page(segments=(head, *tools.segments, *talk.segments, tail))
    parts = (_envelope(head, facts.counter), *tools.parts, *talk.parts, _envelope(tail, facts.counter))
    sizes = array("I", (len(head.data), *tools.sizes, *talk.sizes, len(tail.data)))
    tokens = calibrate(counted=sum(map(TOKENS_AFTER, parts)), digest=page.digest, last=facts.last)
    return page, Manifest(parts=parts, sizes=sizes, tokens=tokens)


def _envelope(data: Segment, counter: TokenCounter) -> Part:
    return kept_part("envelope", "envelope", None, count_text(data.data.decode(), counter))
