"""OpenAI Responses: request options, and a reader of streamed replies. Pure.

The provider stores nothing: reasoning arrives encrypted and goes back in its original position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from recto.agents.agent import Sampling
from recto.conversation.json import Json
from recto.conversation.messages import AssistantMessage, AssistantPart, Opaque, Text, ToolCall
from recto.errors import ModelError
from recto.models.faults import Blame, stream_fault
from recto.models.ports import CallDelta, CallStarted, Delta, FinishReason, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.models.sse import count_of, credible, object_of, parse_event, text_of
from recto.models.wire_protocol import Options, WireProtocol, output_schema, present
from recto.page.wire.openai_responses import PHASE, WIRE, decode

# Finish reasons of incomplete replies. All other reasons mean that a limit was reached.
FINISHES: Mapping[str, FinishReason] = {"content_filter": "filtered"}
# Pattern for error codes that mean an invalid request although their names do not say so.
OF_REQUEST = re.compile("image|policy|residency")
BETWEEN_THOUGHTS = "\n\n"
ANSWER = "answer"


@dataclass(kw_only=True)
class _Item:
    """A partial item: the pieces of its text or arguments, its current part, and the number of its call."""

    fields: Mapping[str, Json]
    number: int = 0
    part: Json = None
    is_whole: bool = False
    deltas: list[str] = field(default_factory=list[str])

    @property
    def kind(self) -> str:
        return text_of(self.fields.get("type"))

    def words(self) -> str:
        return "".join(self.deltas)

    def whole_words(self) -> str:
        """Return the whole text of a complete item."""
        fields = self.fields
        match self.kind:
            case "function_call":
                return text_of(fields.get("arguments"))
            case "message":
                blocks = _as_list(fields.get("content"))
                return "".join(text_of(block.get("text")) or text_of(block.get("refusal")) for block in blocks)
            case "reasoning":
                thoughts = _as_list(fields.get("summary")) or _as_list(fields.get("content"))
                return BETWEEN_THOUGHTS.join(text_of(one.get("text")) for one in thoughts)
            case _:
                # Calls of the provider's own tools are not shown.
                return ""

    def to_send(self) -> Mapping[str, Json] | None:
        """Return the item in the form that goes back to the provider. Return None if the item is omitted."""
        fields, words = self.fields, self.words()
        match self.kind:
            case "message" if words:
                phase = text_of(fields.get(PHASE)) or None
                return present(type="message", role="assistant", content=words, phase=phase)
            case "function_call":
                id, name = text_of(fields.get("call_id")), text_of(fields.get("name"))
                return {"type": "function_call", "call_id": id, "name": name, "arguments": words}
            case "reasoning" if self.is_whole and (sealed := fields.get("encrypted_content")):
                # The API rejects all other fields.
                summary: Json = [*_as_list(fields.get("summary"))]
                return {"type": self.kind, "id": fields.get("id"), "summary": summary, "encrypted_content": sealed}
            case _:
                # Omit reasoning without encrypted content, which the API rejects because it stored nothing.
                return None


class ResponsesReader:
    """Reader of one reply. `done`: the provider sent the final event."""

    def __init__(self, *, model: str, blame: Blame | None = None) -> None:
        self._model = model
        self._blame = blame or Blame(model=model)
        self._items: dict[str, _Item] = {}
        self._calls: list[_Item] = []
        self._has_thought = False
        self._has_refused = False
        self._usage: Usage | None = None
        self._finish: FinishReason | None = None
        self.done = False

    def read(self, data: bytes) -> Iterator[Delta]:
        """Yield the deltas of one event. Ignore all events after the final one."""
        if self.done or not data.strip():
            return
        event = parse_event(data, self._blame.model)
        kind = text_of(event.get("type"))
        match kind:
            case "response.output_text.delta" | "response.refusal.delta" | "response.function_call_arguments.delta":
                self._has_refused |= kind == "response.refusal.delta"
                yield from self._say(self._find_item(event), text_of(event.get("delta")))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                item = self._find_item(event)
                words, part = text_of(event.get("delta")), event.get("summary_index", event.get("content_index"))
                between = BETWEEN_THOUGHTS if words and item.deltas and part != item.part else ""
                item.part = part
                yield from self._say(item, between + words)
            case "response.output_item.added":
                yield from self._begin(event.get("output_index"), object_of(event.get("item")))
            case "response.output_item.done":
                yield from self._close(event.get("output_index"), object_of(event.get("item")))
            case "response.completed" | "response.incomplete" | "response.failed":
                yield from self._end(kind.rpartition(".")[2], object_of(event.get("response")))
            case _ if event.get("object") == "response":
                # A server without streaming sends the whole reply at once.
                yield from self._end(text_of(event.get("status")), event)
            case _ if kind == "error" or event.get("error"):
                raise self._fault(event.get("error") or event)
            case _:
                # Ignore events about parts of an item, and events of later API versions.
                return

    def end(self) -> ReplyEnd:
        """Return the end of the reply. Raise ModelCutOff without a final event."""
        if self._finish is None:
            raise self._blame.cut_off("the stream ended before the reply did.")
        items = [fields for item in self._items.values() if (fields := item.to_send())]
        replies = [message for message in decode(items, model=self._model) if isinstance(message, AssistantMessage)]
        parts: tuple[AssistantPart, ...] = tuple(part for reply in replies for part in reply.parts)
        state = tuple(part for part in parts if isinstance(part, Opaque))
        texts = [part for part in parts if isinstance(part, Text)]
        calls = [part for part in parts if isinstance(part, ToolCall)]
        return ReplyEnd(
            finish="refused" if self._has_refused else self._finish,
            usage=self._usage,
            state=state,
            call_state={number: call.state for number, call in enumerate(calls) if call.state},
            parts=() if parts == (*state, *texts, *calls) else parts,
        )

    def _begin(self, place: Json, fields: Mapping[str, Json]) -> Iterator[Delta]:
        item = self._items[str(place)] = _Item(fields=fields)
        if item.kind == "function_call":
            name = text_of(fields.get("name"))
            if not name:
                raise self._blame.cut_off("a tool call in its reply has no name.")
            item.number = len(self._calls)
            self._calls.append(item)
            yield CallStarted(index=item.number, id=text_of(fields.get("call_id")), name=name)

    def _close(self, place: Json, fields: Mapping[str, Json]) -> Iterator[Delta]:
        """Yield the text of a complete item that was not streamed yet.

        This is all of the text if no pieces arrived before.
        """
        if str(place) not in self._items:
            yield from self._begin(place, fields)
        item = self._items[str(place)]
        item.fields, item.is_whole = fields, True
        self._has_refused |= any(block.get("type") == "refusal" for block in _as_list(fields.get("content")))
        whole, words = item.whole_words(), item.words()
        if whole.startswith(words):
            yield from self._say(item, whole[len(words) :])

    def _say(self, item: _Item, words: str) -> Iterator[Delta]:
        if not words:
            return
        is_first = not item.deltas
        item.deltas.append(words)
        match item.kind:
            case "message":
                yield TextDelta(text=words)
            case "function_call":
                yield CallDelta(index=item.number, arguments=words)
            case _:
                yield ReasoningDelta(text=BETWEEN_THOUGHTS + words if is_first and self._has_thought else words)
                self._has_thought = True

    def _find_item(self, event: Mapping[str, Json]) -> _Item:
        item = self._items.get(str(event.get("output_index")))
        if item is None:
            raise self._blame.cut_off("an event of its stream refers to an item that never started.")
        return item

    def _end(self, status: str, response: Mapping[str, Json]) -> Iterator[Delta]:
        if not self._items:
            for place, item in enumerate(_as_list(response.get("output"))):
                yield from self._close(place, item)
        match status:
            case "failed":
                raise self._fault(response.get("error"))
            case "completed":
                self._finish = "tool_calls" if self._calls else "stop"
            case "incomplete":
                reason = text_of(object_of(response.get("incomplete_details")).get("reason"))
                self._finish = FINISHES.get(reason, "length")
            case _:
                raise self._blame.cut_off(f"the provider gave up the reply ({status or 'no status'}).")
        self._usage = read_usage(response.get("usage"))
        self.done = True

    def _fault(self, error: Json) -> ModelError:
        fields = object_of(error)
        if OF_REQUEST.search(text_of(fields.get("code"))):
            return stream_fault({**fields, "type": "invalid_request_error"}, self._blame)
        return stream_fault(error, self._blame)


def read_usage(usage: Json) -> Usage | None:
    """Return the reported tokens, or None without a report."""
    counts = object_of(usage)
    if not counts:
        return None
    read, output_details = object_of(counts.get("input_tokens_details")), object_of(counts.get("output_tokens_details"))
    return credible(
        Usage(
            input=count_of(counts.get("input_tokens")),
            output=count_of(counts.get("output_tokens")),
            cached=count_of(read.get("cached_tokens")),
            cache_written=count_of(read.get("cache_write_tokens")),
            reasoning=count_of(output_details.get("reasoning_tokens")),
        )
    )


def _as_list(value: Json) -> list[Mapping[str, Json]]:
    return [object_of(one) for one in value] if isinstance(value, list) else []


def _request_options(_model: str, sampling: Sampling, *, has_tools: bool) -> Options:
    choice = sampling.tool_choice if has_tools else None
    function: Json = {"type": "function", "name": choice}
    effort, output = sampling.reasoning_effort, output_schema(sampling)
    answer: Json = {"type": "json_schema", "name": ANSWER, "strict": True, "schema": output}
    return present(
        temperature=sampling.temperature,
        max_output_tokens=sampling.max_tokens,
        # By default the API returns no readable reasoning.
        reasoning={"effort": effort, "summary": "auto"} if effort else None,
        tool_choice=choice if choice in (None, "auto", "none", "required") else function,
        text={"format": answer} if output else None,
    )


OPENAI_RESPONSES = WireProtocol(
    wire=WIRE,
    path="/responses",
    key_header="Authorization",
    key_form="Bearer {key}",
    options={"stream": True, "store": False, "include": ["reasoning.encrypted_content"]},
    request_options=_request_options,
    reader=ResponsesReader,
)
