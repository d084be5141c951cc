"""Anthropic messages: what to ask for, and the reply as it streams. Pure. Refuses to guess that a reply is whole.

Signed thinking goes back to the model that made it, so it is kept block by block, as it came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from recto.agents.agent import Effort, Sampling
from recto.conversation.json import Json, dump
from recto.conversation.messages import AssistantPart, Opaque, Text, ToolCall
from recto.errors import ModelCutOff
from recto.models.faults import SERVER_FAULT, Blame, stream_fault
from recto.models.ports import (
    CallDelta,
    CallStarted,
    Delta,
    FinishReason,
    ReasoningDelta,
    ReplyEnd,
    TextDelta,
    Usage,
    Used,
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

# A paused turn is one that we cannot go on with: like one that ran into its limit, it is not finished.
FINISHES: Mapping[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "refused",
}
# What refusals of each status are called; others are the request's fault, or the server's.
ERROR_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
# A limit is demanded. Every model since Claude 4 can write as much.
MAX_TOKENS = 32_000
FORCED = {"required": "any"}
CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
# From here on a model decides itself how long it thinks; those before are given tokens for it.
ADAPTIVE: ModelVersion = (4, 6)
# From here on a temperature is refused.
NO_TEMPERATURE: ModelVersion = (4, 7)
HIGHEST_TEMPERATURE = 1.0
EFFORTS: Mapping[Effort, str] = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}
BUDGETS: Mapping[Effort, int] = {"minimal": 0, "low": 2_048, "medium": 8_192, "high": 16_000}
LEAST_BUDGET = 1_024
# Without it the thinking of newer models comes signed but empty, and readers see nothing.
SHOWN: Options = {"type": "adaptive", "display": "summarized"}
# What a kind of block says in each of its deltas, and the field of the block it adds to.
WORDS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


@dataclass(kw_only=True)
class _Block:
    """A block as far as it came. `said` are the pieces of its fields; `number` is that of a call."""

    start: Mapping[str, Json]
    number: int = 0
    said: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    @property
    def kind(self) -> str:
        return text_of(self.start.get("type"))

    def words(self, name: str) -> str:
        return "".join(self.said.get(name, ()))


class MessagesReader:
    """Reads one reply. `finished` tells that the model said it is done, `done` that the stream said so."""

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
        """Whether a reason to stop was seen: no more of the reply may follow."""
        return bool(self._reason)

    def read(self, data: bytes) -> Iterator[Delta]:
        """What the data of one event adds to the reply. Nothing is read after the stream said it is done."""
        if self.done or not data.strip():
            return
        event = parse_event(data, self._blame.model)
        match event.get("type"):
            case "content_block_delta":
                yield from self._go_on(event)
            case "content_block_start":
                yield from self._begin(event.get("index"), object_of(event.get("content_block")))
            case "content_block_stop":
                yield from self._close(self._known(event))
            case "message_start":
                self._count(object_of(event.get("message")).get("usage"))
                if usage := read_usage(self._usage):
                    yield Used(usage=usage)
            case "message_delta":
                self._count(event.get("usage"))
                yield from self._finish(object_of(event.get("delta")))
            case "message_stop":
                self.done = True
            case "message":
                yield from self._whole(event)
            case "error":
                raise stream_fault(event.get("error"), self._blame)
            case _ if event.get("error"):
                raise stream_fault(event["error"], self._blame)
            case _:
                # Pings, and events of a later version, which the provider wants to be passed over.
                return

    def end(self) -> ReplyEnd:
        """The end of the reply. ModelCutOff where the model never said that it is done."""
        if not self.finished:
            raise self._cut_off("the stream ended before the reply did.")
        parts = tuple(filter(None, map(self._part, self._blocks)))
        state = tuple(part for part in parts if isinstance(part, Opaque))
        return ReplyEnd(
            finish=self._ending(), usage=read_usage(self._usage), state=state, parts=parts_in_unusual_order(parts)
        )

    def _begin(self, index: Json, start: Mapping[str, Json]) -> Iterator[Delta]:
        block = self._places[str(index)] = _Block(start=start)
        self._blocks.append(block)
        if block.kind == "tool_use":
            yield self._begin_call(block)
        for delta, name in WORDS.items():
            yield from _say(block, delta, text_of(start.get(name)))

    def _begin_call(self, block: _Block) -> CallStarted:
        name = text_of(block.start.get("name"))
        if not name:
            raise self._cut_off("a tool call in its reply has no name.")
        block.number = len(self._calls)
        self._calls.append(block)
        return CallStarted(index=block.number, id=text_of(block.start.get("id")), name=name)

    def _go_on(self, event: Mapping[str, Json]) -> Iterator[Delta]:
        block, delta = self._known(event), object_of(event.get("delta"))
        kind = text_of(delta.get("type"))
        if kind == "input_json_delta" and block.kind == "tool_use":
            yield from _say(block, kind, text_of(delta.get("partial_json")))
        elif kind in WORDS:
            yield from _say(block, kind, text_of(delta.get(WORDS[kind])))

    def _close(self, block: _Block) -> Iterator[Delta]:
        """A call that wrote nothing has the input it began with: nothing at all, or all of it at once."""
        if block.kind == "tool_use" and not block.words("input_json_delta"):
            yield from _say(block, "input_json_delta", dump(object_of(block.start.get("input"))).decode())

    def _whole(self, message: Mapping[str, Json]) -> Iterator[Delta]:
        """A server that does not stream after all has the whole message in one."""
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            yield from self._begin(index, object_of(block))
        self._count(message.get("usage"))
        yield from self._finish(message)

    def _known(self, event: Mapping[str, Json]) -> _Block:
        block = self._places.get(str(event.get("index")))
        if block is None:
            raise self._cut_off("an event of its stream speaks of a block that never began.")
        return block

    def _count(self, usage: Json) -> None:
        """Counts are cumulative: what is said later stands for what was said before."""
        self._usage |= {name: value for name, value in object_of(usage).items() if value is not None}

    def _finish(self, said: Mapping[str, Json]) -> Iterator[Delta]:
        self._reason = text_of(said.get("stop_reason")) or self._reason
        if self._reason:
            for call in self._calls:
                yield from self._close(call)

    def _ending(self) -> FinishReason:
        return FINISHES.get(self._reason) or ("tool_calls" if self._calls else "stop")

    def _part(self, block: _Block) -> AssistantPart | None:
        match block.kind:
            case "text":
                words = block.words("text_delta")
                return Text(text=words) if words else None
            case "tool_use":
                name, arguments = text_of(block.start.get("name")), block.words("input_json_delta")
                return ToolCall(id=text_of(block.start.get("id")), name=name, arguments=arguments)
            case "thinking" if block.words("signature_delta"):
                said = {"thinking": block.words("thinking_delta"), "signature": block.words("signature_delta")}
                return self._state({**block.start, **said})
            case "redacted_thinking":
                return self._state(block.start)
            case _:
                # Thinking that was cut before it was signed is refused when it comes back.
                return None

    def _state(self, block: Mapping[str, Json]) -> Opaque:
        name = text_of(block.get("type"))
        return Opaque(provider=WIRE, model=self._model, place="block", name=name, data=dump(block).decode())

    def _cut_off(self, problem: str) -> ModelCutOff:
        return ModelCutOff(model=self._blame.model, problem=problem)


def read_usage(usage: Json) -> Usage | None:
    """The tokens a provider reports, or None where it reports none. What is cached is beside its input, not in it."""
    counts = object_of(usage)
    if not counts:
        return None
    cached, written = (
        count_of(counts.get("cache_read_input_tokens")),
        count_of(counts.get("cache_creation_input_tokens")),
    )
    return credible(
        Usage(
            input=count_of(counts.get("input_tokens")) + cached + written,
            output=count_of(counts.get("output_tokens")),
            cached=cached,
            cache_written=written,
            reasoning=count_of(object_of(counts.get("output_tokens_details")).get("thinking_tokens")),
        )
    )


def _say(block: _Block, delta: str, words: str) -> Iterator[Delta]:
    if not words:
        return
    block.said.setdefault(delta, []).append(words)
    match delta:
        case "text_delta":
            yield TextDelta(text=words)
        case "thinking_delta":
            yield ReasoningDelta(text=words)
        case "input_json_delta":
            yield CallDelta(index=block.number, arguments=words)
        case _:
            return


def _asked(model: str, sampling: Sampling, *, has_tools: bool) -> Options:
    version, choice = version_in(model, CLAUDE), _choice(sampling, has_tools=has_tools)
    is_forced = choice is not None and choice["type"] in ("any", "tool")
    # A model may not think and be made to call a tool at once.
    thinking = None if is_forced else _thinking(version, sampling)
    takes_temperature = version < NO_TEMPERATURE and thinking is None and sampling.temperature is not None
    output = output_schema(sampling)
    effort = sampling.reasoning_effort if version >= ADAPTIVE else None
    config = present(
        effort=EFFORTS[effort] if effort else None,
        format={"type": "json_schema", "schema": output} if output else None,
    )
    return present(
        temperature=min(sampling.temperature or 0.0, HIGHEST_TEMPERATURE) if takes_temperature else None,
        max_tokens=sampling.max_tokens,
        thinking=thinking,
        tool_choice=choice,
        output_config=config or None,
    )


def _choice(sampling: Sampling, *, has_tools: bool) -> dict[str, Json] | None:
    choice = sampling.tool_choice if has_tools else None
    if choice is None:
        return None
    if choice in ("auto", "none", "required"):
        return {"type": FORCED.get(choice, choice)}
    return {"type": "tool", "name": choice}


def _thinking(version: ModelVersion, sampling: Sampling) -> Options | None:
    effort = sampling.reasoning_effort
    if effort is None:
        return None
    if version >= ADAPTIVE:
        return SHOWN
    # What it thinks counts in what it may write: half of that is for the answer.
    budget = min(BUDGETS[effort], (sampling.max_tokens or MAX_TOKENS) // 2)
    return {"type": "enabled", "budget_tokens": budget} if budget >= LEAST_BUDGET else None


def _error(status: int, _code: str, detail: str) -> dict[str, Json]:
    kind = ERROR_TYPES.get(status, "api_error" if status >= SERVER_FAULT else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": detail}}


MESSAGES_SDK = ProviderSdk(
    path="/v1/messages",
    also=("/v1/messages/count_tokens",),
    own_header="anthropic-version",
    error=_error,
    fault_event=b"event: error\ndata: %b\n\n",
)
ANTHROPIC_MESSAGES = WireProtocol(
    wire=WIRE,
    path="/v1/messages",
    key_header="x-api-key",
    key_form="{key}",
    # The last block is always a cache breakpoint; the others stand in the page itself.
    options={"stream": True, "max_tokens": MAX_TOKENS, "cache_control": {"type": "ephemeral"}},
    request_options=_asked,
    reader=MessagesReader,
    headers=(("anthropic-version", "2023-06-01"),),
    sdk=MESSAGES_SDK,
)
