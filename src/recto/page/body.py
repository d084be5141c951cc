"""The bytes of a request: tools and messages encoded once each, with a part for the manifest and punctuation between.

What is encoded grows at the end with the conversation, so that a page costs what is new and what is folded, not what is
old.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain, pairwise
from operator import add, itemgetter
from typing import NamedTuple

from recto.conversation.json import Json, dump, load_object
from recto.conversation.memo import grow, remember
from recto.conversation.messages import AssistantMessage, Message, Opaque, ToolOffer, UserMessage
from recto.errors import SettingsError, WireError
from recto.page.manifest import Part, PartKind
from recto.page.text.tokens import TokenCounter, count_new, tokens_of
from recto.page.wire.base import Slot, Wire, WireName
from recto.page.wire.formats import WIRES

OWN_FIELDS = frozenset({"model", "tools", "system", "messages"})
START = Slot("")
BREAKPOINT = b',"cache_control":{"type":"ephemeral"}'
KEPT = "as the log has it"
DATA = itemgetter(0)


class Segment(NamedTuple):
    """Some bytes of a body, and their SHA-256."""

    data: bytes
    sha256: bytes


@dataclass(frozen=True, kw_only=True)
class Page:
    """The exact body of one model call. Its bytes are what the socket sends."""

    segments: tuple[Segment, ...]

    @property
    def body(self) -> bytes:
        """The bytes of the request. Joined at each call: a page is kept as its segments only."""
        return b"".join([segment.data for segment in self.segments])

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the hashes of the segments, in order."""
        return hashlib.sha256(b"".join([segment.sha256 for segment in self.segments])).hexdigest()


class EncodedPart(NamedTuple):
    """A part and its bytes, without the punctuation that leads up to them."""

    part: Part
    segment: Segment


@dataclass(frozen=True, kw_only=True)
class EncodedParts:
    """Parts in order; for each its size and two segments, the punctuation that leads up to it and its own bytes."""

    parts: tuple[Part, ...] = ()
    sizes: tuple[int, ...] = ()
    segments: tuple[Segment, ...] = ()
    last: Slot = START


def envelope(model: str, options: Mapping[str, Json]) -> Segment:
    """How a body begins: the model, then the options in the order of their names."""
    for name in OWN_FIELDS & options.keys():
        raise SettingsError(name=f"options.{name}", value=options[name], allowed="a page sets this field itself")
    fields = {"model": model} | {name: options[name] for name in sorted(options)}
    return segment(dump(fields)[:-1])


def encode_tools(tools: Sequence[ToolOffer], wire: WireName, counter: TokenCounter) -> EncodedParts:
    """Tools at the start of a body."""
    encoded = [remember(tool, encode_tool, wire, counter) for tool in tools]
    return _add(EncodedParts(), encoded, [WIRES[wire].tools] * len(tools))


def encode_messages(messages: Sequence[Message], before: Slot, wire: WireName, counter: TokenCounter) -> EncodedParts:
    """A conversation as it stands in a body behind `before`."""
    encoded = grow(messages, _encode_more, before, wire, counter)
    return _set_breakpoints(encoded, messages, before, WIRES[wire]) if WIRES[wire].has_breakpoints else encoded


@cache
def closing_brackets(last: Slot) -> Segment:
    """How a body ends. A body without messages still says so."""
    end = _end(last, is_breakpoint=False) + _close(last)
    return segment(end + (b"}" if last.field == "messages" else b',"messages":[]}'))


def encode_tool(tool: ToolOffer, wire: WireName, counter: TokenCounter) -> EncodedPart:
    """One tool. Its schema goes as it is written, so it has to be JSON."""
    if load_object(tool.parameters) is None:
        raise WireError(where=f"tools.{tool.name}.parameters", problem="must be a JSON Schema: an object, as JSON text")
    data = WIRES[wire].encode_tool(tool.name, tool.description, tool.parameters)
    part = kept_part("tool", tool.name, None, counter.count((data.decode(),))[0])
    if tool.note:
        before = max(tool.tokens_before, part.tokens_after)
        part = replace(part, decision="cut", rule="S5", reason=tool.note, tokens_before=before)
    return EncodedPart(part, segment(data))


def encode_message(message: Message, wire: WireName, counter: TokenCounter) -> EncodedPart:
    """One message."""
    part = kept_part("message", message.id, message.role, tokens_of(message, counter))
    return EncodedPart(part, segment(WIRES[wire].encode(message)))


