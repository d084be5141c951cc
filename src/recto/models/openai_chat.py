"""OpenAI chat completions: request options, and a reader that assembles streamed replies and tool calls. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from recto.agents.agent import Sampling
from recto.conversation.json import Json, dump, load_object
from recto.conversation.messages import Opaque
from recto.errors import ModelCutOff, ModelUnreachable
from recto.models.faults import SERVER_FAULT, Blame, stream_fault
from recto.models.ports import CallDelta, CallStarted, Delta, FinishReason, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.models.sse import count_of, credible, object_of, parse_event, text_of
from recto.models.wire_protocol import Options, ProviderSdk, WireProtocol, output_schema, present
from recto.page.wire.openai import WIRE

Fragment: TypeAlias = Mapping[str, Json]

DONE = b"[DONE]"
FINISHES: Mapping[str, FinishReason] = {"length": "length", "max_tokens": "length", "content_filter": "filtered"}
# Finish reasons of a server that gave up.
GIVEN_UP = ("error", "abort", "insufficient_system_resource")
DETAILS = "reasoning_details"
# Fields of reasoning. The first with text is shown, all go back: some servers send the same text under both names.
THOUGHT_FIELDS = ("reasoning_content", "reasoning")
STATE_ORDER = ("reasoning", "reasoning_content", DETAILS)
# Fields of a reasoning detail that arrive in pieces.
PIECED = ("text", "summary")
# Standard fields of a call; others go back to the provider.
OWN_FIELDS = ("id", "type", "function", "index")
ANSWER = "answer"
# Error types by status. Other statuses are invalid requests or server errors.
ERROR_TYPES: Mapping[int, str] = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
# Limit of checks whether a call is complete: each check parses all of it.
MOST_LOOKS = 64


class ChatReader:
    """Reader of one reply. `finished`: the model gave a finish reason; `done`: the stream sent its end event."""

    def __init__(self, *, model: str, blame: Blame | None = None) -> None:
        self._model = model
        self._blame = blame or Blame(model=model)
        self._calls = Calls(model=model)
        self._thoughts: dict[str, list[str]] = {}
        self._details: list[Mapping[str, Json]] = []
        self._usage: Usage | None = None
        self._reason = ""
        self._is_refusal = False
        self.done = False

    @property
    def finished(self) -> bool:
        """True after a finish reason: only usage may follow."""
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
        choice = _first(chunk.get("choices"))
        if choice is None:
            return
        # A server without streaming sends the whole message in place of a delta.
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, Mapping):
            yield from self._think(delta)
            yield from (TextDelta(text=text) for text in _texts(delta.get("content")) if text)
            refusal = delta.get("refusal")
            if isinstance(refusal, str) and refusal:
                self._is_refusal = True
                yield TextDelta(text=refusal)
            yield from self._calls.read(_calls_of(delta))
        self._usage = read_usage(choice.get("usage")) or self._usage
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            if reason in GIVEN_UP:
                raise ModelUnreachable(model=self._blame.model, problem=f"the server gave up ({reason}). Try again.")
            self._reason = reason
            yield from self._calls.close()
            if self._calls.nameless:
                raise self._cut_off("a tool call in its reply has no name.")

    def end(self) -> ReplyEnd:
        """Return the end of the reply. Raise ModelCutOff without a finish reason."""
        if not self.finished:
            raise self._cut_off("the stream ended before the reply did.")
        return ReplyEnd(
            finish=self._ending(), usage=self._usage, state=tuple(self._state()), call_state=self._calls.state()
        )

    def _think(self, delta: Mapping[str, Json]) -> Iterator[Delta]:
        thoughts = [(name, text) for name in THOUGHT_FIELDS if isinstance(text := delta.get(name), str) and text]
        for name, text in thoughts:
            self._thoughts.setdefault(name, []).append(text)
        if thoughts:
            yield ReasoningDelta(text=thoughts[0][1])
        details = delta.get(DETAILS)
        if isinstance(details, Sequence) and not isinstance(details, str):
            for detail in details:
                self._add_detail(detail)

    def _add_detail(self, detail: Json) -> None:
        if not isinstance(detail, Mapping):
            return
        last: Mapping[str, Json] = self._details[-1] if self._details else {}
        pieces = [name for name in PIECED if isinstance(last.get(name), str) and isinstance(detail.get(name), str)]
        same = all(last.get(name) == detail.get(name) for name in ("type", "index"))
        if not (same and (pieces or "signature" in detail)):
            self._details.append(detail)
            return
        fields = {name: value for name, value in detail.items() if value is not None}
        texts = {name: f"{last[name]}{detail[name]}" for name in pieces}
        self._details[-1] = {**last, **fields, **texts}

    def _ending(self) -> FinishReason:
        if self._is_refusal:
            return "refused"
        return FINISHES.get(self._reason) or ("tool_calls" if self._calls.any else "stop")

    def _state(self) -> Iterator[Opaque]:
        for name in STATE_ORDER:
            value = self._details if name == DETAILS else "".join(self._thoughts.get(name, ()))
            if value:
                yield Opaque(provider=WIRE, model=self._model, place="field", name=name, data=dump(value).decode())

    def _cut_off(self, problem: str) -> ModelCutOff:
        return ModelCutOff(model=self._blame.model, problem=problem)


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
    """Return the text of a chunk that contains only text, as most do: a fast path."""
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(delta, dict) or len(delta) != 1:
        return None
    if choice.get("finish_reason") or choice.get("usage") or chunk.get("usage") or chunk.get("error"):
        return None
    words = delta.get("content")
    return words if isinstance(words, str) else None


def _first(choices: Json) -> Mapping[str, Json] | None:
    if isinstance(choices, Sequence) and not isinstance(choices, str) and choices:
        return object_of(choices[0])
    return None


def _texts(content: Json) -> Iterator[str]:
    match content:
        case str():
            yield content
        case list():
            yield from (text for block in content if isinstance(text := object_of(block).get("text"), str))
        case _:
            pass


def _calls_of(delta: Mapping[str, Json]) -> Sequence[Json]:
    calls = delta.get("tool_calls")
    if isinstance(calls, Sequence) and not isinstance(calls, str):
        return calls
    # The format before tool calls: one function without an id.
    function = delta.get("function_call")
    return [{"index": 0, "function": function}] if isinstance(function, Mapping) else ()


@dataclass(kw_only=True)
class _Call:
    """Partial call. `id` is the provider's own; `waiting` are arguments that are not emitted yet."""

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


