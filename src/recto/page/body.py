"""The bytes of a request: encoded tools and messages with the punctuation between them, and their manifest parts.

Encoded messages are cached with the conversation, so a new page encodes only new and newly folded messages.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from hashlib import sha256
from itertools import chain, compress, pairwise
from operator import add, is_not, itemgetter
from typing import NamedTuple, cast

from recto.conversation.json import Json, dump, load_object
from recto.conversation.memo import memo_place, memoise
from recto.conversation.messages import AssistantMessage, Message, Opaque, ToolOffer, UserMessage
from recto.errors import SettingsError, WireError
from recto.page.manifest import Note, Part, PartKind
from recto.page.text.tokens import TokenCounter, count_new, tokens_of
from recto.page.wire.base import Slot, Wire

# The slots before the first list: START after leading fields, EMPTY_BODY in a body without any.
START, EMPTY_BODY = Slot(b"", b""), Slot(b"{", b"")
UNCHANGED_REASON = "as in the conversation"
# Reasons of parts that are not messages.
TOOL_REASON, HEAD_REASON, TAIL_REASON = "the model may call it", "the model and its options", "how every request ends"
DATA, SHA256 = itemgetter(0), itemgetter(1)


class Segment(NamedTuple):
    """A piece of a body and its SHA-256."""

    data: bytes
    sha256: bytes


@dataclass(frozen=True, kw_only=True)
class Page:
    """The exact body of one model call, byte for byte as sent."""

    segments: tuple[Segment, ...]

    @property
    def body(self) -> bytes:
        """The bytes of the request, joined on each access: a page stores only its segments."""
        return b"".join(map(DATA, self.segments))

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the hashes of the segments, in order."""
        return sha256(b"".join(map(SHA256, self.segments))).hexdigest()


class EncodedPart(NamedTuple):
    """A part and its bytes, without the punctuation before them."""

    part: Part
    segment: Segment


@dataclass(frozen=True, kw_only=True)
class EncodedParts:
    """Parts in order. Each has a size and two segments: the punctuation before it and its own bytes."""

    parts: tuple[Part, ...] = ()
    sizes: array[int] = field(default_factory=partial(array, "I"))
    segments: tuple[Segment, ...] = ()
    last: Slot = START


class _CachedEncoding(NamedTuple):
    """The cached encoding of a thread's last page. It excludes the message that holds the cache."""

    key: tuple[Slot, Wire, TokenCounter]
    messages: tuple[Message | None, ...]
    notes: Mapping[int, Note]
    encoded: EncodedParts


def encode_head(model: str, options: Mapping[str, Json], wire: Wire) -> Segment:
    """Build the head of a body: the model if the format includes it, then the options sorted by name."""
    for name in wire.own_fields & options.keys():
        raise SettingsError(name=f"options.{name}", value=options[name], allowed="a page sets this field itself")
    model_field = {"model": model} if wire.model_in_body else {}
    return build_segment(dump(model_field | {name: options[name] for name in sorted(options)})[:-1])


def find_start(options: Mapping[str, Json], wire: Wire) -> Slot:
    """Return the slot that precedes the first tool or message."""
    return START if options or wire.model_in_body else EMPTY_BODY


def encode_tools(tools: Sequence[ToolOffer], before: Slot, wire: Wire, counter: TokenCounter) -> EncodedParts:
    """Encode tools for a body in which they follow the slot `before`."""
    encoded = [memoise(tool, encode_tool, wire, counter) for tool in tools]
    punctuation_segments, segments = _punctuate([before, *[wire.tools] * len(tools)]), [one.segment for one in encoded]
    return EncodedParts(
        parts=tuple([one.part for one in encoded]),
        sizes=array("I", map(add, _measure(punctuation_segments), _measure(segments))),
        segments=tuple(chain.from_iterable(zip(punctuation_segments, segments, strict=True))),
        last=wire.tools if tools else before,
    )


class PageMessages(NamedTuple):
    """Messages to encode, with their notes by place.

    `origins` are the places of the messages in `base`, the messages before any step.
    """

    messages: tuple[Message, ...]
    notes: Mapping[int, Note]
    origins: Sequence[int]
    base: Sequence[Message]


