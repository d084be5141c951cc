"""What every page must be, checked on the bytes that are sent: a line per breach, none when a rule holds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias, cast

from recto.conversation.json import load
from recto.conversation.messages import AssistantMessage, Message, ToolCall
from recto.page.body import Page
from recto.page.manifest import Manifest
from recto.page.wire.base import WireName

ParsedTurn: TypeAlias = Mapping[str, object]
VISIBLE_DECISIONS = ("kept", "folded", "repaired")
PART_FIELDS = {"text", "inlineData", "fileData", "functionCall", "functionResponse"}


def parse(page: Page) -> ParsedTurn:
    """The body as a provider reads it."""
    body = load(page.body)
    assert isinstance(body, dict)
    return body


def fresh(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Equal messages that remember nothing."""
    return tuple(replace(_fresh_calls(message)) for message in messages)


def _fresh_calls(message: Message) -> Message:
    if not isinstance(message, AssistantMessage):
        return message
    return replace(
        message, parts=tuple(replace(part) if isinstance(part, ToolCall) else part for part in message.parts)
    )


def gaps(page: Page, manifest: Manifest) -> Iterator[str]:
    """Where spans do not tile the body: from 0 to its end, each starting where the one before ended."""
    end = 0
    for part, span in zip(manifest.parts, manifest.spans, strict=True):
        if span is not None:
            if span[0] != end or span[1] <= span[0]:
                yield f"{part.source} spans {span}, the one before ended at {end}"
            end = span[1]
    if end != len(page.body):
        yield f"the last span ends at {end}, the body at {len(page.body)}"


def lies(manifest: Manifest, log: Sequence[Message]) -> Iterator[str]:
    """Decisions that are not what happened, and messages that are not in the manifest exactly once."""
    for part, span in zip(manifest.parts, manifest.spans, strict=True):
        if (part.decision in VISIBLE_DECISIONS) != (span is not None):
            yield f"{part.source} is {part.decision} and spans {span}"
        if part.decision == "kept" and (part.rule or part.receipts or part.tokens_before != part.tokens_after):
            yield f"{part.source} is kept, by {part.rule}"
        if part.decision != "kept" and not (part.rule and part.reason):
            yield f"{part.source} is {part.decision} without a rule and a reason"
        if part.decision == "dropped" and part.tokens_after:
            yield f"{part.source} is dropped and costs {part.tokens_after}"
        if (part.decision == "folded") != bool(part.receipts):
            yield f"{part.source} is {part.decision} with {len(part.receipts)} receipts"
    sources = sorted(part.source for part in manifest.parts if part.kind == "message")
    logged = sorted(message.id or f"messages[{place}]" for place, message in enumerate(log))
    if sources != logged:
        yield f"the manifest tells of {sources}, the log has {logged}"


def orphans(body: ParsedTurn, wire: WireName) -> list[str]:
    """Breaches of what the provider demands of calls, results and turns."""
    field, judge = JUDGES[wire]
    return list(judge(cast("Sequence[ParsedTurn]", body[field])))


def _openai_breaches(messages: Sequence[ParsedTurn]) -> Iterator[str]:
    waiting: list[object] = []
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"messages[{place}] answers {message['tool_call_id']}, nobody asked"
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"messages[{place}] comes before the answers to {waiting}"
        calls = cast("Sequence[ParsedTurn]", message.get("tool_calls", ()))
        waiting = [call["id"] for call in calls]
        if len(set(waiting)) != len(waiting):
            yield f"messages[{place}] calls twice under one id: {waiting}"
        if message["role"] == "assistant" and not calls and not _says_something(message):
            yield f"messages[{place}] says nothing"
    if waiting:
        yield f"nothing answers {waiting}"


def _says_something(message: ParsedTurn) -> bool:
    return any(value for name, value in message.items() if name != "role")


