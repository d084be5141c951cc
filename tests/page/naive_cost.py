"""Folding by cost a second time, as plainly as its rule is written: everything is looked at again for every call."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import cast

from recto.conversation.messages import AssistantMessage, Message, Text, ToolMessage, UserMessage
from recto.page.fold.fold_settings import CachePrices, CostSettings
from recto.page.text.tokens import tokens_of
from tests.page.cost_sessions import COMMAND, EDIT, FIND, READ
from tests.page.counters import WordCounter

COUNTER = WordCounter()


@dataclass(frozen=True, kw_only=True)
class NaiveResult:
    place: int
    id: str
    tool: str
    text: str
    arguments: dict[str, object]
    asked_at: int
    failed: bool

    @property
    def files(self) -> list[str]:
        part = self.arguments.get("filePath")
        names = cast("list[str]", part) if isinstance(part, list) else [part] if isinstance(part, str) else []
        return [name.removeprefix("./") for name in names]

    @property
    def is_read(self) -> bool:
        return self.tool == READ and not self.failed

    @property
    def is_edit(self) -> bool:
        return self.tool == EDIT and not self.failed

    @property
    def quoted_lines(self) -> list[str]:
        several = cast("list[dict[str, str]]", self.arguments.get("edits") or [])
        texts = [cast("str", self.arguments.get("searchContent") or ""), *[one["search"] for one in several]]
        return [line.strip() for text in texts for line in text.splitlines() if line.strip()]


def naive_step(
    messages: Sequence[Message], cost: CostSettings, folded_ids: Collection[str], prices: CachePrices, *, cold: bool
) -> tuple[set[str], int, int] | None:
    """The ids that the next step folds, the tokens it frees and those it has written again."""
    results = naive_results(messages)
    calls = sum(isinstance(message, AssistantMessage) for message in messages)
    savings = {one.id: saved_by(one, cost) for one in messages if isinstance(one, ToolMessage)}
    sizes = [size_of(message) - (savings[message.id] if message.id in folded_ids else 0) for message in messages]
    candidates = [
        one
        for one in results
        if one.id not in folded_ids
        and size_of(messages[one.place]) >= cost.least_result
        and is_spent(one, results, messages, cost)
    ]
    if not candidates or sum(sizes) < cost.least_page:
        return None
    if cold or prices.read == prices.write:
        return {one.id for one in candidates}, sum(savings[one.id] for one in candidates), 0
    cached = max(place for place, message in enumerate(messages) if isinstance(message, AssistantMessage))
    best = None
    most = 0.0
    for first in range(len(candidates) - 1, -1, -1):
        chosen_results = candidates[first:]
        saving = sum(savings[one.id] for one in chosen_results)
        stays = max(sum(sizes[chosen_results[0].place : cached]) - saving, 0)
        once, each = stays * (prices.write - prices.read), saving * prices.read
        worth = each * calls * cost.horizon - once
        if saving >= cost.least_step and once <= each * calls * cost.payback and worth > most:
            best, most = ({one.id for one in chosen_results}, saving, stays), worth
    return best


def naive_results(messages: Sequence[Message]) -> list[NaiveResult]:
    """Results of tools that are folded; a read that names no file is none."""
    results = list[NaiveResult]()
    for place, message in enumerate(messages):
        if not isinstance(message, ToolMessage):
            continue
        calls = [
            (at, call)
            for at, reply in enumerate(messages[:place])
            if isinstance(reply, AssistantMessage)
            for call in reply.tool_calls
            if call.id == message.tool_call_id
        ]
        at, call = calls[-1]
        text = "".join(part.text for part in message.parts if isinstance(part, Text))
        result = NaiveResult(
            place=place,
            id=message.id,
            tool=call.name,
            text=text,
            arguments=object_in(call.arguments),
            asked_at=at,
            failed=has_failed(call.name, text),
        )
        if call.name in (READ, EDIT, COMMAND, FIND) and (call.name != READ or result.files):
            results.append(result)
    return results


def object_in(text: str) -> dict[str, object]:
    try:
        result = json.loads(text)
    except ValueError:
        return {}
    return cast("dict[str, object]", result) if isinstance(result, dict) else {}


def has_failed(tool: str, text: str) -> bool:
    return text.startswith("Error:") or (tool == COMMAND and object_in(text).get("exitCode", 0) != 0)


def size_of(message: Message) -> int:
    return tokens_of(message, COUNTER)


def saved_by(message: ToolMessage, cost: CostSettings) -> int:
    return size_of(message) - size_of(replace(message, parts=(Text(text=cost.placeholder),)))


def is_spent(one: NaiveResult, results: Sequence[NaiveResult], messages: Sequence[Message], cost: CostSettings) -> bool:
    last_place = max([one.place, *[other.place for other in results if touches(other, one)]])
    calls = sum(isinstance(message, AssistantMessage) for message in messages)
    users = sum(isinstance(message, UserMessage) for message in messages)
    later = messages[last_place + 1 :]
    idle = sum(isinstance(message, AssistantMessage) for message in later)
    turn = min(cost.turn_calls, calls / users) if users else 0
    idle += sum(isinstance(message, UserMessage) for message in later) * turn
    return idle > window_of(one, results, messages, cost)


def touches(later: NaiveResult, one: NaiveResult) -> bool:
    """Whether a later result shows that this one was needed: it quotes it, or is of its file."""
    if later.place <= one.place:
        return False
    if later.is_edit and is_quote(later, one):
        return True
    is_of_file = bool(set(later.files) & set(one.files))
    return one.is_read and is_of_file and (later.is_edit or later.is_read)


def is_quote(edit: NaiveResult, one: NaiveResult) -> bool:
    return one.place < edit.asked_at and bool(edit.quoted_lines) and all(line in one.text for line in edit.quoted_lines)


def window_of(one: NaiveResult, results: Sequence[NaiveResult], messages: Sequence[Message], cost: CostSettings) -> int:
    if not one.is_read:
        return cost.window
    quoting = [edit for edit in results if edit.is_edit and any(is_quote(edit, other) for other in results)]
    near = [edit for edit in quoting if came_soon(edit, results, messages, cost)]
    if len(quoting) >= cost.quoting_edits and len(near) >= cost.touched_share * len(quoting):
        return cost.window
    is_part = "startLine" in one.arguments
    for file in one.files:
        later = [other for other in results if other.place > one.place and file in other.files]
        is_edited = any(other.is_edit for other in later)
        if not (is_edited and (is_part or any(other.is_read for other in later))):
            return cost.read_window
    return cost.edited_window


def came_soon(
    edit: NaiveResult, results: Sequence[NaiveResult], messages: Sequence[Message], cost: CostSettings
) -> bool:
    before = [
        one.place
        for one in results
        if one.place < edit.place and (one.is_read or one.is_edit) and set(one.files) & set(edit.files)
    ]
    if not before:
        return False
    between = messages[max(before) : edit.place]
    return sum(isinstance(message, AssistantMessage) for message in between) <= cost.window
