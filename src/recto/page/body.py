"""The bytes of a request: tools and messages encoded once each, with a part for the manifest and punctuation between.

What is encoded grows at the end with the conversation, so that a page costs what is new and what is folded, not what is
old.
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
from recto.conversation.memo import anchor_of, remember
from recto.conversation.messages import AssistantMessage, Message, Opaque, ToolOffer, UserMessage
from recto.errors import SettingsError, WireError
from recto.page.manifest import Note, Part, PartKind
from recto.page.text.tokens import TokenCounter, count_new, tokens_of
from recto.page.wire.base import Slot, Wire

# Before all that stands in a body: behind the fields it begins with, or where it has none of those.
START, BARE = Slot(b"", b""), Slot(b"{", b"")
KEPT = "as in the conversation"
# Why there is what was never said.
OFFERED, BEGINS, ENDS = "the model may call it", "the model and its options", "how every request ends"
DATA, SHA256 = itemgetter(0), itemgetter(1)


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
        return b"".join(map(DATA, self.segments))

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the hashes of the segments, in order."""
        return sha256(b"".join(map(SHA256, self.segments))).hexdigest()


class EncodedPart(NamedTuple):
    """A part and its bytes, without the punctuation that leads up to them."""

    part: Part
    segment: Segment


@dataclass(frozen=True, kw_only=True)
class EncodedParts:
    """Parts in order; for each its size and two segments, the punctuation that leads up to it and its own bytes."""

    parts: tuple[Part, ...] = ()
    sizes: array[int] = field(default_factory=partial(array, "I"))
    segments: tuple[Segment, ...] = ()
    last: Slot = START


class _Written(NamedTuple):
    """The conversation a thread's last page was made of, without the message it is kept on, and what became of it."""

    key: tuple[Slot, Wire, TokenCounter]
    messages: tuple[Message | None, ...]
    notes: Mapping[int, Note]
    encoded: EncodedParts


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
    leads, segments = _leads([before, *[wire.tools] * len(tools)]), [one.segment for one in encoded]
    return EncodedParts(
        parts=tuple([one.part for one in encoded]),
        sizes=array("I", map(add, _lengths(leads), _lengths(segments))),
        segments=tuple(chain.from_iterable(zip(leads, segments, strict=True))),
        last=wire.tools if tools else before,
    )


class Talk(NamedTuple):
    """A conversation as it is to be written: its messages and what was noted of them by place.

    `origins` are the places each has in `base`, what the log has before any step.
    """

    messages: tuple[Message, ...]
    notes: Mapping[int, Note]
    origins: Sequence[int]
    base: Sequence[Message]


def encode_messages(talk: Talk, before: Slot, wire: Wire, counter: TokenCounter) -> EncodedParts:
    """A conversation as it stands in a body behind `before`.

    What was written last is kept, and only what is another now is written anew. Nothing else keeps the bytes: those of
    a result that was folded are gone with the next page.
    """
    messages, key = talk.messages, (before, wire, counter)
    if not messages:
        return EncodedParts(last=before)
    anchor = anchor_of(messages)
    memo = messages[anchor].memo
    known = cast("_Written | None", memo.get(encode_messages))
    if known is None or known.key != key:
        known = _Written(key, (), {}, EncodedParts(last=before))
    encoded = _encode_others(known, talk)
    memo[encode_messages] = _Written(key, (*messages[:anchor], None, *messages[anchor + 1 :]), talk.notes, encoded)
    return _set_breakpoints(encoded, messages, before, wire) if wire.breakpoint else encoded


def _encode_others(known: _Written, talk: Talk) -> EncodedParts:
    """What was written, as far as it is the same, with all that is new or other."""
    messages, notes, (_, wire, counter) = talk.messages, talk.notes, known.key
    count = min(len(known.messages), len(messages))
    changed = list(compress(range(count), map(is_not, known.messages, messages)))
    sizes, segments = _write_others(known, messages, changed)
    new = [*changed, *range(count, len(messages))]
    originals = [talk.base[talk.origins[place]] for place in new if place in notes]
    count_new([*[messages[place] for place in new], *originals], counter)
    parts = list(known.encoded.parts[:count])
    for place in changed:
        parts[place] = _part_of(talk, place, counter)
    for place in {place for place, note in notes.items() if known.notes.get(place) is not note and place < count}:
        # The same message was noted otherwise: what it costs is known.
        part, note = parts[place], notes[place]
        parts[place] = Part(*part[:5], note.decision, note.rule, note.reason, note.receipts)
    for place in known.notes.keys() - notes.keys():
        if place < count:
            parts[place] = _part_of(talk, place, counter)
    parts += [_part_of(talk, place, counter) for place in range(count, len(messages))]
    last = wire.slots[type(messages[-1])]
    return EncodedParts(parts=tuple(parts), sizes=sizes, segments=tuple(segments), last=last)