def _responses_breaches(items: Sequence[ParsedTurn]) -> Iterator[str]:
    call_ids: list[object] = []
    answer_ids: list[object] = []
    for place, (item, following) in enumerate(pairwise((*items, {}))):
        match item.get("type"):
            case "function_call":
                call_ids.append(item["call_id"])
            case "function_call_output":
                answer_ids.append(item["call_id"])
                if item["call_id"] not in call_ids:
                    yield f"input[{place}] answers {item['call_id']}, nobody asked"
            case "reasoning" if not _is_led_to(following):
                yield f"input[{place}] is a thought without what it led to"
            case _:
                pass
    if sorted(map(str, call_ids)) != sorted(map(str, answer_ids)) or len(set(call_ids)) != len(call_ids):
        yield f"asked was {call_ids}, answered {answer_ids}"


def _is_led_to(item: ParsedTurn) -> bool:
    return item.get("role") == "assistant" or item.get("type") in ("reasoning", "function_call")


def _anthropic_breaches(turns: Sequence[ParsedTurn]) -> Iterator[str]:
    visible: list[object] = []
    before: ParsedTurn = {"role": "assistant", "content": []}
    for place, (last, turn) in enumerate(pairwise((before, *turns))):
        if turn["role"] == last["role"]:
            yield f"messages[{place}] does not alternate: {turn['role']} again"
        blocks = cast("Sequence[ParsedTurn]", turn["content"])
        if not blocks:
            yield f"messages[{place}] is empty"
        call_ids = _ids(last, "tool_use", "id")
        answer_ids = [block.get("tool_use_id") for block in blocks[: len(call_ids)]]
        if (
            sorted(map(str, answer_ids)) != sorted(map(str, call_ids))
            or _ids(turn, "tool_result", "tool_use_id") != answer_ids
        ):
            yield f"messages[{place}] answers {answer_ids}, asked was {call_ids}"
        visible += _ids(turn, "tool_use", "id")
        yield from (
            f"messages[{place}] has a blank text" for block in blocks if not str(block.get("text", "x")).strip()
        )
    if turns and _ids(turns[-1], "tool_use", "id"):
        yield f"nothing answers {_ids(turns[-1], 'tool_use', 'id')}"
    if len(set(visible)) != len(visible):
        yield f"ids are used twice: {visible}"


def _ids(turn: ParsedTurn, kind: str, name: str) -> list[object]:
    return [block[name] for block in cast("Sequence[ParsedTurn]", turn["content"]) if block["type"] == kind]


def _gemini_breaches(turns: Sequence[ParsedTurn]) -> Iterator[str]:
    before: ParsedTurn = {"role": "model", "parts": []}
    for place, (last, turn) in enumerate(pairwise((before, *turns))):
        parts = cast("Sequence[ParsedTurn]", turn["parts"])
        if turn["role"] == last["role"]:
            yield f"contents[{place}] does not alternate: {turn['role']} again"
        if not parts:
            yield f"contents[{place}] is empty"
        for part in parts:
            if len(part.keys() & PART_FIELDS) > 1:
                yield f"contents[{place}] has a part of {sorted(part)}"
            if not str(part.get("text", "x")).strip() and "thoughtSignature" not in part:
                yield f"contents[{place}] has a blank text"
        calls, results = _read_calls(last, "functionCall"), _read_calls(turn, "functionResponse")
        if calls != results:
            yield f"contents[{place}] answers {results}, asked was {calls}"
        if len(set(calls)) != len(calls):
            yield f"contents[{place - 1}] calls twice under one id: {calls}"
    if turns and _read_calls(turns[-1], "functionCall"):
        yield f"nothing answers {_read_calls(turns[-1], 'functionCall')}"


def _read_calls(turn: ParsedTurn, kind: str) -> list[tuple[object, object]]:
    """Calls or their results by id and name, in one order."""
    results = [cast("ParsedTurn", part[kind]) for part in cast("Sequence[ParsedTurn]", turn["parts"]) if kind in part]
    return sorted([(one["id"], one["name"]) for one in results], key=str)


JUDGES: dict[WireName, tuple[str, Callable[[Sequence[ParsedTurn]], Iterator[str]]]] = {
    "openai": ("messages", _openai_breaches),
    "openai-responses": ("input", _responses_breaches),
    "anthropic": ("messages", _anthropic_breaches),
    "gemini": ("contents", _gemini_breaches),
}
