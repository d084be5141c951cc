"""What a model is to the rest: a page goes in, deltas come out. Always a stream; who wants the whole collects it."""

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
    """More words of the answer. Never empty."""

    text: str


@dataclass(frozen=True, kw_only=True)
class ReasoningDelta:
    """More of what the model thinks, for people to read. Never empty."""

    text: str


@dataclass(frozen=True, kw_only=True)
class CallStarted:
    """The model begins a tool call. `index` tells calls of one reply apart.

    `id` is the provider's: empty where it sends none, and not always another than that of an earlier call.
    """

    index: int
    id: str
    name: str


@dataclass(frozen=True, kw_only=True)
class CallDelta:
    """More of a call's arguments, as the model writes them. Never empty."""

    index: int
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens as the provider reports them. `input` holds `cached` (read from its cache) and `cache_written`;
    `output` holds `reasoning`."""

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
class Used:
    """Tokens the provider has reported before the end. They are in the usage of `ReplyEnd` too, if it comes to that."""

    usage: Usage


@dataclass(frozen=True, kw_only=True)
class ReplyEnd:
    """The reply is whole. `usage` is None where none was reported.

    `state` goes back to the provider with it, `call_state` with the call of that index. `parts` is the whole reply in
    the order it came, where that is another order than state, words, calls: thinking between words or calls has to
    stand there again.
    """

    finish: FinishReason
    usage: Usage | None = None
    state: tuple[Opaque, ...] = ()
    call_state: Mapping[int, Opaque] = field(default_factory=dict[int, Opaque])
    parts: tuple[AssistantPart, ...] = ()


def parts_in_unusual_order(parts: tuple[AssistantPart, ...]) -> tuple[AssistantPart, ...]:
    """The parts of a reply where they are not state, words, calls: the order it is put together in otherwise."""
    return () if tuple(sorted(parts, key=_usual_place)) == parts else parts


def _usual_place(part: AssistantPart) -> int:
    return 0 if isinstance(part, Opaque) else 1 if isinstance(part, Text) else 2


Delta: TypeAlias = TextDelta | ReasoningDelta | CallStarted | CallDelta | Used | ReplyEnd


class Model(Protocol):
    """A model somewhere. `options` are the fields its pages need beside the conversation, `window` its size in tokens.

    `options_for` are the same with what an agent asks for, in the words of this model's provider; `has_tools` says
    whether the page offers tools natively. `stream` sends these very bytes. It ends with exactly one `ReplyEnd`, or
    raises a ModelError; closing it ends the call.
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
