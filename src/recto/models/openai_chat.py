"""OpenAI chat completions: request options, and a reader that assembles streamed replies and tool calls. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from recto.agents.agent import Sampling
from recto.conversation.json import Json, dump, load_object
from recto.conversation.messages import Opaque
from recto.errors import ModelUnreachable
from recto.models.faults import Blame, error_type, stream_fault
from recto.models.ports import CallDelta, CallStarted, Delta, FinishReason, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.models.sse import count_of, credible, object_of, parse_event, text_of
from recto.models.wire_protocol import Options, ProviderSdk, WireProtocol, output_schema, present
from recto.page.wire.openai import WIRE

Fragment: TypeAlias = Mapping[str, Json]

DONE = b"[DONE]"
FINISHES: Mapping[str, FinishReason] = {"length": "length", "max_tokens": "length", "content_filter": "filtered"}
# Finish reasons that mean that the server gave up.
GIVEN_UP = ("error", "abort", "insufficient_system_resource")
DETAILS = "reasoning_details"
# Fields of reasoning. Only the first field with text is shown, but all fields go back, because some servers send the
# same text under both names.
THOUGHT_FIELDS = ("reasoning_content", "reasoning")
STATE_ORDER = ("reasoning", "reasoning_content", DETAILS)
# Fields of a reasoning detail whose text arrives in pieces.
PIECED = ("text", "summary")
# Standard fields of a call. All other fields go back to the provider unchanged.
OWN_FIELDS = ("id", "type", "function", "index")
ANSWER = "answer"
# Error types by status. Other statuses are invalid requests or server errors.
ERROR_TYPES: Mapping[int, str] = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
# Maximum number of completeness checks for a call, because each check parses all of its arguments.
MOST_LOOKS = 64


class ChatReader:
    """Reader of one reply. `finished`: the model gave a finish reason; `done`: the stream sent its end event."""

    def __init__(self, *, model: str, blame: Blame | None = None) -> None:
        self._model = model
        self._blame = blame or Blame(model=model)
        self._calls = StreamedCalls(model=model)
        self._thoughts: dict[str, list[str]] = {}
        self._details: list[Mapping[str, Json]] = []
        self._usage: Usage | None = None
        self._reason = ""
        self._is_refusal = False
        self.done = False

    @property
    def finished(self) -> bool:
        """True after a finish reason. Only the usage may follow."""
        return bool(self._reason)

    def read(self, data: bytes) -> Iterable[Delta]:
        """Return the deltas of one event. Ignore all events after the end event."""
        word = data.strip()
        if self.done or not word:
            return ()
        if word == DONE:
            self.done = True
            return ()
        chunk = parse_event(data, self._blame.model)
        words = _nothing_but_words(chunk)
        return (TextDelta(text=words),) if words else self._read(chunk)

    def _read(self, chunk: Mapping[str, Json]) -> Iterator[Delta]:
        if chunk.get("error"):
            raise stream_fault(chunk["error"], self._blame)
        self._usage = read_usage(chunk.get("usage")) or self._usage
        choices = chunk.get("choices")
        if not choices or not isinstance(choices, list):
            return
        choice = object_of(choices[0])
        # A server without streaming sends the whole message in place of a delta.
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, Mapping):
            yield from self._think(delta)
            content = delta.get("content")
            blocks = [object_of(block).get("text") for block in content] if isinstance(content, list) else [content]
            yield from (TextDelta(text=text) for text in blocks if text and isinstance(text, str))
            refusal = delta.get("refusal")
            if isinstance(refusal, str) and refusal:
                self._is_refusal = True
                yield TextDelta(text=refusal)
            # The format of older servers: one function call without an id.
            function, calls = delta.get("function_call"), delta.get("tool_calls")
            old_calls: list[Json] = [{"index": 0, "function": function}] if isinstance(function, Mapping) else []
            yield from self._calls.read(calls if isinstance(calls, list) else old_calls)
        self._usage = read_usage(choice.get("usage")) or self._usage
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            if reason in GIVEN_UP:
                raise ModelUnreachable(model=self._blame.model, problem=f"the server gave up ({reason}). Try again.")
            self._reason = reason
            yield from self._calls.close()
            if self._calls.nameless:
                raise self._blame.cut_off("a tool call in its reply has no name.")

    def end(self) -> ReplyEnd:
        """Return the end of the reply. Raise ModelCutOff without a finish reason."""
        if not self.finished:
            raise self._blame.cut_off("the stream ended before the reply did.")
        values = {**{name: "".join(pieces) for name, pieces in self._thoughts.items()}, DETAILS: self._details}
        state = [
            Opaque(provider=WIRE, model=self._model, place="field", name=name, data=dump(values[name]).decode())
            for name in STATE_ORDER
            if values.get(name)
        ]
        finish = FINISHES.get(self._reason) or ("tool_calls" if self._calls.any else "stop")
        return ReplyEnd(
            finish="refused" if self._is_refusal else finish,
            usage=self._usage,
            state=tuple(state),
            call_state=self._calls.state(),
        )

    def _think(self, delta: Mapping[str, Json]) -> Iterator[Delta]:
        thoughts = [(name, text) for name in THOUGHT_FIELDS if isinstance(text := delta.get(name), str) and text]
        for name, text in thoughts:
            self._thoughts.setdefault(name, []).append(text)
        if thoughts:
            yield ReasoningDelta(text=thoughts[0][1])
        details = delta.get(DETAILS)
        for detail in details if isinstance(details, list) else ():
            if not isinstance(detail, Mapping):
                continue
            last: Mapping[str, Json] = self._details[-1] if self._details else {}
            pieces = [name for name in PIECED if isinstance(last.get(name), str) and isinstance(detail.get(name), str)]
            same = all(last.get(name) == detail.get(name) for name in ("type", "index"))
            if same and (pieces or "signature" in detail):
                fields = {name: value for name, value in detail.items() if value is not None}
                texts = {name: f"{last[name]}{detail[name]}" for name in pieces}
                self._details[-1] = {**last, **fields, **texts}
            else:
                self._details.append(detail)


def read_usage(usage: Json) -> Usage | None:
    """Return the reported tokens, or None without a report."""
    if not isinstance(usage, Mapping):
        return None
    prompt = object_of(usage.get("prompt_tokens_details"))
    completion = object_of(usage.get("completion_tokens_details"))
    return credible(
        Usage(
            input=count_of(usage.get("prompt_tokens")),
            output=count_of(usage.get("completion_tokens")),
            cached=count_of(prompt.get("cached_tokens")) or count_of(usage.get("prompt_cache_hit_tokens")),
            cache_written=count_of(prompt.get("cache_write_tokens")),
            reasoning=count_of(completion.get("reasoning_tokens")),
        )
    )


def _nothing_but_words(chunk: Mapping[str, Json]) -> str | None:
    """Return the text of a chunk that contains only text. This is a fast path, because most chunks do."""
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(delta, dict) or len(delta) != 1:
        return None
    if choice.get("finish_reason") or choice.get("usage") or chunk.get("usage") or chunk.get("error"):
        return None
    words = delta.get("content")
    return words if isinstance(words, str) else None


@dataclass(kw_only=True)
class _Call:
    """A partial call. `id` is the provider's id; `waiting` contains arguments that are not emitted yet."""

    number: int
    place: Json
    id: str = ""
    name: str = ""
    started: bool = False
    pieces: list[str] = field(default_factory=list[str])
    waiting: list[str] = field(default_factory=list[str])
    extra: dict[str, Json] = field(default_factory=dict[str, Json])
    looks: int = 0

    def is_whole(self) -> bool:
        """Return True if the arguments are a JSON object. The number of checks is limited."""
        pieces = (*self.pieces[-1:], *self.waiting)
        if not pieces or not pieces[-1].rstrip().endswith("}") or self.looks >= MOST_LOOKS:
            return False
        self.looks += 1
        return load_object("".join((*self.pieces, *self.waiting))) is not None


