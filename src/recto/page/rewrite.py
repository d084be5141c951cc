"""Rewriting of an agent's request: repair (R10), folding and the manifest. All other bytes stay as sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from typing import NamedTuple, cast

from recto.conversation.json import Json, Object, dump
from recto.conversation.log import FoldStep
from recto.conversation.memo import cache_results, memoise_last
from recto.conversation.messages import AssistantMessage, Message, Text, ToolMessage
from recto.page.body import Page, Segment, build_plain_part, build_segment
from recto.page.draft import Draft, then, unchanged
from recto.page.fold.fold import fold
from recto.page.fold.fold_by_cost import CacheState, CostFold, fold_by_cost
from recto.page.fold.fold_settings import FoldSettings, fold_key
from recto.page.manifest import Manifest, Part, merge_notes
from recto.page.sent_request import INSTRUCTIONS, SentRequest
from recto.page.steps.repair import repair
from recto.page.text.tokens import OFFLINE, TokenCount, TokenCounter, count_messages, count_text, tokens_of

AS_IT_CAME = "as its agent wrote it"
PASSED_ON = "passed on as it came, nothing folded: {why}"
HALF_READ = "not repaired, and nothing folded that was not before: {why}"
OTHER_ENDS = "repairing it would change who speaks first or last"
# The number of cached envelopes, which are long and the same in all requests of a conversation.
ENVELOPES = 256
NOTHING = build_segment(b"")


@dataclass(frozen=True, kw_only=True)
class RewriteRules:
    """Settings for rewriting. Without `fold`, requests are only repaired. Folding by cost uses `state`."""

    fold: FoldSettings | None
    state: CacheState = CacheState()
    now: datetime
    counter: TokenCounter = OFFLINE


def pass_on(request: SentRequest, why: str, counter: TokenCounter = OFFLINE) -> tuple[Page, Manifest]:
    """Return the request unchanged. The manifest contains the reason."""
    text = f"{request.before}{''.join([item.lead + item.text for item in request.items])}{request.after}"
    part = build_plain_part("envelope", "request", PASSED_ON.format(why=why), count_text(text, counter))
    return _page([(part, build_segment(text.encode()))])


def rewrite(
    request: SentRequest, messages: Sequence[Sequence[Message]], rules: RewriteRules, doubt: str = ""
) -> tuple[Page, Manifest]:
    """Return the request to forward. `messages` has the messages of each item.

    `doubt` is the reason that only the first items could be read. `messages` then has only theirs, the other items pass
    unchanged, and only earlier folds stay in force so that the cache remains valid.
    """
    flat = tuple([message for some in messages for message in some])
    items = [item for item, some in enumerate(messages) for _ in some]
    count_messages(flat, rules.counter)
    repaired = unchanged(flat) if doubt else repair(flat, is_ours=False)
    if not doubt and not _same_ends(flat, repaired):
        doubt, repaired = OTHER_ENDS, unchanged(flat)
    state = replace(rules.state, is_settled=True) if doubt else rules.state
    fold_draft, step = _fold(repaired.messages, replace(rules, state=state))
    if doubt and not fold_draft.notes:
        return pass_on(request, doubt, rules.counter)
    draft = then(repaired, fold_draft)
    talk = _Talk(request=request, messages=messages, flat=flat, items=items, draft=draft, counter=rules.counter)
    parts = list(_in_order(talk))
    if doubt:
        parts[0] = parts[0][0]._replace(reason=HALF_READ.format(why=doubt)), parts[0][1]
        start = len(messages)
        texts = [(f"messages[{at}]", item.lead + item.text) for at, item in enumerate(request.items) if at >= start]
        tokens = rules.counter.count([text for _, text in texts])
        rows = zip(texts, tokens, strict=True)
        parts[-1:-1] = [
            (build_plain_part("message", name, AS_IT_CAME, count), build_segment(text.encode()))
            for (name, text), count in rows
        ]
    page, manifest = _page(parts)
    return page, replace(manifest, step=step)


def _same_ends(messages: Sequence[Message], repaired: Draft) -> bool:
    """Return True if repair keeps the roles of the first and last message, and does not change a final reply.

    A model continues a final reply.
    """
    if not repaired.notes:
        return True
    places_before, places_after = _find_talk_places(messages), _find_talk_places(repaired.messages)
    if not places_after or (_is_model(messages[places_before[-1]]) and places_before[-1] in repaired.notes):
        return False
    ends = [(places_before[end], places_after[end]) for end in (0, -1)]
    return all(_is_model(messages[was]) == _is_model(repaired.messages[now]) for was, now in ends)


def _find_talk_places(messages: Sequence[Message]) -> list[int]:
    return [place for place, message in enumerate(messages) if message.role not in INSTRUCTIONS]


def _is_model(message: Message) -> bool:
    return message.role == "assistant"


def _fold(messages: tuple[Message, ...], rules: RewriteRules) -> tuple[Draft, FoldStep | None]:
    settings = rules.fold
    if settings is None:
        return unchanged(messages), None
    if settings.cost is None:
        cost_fold = CostFold(fold(messages, settings=settings, now=rules.now, counter=rules.counter), None)
    else:
        cost_fold = fold_by_cost(messages, fold_key(settings, rules.counter), rules.state)
    return cost_fold.result.draft, cost_fold.step


class _OutputItem(NamedTuple):
    """An item as sent, with the place of its first message."""

    origin: int
    part: Part
    segment: Segment


class _Talk(NamedTuple):
    """A request and its edited conversation, `draft`.

    `messages` has the messages of each item, `flat` all of them in a row, and `items` the item of each.
    """

    request: SentRequest
    messages: Sequence[Sequence[Message]]
    flat: tuple[Message, ...]
    items: Sequence[int]
    draft: Draft
    counter: TokenCounter


def _encode_items(talk: _Talk) -> Iterator[_OutputItem]:
    origins, messages, notes, items = talk.draft.origins, talk.draft.messages, talk.draft.notes, talk.items
    at = 0
    while at < len(origins):
        origin, begin = origins[at], at
        item = items[origin]
        request_item = talk.request.items[item]
        lead = (request_item.lead or ",") if at else ""
        at += 1
        if messages[begin] is talk.flat[origin] and origin not in notes and len(talk.messages[item]) == 1:
            yield _OutputItem(
                origin, *memoise_last(messages[begin], _kept_item, lead + request_item.text, item, talk.counter)
            )
            continue
        while at < len(origins) and items[origins[at]] == item:
            at += 1
        here = dict(zip(origins[begin:at], messages[begin:at], strict=True))
        text, first = request_item.text, items.index(item)
        changes = [ItemChange(was, here.get(first + place)) for place, was in enumerate(talk.messages[item])]
        if any(change.after is not change.before for change in changes):
            text = dump(edit_item(cast("Object", request_item.value), changes)).decode()
        yield _OutputItem(origin, _part(talk, item, here), build_segment((lead + text).encode()))


def _kept_item(message: Message, text: str, item: int, counter: TokenCounter) -> tuple[Part, Segment]:
    """Encode an unchanged item. The caller caches the result, because most items recur in the next request."""
    tokens = tokens_of(message, counter)
    part = Part("message", f"messages[{item}]", message.role, tokens, tokens, "kept", None, AS_IT_CAME)
    return part, build_segment(text.encode())


def _part(talk: _Talk, item: int, here: Mapping[int, Message]) -> Part:
    before = sum([tokens_of(talk.flat[origin], talk.counter) for origin in here])
    after = sum([tokens_of(message, talk.counter) for message in here.values()])
    notes, role = talk.draft.notes, talk.flat[next(iter(here))].role
    part = Part("message", f"messages[{item}]", role, before, after, "kept", None, AS_IT_CAME)
    item_notes = [notes[origin] for origin in here if origin in notes]
    return part._replace(**reduce(merge_notes, item_notes)._asdict()) if item_notes else part


def _in_order(talk: _Talk) -> Iterator[tuple[Part, Segment]]:
    """Yield all parts in request order. A part left out precedes the next one sent."""
    yield _envelope(talk.request.before, talk.counter)
    pending = deque[_OutputItem]()
    for origin, note in sorted(talk.draft.notes.items()):
        if note.decision == "dropped":
            message, name = talk.flat[origin], f"messages[{talk.items[origin]}]"
            tokens = tokens_of(message, talk.counter)
            part = Part("message", name, message.role, tokens, 0, note.decision, note.rule, note.reason)
            pending.append(_OutputItem(origin, part, NOTHING))
    for one in _encode_items(talk):
        while pending and pending[0].origin < one.origin:
            yield pending.popleft()[1:]
        yield one.part, one.segment
    yield from [one[1:] for one in pending]
    yield _envelope(talk.request.after, talk.counter)


@cache_results(ENVELOPES)
def _envelope(text: str, counter: TokenCounter) -> tuple[Part, Segment]:
    return build_plain_part("envelope", "envelope", AS_IT_CAME, count_text(text, counter)), build_segment(text.encode())


def _page(parts: Sequence[tuple[Part, Segment]]) -> tuple[Page, Manifest]:
    tokens = sum(part.tokens_after for part, _ in parts)
    manifest = Manifest(
        parts=tuple([part for part, _ in parts]),
        sizes=[len(one.data) for _, one in parts],
        tokens=TokenCount(tokens=tokens, estimated=True),
    )
    return Page(segments=tuple([one for _, one in parts if one.data])), manifest


CALLS, CONTENT = "tool_calls", "content"


class ItemChange(NamedTuple):
    """A message of an item before and after the edit; `after` is None if it is removed."""

    before: Message
    after: Message | None


def edit_item(value: Object, changes: Sequence[ItemChange]) -> Object:
    """Return the item with its messages changed."""
    match changes:
        case [ItemChange(AssistantMessage() as before, AssistantMessage() as after)]:
            part_ids = {id(part) for part in after.parts}
            calls = value.get(CALLS)
            if isinstance(calls, list):
                stay = [
                    call for call, tool_call in zip(calls, before.tool_calls, strict=True) if id(tool_call) in part_ids
                ]
                rest = {name: field for name, field in value.items() if name != CALLS}
                return {**rest, CALLS: stay} if stay else rest
            blocks = cast("Sequence[Json]", value.get(CONTENT))
            return {
                **value,
                CONTENT: [block for block, part in zip(blocks, before.parts, strict=True) if id(part) in part_ids],
            }
        case [ItemChange(ToolMessage() as before, ToolMessage() as after)] if value.get("role") == "tool":
            return {**value, CONTENT: _words(value.get(CONTENT), before, after)}
        case _:
            return {**value, CONTENT: _results(cast("Sequence[Object]", value.get(CONTENT)), changes)}


def _results(blocks: Sequence[Object], changes: Sequence[ItemChange]) -> list[Json]:
    """Edit the blocks of a user turn. Each result has its own change. Other blocks stay if the user's own message
    stays.
    """
    results = iter([change for change in changes if isinstance(change.before, ToolMessage)])
    says_more = any(change.after for change in changes if not isinstance(change.before, ToolMessage))
    new_blocks = list[Json]()
    for block in blocks:
        if block.get("type") != "tool_result":
            new_blocks += [block] if says_more else []
            continue
        before, after = next(results)
        if after is before:
            new_blocks.append(block)
        elif isinstance(before, ToolMessage) and isinstance(after, ToolMessage):
            new_blocks.append({**block, CONTENT: _words(block.get(CONTENT), before, after)})
    return new_blocks


def _words(content: Json, before: ToolMessage, after: ToolMessage) -> Json:
    """Return the new content of a result: one text, or the old blocks with the changed parts replaced."""
    if isinstance(content, list) and len(content) == len(before.parts) == len(after.parts):
        blocks = list(content)
        for place, (block, was, now) in enumerate(zip(content, before.parts, after.parts, strict=True)):
            if now is not was:
                fields = block if isinstance(block, Mapping) and block.get("type") == "text" else {"type": "text"}
                blocks[place] = {**fields, "text": now.text if isinstance(now, Text) else ""}
        return blocks
    return "".join([part.text for part in after.parts if isinstance(part, Text)])
