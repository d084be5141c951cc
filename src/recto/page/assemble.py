"""The page function that every entry point uses: facts in, page and manifest out."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from recto.conversation.locale import language
from recto.conversation.log import View, view
from recto.conversation.memo import memoise_prefix
from recto.conversation.messages import AssistantMessage, Message, Text, ToolMessage, UnreadMessages, UserMessage
from recto.page.body import (
    HEAD_REASON,
    TAIL_REASON,
    EncodedParts,
    Page,
    PageMessages,
    Segment,
    build_plain_part,
    encode_head,
    encode_messages,
    encode_tail,
    encode_tools,
    find_start,
)
from recto.page.draft import Draft, Gap, behind, join_notes, place_of, replaced, then, unchanged
from recto.page.facts import Facts
from recto.page.fold.fold import fold
from recto.page.fold.fold_by_cost import CacheState, NextCall, cache_state, fold_by_cost
from recto.page.fold.fold_settings import CostSettings, fold_key
from recto.page.fold.observations import BEFORE_ALL
from recto.page.manifest import Manifest, Note, Part
from recto.page.preamble import Injected, preamble
from recto.page.prompt.reminder import FRAME_TAGS, REMINDER, neutralise
from recto.page.prompt.tools_prompt import as_prompted
from recto.page.steps.compact import compact
from recto.page.steps.fit import fit
from recto.page.steps.remind import files_shown, remind
from recto.page.steps.repair import repair
from recto.page.steps.result_texts import add_error_texts, guard, strip_ui_hints
from recto.page.text.tokens import TokenCounter, calibrate, count_messages, count_new, count_text, tokens_of
from recto.page.wire.formats import wire_named

SOURCE, TOKENS_AFTER = attrgetter("source"), attrgetter("tokens_after")


class PageBase(NamedTuple):
    """The messages before any step: those of the preamble, then those of the view from place `first` on.

    If `is_closed`, the last message was added for this page and is not in the log.
    """

    preamble: tuple[Injected, ...]
    first: int
    messages: tuple[Message, ...]
    is_closed: bool = False


def assemble(facts: Facts) -> tuple[Page, Manifest]:
    """Build the page of one model call and its manifest.

    View, compaction and window select messages of the log. Repair, reminders and fit make them acceptable to the
    provider. Folding shrinks them. The last step encodes the conversation.
    """
    wire = wire_named(facts.target.wire)
    log_view = view(facts.log)
    base, draft = prepare_messages(facts, log_view)
    native_tools = facts.tools if facts.tool_calling != "prompt" else ()
    tools = encode_tools(native_tools, find_start(facts.options, wire), wire, facts.counter)
    count_messages(draft.messages, facts.counter)
    if facts.fold.cost:
        key = fold_key(facts.fold, facts.counter)
        fold_result, step = fold_by_cost(draft.messages, key, find_cache_state(facts, log_view))
    else:
        now, step = _page_time(facts, log_view), None
        fold_result = fold(draft.messages, settings=facts.fold, now=now, counter=facts.counter)
    final = fold_result.draft
    if facts.tool_calling == "prompt":
        final = then(final, as_prompted(final.messages, facts.locale, facts.call_form))
    # Folding and calls as text keep the places of messages, so the origins before these steps still apply.
    origins = draft.origins
    visible_notes = [(origin, note) for origin, note in draft.notes.items() if note.decision != "dropped"]
    notes = {place_of(origin, origins): note for origin, note in visible_notes}
    conversation = encode_messages(
        PageMessages(final.messages, join_notes(notes, final.notes), origins, base.messages),
        tools.last,
        wire,
        facts.counter,
    )
    head, tail = encode_head(facts.target.model, facts.options, wire), encode_tail(conversation.last, wire)
    page = Page(segments=(head, *tools.segments, *conversation.segments, tail))
    parts, sizes = _insert_changes(facts, base, conversation, draft)
    envelopes = _build_envelope(head, HEAD_REASON, facts.counter), _build_envelope(tail, TAIL_REASON, facts.counter)
    parts = (envelopes[0], *tools.parts, *parts, envelopes[1])
    manifest = Manifest(
        parts=parts,
        sizes=array("I", [len(head.data)]) + tools.sizes + sizes + array("I", [len(tail.data)]),
        tokens=calibrate(own_count=sum(map(TOKENS_AFTER, parts)), digest=page.digest, last=facts.last),
        left_alone=fold_result.left_alone,
        skill=log_view.skill.skill if log_view.skill else None,
        step=step,
    )
    return page, manifest


def find_cache_state(facts: Facts, log_view: View) -> CacheState:
    """Return the state of the provider's cache that the log implies for this call."""
    call = NextCall(
        model=facts.target.model,
        prices=facts.cache_prices,
        sent_to=facts.sent_to,
        now=_page_time(facts, log_view),
        cache_minutes=(facts.fold.cost or CostSettings()).cache_minutes,
    )
    return cache_state(facts.log, call)


