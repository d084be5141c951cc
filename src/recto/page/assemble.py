"""The one function every page goes through: facts in, page and manifest out."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from recto.conversation.log import View, view
from recto.conversation.memo import grow
from recto.conversation.messages import Message, UnreadMessages
from recto.page.body import (
    BEGINS,
    ENDS,
    EncodedParts,
    Page,
    Segment,
    Talk,
    closing_brackets,
    encode_messages,
    encode_tools,
    envelope,
    kept_part,
    start,
)
from recto.page.draft import Draft, Gap, behind, join_notes, place_of, then
from recto.page.facts import Facts
from recto.page.fold.cache_state import CacheState, NextCall, cache_state
from recto.page.fold.cost_settings import CostSettings
from recto.page.fold.fold import fold
from recto.page.fold.fold_by_cost import CostFold, fold_by_cost
from recto.page.fold.fold_settings import fold_key
from recto.page.fold.observations import BEFORE_ALL
from recto.page.manifest import Manifest, Note, Part
from recto.page.preamble import Injected, preamble
from recto.page.steps.add_error_texts import add_error_texts
from recto.page.steps.closing import closing_word, trim_end
from recto.page.steps.compact import compact
from recto.page.steps.fit import fit
from recto.page.steps.guard import guard
from recto.page.steps.prompted import as_prompted
from recto.page.steps.remind import files_shown, remind
from recto.page.steps.repair import repair
from recto.page.steps.strip_ui_hints import strip_ui_hints
from recto.page.steps.window import window
from recto.page.text.tokens import TokenCounter, calibrate, count_messages, count_new, count_text, tokens_of
from recto.page.wire.formats import wire_named

SOURCE, TOKENS_AFTER = attrgetter("source"), attrgetter("tokens_after")


class PageBase(NamedTuple):
    """Everything a page may show, before any step: the preamble, then what is seen of the log, from `first` on.

    Where it `is_closed`, its last message is not in the log either.
    """

    preamble: tuple[Injected, ...]
    first: int
    messages: tuple[Message, ...]
    is_closed: bool = False


def assemble(facts: Facts) -> tuple[Page, Manifest]:
    """The page of one model call.

    View, compaction and window say what is shown of the log; repair, guard, reminders and fit make it fit to be sent;
    folding makes it small; then it is written out with its manifest.
    """
    wire = wire_named(facts.target.wire)
    seen = view(facts.log)
    base, draft = prepare(facts, seen)
    offered = facts.tools if facts.tool_calling != "prompt" else ()
    tools = encode_tools(offered, start(facts.options, wire), wire, facts.counter)
    count_messages(draft.messages, facts.counter)
    folded, step = _fold(facts, seen, draft)
    final = folded.draft
    if facts.tool_calling == "prompt":
        final = then(final, as_prompted(final.messages, facts.locale, facts.call_form))
    conversation = encode_messages(_talk(base, draft, final), tools.last, wire, facts.counter)
    page, manifest = _put_together(facts, tools, _put_in_changes(facts, base, conversation, draft))
    skill = seen.skill.skill if seen.skill else None
    return page, replace(manifest, left_alone=folded.left_alone, skill=skill, step=step)


def _fold(facts: Facts, seen: View, draft: Draft) -> CostFold:
    """Folding makes it small: whenever a rule says so (R2-R9), or in steps that save money (X2)."""
    if facts.fold.cost is None:
        now = _now(facts, seen)
        return CostFold(fold(draft.messages, settings=facts.fold, now=now, counter=facts.counter), None)
    return fold_by_cost(draft.messages, fold_key(facts.fold, facts.counter), cache_for(facts, seen))


def cache_for(facts: Facts, seen: View) -> CacheState:
    """What of the provider's cache the call of these facts finds, as far as the log tells."""
    call = NextCall(
        model=facts.target.model,
        prices=facts.cache_prices,
        sent_to=facts.sent_to,
        now=_now(facts, seen),
        cache_minutes=(facts.fold.cost or CostSettings()).cache_minutes,
    )
    return cache_state(facts.log, call)