class Calls:
    """Calls of one reply. A call starts with its arguments: until then its name may grow."""

    def __init__(self, *, model: str) -> None:
        self._model = model
        self._calls: list[_Call] = []
        # The newest call by index or id, and the calls that have not started: a reply may have thousands.
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
        """Start the remaining calls: the reply is over, so their names are complete."""
        for call in self._not_started:
            yield from self._give_out(call, over=True)
        self._not_started = [call for call in self._not_started if not call.started]

    def state(self) -> Mapping[int, Opaque]:
        """Return the non-standard fields of calls, which go back to the provider, by the number of the call."""
        return {
            call.number: Opaque(
                provider=WIRE, model=self._model, place="field", name="call", data=dump(call.extra).decode()
            )
            for call in self._calls
            if call.extra
        }

    def _read(self, fragment: Fragment, *, alone: bool) -> Iterator[Delta]:
        function = fragment.get("function")
        name, arguments = _name_and_arguments(function) if isinstance(function, Mapping) else ("", "")
        call = self._find(fragment, alone=alone)
        if call is not None and name and _begins_another(fragment, call, arguments):
            call = None
        if call is None:
            yield from self.close()
            call = _Call(number=len(self._calls), place=fragment.get("index"))
            self._calls.append(call)
            self._not_started.append(call)
            self._by_place[str(call.place)] = call
        call.id = call.id or text_of(fragment.get("id"))
        self._by_id[call.id] = call
        # A partial name: servers send its next piece, or all of it again.
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


def _begins_another(fragment: Fragment, call: _Call, arguments: str) -> bool:
    """Return True if a fragment with a name is a new call: servers that send whole calls reuse index and id."""
    id = text_of(fragment.get("id"))
    if id and call.id and id != call.id:
        return True
    unnamed = not id and fragment.get("index") is None
    return bool(arguments or unnamed) and call.is_whole()


def _name_and_arguments(function: Mapping[str, Json]) -> tuple[str, str]:
    arguments = function.get("arguments")
    # Arguments are text; some servers send the object itself.
    text = dump(arguments).decode() if isinstance(arguments, Mapping) else text_of(arguments)
    return text_of(function.get("name")), text


def _asked_of_openai(_model: str, sampling: Sampling, *, has_tools: bool) -> Options:
    return _request_options(sampling, has_tools=has_tools) | present(max_completion_tokens=sampling.max_tokens)


def _asked_of_compatible(_model: str, sampling: Sampling, *, has_tools: bool) -> Options:
    # Most compatible servers accept only the older name.
    return _request_options(sampling, has_tools=has_tools) | present(max_tokens=sampling.max_tokens)


def _request_options(sampling: Sampling, *, has_tools: bool) -> dict[str, Json]:
    choice = sampling.tool_choice if has_tools else None
    function: Json = {"type": "function", "function": {"name": choice}}
    output = output_schema(sampling)
    answer: Json = {"name": ANSWER, "strict": True, "schema": output}
    return present(
        temperature=sampling.temperature,
        reasoning_effort=sampling.reasoning_effort,
        tool_choice=choice if choice in (None, "auto", "none", "required") else function,
        response_format={"type": "json_schema", "json_schema": answer} if output else None,
    )


def _error(status: int, code: str, detail: str) -> dict[str, Json]:
    kind = ERROR_TYPES.get(status, "api_error" if status >= SERVER_FAULT else "invalid_request_error")
    return {"error": {"message": detail, "type": kind, "param": None, "code": code}}


CHAT_SDK = ProviderSdk(
    path="/v1/chat/completions",
    also=("/v1/responses",),
    base="/v1",
    error=_error,
    fault_event=b"data: %b\n\n",
)
OPENAI_CHAT = WireProtocol(
    wire=WIRE,
    path="/chat/completions",
    key_header="Authorization",
    key_form="Bearer {key}",
    options={"stream": True, "stream_options": {"include_usage": True}},
    request_options=_asked_of_openai,
    reader=ChatReader,
    sdk=CHAT_SDK,
)
COMPATIBLE_CHAT = replace(OPENAI_CHAT, request_options=_asked_of_compatible)