def _page_time(facts: Facts, log_view: View) -> datetime:
    return facts.now or memoise_prefix(log_view.messages, _find_newest_time)


def prepare_messages(facts: Facts, log_view: View) -> tuple[PageBase, Draft]:
    """Return the conversation before folding: selected (R12-R14, S1, S2), repaired and fitted to the target."""
    compacted = compact(log_view)
    turn_start = bisect_left(compacted.origins, log_view.turn_start)
    draft = then(compacted, window(compacted.messages, turn_start, facts.history))
    injected = preamble(facts, log_view)
    first_messages = tuple([one.message for one in injected if one.message])
    base = PageBase(injected, len(first_messages), (*first_messages, *log_view.messages))
    draft = behind(first_messages, draft)
    draft = then(draft, repair(draft.messages))
    draft = then(draft, strip_ui_hints(draft.messages)) if facts.turn else draft
    draft = then(draft, add_error_texts(draft.messages))
    draft = then(draft, guard(draft.messages))
    draft = then(draft, remind(draft.messages, facts, files_shown(facts) if facts.turn else {}))
    draft = then(draft, fit(draft.messages, facts.target))
    return _close_conversation(facts, base, draft)


def _find_newest_time(previous: datetime | None, messages: Sequence[Message]) -> datetime:
    return max([previous or BEFORE_ALL, *[message.time for message in messages if message.time]])


def _close_conversation(facts: Facts, base: PageBase, draft: Draft) -> tuple[PageBase, Draft]:
    """Add a closing message if the model needs one. Otherwise trim the end of the last message."""
    last = closing_word(draft.messages, facts)
    if last is None:
        return base, then(draft, trim_end(draft.messages, facts))
    message, note = last
    origin, notes = len(base.messages), {**draft.notes, len(base.messages): note}
    is_plain = isinstance(draft.origins, range) and len(draft.origins) == origin
    origins = range(origin + 1) if is_plain else [*draft.origins, origin]
    messages = (*draft.messages, message)
    closed = base._replace(messages=(*base.messages, message), is_closed=True)
    return closed, replace(draft, messages=messages, origins=origins, notes=notes)


def _insert_changes(
    facts: Facts, base: PageBase, conversation: EncodedParts, draft: Draft
) -> tuple[Sequence[Part], array[int]]:
    """Add the reasons of the preamble, and a part for each gap. Return the parts and their sizes."""
    parts, sizes, origins = list(conversation.parts), conversation.sizes[:], draft.origins
    if not all(map(SOURCE, parts)):
        for place, (part, origin) in enumerate(zip(parts, origins, strict=True)):
            if not part.source:
                parts[place] = part._replace(source=f"messages[{origin - base.first}]")
    if base.is_closed:
        parts[-1] = parts[-1]._replace(kind="closing")
    absent_parts = _note_preamble(parts, origins, base.preamble)
    gaps = sorted([*draft.gaps, *_merge_dropped(draft.notes)], key=lambda gap: gap.places.start)
    sorted_origins = sorted(origins) if gaps and not isinstance(origins, range) else origins
    for gap in gaps:
        neighbour = bisect_left(sorted_origins, gap.places.start) - 1
        place_before = place_of(sorted_origins[neighbour], origins) if neighbour >= 0 else -1
        absent_parts.setdefault(place_before, []).append(_build_gap_part(facts, base, *gap))
    for place in sorted(absent_parts, reverse=True):
        parts[place + 1 : place + 1] = absent_parts[place]
        sizes[place + 1 : place + 1] = array("I", [0] * len(absent_parts[place]))
    return parts, sizes


