"""Setting a page: a fitted conversation becomes the exact bytes of a request, in segments, each with its part.

A body is fields, each an array, the conversation last, so that a page that only grew begins with the whole of the one
before. A segment is one message, one tool, or the punctuation between two of them; segments tile the body. A message's
segment is the same wherever it stands, so a thread stores it once. What may be a cache breakpoint leaves its last
brace to the punctuation behind it, where the mark goes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from recto.errors import SettingsError
from recto.page.canonical import Json, dump
from recto.page.messages import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from recto.page.wire import anthropic, openai


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


class Place(NamedTuple):
    """Where a thing stands in a body: the field, and the turn's role where the format groups by role.

    `is_open` says that what stands there leaves its last brace to the punctuation behind it.
    """

    field: str
    role: str | None = None
    is_open: bool = False


class Format(NamedTuple):
    """What setting has to know of a wire format."""

    name: str
    tools: Place
    places: Mapping[type[Message], Place]
    encode: Callable[[Message], bytes]
    encode_tool: Callable[[str, str, str], bytes]


def _encode_anthropic(message: Message) -> bytes:
    return anthropic.encode(message)[1][:-1]


def _encode_anthropic_tool(name: str, description: str, parameters: str) -> bytes:
    return anthropic.encode_tool(name, description, parameters)[:-1]


START = Place("")
TOOLS = Place("tools")
MESSAGES = Place("messages")
OPEN_TOOLS = Place("tools", is_open=True)
SYSTEM = Place("system", is_open=True)
USER_TURN = Place("messages", "user", is_open=True)
ASSISTANT_TURN = Place("messages", "assistant", is_open=True)
OPENAI = Format(
    name=openai.WIRE,
    tools=TOOLS,
    places=dict.fromkeys((SystemMessage, DeveloperMessage, UserMessage, AssistantMessage, ToolMessage), MESSAGES),
    encode=openai.encode,
    encode_tool=openai.encode_tool,
)
ANTHROPIC = Format(
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
FORMATS: Mapping[str, Format] = {OPENAI.name: OPENAI, ANTHROPIC.name: ANTHROPIC}

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
def lead(before: Place, here: Place, *, is_breakpoint: bool = False) -> Segment:
    """The punctuation between two neighbours in a body, with the mark of a breakpoint on the first where asked for."""
    end = _end(before, is_breakpoint=is_breakpoint)
    if before == here:
        return segment(end + b",") if end else COMMA
    if before.field == here.field:
        return segment(end + b"]}," + _open_turn(here))
    return segment(end + _close(before) + b',"' + here.field.encode() + b'":[' + _open_turn(here))


@cache
def finish(last: Place) -> Segment:
    """How a body ends. A body without messages still says so."""
    end = _end(last, is_breakpoint=False) + _close(last)
    return segment(end + (b"}" if last.field == MESSAGES.field else b',"messages":[]}'))


def _end(place: Place, *, is_breakpoint: bool) -> bytes:
    return (BREAKPOINT if is_breakpoint else b"") + b"}" if place.is_open else b""


def _open_turn(place: Place) -> bytes:
    return b'{"role":"' + place.role.encode() + b'","content":[' if place.role else b""


def _close(last: Place) -> bytes:
    if last == START:
        return b""
    return b"]}]" if last.role else b"]"
