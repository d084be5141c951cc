"""OpenAI Responses: what to ask for, and the reply as it streams. Pure. Refuses to guess that a reply is whole.

Nothing is stored at the provider: what a model thinks comes encrypted and goes back in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from recto.agents.agent import Sampling
from recto.conversation.json import Json
from recto.conversation.messages import AssistantMessage, AssistantPart, Opaque, Text, ToolCall
from recto.errors import ModelCutOff, ModelError
from recto.models.faults import Blame, stream_fault
from recto.models.ports import CallDelta, CallStarted, Delta, FinishReason, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.models.sse import count_of, credible, object_of, parse_event, text_of
from recto.models.wire_protocol import Options, WireProtocol, output_schema, present
from recto.page.wire.openai_responses import PHASE, WIRE, decode

# Why a reply is incomplete. Whatever else the provider calls it, it ran into a limit.
FINISHES: Mapping[str, FinishReason] = {"content_filter": "filtered"}
# Codes of failures that are the request's fault and do not say so.
OF_REQUEST = re.compile("image|policy|residency")
BETWEEN_THOUGHTS = "\n\n"
ANSWER = "answer"


@dataclass(kw_only=True)
class _Item:
    """An item as far as it came. `said` are the pieces of its words or arguments, `part` is the one it is at.

    `number` is that of a call.
    """

    fields: Mapping[str, Json]
    number: int = 0
    part: Json = None
    is_whole: bool = False
    said: list[str] = field(default_factory=list[str])

    @property
    def kind(self) -> str:
        return text_of(self.fields.get("type"))

    def words(self) -> str:
        return "".join(self.said)


class ResponsesReader:
    """Reads one reply. `done` tells that the provider said how it ended."""

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
        """What the data of one event adds to the reply. Nothing is read after the provider said it is done."""
        if self.done or not data.strip():
            return
        event = parse_event(data, self._blame.model)
        kind = text_of(event.get("type"))
        match kind:
            case "response.output_text.delta" | "response.refusal.delta" | "response.function_call_arguments.delta":
                self._has_refused |= kind == "response.refusal.delta"
                yield from self._say(self._known(event), text_of(event.get("delta")))
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                yield from self._think(self._known(event), event)
            case "response.output_item.added":
                yield from self._begin(event.get("output_index"), object_of(event.get("item")))
            case "response.output_item.done":
                yield from self._close(event.get("output_index"), object_of(event.get("item")))
            case "response.completed" | "response.incomplete" | "response.failed":
                yield from self._end(kind.rpartition(".")[2], object_of(event.get("response")))
            case _ if event.get("object") == "response":
                # A server that does not stream after all has the whole reply in one.
                yield from self._end(text_of(event.get("status")), event)
            case _ if kind == "error" or event.get("error"):
                raise self._fault(event.get("error") or event)
            case _:
                # Beginnings and ends of what is inside an item, and events of a later version.
                return

    def end(self) -> ReplyEnd:
        """The end of the reply. ModelCutOff where the provider never said how it ended."""
        if self._finish is None:
            raise self._cut_off("the stream ended before the reply did.")
        items = [fields for item in self._items.values() if (fields := _sent_back(item))]
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
                raise self._cut_off("a tool call in its reply has no name.")
            item.number = len(self._calls)
            self._calls.append(item)
            yield CallStarted(index=item.number, id=text_of(fields.get("call_id")), name=name)

    def _close(self, place: Json, fields: Mapping[str, Json]) -> Iterator[Delta]:
        """An item that is whole says what of it was not said yet: all, where it did not come in pieces."""
        if str(place) not in self._items:
            yield from self._begin(place, fields)
        item = self._items[str(place)]
        item.fields, item.is_whole = fields, True
        self._has_refused |= any(block.get("type") == "refusal" for block in _listed(fields.get("content")))
        whole, said = _whole_words(item), item.words()
        if whole.startswith(said):
            yield from self._say(item, whole[len(said) :])

    def _think(self, item: _Item, event: Mapping[str, Json]) -> Iterator[Delta]:
        words, part = text_of(event.get("delta")), event.get("summary_index", event.get("content_index"))
        between = BETWEEN_THOUGHTS if words and item.said and part != item.part else ""
        item.part = part
        yield from self._say(item, between + words)

    def _say(self, item: _Item, words: str) -> Iterator[Delta]:
        if not words:
            return
        is_first = not item.said
        item.said.append(words)
        match item.kind:
            case "message":
                yield TextDelta(text=words)
            case "function_call":
                yield CallDelta(index=item.number, arguments=words)
            case _:
                yield ReasoningDelta(text=BETWEEN_THOUGHTS + words if is_first and self._has_thought else words)
                self._has_thought = True

    def _known(self, event: Mapping[str, Json]) -> _Item:
        item = self._items.get(str(event.get("output_index")))
        if item is None:
            raise self._cut_off("an event of its stream speaks of an item that never began.")
        return item

    def _end(self, status: str, response: Mapping[str, Json]) -> Iterator[Delta]:
        if not self._items:
            for place, item in enumerate(_listed(response.get("output"))):
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
                raise self._cut_off(f"the provider gave its reply up ({status or 'no status'}).")
        self._usage = read_usage(response.get("usage"))
        self.done = True

    def _fault(self, error: Json) -> ModelError:
        said = object_of(error)
        if OF_REQUEST.search(text_of(said.get("code"))):
            return stream_fault({**said, "type": "invalid_request_error"}, self._blame)
        return stream_fault(error, self._blame)

    def _cut_off(self, problem: str) -> ModelCutOff:
        return ModelCutOff(model=self._blame.model, problem=problem)


def read_usage(usage: Json) -> Usage | None:
    """The tokens a provider reports, or None where it reports none."""
    counts = object_of(usage)
    if not counts:
        return None
    read, written = object_of(counts.get("input_tokens_details")), object_of(counts.get("output_tokens_details"))
    return credible(
        Usage(
            input=count_of(counts.get("input_tokens")),
            output=count_of(counts.get("output_tokens")),
            cached=count_of(read.get("cached_tokens")),
            cache_written=count_of(read.get("cache_write_tokens")),
            reasoning=count_of(written.get("reasoning_tokens")),
        )
    )


def _listed(value: Json) -> list[Mapping[str, Json]]:
    return [object_of(one) for one in value] if isinstance(value, list) else []


def _whole_words(item: _Item) -> str:
    """All that a whole item says, as its pieces would."""
    fields = item.fields
    match item.kind:
        case "function_call":
            return text_of(fields.get("arguments"))
        case "message":
            blocks = _listed(fields.get("content"))
            return "".join(text_of(block.get("text")) or text_of(block.get("refusal")) for block in blocks)
        case "reasoning":
            thoughts = _listed(fields.get("summary")) or _listed(fields.get("content"))
            return BETWEEN_THOUGHTS.join(text_of(thought.get("text")) for thought in thoughts)
        case _:
            # Of what the provider's own tools do nobody is told.
            return ""


def _sent_back(item: _Item) -> Mapping[str, Json] | None:
    """An item as it goes back to the provider. None where there is nothing in it to be sent."""
    fields, words = item.fields, item.words()
    match item.kind:
        case "message" if words:
            return present(type="message", role="assistant", content=words, phase=text_of(fields.get(PHASE)) or None)
        case "function_call":
            id, name = text_of(fields.get("call_id")), text_of(fields.get("name"))
            return {"type": "function_call", "call_id": id, "name": name, "arguments": words}
        case "reasoning" if item.is_whole and (sealed := fields.get("encrypted_content")):
            # With more than this it is refused when it comes back.
            summary: Json = [*_listed(fields.get("summary"))]
            return {"type": item.kind, "id": fields.get("id"), "summary": summary, "encrypted_content": sealed}
        case _:
            # So is a thought without what was encrypted: the provider keeps nothing to know it by.
            return None


def _asked(_model: str, sampling: Sampling, *, has_tools: bool) -> Options:
    choice = sampling.tool_choice if has_tools else None
    named: Json = {"type": "function", "name": choice}
    effort, output = sampling.reasoning_effort, output_schema(sampling)
    answer: Json = {"type": "json_schema", "name": ANSWER, "strict": True, "schema": output}
    return present(
        temperature=sampling.temperature,
        max_output_tokens=sampling.max_tokens,
        # Without a summary readers see nothing of what it thinks.
        reasoning={"effort": effort, "summary": "auto"} if effort else None,
        tool_choice=choice if choice in (None, "auto", "none", "required") else named,
        text={"format": answer} if output else None,
    )


OPENAI_RESPONSES = WireProtocol(
    wire=WIRE,
    path="/responses",
    key_header="Authorization",
    key_form="Bearer {key}",
    options={"stream": True, "store": False, "include": ["reasoning.encrypted_content"]},
    request_options=_asked,
    reader=ResponsesReader,
)