def _write_others(
    known: _Written, messages: Sequence[Message], changed: Sequence[int]
) -> tuple[array[int], list[Segment]]:
    """The sizes and bytes of a conversation, anew where its messages changed and behind those that were known."""
    before, wire, _ = known.key
    count = min(len(known.messages), len(messages))
    sizes, segments = known.encoded.sizes[:count], list(known.encoded.segments[: 2 * count])
    for place in changed:
        segments[2 * place + 1] = segment(wire.encode(messages[place]))
    for place in {near for other in changed for near in (other, other + 1) if near < count}:
        behind = wire.slots[type(messages[place - 1])] if place else before
        lead = segments[2 * place] = punctuation(behind, wire.slots[type(messages[place])])
        sizes[place] = len(lead.data) + len(segments[2 * place + 1].data)
    more = [segment(wire.encode(message)) for message in messages[count:]]
    slots = list(map(wire.slots.__getitem__, map(type, messages[max(0, count - 1) :])))
    leads = _leads(slots if count else (before, *slots))
    sizes.extend(map(add, _lengths(leads), _lengths(more)))
    segments.extend(chain.from_iterable(zip(leads, more, strict=True)))
    return sizes, segments


def _part_of(talk: Talk, place: int, counter: TokenCounter) -> Part:
    message, note = talk.messages[place], talk.notes.get(place)
    tokens = tokens_of(message, counter)
    if note is None:
        return Part("message", message.id, message.role, tokens, tokens, "kept", None, KEPT)
    before = tokens_of(talk.base[talk.origins[place]], counter)
    return Part(
        "message", message.id, message.role, before, tokens, note.decision, note.rule, note.reason, note.receipts
    )


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
    part = kept_part("tool", tool.name, OFFERED, counter.count((data.decode(),))[0])
    if tool.note:
        before = max(tool.tokens_before, part.tokens_after)
        part = part._replace(decision="cut", rule="S5", reason=tool.note, tokens_before=before)
    return EncodedPart(part, segment(data))


def kept_part(kind: PartKind, source: str, reason: str, tokens: int) -> Part:
    """A part that is not of the conversation, and why it is in the page."""
    return Part(
        kind=kind,
        source=source,
        role=None,
        tokens_before=tokens,
        tokens_after=tokens,
        decision="kept",
        rule=None,
        reason=reason,
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
    return Segment(data, sha256(data).digest())


def _leads(slots: Sequence[Slot]) -> list[Segment]:
    """The punctuation before each but the first."""
    # Slots are few, and the same objects again and again: an address is looked up quicker than all that is in one.
    pairs = [(id(before), id(here)) for before, here in pairwise(slots)]
    known = {pair: punctuation(*both) for pair, both in dict(zip(pairs, pairwise(slots), strict=True)).items()}
    return list(map(known.__getitem__, pairs))


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
    sizes, segments = encoded.sizes[:], list(encoded.segments)
    for n in wanted:
        behind = wire.slots[type(messages[n - 1])] if n else before
        marked = punctuation(behind, wire.slots[type(messages[n])], mark=wire.breakpoint)
        sizes[n] += len(marked.data) - len(segments[2 * n].data)
        segments[2 * n] = marked
    return replace(encoded, sizes=sizes, segments=tuple(segments))


def _opens_a_turn(message: Message) -> bool:
    return isinstance(message, UserMessage) and bool(message.response_id)


def _takes_a_breakpoint(message: Message) -> bool:
    """Whether the last block of a message may be marked: thinking may not, and of unknown blocks nobody knows."""
    return not (isinstance(message, (UserMessage, AssistantMessage)) and isinstance(message.parts[-1], Opaque))
