"""Interface of models: a page goes in, a stream of deltas comes out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from recto.conversation.json import Json
from recto.conversation.messages import AssistantPart, Opaque, Text
from recto.page.wire.base import Target

if TYPE_CHECKING:
    from recto.agents.agent import Sampling

FinishReason: TypeAlias = Literal["stop", "tool_calls", "length", "refused", "filtered"]


@dataclass(frozen=True, kw_only=True)
class TextDelta:
    """Next piece of the answer's text. Never empty."""

    text: str


@dataclass(frozen=True, kw_only=True)
class ReasoningDelta:
    """Next piece of readable reasoning. Never empty."""

    text: str


@dataclass(frozen=True, kw_only=True)
class CallStarted:
    """Start of a tool call. `index` identifies the call within the reply.

    `id` is the provider's id, which may be empty or repeat the id of an earlier call.
    """

    index: int
    id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class CallDelta:
    """Next piece of a call's arguments. Never empty."""

    index: int
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens that the provider reports. `input` includes `cached` (read from its cache) and `cache_written`; `output`
    includes `reasoning`."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            cache_written=self.cache_written + other.cache_written,
            reasoning=self.reasoning + other.reasoning,
        )


@dataclass(frozen=True, kw_only=True)
class ReplyUsage:
    """Tokens that the provider reports before the end. The usage of `ReplyEnd` includes them."""

    usage: Usage


@dataclass(frozen=True, kw_only=True)
class ReplyEnd:
    """End of a complete reply. `usage` is None if the provider reports none.

    `state` goes back to the provider with the reply, and `call_state` with the call of that index. `parts` contains the
    whole reply if its order is not state, text, calls, because thinking between them must go back in its original
    position.
    """

    finish: FinishReason
    usage: Usage | None = None
    state: tuple[Opaque, ...] = ()
    call_state: Mapping[int, Opaque] = field(default_factory=dict[int, Opaque])
    parts: tuple[AssistantPart, ...] = ()


def parts_in_unusual_order(parts: tuple[AssistantPart, ...]) -> tuple[AssistantPart, ...]:
    """Return the parts of a reply. Return nothing if they are in the usual order: state, text, calls."""
    return (
        ()
        if tuple(sorted(parts, key=lambda part: 0 if isinstance(part, Opaque) else 1 if isinstance(part, Text) else 2))
        == parts
        else parts
    )


Delta: TypeAlias = TextDelta | ReasoningDelta | CallStarted | CallDelta | ReplyUsage | ReplyEnd


class Model(Protocol):
    """A model. `options` are request fields besides the conversation. `window` is the context size in tokens.

    `options_for` adds the options of an agent in the provider's format; `has_tools` is True if the page offers native
    tools. `stream` sends the bytes unchanged. Its iterator ends with exactly one `ReplyEnd` or raises a ModelError.
    Closing the iterator ends the call.
    """

    @property
    def name(self) -> str: ...
    @property
    def target(self) -> Target: ...
    @property
    def options(self) -> Mapping[str, Json]: ...
    @property
    def window(self) -> int: ...

    def options_for(self, sampling: Sampling, *, has_tools: bool) -> Mapping[str, Json]: ...
    def stream(self, body: bytes) -> AsyncGenerator[Delta]: ...
    async def aclose(self) -> None: ...