def _now(facts: Facts, seen: View) -> datetime:
    return facts.now or grow(seen.messages, _newest)


def prepare(facts: Facts, seen: View) -> tuple[PageBase, Draft]:
    """The conversation as it is before folding: chosen, repaired and made fit to be sent."""
    base, draft = _choose(facts, seen)
    draft = then(draft, repair(draft.messages))
    draft = then(draft, strip_ui_hints(draft.messages)) if facts.turn else draft
    draft = then(draft, add_error_texts(draft.messages))
    draft = then(draft, guard(draft.messages))
    draft = then(draft, remind(draft.messages, facts, files_shown(facts) if facts.turn else {}))
    draft = then(draft, fit(draft.messages, facts.target))
    return _end(facts, base, draft)


def _talk(base: PageBase, draft: Draft, final: Draft) -> Talk:
    """The conversation as it is to be written: a message has the same place before it was folded and after."""
    origins = draft.origins
    kept = [(origin, note) for origin, note in draft.notes.items() if note.decision != "dropped"]
    noted = {place_of(origin, origins): note for origin, note in kept}
    return Talk(final.messages, join_notes(noted, final.notes), origins, base.messages)


def _newest(known: datetime | None, messages: Sequence[Message]) -> datetime:
    return max([known or BEFORE_ALL, *[message.time for message in messages if message.time]])


def _choose(facts: Facts, seen: View) -> tuple[PageBase, Draft]:
    """What is shown of the log (R12-R14, S1, S2), behind what stands before it."""
    compacted = compact(seen)
    turn_start = bisect_left(compacted.origins, seen.turn_start)
    chosen = then(compacted, window(compacted.messages, turn_start, facts.history))
    before = preamble(facts, seen)
    injected = tuple([one.message for one in before if one.message])
    return PageBase(before, len(injected), (*injected, *seen.messages)), behind(injected, chosen)


def _end(facts: Facts, base: PageBase, draft: Draft) -> tuple[PageBase, Draft]:
    """A conversation that ends as the model takes it; what is added stands behind all others."""
    closing = closing_word(draft.messages, facts)
    if closing is None:
        return base, then(draft, trim_end(draft.messages, facts))
    word, note = closing
    origin, notes = len(base.messages), {**draft.notes, len(base.messages): note}
    is_plain = isinstance(draft.origins, range) and len(draft.origins) == origin
    origins = range(origin + 1) if is_plain else [*draft.origins, origin]
    messages = (*draft.messages, word)
    closed = base._replace(messages=(*base.messages, word), is_closed=True)
    return closed, replace(draft, messages=messages, origins=origins, notes=notes)


def _put_in_changes(facts: Facts, base: PageBase, conversation: EncodedParts, draft: Draft) -> EncodedParts:
    """The conversation with why its preamble is there, and what was left out of it, where that stood."""
    parts, sizes, origins = list(conversation.parts), conversation.sizes[:], draft.origins
    _name_unnamed(parts, origins, base.first)
    if base.is_closed:
        parts[-1] = parts[-1]._replace(kind="closing")
    absent = _note_preamble(parts, origins, base.preamble)
    gaps = sorted([*draft.gaps, *_gaps(draft.notes)], key=lambda gap: gap.places.start)
    ordered = sorted(origins) if gaps and not isinstance(origins, range) else origins
    for gap in gaps:
        smaller = bisect_left(ordered, gap.places.start) - 1
        beside = place_of(ordered[smaller], origins) if smaller >= 0 else -1
        absent.setdefault(beside, []).append(_left_out(facts, base, *gap))
    for place in sorted(absent, reverse=True):
        parts[place + 1 : place + 1] = absent[place]
        sizes[place + 1 : place + 1] = array("I", [0] * len(absent[place]))
    return replace(conversation, parts=tuple(parts), sizes=sizes)


