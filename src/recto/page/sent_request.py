"""A parsed request of another agent, with the exact text of each message.

Only changed messages are encoded again, so an unchanged request keeps its exact bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import sha256
from itertools import takewhile
from json import JSONDecodeError, JSONDecoder
from typing import NamedTuple, cast

from recto.conversation.json import Json, dump
from recto.conversation.messages import AssistantMessage, Message, ToolMessage
from recto.errors import WireError
from recto.page.wire.base import Wire

MESSAGES = "messages"
# Fields whose values are needed; all others are copied.
NEEDED_FIELDS = ("model", "stream")
CACHE_MARK = "cache_control"
INSTRUCTIONS = ("system", "developer")
BLANK = re.compile(r"[ \t\n\r]*")
LABEL_CHARACTERS = 16
_decoder = JSONDecoder()
TOO_DEEP = "is nested too deep to be read"


class SentItem(NamedTuple):
    """An element of `messages`: the text before it, its own text, and its value."""

    lead: str
    text: str
    value: Json

    @property
    def is_instruction(self) -> bool:
        """True for instructions to the model, which are not part of the conversation."""
        return isinstance(self.value, dict) and self.value.get("role") in INSTRUCTIONS


@dataclass(frozen=True, kw_only=True)
class SentRequest:
    """A request: the text up to its first message, its messages, and the text after them. `fields` are parsed fields.

    `doubt` is the reason that the request is ambiguous. Such a request is never changed.
    """

    before: str
    items: tuple[SentItem, ...]
    after: str
    fields: Mapping[str, Json] = field(default_factory=dict[str, Json])
    doubt: str = ""

    @property
    def model(self) -> str:
        """The requested model, or an empty string."""
        name = self.fields.get("model")
        return name if isinstance(name, str) else ""


def parse_request(body: bytes, predecessors: Sequence[SentRequest] = ()) -> SentRequest:
    """Parse a body. Raise a WireError if it is not an object with a list of messages.

    Agents send the whole conversation with each request. Leading items that are byte for byte those of one of the
    `predecessors` are reused instead of parsed, which does not change the result.
    """
    try:
        text = body.decode()
        return _parse(text, predecessors)
    except JSONDecodeError as error:
        raise WireError(where="body", problem=f"is no JSON: {error.msg} at character {error.pos}") from error
    except (ValueError, RecursionError) as error:
        raise WireError(where="body", problem=f"cannot be read as JSON: {error}") from error


def count_shared(request: SentRequest, predecessor: SentRequest) -> int:
    """Return the number of leading items that a request reused from its predecessor."""
    pairs = zip(request.items, predecessor.items, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1], pairs))


def _parse(text: str, predecessors: Sequence[SentRequest]) -> SentRequest:
    fields, message_list, doubt = dict[str, Json](), None, ""
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
            doubt = f"`{MESSAGES}` stands in it twice" if message_list else ""
            message_list = _items(text, at, predecessors)
            at = message_list.end
        else:
            value, at = _value(text, at)
            fields |= {name: value} if name in NEEDED_FIELDS else {}
        at = _skip(text, at)
    if _skip(text, at + 1) != len(text):
        raise JSONDecodeError("more than one value", text, at + 1)
    if message_list is None or not message_list.items:
        raise WireError(where=MESSAGES, problem="is missing; a list with at least one message is needed")
    return SentRequest(
        before=text[: message_list.start],
        items=message_list.items,
        after=text[message_list.last :],
        fields=fields,
        doubt=doubt,
    )


class _Items(NamedTuple):
    """The elements of a list, and three positions: the start of the first, the end of the last, and the end of the
    list.
    """

    items: tuple[SentItem, ...]
    start: int
    last: int
    end: int


def _items(text: str, at: int, predecessors: Sequence[SentRequest]) -> _Items:
    start = _skip(text, at + 1)
    if text[start : start + 1] == "]":
        return _Items((), start, start, start + 1)
    items = list(max([_find_shared_items(text, start, one.items) for one in predecessors], key=len, default=()))
    end = start + sum([len(item.lead) + len(item.text) for item in items])
    while True:
        at = _skip(text, end)
        if items:
            if text[at : at + 1] != ",":
                return _Items(tuple(items), start, end, _expect(text, at, "]"))
            at = _skip(text, at + 1)
        value, behind = _value(text, at)
        items.append(SentItem(text[end:at], text[at:behind], value))
        end = behind


def _find_shared_items(text: str, at: int, items: Sequence[SentItem]) -> Sequence[SentItem]:
    """Return the leading items that a text repeats at a position.

    Compare only objects and lists, because a number in the text may continue with more digits.
    """
    for count, item in enumerate(items):
        begin = at + len(item.lead)
        is_closed = item.text.endswith(("}", "]"))
        if not (is_closed and text.startswith(item.lead, at) and text.startswith(item.text, begin)):
            return items[:count]
        at = begin + len(item.text)
    return items


def _value(text: str, at: int) -> tuple[Json, int]:
    return cast("tuple[Json, int]", _decoder.raw_decode(text, at))


def _skip(text: str, at: int) -> int:
    match = BLANK.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, sign: str) -> int:
    if text[at : at + 1] != sign:
        raise JSONDecodeError(f"{sign!r} is missing", text, at)
    return at + 1


def heads_of(items: Sequence[SentItem], wire: Wire, first: Sequence[str] = ()) -> tuple[str, ...]:
    """Return a hash of the conversation up to each item. Equal conversations have equal hashes.

    Instructions do not count, because agents write values such as the date into theirs. Cache marks do not count,
    because they move with every request. `first` are the known hashes of the first items.
    """
    heads = list(first)
    head = heads[-1] if heads else sha256(wire.name.encode()).hexdigest()
    for place, item in enumerate(items[len(heads) :], len(heads)):
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
    """Return the first text of the user, as a title of the conversation."""
    contents = [
        item.value.get("content") for item in items if isinstance(item.value, Mapping) and not item.is_instruction
    ]
    match contents[:1]:
        case [str(words)] | [[{"text": str(words)}, *_]]:
            return words
        case _:
            return ""


def messages_in(item: SentItem, place: int, wire: Wire, head: str, time: datetime) -> tuple[Message, ...]:
    """Return the messages of an item, with the given time if they have none. Raise a WireError if it is invalid.

    Ids of results contain `head`, because agents may reuse call ids.
    """
    try:
        _doubled.decode(item.text)
        messages = wire.decode([item.value])
        # Reject two calls with one id, because their results cannot be distinguished
        for message in messages:
            ids = [call.id for call in message.tool_calls] if isinstance(message, AssistantMessage) else []
            if len(ids) != len(set(ids)):
                raise WireError(where=f"{MESSAGES}[0]", problem="has two calls of one id")
    except WireError as error:
        where = error.where.replace(f"{MESSAGES}[0]", f"{MESSAGES}[{place}]", 1)
        raise WireError(where=where, problem=error.problem) from error
    except RecursionError as error:
        raise WireError(where=f"{MESSAGES}[{place}]", problem=TOO_DEEP) from error
    label = head[:LABEL_CHARACTERS]
    return tuple(
        [
            replace(one, id=f"{label}.{number}" if isinstance(one, ToolMessage) else one.id, time=one.time or time)
            for number, one in enumerate(messages)
        ]
    )


def _check_names(pairs: Sequence[tuple[str, object]]) -> None:
    if len(pairs) != len({name for name, _ in pairs}):
        raise WireError(where=f"{MESSAGES}[0]", problem="has a name twice in one object")


# Rejects an object with a repeated field, because encoding the item again would lose one of them.
_doubled = JSONDecoder(object_pairs_hook=_check_names)