def kept_part(kind: PartKind, source: str, role: str | None, tokens: int) -> Part:
    """A part that is in the page as the log has it."""
    return Part(
        kind=kind,
        source=source,
        role=role,
        tokens_before=tokens,
        tokens_after=tokens,
        decision="kept",
        rule=None,
        reason=KEPT,
    )


@cache
def punctuation(before: Slot, here: Slot, *, is_breakpoint: bool = False) -> Segment:
    """The punctuation between two neighbours in a body, with the mark of a breakpoint on the first where asked for."""
    end = _end(before, is_breakpoint=is_breakpoint)
    if before == here:
        return segment(end + b",")
    if before.field == here.field:
        return segment(end + b"]}," + _open_turn(here))
    return segment(end + _close(before) + b',"' + here.field.encode() + b'":[' + _open_turn(here))


def segment(data: bytes) -> Segment:
    """Bytes with their hash."""
    # A copy: what orjson returns keeps the larger buffer it was written in.
    data = bytes(memoryview(data))
    return Segment(data, hashlib.sha256(data).digest())


def _end(slot: Slot, *, is_breakpoint: bool) -> bytes:
    return (BREAKPOINT if is_breakpoint else b"") + b"}" if slot.is_open else b""


def _open_turn(slot: Slot) -> bytes:
    return b'{"role":"' + slot.role.encode() + b'","content":[' if slot.role else b""


def _close(last: Slot) -> bytes:
    if last == START:
        return b""
    return b"]}]" if last.role else b"]"


def _encode_more(
    known: EncodedParts | None, messages: Sequence[Message], before: Slot, wire: WireName, counter: TokenCounter
) -> EncodedParts:
    count_new(messages, counter)
    encoded = [remember(message, encode_message, wire, counter) for message in messages]
    slots = WIRES[wire].slots
    return _add(known or EncodedParts(last=before), encoded, [slots[type(message)] for message in messages])


def _add(known: EncodedParts, encoded: Sequence[EncodedPart], slots: Sequence[Slot]) -> EncodedParts:
    leads = [punctuation(before, here) for before, here in pairwise((known.last, *slots))]
    segments = [one.segment for one in encoded]
    return EncodedParts(
        parts=(*known.parts, *[one.part for one in encoded]),
        sizes=(*known.sizes, *map(add, _lengths(leads), _lengths(segments))),
        segments=(*known.segments, *chain.from_iterable(zip(leads, segments, strict=True))),
        last=slots[-1] if slots else known.last,
    )


def _lengths(segments: Sequence[Segment]) -> Iterator[int]:
    return map(len, map(DATA, segments))


def _set_breakpoints(encoded: EncodedParts, messages: Sequence[Message], before: Slot, wire: Wire) -> EncodedParts:
    """Where the provider is to cache: after tools, after system, and before the message that opened this turn.

    That message changes when its turn is over (F1, F2), so what stands before it is what the next turn can use. A page
    without an admitted turn has none: nobody knows which of its messages will change.
    """
    turns = (n for n in range(len(messages) - 1, -1, -1) if _opens_a_turn(messages[n]))
    turn = next(turns, None)
    if turn is None:
        return encoded
    system = next(n for n, message in enumerate(messages) if message.role not in ("system", "developer"))
    wanted = {0, system} | ({turn} if turn and _takes_a_breakpoint(messages[turn - 1]) else set[int]())
    sizes, segments = list(encoded.sizes), list(encoded.segments)
    for n in wanted:
        behind = wire.slots[type(messages[n - 1])] if n else before
        marked = punctuation(behind, wire.slots[type(messages[n])], is_breakpoint=True)
        sizes[n] += len(marked.data) - len(segments[2 * n].data)
        segments[2 * n] = marked
    return replace(encoded, sizes=tuple(sizes), segments=tuple(segments))


def _opens_a_turn(message: Message) -> bool:
    return isinstance(message, UserMessage) and bool(message.response_id)


def _takes_a_breakpoint(message: Message) -> bool:
    """Whether the last block of a message may be marked: thinking may not, and of unknown blocks nobody knows."""
    return not (isinstance(message, (UserMessage, AssistantMessage)) and isinstance(message.parts[-1], Opaque))
