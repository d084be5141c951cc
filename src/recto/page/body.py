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
from recto.page.wire.base import Slot, Wire

# Before all that stands in a body: behind the fields it begins with, or where it has none of those.
START, BARE = Slot(b"", b""), Slot(b"{", b"")
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


def envelope(model: str, options: Mapping[str, Json], wire: Wire) -> Segment:
    """How a body begins: the model where it stands there, then the options in the order of their names."""
    for name in wire.own_fields & options.keys():
        raise SettingsError(name=f"options.{name}", value=options[name], allowed="a page sets this field itself")
    named = {"model": model} if wire.model_in_body else {}
    return segment(dump(named | {name: options[name] for name in sorted(options)})[:-1])


def start(options: Mapping[str, Json], wire: Wire) -> Slot:
    """What the first thing behind the envelope stands behind."""
    return START if options or wire.model_in_body else BARE


def encode_tools(tools: Sequence[ToolOffer], before: Slot, wire: Wire, counter: TokenCounter) -> EncodedParts:
    """Tools as they stand in a body behind `before`."""
    encoded = [remember(tool, encode_tool, wire, counter) for tool in tools]
    return _add(EncodedParts(last=before), encoded, [wire.tools] * len(tools))


def encode_messages(messages: Sequence[Message], before: Slot, wire: Wire, counter: TokenCounter) -> EncodedParts:
    """A conversation as it stands in a body behind `before`."""
    encoded = grow(messages, _encode_more, before, wire, counter)
    return _set_breakpoints(encoded, messages, before, wire) if wire.breakpoint else encoded


@cache
def closing_brackets(last: Slot, wire: Wire) -> Segment:
    """How a body ends. A body without messages still says so."""
    talk = wire.slots[UserMessage]
    if last.opens == talk.opens:
        return segment(last.end + last.closes_turn + last.closes + b"}")
    return segment(punctuation(last, talk._replace(opens_turn=b"")).data + talk.closes + b"}")


def encode_tool(tool: ToolOffer, wire: Wire, counter: TokenCounter) -> EncodedPart:
    """One tool. Its schema goes as it is written, so it has to be JSON."""
    if load_object(tool.parameters) is None:
        raise WireError(where=f"tools.{tool.name}.parameters", problem="must be a JSON Schema: an object, as JSON text")
    data = wire.encode_tool(tool.name, tool.description, tool.parameters)
    part = kept_part("tool", tool.name, None, counter.count((data.decode(),))[0])
    if tool.note:
        before = max(tool.tokens_before, part.tokens_after)
        part = replace(part, decision="cut", rule="S5", reason=tool.note, tokens_before=before)
    return EncodedPart(part, segment(data))


def encode_message(message: Message, wire: Wire, counter: TokenCounter) -> EncodedPart:
    """One message."""
    part = kept_part("message", message.id, message.role, tokens_of(message, counter))
    return EncodedPart(part, segment(wire.encode(message)))


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
def punctuation(before: Slot, here: Slot, *, mark: bytes = b"") -> Segment:
    """The punctuation between two neighbours in a body, with a mark on the first where it has room for one."""
    end = mark + before.end if before.end else b""
    if before == BARE:
        return segment(here.opens + here.opens_turn)
    if before == here:
        return segment(end + b",")
    if before.opens == here.opens:
        return segment(end + before.closes_turn + b"," + here.opens_turn)
    return segment(end + before.closes_turn + before.closes + b"," + here.opens + here.opens_turn)


def segment(data: bytes) -> Segment:
    """Bytes with their hash."""
    # A copy: what orjson returns keeps the larger buffer it was written in.
    data = bytes(memoryview(data))
    return Segment(data, hashlib.sha256(data).digest())


def _encode_more(
    known: EncodedParts | None, messages: Sequence[Message], before: Slot, wire: Wire, counter: TokenCounter
) -> EncodedParts:
    count_new(messages, counter)
    encoded = [remember(message, encode_message, wire, counter) for message in messages]
    return _add(known or EncodedParts(last=before), encoded, [wire.slots[type(message)] for message in messages])


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
        marked = punctuation(behind, wire.slots[type(messages[n])], mark=wire.breakpoint)
        sizes[n] += len(marked.data) - len(segments[2 * n].data)
        segments[2 * n] = marked
    return replace(encoded, sizes=tuple(sizes), segments=tuple(segments))


def _opens_a_turn(message: Message) -> bool:
    return isinstance(message, UserMessage) and bool(message.response_id)


def _takes_a_breakpoint(message: Message) -> bool:
    """Whether the last block of a message may be marked: thinking may not, and of unknown blocks nobody knows."""
    return not (isinstance(message, (UserMessage, AssistantMessage)) and isinstance(message.parts[-1], Opaque))