def encode_messages(conversation: PageMessages, before: Slot, wire: Wire, counter: TokenCounter) -> EncodedParts:
    """Encode a conversation for a body in which it follows the slot `before`.

    The last result is cached, and only changed messages are encoded again. Only this cache refers to the encoded bytes,
    so the next page frees those of a folded result.
    """
    messages, key = conversation.messages, (before, wire, counter)
    if not messages:
        return EncodedParts(last=before)
    anchor = memo_place(messages)
    memo = messages[anchor].memo
    cached = cast("_CachedEncoding | None", memo.get(encode_messages))
    if cached is None or cached.key != key:
        cached = _CachedEncoding(key, (), {}, EncodedParts(last=before))
    encoded = _update_encoding(cached, conversation)
    memo[encode_messages] = _CachedEncoding(
        key, (*messages[:anchor], None, *messages[anchor + 1 :]), conversation.notes, encoded
    )
    return _set_breakpoints(encoded, messages, before, wire) if wire.breakpoint else encoded


def _update_encoding(cached: _CachedEncoding, conversation: PageMessages) -> EncodedParts:
    """Reuse the cached encoding of unchanged messages and encode the others."""
    messages, notes, (_, wire, counter) = conversation.messages, conversation.notes, cached.key
    count = min(len(cached.messages), len(messages))
    changed = list(compress(range(count), map(is_not, cached.messages, messages)))
    sizes, segments = _update_segments(cached, messages, changed)
    new = [*changed, *range(count, len(messages))]
    originals = [conversation.base[conversation.origins[place]] for place in new if place in notes]
    count_new([*[messages[place] for place in new], *originals], counter)
    parts = list(cached.encoded.parts[:count])
    for place in changed:
        parts[place] = _build_part(conversation, place, counter)
    for place in {place for place, note in notes.items() if cached.notes.get(place) is not note and place < count}:
        # Only the note changed, so the token counts stay valid.
        part, note = parts[place], notes[place]
        parts[place] = Part(*part[:5], note.decision, note.rule, note.reason, note.receipts)
    for place in cached.notes.keys() - notes.keys():
        if place < count:
            parts[place] = _build_part(conversation, place, counter)
    parts += [_build_part(conversation, place, counter) for place in range(count, len(messages))]
    last = wire.slots[type(messages[-1])]
    return EncodedParts(parts=tuple(parts), sizes=sizes, segments=tuple(segments), last=last)


def _update_segments(
    cached: _CachedEncoding, messages: Sequence[Message], changed: Sequence[int]
) -> tuple[array[int], list[Segment]]:
    """Return sizes and segments, re-encoding changed messages and appending new ones."""
    before, wire, _ = cached.key
    count = min(len(cached.messages), len(messages))
    sizes, segments = cached.encoded.sizes[:count], list(cached.encoded.segments[: 2 * count])
    for place in changed:
        segments[2 * place + 1] = build_segment(wire.encode(messages[place]))
    for place in {neighbour for other in changed for neighbour in (other, other + 1) if neighbour < count}:
        previous = wire.slots[type(messages[place - 1])] if place else before
        lead = segments[2 * place] = punctuate(previous, wire.slots[type(messages[place])])
        sizes[place] = len(lead.data) + len(segments[2 * place + 1].data)
    new_segments = [build_segment(wire.encode(message)) for message in messages[count:]]
    slots = list(map(wire.slots.__getitem__, map(type, messages[max(0, count - 1) :])))
    punctuation_segments = _punctuate(slots if count else (before, *slots))
    sizes.extend(map(add, _measure(punctuation_segments), _measure(new_segments)))
    segments.extend(chain.from_iterable(zip(punctuation_segments, new_segments, strict=True)))
    return sizes, segments


def _build_part(conversation: PageMessages, place: int, counter: TokenCounter) -> Part:
    message, note = conversation.messages[place], conversation.notes.get(place)
    tokens = tokens_of(message, counter)
    if note is None:
        return Part("message", message.id, message.role, tokens, tokens, "kept", None, UNCHANGED_REASON)
    before = tokens_of(conversation.base[conversation.origins[place]], counter)
    return Part(
        "message", message.id, message.role, before, tokens, note.decision, note.rule, note.reason, note.receipts
    )