class StreamedCalls:
    """Calls of one reply. A call starts when its arguments begin, because its name may grow until then."""

    def __init__(self, *, model: str) -> None:
        self._model = model
        self._calls: list[_Call] = []
        # The newest call by index and by id, and the calls that have not started. Lookups must be fast, because a reply
        # may have thousands of calls.
        self._by_place: dict[str, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._not_started: list[_Call] = []

    @property
    def any(self) -> bool:
        """True if the model called a tool."""
        return bool(self._calls)

    @property
    def nameless(self) -> bool:
        """True if a call has no name yet."""
        return any(not call.name for call in self._calls)

    def read(self, fragments: Sequence[Json]) -> Iterator[Delta]:
        """Yield the deltas of the fragments of one chunk."""
        for fragment in fragments:
            if isinstance(fragment, Mapping):
                yield from self._read(fragment, alone=len(fragments) == 1)

    def close(self) -> Iterator[Delta]:
        """Start the remaining calls. The reply is over, so their names are complete."""
        for call in self._not_started:
            yield from self._give_out(call, over=True)
        self._not_started = [call for call in self._not_started if not call.started]

    def state(self) -> Mapping[int, Opaque]:
        """Return the non-standard fields of calls by call number. These fields go back to the provider."""
        return {
            call.number: Opaque(
                provider=WIRE, model=self._model, place="field", name="call", data=dump(call.extra).decode()
            )
            for call in self._calls
            if call.extra
        }

    def _read(self, fragment: Fragment, *, alone: bool) -> Iterator[Delta]:
        function = object_of(fragment.get("function"))
        name, arguments = text_of(function.get("name")), function.get("arguments")
        # Arguments are JSON text, but some servers send the object itself.
        arguments = dump(arguments).decode() if isinstance(arguments, Mapping) else text_of(arguments)
        call = self._find(fragment, alone=alone)
        id, is_new = text_of(fragment.get("id")), call is None
        if call is not None and name:
            # Servers that send whole calls reuse index and id.
            unnamed = not id and fragment.get("index") is None
            has_other_id = bool(id and call.id and id != call.id)
            is_new = has_other_id or (bool(arguments or unnamed) and call.is_whole())
        if call is None or is_new:
            yield from self.close()
            call = _Call(number=len(self._calls), place=fragment.get("index"))
            self._calls.append(call)
            self._not_started.append(call)
            self._by_place[str(call.place)] = call
        call.id = call.id or id
        self._by_id[call.id] = call
        # Servers send a name in pieces, or repeat the whole name.
        call.name = call.name if call.started else (name if name.startswith(call.name) else call.name + name)
        call.extra |= {key: value for key, value in fragment.items() if key not in OWN_FIELDS and value is not None}
        if arguments:
            call.waiting.append(arguments)
        yield from self._give_out(call, over=False)

    def _find(self, fragment: Fragment, *, alone: bool) -> _Call | None:
        """Return the call of a fragment: by index, else by id, else the last one."""
        place, id = fragment.get("index"), text_of(fragment.get("id"))
        if place is not None:
            return self._by_place.get(str(place))
        if id:
            return self._by_id.get(id)
        return self._calls[-1] if alone and self._calls else None

    def _give_out(self, call: _Call, *, over: bool) -> Iterator[Delta]:
        if not call.name or not (call.started or call.waiting or over):
            return
        if not call.started:
            call.started = True
            yield CallStarted(index=call.number, id=call.id, name=call.name)
        for arguments in call.waiting:
            yield CallDelta(index=call.number, arguments=arguments)
        call.pieces += call.waiting
        call.waiting = []


def _request_options(
    _model: str, sampling: Sampling, *, has_tools: bool, limit: str = "max_completion_tokens"
) -> Options:
    choice = sampling.tool_choice if has_tools else None
    function: Json = {"type": "function", "function": {"name": choice}}
    output = output_schema(sampling)
    answer: Json = {"name": ANSWER, "strict": True, "schema": output}
    return present(
        temperature=sampling.temperature,
        reasoning_effort=sampling.reasoning_effort,
        tool_choice=choice if choice in (None, "auto", "none", "required") else function,
        response_format={"type": "json_schema", "json_schema": answer} if output else None,
        **{limit: sampling.max_tokens},
    )


CHAT_SDK = ProviderSdk(
    path="/v1/chat/completions",
    also=("/v1/responses",),
    base="/v1",
    error=lambda status, code, detail: {
        "error": {"message": detail, "type": error_type(status, ERROR_TYPES), "param": None, "code": code}
    },
    fault_event=b"data: %b\n\n",
)
OPENAI_CHAT = WireProtocol(
    wire=WIRE,
    path="/chat/completions",
    key_header="Authorization",
    key_form="Bearer {key}",
    options={"stream": True, "stream_options": {"include_usage": True}},
    request_options=_request_options,
    reader=ChatReader,
    sdk=CHAT_SDK,
)
# Use the older name of the limit, because most compatible servers accept no other.
COMPATIBLE_CHAT = replace(OPENAI_CHAT, request_options=partial(_request_options, limit="max_tokens"))