def _note_preamble(parts: list[Part], origins: Sequence[int], injected: Sequence[Injected]) -> dict[int, list[Part]]:
    """Write the reasons of the preamble into `parts`.

    Return the parts that the budget removed, by the place of the preceding part.
    """
    absent_parts: dict[int, list[Part]] = {}
    origin, place = 0, -1
    for item in injected:
        if item.message is None:
            empty_part = build_plain_part(item.kind, item.kind, item.reason, 0)
            dropped_part = empty_part._replace(role="system", decision="dropped", rule=item.rule)
            absent_parts.setdefault(place, []).append(dropped_part._replace(tokens_before=item.tokens_before or 0))
            continue
        place = place_of(origin, origins)
        part, tokens_before = parts[place], item.tokens_before
        reasoned_part = part._replace(kind=item.kind, rule=item.rule, reason=item.reason)
        injected_part = reasoned_part._replace(decision="injected", tokens_before=part.tokens_after)
        parts[place] = (
            injected_part
            if tokens_before is None
            else reasoned_part._replace(decision="cut", tokens_before=tokens_before)
        )
        absent_parts.setdefault(place, []).extend(item.changes)
        origin += 1
    return absent_parts


def _merge_dropped(notes: Mapping[int, Note]) -> Iterator[Gap]:
    """Merge neighbours that were left out with the same note, because a window may leave out thousands."""
    start = end = -1
    for origin in sorted([origin for origin, note in notes.items() if note.decision == "dropped"]):
        if origin != end or notes[origin] is not notes[start]:
            if end > start:
                yield Gap(range(start, end), notes[start])
            start = origin
        end = origin + 1
    if end > start:
        yield Gap(range(start, end), notes[start])


def _build_gap_part(facts: Facts, base: PageBase, gap: range, note: Note) -> Part:
    message = base.messages[gap.start]
    # Unread messages precede all others, so they are the first of their gap.
    name, count = (message.first, message.count) if isinstance(message, UnreadMessages) else (message.id, 1)
    name = name or f"messages[{gap.start - base.first}]"
    if len(gap) == count == 1:
        tokens = tokens_of(message, facts.counter)
        return Part("message", name, message.role, tokens, 0, note.decision, note.rule, note.reason, note.receipts)
    sums, last = memoise_prefix(base.messages[base.first :], _sum_tokens, facts.counter), gap.stop - 1 - base.first
    tokens_before = sums[last] - (sums[gap.start - base.first - 1] if gap.start > base.first else 0)
    part = Part("message", name, None, tokens_before, 0, note.decision, note.rule, note.reason)
    upto = base.messages[gap.stop - 1].id or f"messages[{last}]"
    return part._replace(upto=upto, count=count + len(gap) - 1)


def _sum_tokens(previous: array[int] | None, messages: Sequence[Message], counter: TokenCounter) -> array[int]:
    """Extend the running token sums of a conversation, one sum per message."""
    count_new(messages, counter)
    counts = [tokens_of(message, counter) for message in messages]
    total = previous[-1] if previous else 0
    return (previous or array("Q")) + array("Q", accumulate(counts, initial=total))[1:]


def _build_envelope(data: Segment, reason: str, counter: TokenCounter) -> Part:
    return build_plain_part("envelope", "envelope", reason, count_text(data.data.decode(), counter))