@cache
def encode_tail(last: Slot, wire: Wire) -> Segment:
    """Return the end of a body. A body without messages still contains an empty list."""
    user_slot = wire.slots[UserMessage]
    if last.opens == user_slot.opens:
        return build_segment(last.end + last.closes_turn + last.closes + b"}")
    return build_segment(punctuate(last, user_slot._replace(opens_turn=b"")).data + user_slot.closes + b"}")


def encode_tool(tool: ToolOffer, wire: Wire, counter: TokenCounter) -> EncodedPart:
    """Encode one tool. Its schema is copied verbatim, so it must be JSON."""
    if load_object(tool.parameters) is None:
        raise WireError(where=f"tools.{tool.name}.parameters", problem="must be a JSON Schema: an object, as JSON text")
    data = wire.encode_tool(tool.name, tool.description, tool.parameters)
    part = build_plain_part("tool", tool.name, TOOL_REASON, counter.count((data.decode(),))[0])
    if tool.note:
        before = max(tool.tokens_before, part.tokens_after)
        part = part._replace(decision="cut", rule="S5", reason=tool.note, tokens_before=before)
    return EncodedPart(part, build_segment(data))


def build_plain_part(kind: PartKind, source: str, reason: str, tokens: int) -> Part:
    """Return a part that is not a message, with the reason it is in the page."""
    return Part(kind, source, None, tokens, tokens, "kept", None, reason)


@cache
def punctuate(before: Slot, here: Slot, *, mark: bytes = b"") -> Segment:
    """Return the punctuation between two neighbours. `mark` goes on the first one if its slot has a place for it."""
    end = mark + before.end if before.end else b""
    if before == EMPTY_BODY:
        return build_segment(here.opens + here.opens_turn)
    if before == here:
        return build_segment(end + b",")
    if before.opens == here.opens:
        return build_segment(end + before.closes_turn + b"," + here.opens_turn)
    return build_segment(end + before.closes_turn + before.closes + b"," + here.opens + here.opens_turn)


def build_segment(data: bytes) -> Segment:
    """Return bytes with their SHA-256."""
    # Copy, because bytes from orjson keep their larger buffer alive.
    data = bytes(memoryview(data))
    return Segment(data, sha256(data).digest())


def _punctuate(slots: Sequence[Slot]) -> list[Segment]:
    """Return the punctuation before each slot except the first."""
    # Use ids as keys: there are few distinct slots, and an id is hashed faster than a slot.
    pairs = [(id(before), id(here)) for before, here in pairwise(slots)]
    segments = {pair: punctuate(*both) for pair, both in dict(zip(pairs, pairwise(slots), strict=True)).items()}
    return list(map(segments.__getitem__, pairs))


def _measure(segments: Sequence[Segment]) -> Iterator[int]:
    return map(len, map(DATA, segments))


def _set_breakpoints(encoded: EncodedParts, messages: Sequence[Message], before: Slot, wire: Wire) -> EncodedParts:
    """Add cache marks after the tools, after the system messages, and before the user message of the current turn.

    That user message changes when its turn ends (F1, F2), so the next turn can reuse only the bytes before it. A page
    without an admitted turn gets no marks, because any of its messages may change.
    """
    backwards = zip(range(len(messages) - 1, -1, -1), reversed(messages), strict=True)
    turn = next((n for n, one in backwards if isinstance(one, UserMessage) and one.response_id), None)
    if turn is None:
        return encoded
    system = next(n for n, message in enumerate(messages) if message.role not in ("system", "developer"))
    previous = messages[turn - 1]
    # Thinking and unknown blocks cannot carry a mark
    is_closed = isinstance(previous, (UserMessage, AssistantMessage)) and isinstance(previous.parts[-1], Opaque)
    sizes, segments = encoded.sizes[:], list(encoded.segments)
    for n in {0, system, turn} if turn and not is_closed else {0, system}:
        previous = wire.slots[type(messages[n - 1])] if n else before
        marked_segment = punctuate(previous, wire.slots[type(messages[n])], mark=wire.breakpoint)
        sizes[n] += len(marked_segment.data) - len(segments[2 * n].data)
        segments[2 * n] = marked_segment
    return replace(encoded, sizes=sizes, segments=tuple(segments))