def _note_preamble(parts: list[Part], origins: Sequence[int], injected: Sequence[Injected]) -> dict[int, list[Part]]:
    """Write into the parts of the preamble why they are there.

    Returns what its budget took from it, by the place it stands behind.
    """
    absent: dict[int, list[Part]] = {}
    origin, place = 0, -1
    for one in injected:
        if one.message is None:
            nothing = kept_part(one.kind, one.kind, one.reason, 0)
            lost = nothing._replace(role="system", decision="dropped", rule=one.rule)
            absent.setdefault(place, []).append(lost._replace(tokens_before=one.tokens_before or 0))
            continue
        place = place_of(origin, origins)
        part, before = parts[place], one.tokens_before
        noted = part._replace(kind=one.kind, rule=one.rule, reason=one.reason)
        whole = noted._replace(decision="injected", tokens_before=part.tokens_after)
        parts[place] = whole if before is None else noted._replace(decision="cut", tokens_before=before)
        absent.setdefault(place, []).extend(one.changes)
        origin += 1
    return absent


def _name_unnamed(parts: list[Part], origins: Sequence[int], first: int) -> None:
    if not all(map(SOURCE, parts)):
        for place, (part, origin) in enumerate(zip(parts, origins, strict=True)):
            if not part.source:
                parts[place] = part._replace(source=f"messages[{origin - first}]")


def _gaps(notes: Mapping[int, Note]) -> Iterator[Gap]:
    """Neighbours that were left out by one note, as one: a window may leave out thousands."""
    start = end = -1
    for origin in sorted([origin for origin, note in notes.items() if note.decision == "dropped"]):
        if origin != end or notes[origin] is not notes[start]:
            if end > start:
                yield Gap(range(start, end), notes[start])
            start = origin
        end = origin + 1
    if end > start:
        yield Gap(range(start, end), notes[start])


def _left_out(facts: Facts, base: PageBase, gap: range, note: Note) -> Part:
    message = base.messages[gap.start]
    # What was left unread stands before all others, so it is the first of its gap.
    name, count = (message.first, message.count) if isinstance(message, UnreadMessages) else (message.id, 1)
    name = name or f"messages[{gap.start - base.first}]"
    if len(gap) == count == 1:
        tokens = tokens_of(message, facts.counter)
        return Part("message", name, message.role, tokens, 0, note.decision, note.rule, note.reason, note.receipts)
    sums, last = grow(base.messages[base.first :], _token_sums, facts.counter), gap.stop - 1 - base.first
    before = sums[last] - (sums[gap.start - base.first - 1] if gap.start > base.first else 0)
    return Part(
        kind="message",
        source=name,
        role=None,
        tokens_before=before,
        tokens_after=0,
        decision=note.decision,
        rule=note.rule,
        reason=note.reason,
        upto=base.messages[gap.stop - 1].id or f"messages[{last}]",
        count=count + len(gap) - 1,
    )


def _token_sums(known: array[int] | None, messages: Sequence[Message], counter: TokenCounter) -> array[int]:
    """The tokens of a conversation up to each of its messages."""
    count_new(messages, counter)
    counts = [tokens_of(message, counter) for message in messages]
    total = known[-1] if known else 0
    return (known or array("Q")) + array("Q", accumulate(counts, initial=total))[1:]


def _put_together(facts: Facts, tools: EncodedParts, conversation: EncodedParts) -> tuple[Page, Manifest]:
    wire = wire_named(facts.target.wire)
    head, tail = envelope(facts.target.model, facts.options, wire), closing_brackets(conversation.last, wire)
    page = Page(segments=(head, *tools.segments, *conversation.segments, tail))
    ends = _envelope(head, BEGINS, facts.counter), _envelope(tail, ENDS, facts.counter)
    parts = (ends[0], *tools.parts, *conversation.parts, ends[1])
    sizes = array("I", [len(head.data)]) + tools.sizes + conversation.sizes + array("I", [len(tail.data)])
    tokens = calibrate(counted=sum(map(TOKENS_AFTER, parts)), digest=page.digest, last=facts.last)
    return page, Manifest(parts=parts, sizes=sizes, tokens=tokens)


def _envelope(data: Segment, reason: str, counter: TokenCounter) -> Part:
    return kept_part("envelope", "envelope", reason, count_text(data.data.decode(), counter))