# Roles of history. Unread messages are always outside the window, because the loaded messages after them fill any page.
HISTORY_ROLES = ("user", "assistant", "tool", "unread")
# Instructions are not history, because they apply regardless of their age.
INSTRUCTION_ROLES = ("system", "developer")
OUTSIDE = "outside the newest {limit} messages of history"


def window(messages: Sequence[Message], turn_start: int, limit: int | None) -> Draft:
    """Keep only the newest `limit` messages of history; None keeps all.

    User, assistant and tool messages count. System and developer messages always stay. An assistant message and the
    results of its calls stay together if any of them is in the window or the current turn.
    """
    if limit is None:
        return unchanged(messages)
    history_places = [place for place in range(turn_start) if messages[place].role in HISTORY_ROLES]
    if len(history_places) <= limit:
        return unchanged(messages)
    first = history_places[-limit] if limit else turn_start
    kept_places = {
        place for place, message in enumerate(messages) if place >= first or message.role in INSTRUCTION_ROLES
    }
    # Group each assistant message that has calls with its results
    callers: dict[str, set[int]] = {}
    groups: list[set[int]] = []
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            groups.append({place})
            callers |= {call.id: groups[-1] for call in message.tool_calls}
        elif isinstance(message, ToolMessage) and message.tool_call_id in callers:
            callers[message.tool_call_id].add(place)
    for group in groups:
        if not kept_places.isdisjoint(group):
            kept_places.update(group)
    origins = sorted(kept_places)
    note = Note(decision="dropped", rule="S2", reason=OUTSIDE.format(limit=limit))
    notes = {place: note for place in range(first) if place not in kept_places}
    return Draft(messages=tuple([messages[place] for place in origins]), origins=origins, notes=notes)


CONTINUE = {"zh": "请继续。", "en": "Continue."}
CONTINUED = Note(decision="injected", rule="R10", reason="a model answers a user: the turn goes on after its own words")
CORRECTED = Note(decision="injected", rule="P11", reason="the last reply could not be used: it is asked for again")
NOT_USED = {
    "zh": "你的上一条回复没有被采用，请重写。{problem}",
    "en": "Your last reply was not used. Write it again. {problem}",
}
TRIMMED = Note(
    decision="repaired", rule="fit", reason="without the blank at its end, which this provider refuses there"
)


def closing_word(messages: tuple[Message, ...], facts: Facts) -> tuple[UserMessage, Note] | None:
    """Return a closing user message and its note if the assistant spoke last or its last reply was unusable.

    Without a turn, only an unusable reply gets a closing message.
    """
    wording = language(facts.locale)
    if facts.correction:
        problem = neutralise(NOT_USED[wording].format(problem=facts.correction), FRAME_TAGS)
        return _word(REMINDER.format(sections=problem)), CORRECTED
    if facts.turn is None or not _last_said(messages):
        return None
    return _word(CONTINUE[wording]), CONTINUED


def _word(text: str) -> UserMessage:
    return UserMessage(id="closing", parts=(Text(text=text),))


def trim_end(messages: tuple[Message, ...], facts: Facts) -> Draft:
    """Remove whitespace from the end of a final assistant message if the provider rejects it there."""
    place, last = _last_said(messages) or (0, None)
    match last:
        case AssistantMessage(parts=(*before, Text() as words)) if not wire_named(facts.target.wire).takes_blank_end:
            text = words.text.rstrip()
            short = replace(last, parts=(*before, replace(words, text=text))) if text != words.text else last
            return replaced(messages, {place: short}, TRIMMED)
        case _:
            return unchanged(messages)


def _last_said(messages: tuple[Message, ...]) -> tuple[int, AssistantMessage] | None:
    """Return the place and the message if the assistant's message is the last one, ignoring instructions."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.role not in ("system", "developer"):
            return (place, message) if isinstance(message, AssistantMessage) else None
    return None
