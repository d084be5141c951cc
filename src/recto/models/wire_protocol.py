"""What talking to a provider takes: where to post, how to show the key, what to ask for, how to read the reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from recto.conversation.json import Json
from recto.models.anthropic_messages import MessagesReader
from recto.models.faults import Blame
from recto.models.openai_chat import ChatReader
from recto.models.ports import Delta, ReplyEnd
from recto.models.request_options import MAX_TOKENS
from recto.page.wire.base import WireName


class ReplyReader(Protocol):
    """Reads one reply, event by event. `done` tells that the stream said it is over."""

    done: bool

    def read(self, data: str) -> Iterator[Delta]: ...
    def end(self) -> ReplyEnd: ...


class MakeReader(Protocol):
    """Begins to read a reply of a model."""

    def __call__(self, *, model: str, blame: Blame) -> ReplyReader: ...


@dataclass(frozen=True, kw_only=True)
class WireProtocol:
    """A provider's way of talking. `path` follows the base url, `key_form` has {key} where the key goes into a header.

    `options` are fields of every request.
    """

    wire: WireName
    path: str
    key_header: str
    key_form: str
    options: Mapping[str, Json]
    reader: MakeReader
    headers: tuple[tuple[str, str], ...] = ()


OPENAI_CHAT = WireProtocol(
    wire="openai",
    path="/chat/completions",
    key_header="Authorization",
    key_form="Bearer {key}",
    options={"stream": True, "stream_options": {"include_usage": True}},
    reader=ChatReader,
)
ANTHROPIC_MESSAGES = WireProtocol(
    wire="anthropic",
    path="/v1/messages",
    key_header="x-api-key",
    key_form="{key}",
    # The last block is always a cache breakpoint; the others stand in the page itself.
    options={"stream": True, "max_tokens": MAX_TOKENS, "cache_control": {"type": "ephemeral"}},
    reader=MessagesReader,
    headers=(("anthropic-version", "2023-06-01"),),
)
