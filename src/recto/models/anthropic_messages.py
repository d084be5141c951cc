"""Anthropic messages: request options, and a reader of streamed replies. Pure.

Signed thinking goes back to the model that produced it, so the reader stores each signed block unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from recto.agents.agent import Effort, Sampling
from recto.conversation.json import Json, dump
from recto.conversation.messages import AssistantPart, Opaque, Text, ToolCall
from recto.models.faults import Blame, error_type, stream_fault
from recto.models.ports import (
    CallDelta,
    CallStarted,
    Delta,
    FinishReason,
    ReasoningDelta,
    ReplyEnd,
    ReplyUsage,
    TextDelta,
    Usage,
    parts_in_unusual_order,
)
from recto.models.sse import count_of, credible, object_of, parse_event, text_of
from recto.models.wire_protocol import (
    ModelVersion,
    Options,
    ProviderSdk,
    WireProtocol,
    output_schema,
    present,
    version_in,
)
from recto.page.wire.anthropic import WIRE

# A paused turn counts as unfinished, like a turn at its token limit, because Recto cannot continue it.
FINISHES: Mapping[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "refused",
}
# Error types by status. Other statuses are invalid requests or server errors.
ERROR_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
# Token limit if the agent sets none, because the API requires a limit. Every model since Claude 4 accepts this one.
MAX_TOKENS = 32_000
CHOICES = {"auto": "auto", "none": "none", "required": "any"}
CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
# First version whose models decide how long they think. Earlier models get a token budget.
ADAPTIVE: ModelVersion = (4, 6)
# First version whose models reject a temperature.
NO_TEMPERATURE: ModelVersion = (4, 7)
HIGHEST_TEMPERATURE = 1.0
EFFORTS: Mapping[Effort, str] = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}
BUDGETS: Mapping[Effort, int] = {"minimal": 0, "low": 2_048, "medium": 8_192, "high": 16_000}
LEAST_BUDGET = 1_024
# By default newer models return signed but empty thinking.
VISIBLE_THINKING: Options = {"type": "adaptive", "display": "summarized"}
# The field of a block that each type of delta appends to.
WORDS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


@dataclass(kw_only=True)
class _Block:
    """Partial content block: the text pieces by type of delta, and the number of a call."""

    start: Mapping[str, Json]
    number: int = 0
    pieces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @property
    def kind(self) -> str:
        return text_of(self.start.get("type"))

    def words(self, name: str) -> str:
        return "".join(self.pieces.get(name, ()))


class MessagesReader:
    """Reader of one reply. `finished`: the model gave a reason to stop; `done`: the stream sent its end event."""

    def __init__(self, *, model: str, blame: Blame | None = None) -> None:
        self._model = model
        self._blame = blame or Blame(model=model)
        self._blocks: list[_Block] = []
        self._places: dict[str, _Block] = {}
        self._calls: list[_Block] = []
        self._usage: dict[str, Json] = {}
        self._reason = ""
        self.done = False

    @property
    def finished(self) -> bool:
        """True after a finish reason: the reply is complete."""
        return bool(self._reason)

    def read(self, data: bytes) -> Iterator[Delta]:
        """Yield the deltas of one event. Ignore all events after the end event."""
        if self.done or not data.strip():
            return
        event = parse_event(data, self._blame.model)
        match event.get("type"):
            case "content_block_delta":
                yield from self._go_on(event)
            case "content_block_start":
                yield from self._begin(event.get("index"), object_of(event.get("content_block")))
            case "content_block_stop":
                yield from self._close(self._find_block(event))
            case "message_start":
                self._count(object_of(event.get("message")).get("usage"))
                if usage := read_usage(self._usage):
                    yield ReplyUsage(usage=usage)
            case "message_delta":
                self._count(event.get("usage"))
                yield from self._finish(object_of(event.get("delta")))
            case "message_stop":
                self.done = True
            case "message":
                # A server without streaming sends the whole message at once.
                content = event.get("content")
                for index, block in enumerate(content if isinstance(content, list) else ()):
                    yield from self._begin(index, object_of(block))
                self._count(event.get("usage"))
                yield from self._finish(event)
            case "error":
                raise stream_fault(event.get("error"), self._blame)
            case _ if event.get("error"):
                raise stream_fault(event["error"], self._blame)
            case _:
                # Ignore pings, and events of later versions as the provider asks clients to do.
                return

    def end(self) -> ReplyEnd:
        """Return the end of the reply. Raise ModelCutOff if the model gave no reason to stop."""
        if not self.finished:
            raise self._blame.cut_off("the stream ended before the reply did.")
        parts = tuple(filter(None, map(self._part, self._blocks)))
        state = tuple(part for part in parts if isinstance(part, Opaque))
        return ReplyEnd(
            finish=FINISHES.get(self._reason) or ("tool_calls" if self._calls else "stop"),
            usage=read_usage(self._usage),
            state=state,
            parts=parts_in_unusual_order(parts),
        )

    def _begin(self, index: Json, start: Mapping[str, Json]) -> Iterator[Delta]:
        block = self._places[str(index)] = _Block(start=start)
        self._blocks.append(block)
        if block.kind == "tool_use":
            name = text_of(start.get("name"))
            if not name:
                raise self._blame.cut_off("a tool call in its reply has no name.")
            block.number = len(self._calls)
            self._calls.append(block)
            yield CallStarted(index=block.number, id=text_of(start.get("id")), name=name)
        for delta, name in WORDS.items():
            yield from _say(block, delta, text_of(start.get(name)))

    def _go_on(self, event: Mapping[str, Json]) -> Iterator[Delta]:
        block, delta = self._find_block(event), object_of(event.get("delta"))
        kind = text_of(delta.get("type"))
        if kind == "input_json_delta" and block.kind == "tool_use":
            yield from _say(block, kind, text_of(delta.get("partial_json")))
        elif kind in WORDS:
            yield from _say(block, kind, text_of(delta.get(WORDS[kind])))

    def _close(self, block: _Block) -> Iterator[Delta]:
        """Yield the arguments of the start event, for a call without deltas."""
        if block.kind == "tool_use" and not block.words("input_json_delta"):
            yield from _say(block, "input_json_delta", dump(object_of(block.start.get("input"))).decode())

    def _find_block(self, event: Mapping[str, Json]) -> _Block:
        block = self._places.get(str(event.get("index")))
        if block is None:
            raise self._blame.cut_off("an event of its stream refers to a block that never started.")
        return block

    def _count(self, usage: Json) -> None:
        """Update the counts: they are cumulative, so later ones replace earlier ones."""
        self._usage |= {name: value for name, value in object_of(usage).items() if value is not None}

    def _finish(self, event: Mapping[str, Json]) -> Iterator[Delta]:
        self._reason = text_of(event.get("stop_reason")) or self._reason
        if self._reason:
            for call in self._calls:
                yield from self._close(call)

    def _part(self, block: _Block) -> AssistantPart | None:
        match block.kind:
            case "text":
                words = block.words("text_delta")
                return Text(text=words) if words else None
            case "tool_use":
                name, arguments = text_of(block.start.get("name")), block.words("input_json_delta")
                return ToolCall(id=text_of(block.start.get("id")), name=name, arguments=arguments)
            case "thinking" if block.words("signature_delta"):
                fields = {"thinking": block.words("thinking_delta"), "signature": block.words("signature_delta")}
                return self._state({**block.start, **fields})
            case "redacted_thinking":
                return self._state(block.start)
            case _:
                # The API rejects thinking without a signature.
                return None

    def _state(self, block: Mapping[str, Json]) -> Opaque:
        name = text_of(block.get("type"))
        return Opaque(provider=WIRE, model=self._model, place="block", name=name, data=dump(block).decode())


def read_usage(usage: Json) -> Usage | None:
    """Return the reported tokens, or None without a report. Anthropic counts cached tokens beside the input."""
    counts = object_of(usage)
    if not counts:
        return None
    cached, cache_write = (
        count_of(counts.get("cache_read_input_tokens")),
        count_of(counts.get("cache_creation_input_tokens")),
    )
    return credible(
        Usage(
            input=count_of(counts.get("input_tokens")) + cached + cache_write,
            output=count_of(counts.get("output_tokens")),
            cached=cached,
            cache_written=cache_write,
            reasoning=count_of(object_of(counts.get("output_tokens_details")).get("thinking_tokens")),
        )
    )


def _say(block: _Block, delta: str, words: str) -> Iterator[Delta]:
    if not words:
        return
    block.pieces.setdefault(delta, []).append(words)
    match delta:
        case "text_delta":
            yield TextDelta(text=words)
        case "thinking_delta":
            yield ReasoningDelta(text=words)
        case "input_json_delta":
            yield CallDelta(index=block.number, arguments=words)
        case _:
            return


def _request_options(model: str, sampling: Sampling, *, has_tools: bool) -> Options:
    version, name = version_in(model, CLAUDE), sampling.tool_choice if has_tools else None
    choice = {"type": CHOICES[name]} if name in CHOICES else {"type": "tool", "name": name}
    is_forced = name not in (None, "auto", "none")
    # The API rejects thinking together with a forced tool call.
    thinking = None if is_forced else _thinking(version, sampling)
    takes_temperature = version < NO_TEMPERATURE and thinking is None and sampling.temperature is not None
    output = output_schema(sampling)
    effort = sampling.reasoning_effort if version >= ADAPTIVE else None
    config = present(
        effort=EFFORTS[effort] if effort else None, format={"type": "json_schema", "schema": output} if output else None
    )
    return present(
        temperature=min(sampling.temperature or 0.0, HIGHEST_TEMPERATURE) if takes_temperature else None,
        max_tokens=sampling.max_tokens,
        thinking=thinking,
        tool_choice=choice if name else None,
        output_config=config or None,
    )


def _thinking(version: ModelVersion, sampling: Sampling) -> Options | None:
    effort = sampling.reasoning_effort
    if effort is None:
        return None
    if version >= ADAPTIVE:
        return VISIBLE_THINKING
    # Thinking counts towards the token limit, so it gets at most half of the limit.
    budget = min(BUDGETS[effort], (sampling.max_tokens or MAX_TOKENS) // 2)
    return {"type": "enabled", "budget_tokens": budget} if budget >= LEAST_BUDGET else None


MESSAGES_SDK = ProviderSdk(
    path="/v1/messages",
    also=("/v1/messages/count_tokens",),
    own_header="anthropic-version",
    error=lambda status, _code, detail: {
        "type": "error",
        "error": {"type": error_type(status, ERROR_TYPES), "message": detail},
    },
    fault_event=b"event: error\ndata: %b\n\n",
)
ANTHROPIC_MESSAGES = WireProtocol(
    wire=WIRE,
    path="/v1/messages",
    key_header="x-api-key",
    key_form="{key}",
    # The last block is always a cache breakpoint. The page itself sets the other breakpoints.
    options={"stream": True, "max_tokens": MAX_TOKENS, "cache_control": {"type": "ephemeral"}},
    request_options=_request_options,
    reader=MessagesReader,
    headers=(("anthropic-version", "2023-06-01"),),
    sdk=MESSAGES_SDK,
)
