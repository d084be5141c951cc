"""The galley: tools and messages set in bytes, each with its part, before folds and notes are put in.

It grows at the end with the conversation, so that a page costs what is new and what is folded, not what is old.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain, pairwise
from operator import add, itemgetter
from typing import NamedTuple

from recto.conversation.json import Json, dump, load_object
from recto.conversation.memo import grow, remember
from recto.conversation.messages import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    Opaque,
    SystemMessage,
    ToolMessage,
    ToolOffer,
    UserMessage,
)
from recto.errors import SettingsError, WireError
from recto.page.manifest import Part, PartKind
from recto.page.text.tokens import TokenCounter, count_new, tokens_of
from recto.page.wire import anthropic, openai
from recto.page.wire.base import WireName


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


class Slot(NamedTuple):
    """Where a thing stands in a body: the field, and the turn's role where the format groups by role.

    `is_open` says that what stands there leaves its last brace to the punctuation behind it.
    """

    field: str
    role: str | None = None
    is_open: bool = False


class WireFormat(NamedTuple):
    """What setting has to know of a wire format."""

    name: str
    tools: Slot
    places: Mapping[type[Message], Slot]
    encode: Callable[[Message], bytes]
    encode_tool: Callable[[str, str, str], bytes]


def _encode_anthropic(message: Message) -> bytes:
    return anthropic.encode(message)[1][:-1]


def _encode_anthropic_tool(name: str, description: str, parameters: str) -> bytes:
    return anthropic.encode_tool(name, description, parameters)[:-1]


START = Slot("")
TOOLS = Slot("tools")
MESSAGES = Slot("messages")
OPEN_TOOLS = Slot("tools", is_open=True)
SYSTEM = Slot("system", is_open=True)
USER_TURN = Slot("messages", "user", is_open=True)
ASSISTANT_TURN = Slot("messages", "assistant", is_open=True)
OPENAI = WireFormat(
    name=openai.WIRE,
    tools=TOOLS,
    places=dict.fromkeys((SystemMessage, DeveloperMessage, UserMessage, AssistantMessage, ToolMessage), MESSAGES),
    encode=openai.encode,
    encode_tool=openai.encode_tool,
)
ANTHROPIC = WireFormat(
    name=anthropic.WIRE,
    tools=OPEN_TOOLS,
    places={
        SystemMessage: SYSTEM,
        DeveloperMessage: SYSTEM,
        UserMessage: USER_TURN,
        ToolMessage: USER_TURN,
        AssistantMessage: ASSISTANT_TURN,
    },
    encode=_encode_anthropic,
    encode_tool=_encode_anthropic_tool,
)
FORMATS: Mapping[str, WireFormat] = {OPENAI.name: OPENAI, ANTHROPIC.name: ANTHROPIC}

OWN_FIELDS = frozenset({"model", "tools", "system", "messages"})


def envelope(model: str, options: Mapping[str, Json]) -> bytes:
    """How a body begins: the model, then the options in the order of their names."""
    for name in OWN_FIELDS & options.keys():
        raise SettingsError(name=f"options.{name}", value=options[name], allowed="a page sets this field itself")
    fields = {"model": model} | {name: options[name] for name in sorted(options)}
    return dump(fields)[:-1]


def segment(data: bytes) -> Segment:
    """Bytes with their hash."""
    # A copy: what orjson returns keeps the larger buffer it was written in.
    data = bytes(memoryview(data))
    return Segment(data, hashlib.sha256(data).digest())


COMMA = segment(b",")
BREAKPOINT = b',"cache_control":{"type":"ephemeral"}'


@cache
def punctuation(before: Slot, here: Slot, *, is_breakpoint: bool = False) -> Segment:
    """The punctuation between two neighbours in a body, with the mark of a breakpoint on the first where asked for."""
    end = _end(before, is_breakpoint=is_breakpoint)
    if before == here:
        return segment(end + b",") if end else COMMA
    if before.field == here.field:
        return segment(end + b"]}," + _open_turn(here))
    return segment(end + _close(before) + b',"' + here.field.encode() + b'":[' + _open_turn(here))


@cache
def closing_brackets(last: Slot) -> Segment:
    """How a body ends. A body without messages still says so."""
    end = _end(last, is_breakpoint=False) + _close(last)
    return segment(end + (b"}" if last.field == MESSAGES.field else b',"messages":[]}'))


def _end(place: Slot, *, is_breakpoint: bool) -> bytes:
    return (BREAKPOINT if is_breakpoint else b"") + b"}" if place.is_open else b""


def _open_turn(place: Slot) -> bytes:
    return b'{"role":"' + place.role.encode() + b'","content":[' if place.role else b""


def _close(last: Slot) -> bytes:
    if last == START:
        return b""
    return b"]}]" if last.role else b"]"


KEPT = "as the log has it"
DATA = itemgetter(0)


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


def encode_tools(tools: Sequence[ToolOffer], wire: WireName, counter: TokenCounter) -> EncodedParts:
    """Tools at the start of a body."""
    pieces = [remember(tool, encode_tool, wire, counter) for tool in tools]
    return _add(EncodedParts(), pieces, [FORMATS[wire].tools] * len(tools))


def encode_messages(messages: Sequence[Message], before: Slot, wire: WireName, counter: TokenCounter) -> EncodedParts:
    """A conversation as it stands in a body behind `before`."""
    galley = grow(messages, _set_more, before, wire, counter)
    return _set_breakpoints(galley, messages, before) if wire == "anthropic" else galley


def _set_more(
    known: EncodedParts | None, messages: Sequence[Message], before: Slot, wire: WireName, counter: TokenCounter
) -> EncodedParts:
    count_new(messages, counter)
    pieces = [remember(message, encode_message, wire, counter) for message in messages]
    places = FORMATS[wire].places
    return _add(known or EncodedParts(last=before), pieces, [places[type(message)] for message in messages])


def _add(galley: EncodedParts, pieces: Sequence[EncodedPart], places: Sequence[Slot]) -> EncodedParts:
    leads = [punctuation(before, here) for before, here in pairwise((galley.last, *places))]
    segments = [piece.segment for piece in pieces]
    return EncodedParts(
        parts=(*galley.parts, *[piece.part for piece in pieces]),
        sizes=(*galley.sizes, *map(add, _lengths(leads), _lengths(segments))),
        segments=(*galley.segments, *chain.from_iterable(zip(leads, segments, strict=True))),
        last=places[-1] if places else galley.last,
    )


def _set_breakpoints(galley: EncodedParts, messages: Sequence[Message], before: Slot) -> EncodedParts:
    """Where the provider is to cache: after tools, after system, and before the message that opened this turn.

    That message changes when its turn is over (F1, F2), so what stands before it is what the next turn can use. A page
    without an admitted turn has none: nobody knows which of its messages will change.
    """
    turns = (n for n in range(len(messages) - 1, -1, -1) if _opens_a_turn(messages[n]))
    turn = next(turns, None)
    if turn is None:
        return galley
    system = next(n for n, message in enumerate(messages) if message.role not in ("system", "developer"))
    wanted = {0, system} | ({turn} if turn and _takes_a_breakpoint(messages[turn - 1]) else set[int]())
    places = FORMATS["anthropic"].places
    sizes, segments = list(galley.sizes), list(galley.segments)
    for n in wanted:
        behind = places[type(messages[n - 1])] if n else before
        marked = punctuation(behind, places[type(messages[n])], is_breakpoint=True)
        sizes[n] += len(marked.data) - len(segments[2 * n].data)
        segments[2 * n] = marked
    return replace(galley, sizes=tuple(sizes), segments=tuple(segments))


def _opens_a_turn(message: Message) -> bool:
    return isinstance(message, UserMessage) and bool(message.response_id)


def _takes_a_breakpoint(message: Message) -> bool:
    """Whether the last block of a message may be marked: thinking may not, and of unknown blocks nobody knows."""
    return not (isinstance(message, (UserMessage, AssistantMessage)) and isinstance(message.parts[-1], Opaque))


def _lengths(segments: Sequence[Segment]) -> Iterator[int]:
    return map(len, map(DATA, segments))


def encode_tool(tool: ToolOffer, wire: WireName, counter: TokenCounter) -> EncodedPart:
    """A tool as one piece. Its schema goes as it is written, so it has to be JSON."""
    if load_object(tool.parameters) is None:
        raise WireError(where=f"tools.{tool.name}.parameters", problem="must be a JSON Schema: an object, as JSON text")
    data = FORMATS[wire].encode_tool(tool.name, tool.description, tool.parameters)
    part = kept_part("tool", tool.name, None, counter.count((data.decode(),))[0])
    if tool.note:
        before = max(tool.tokens_before, part.tokens_after)
        part = replace(part, decision="cut", rule="S5", reason=tool.note, tokens_before=before)
    return EncodedPart(part, segment(data))


def encode_message(message: Message, wire: WireName, counter: TokenCounter) -> EncodedPart:
    """A message as one piece."""
    part = kept_part("message", message.id, message.role, tokens_of(message, counter))
    return EncodedPart(part, segment(FORMATS[wire].encode(message)))


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
