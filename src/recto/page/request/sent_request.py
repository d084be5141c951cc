"""A request of another agent as it was sent: JSON in which each message stands as it was written.

Nothing is written again that is not changed, so a request nobody changes goes on as the very bytes that came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from json import JSONDecodeError, JSONDecoder
from typing import NamedTuple, cast

from recto.conversation.json import Json, dump
from recto.conversation.messages import AssistantMessage, Message, ToolMessage
from recto.errors import WireError
from recto.page.wire.base import Wire

MESSAGES = "messages"
# Fields whose values are asked for; all others only go along.
ASKED = ("model", "stream")
CACHE_MARK = "cache_control"
INSTRUCTIONS = ("system", "developer")
BLANK = re.compile(r"[ \t\n\r]*")
LABEL_CHARACTERS = 16
_decoder = JSONDecoder()
TOO_DEEP = "is nested too deep to be read"


class SentItem(NamedTuple):
    """An element of `messages`: what stands before it, itself as it was written, and its value."""

    lead: str
    text: str
    value: Json

    @property
    def is_instruction(self) -> bool:
        """Whether it is an agent's own word to its model, not part of what was said."""
        return isinstance(self.value, dict) and self.value.get("role") in INSTRUCTIONS


@dataclass(frozen=True, kw_only=True)
class SentRequest:
    """A request: all up to its first message, its messages, all behind them. `fields` are those that were asked for.

    One with `doubt` can be read in more than one way, and is never changed.
    """

    before: str
    items: tuple[SentItem, ...]
    after: str
    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])
    doubt: str = ""

    @property
    def model(self) -> str:
        """The model it asks for; nothing where it names none."""
        name = self.fields.get("model")
        return name if isinstance(name, str) else ""


def parse_request(body: bytes) -> SentRequest:
    """The request that a body holds. What is no object with a list of messages raises a WireError."""
    try:
        text = body.decode()
        return _parse(text)
    except JSONDecodeError as error:
        raise WireError(where="body", problem=f"is no JSON: {error.msg} at character {error.pos}") from error
    except (ValueError, RecursionError) as error:
        raise WireError(where="body", problem=f"cannot be read as JSON: {error}") from error


def _parse(text: str) -> SentRequest:
    fields, found, doubt = dict[str, Json](), None, ""
    at = _skip(text, _expect(text, _skip(text, 0), "{"))
    is_first = True
    while text[at : at + 1] != "}":
        at = at if is_first else _skip(text, _expect(text, at, ","))
        is_first = False
        name, at = _value(text, at)
        if not isinstance(name, str):
            raise JSONDecodeError("a name is missing", text, at)
        at = _skip(text, _expect(text, _skip(text, at), ":"))
        if name == MESSAGES and text[at : at + 1] == "[":
            doubt = f"`{MESSAGES}` stands in it twice" if found else ""
            found = _items(text, at)
            at = found.end
        else:
            value, at = _value(text, at)
            fields |= {name: value} if name in ASKED else {}
        at = _skip(text, at)
    if _skip(text, at + 1) != len(text):
        raise JSONDecodeError("more than one value", text, at + 1)
    if found is None or not found.items:
        raise WireError(where=MESSAGES, problem="is missing; a list with at least one message is needed")
    return SentRequest(
        before=text[: found.start], items=found.items, after=text[found.last :], fields=fields, doubt=doubt
    )


class _Items(NamedTuple):
    """The elements of a list: where the first begins and the last ends, and where the list is over."""

    items: tuple[SentItem, ...]
    start: int
    last: int
    end: int


def _items(text: str, at: int) -> _Items:
    items = list[SentItem]()
    at = start = lead = _skip(text, at + 1)
    if text[at : at + 1] == "]":
        return _Items((), start, at, at + 1)
    while True:
        value, end = _value(text, at)
        items.append(SentItem(text[lead:at], text[at:end], value))
        lead, at = end, _skip(text, end)
        if text[at : at + 1] != ",":
            return _Items(tuple(items), start, end, _expect(text, at, "]"))
        at = _skip(text, at + 1)


def _value(text: str, at: int) -> tuple[Json, int]:
    return cast("tuple[Json, int]", _decoder.raw_decode(text, at))


def _skip(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return found.end() if found else at


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise JSONDecodeError(f"{sign!r} is missing", text, at)
    return at + 1


def heads_of(items: Sequence[SentItem], wire: Wire) -> tuple[str, ...]:
    """What a conversation goes by up to each of its messages: the same words, the same name.

    Instructions are left out of it, as agents write the date and the like into theirs, and so are marks of where to
    cache, which move with every request.
    """
    head, heads = sha256(wire.name.encode()).hexdigest(), list[str]()
    for place, item in enumerate(items):
        if not item.is_instruction:
            head = sha256(head.encode() + dump(_plain(item, place))).hexdigest()
        heads.append(head)
    return tuple(heads)


def _plain(item: SentItem, place: int) -> Json:
    try:
        value = _unmarked(item.value) if CACHE_MARK in item.text else item.value
    except RecursionError as error:
        raise WireError(where=f"{MESSAGES}[{place}]", problem=TOO_DEEP) from error
    if isinstance(value, dict) and isinstance(words := value.get("content"), str):
        return {**value, "content": [{"type": "text", "text": words}]}
    return value


def _unmarked(value: Json) -> Json:
    match value:
        case dict():
            return {name: _unmarked(inner) for name, inner in value.items() if name != CACHE_MARK}
        case list():
            return [_unmarked(inner) for inner in value]
        case _:
            return value


def first_words(items: Sequence[SentItem]) -> str:
    """What the user said first, for people to know the conversation by."""
    contents = [
        item.value.get("content") for item in items if isinstance(item.value, Mapping) and not item.is_instruction
    ]
    match contents[:1]:
        case [str(words)] | [[{"text": str(words)}, *_]]:
            return words
        case _:
            return ""


def messages_in(item: SentItem, place: int, wire: Wire, head: str, time: datetime) -> tuple[Message, ...]:
    """The messages that an item stands for, seen first at a time. What cannot be read raises a WireError.

    Results go by the name the conversation has up to them: ids of calls may be used again.
    """
    try:
        _doubled.decode(item.text)
        found = wire.decode([item.value])
        _check_calls(found)
    except WireError as error:
        where = error.where.replace(f"{MESSAGES}[0]", f"{MESSAGES}[{place}]", 1)
        raise WireError(where=where, problem=error.problem) from error
    except RecursionError as error:
        raise WireError(where=f"{MESSAGES}[{place}]", problem=TOO_DEEP) from error
    label = head[:LABEL_CHARACTERS]
    return tuple([replace(one, id=_id(one, label, number), time=one.time or time) for number, one in enumerate(found)])


def _check_names(pairs: Sequence[tuple[str, object]]) -> None:
    if len(pairs) != len({name for name, _ in pairs}):
        raise WireError(where=f"{MESSAGES}[0]", problem="has a name twice in one object")


# Reads nothing: what stands twice in an item would be lost when it is written again.
_doubled = JSONDecoder(object_pairs_hook=_check_names)


def _check_calls(messages: Sequence[Message]) -> None:
    """Nobody can tell the results of two calls of one id apart."""
    for message in messages:
        ids = [call.id for call in message.tool_calls] if isinstance(message, AssistantMessage) else []
        if len(ids) != len(set(ids)):
            raise WireError(where=f"{MESSAGES}[0]", problem="has two calls of one id")


def _id(message: Message, label: str, number: int) -> str:
    return f"{label}.{number}" if isinstance(message, ToolMessage) else message.id
