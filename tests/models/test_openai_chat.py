"""Streams of chat completions: standard servers first, then the others."""

import json
from collections.abc import Mapping

import pytest

from recto.conversation.json import Json
from recto.conversation.messages import AssistantMessage, Opaque
from recto.errors import ModelCutOff
from recto.models.openai_chat import ChatReader
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.page.wire.formats import decode

Chunk = Mapping[str, Json]


def chunk(finish: str | None = None, **delta: Json) -> Chunk:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(**fragment: Json) -> Chunk:
    return chunk(tool_calls=[fragment])


def read(*chunks: Chunk | bytes) -> list[Delta]:
    """Return the deltas of a complete stream."""
    reader = ChatReader(model="m")
    events = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in chunks]
    deltas = [delta for event in events for delta in reader.read(event)]
    return [*deltas, reader.end()]


def calls_in(deltas: list[Delta]) -> list[tuple[str, str, str]]:
    started = [delta for delta in deltas if isinstance(delta, CallStarted)]
    call_deltas = [delta for delta in deltas if isinstance(delta, CallDelta)]
    return [
        (one.id, one.name, "".join(more.arguments for more in call_deltas if more.index == one.index))
        for one in started
    ]


def end_of(deltas: list[Delta]) -> ReplyEnd:
    last = deltas[-1]
    assert isinstance(last, ReplyEnd)
    return last


def test_a_call_comes_in_fragments_by_its_index():
    deltas = read(
        call(index=0, id="a", type="function", function={"name": "read", "arguments": ""}),
        call(index=0, function={"arguments": '{"p":'}),
        call(index=0, function={"arguments": "1}"}),
        chunk("tool_calls"),
    )
    assert deltas == [
        CallStarted(index=0, id="a", name="read"),
        CallDelta(index=0, arguments='{"p":'),
        CallDelta(index=0, arguments="1}"),
        ReplyEnd(finish="tool_calls"),
    ]


FUNCTION: Json = {"name": "x", "arguments": "{}"}
CALLS: dict[str, tuple[list[Chunk], list[tuple[str, str, str]]]] = {
    "fragments of several calls alternate": (
        [
            call(index=0, id="a", function={"name": "x", "arguments": '{"n"'}),
            call(index=1, id="b", function={"name": "y", "arguments": "{"}),
            call(index=0, function={"arguments": ":1}"}),
            call(index=1, function={"arguments": "}"}),
        ],
        [("a", "x", '{"n":1}'), ("b", "y", "{}")],
    ),
    "whole calls without index and id": (
        [chunk(tool_calls=[{"function": FUNCTION}, {"function": FUNCTION}]), call(function=FUNCTION)],
        [("", "x", "{}")] * 3,
    ),
    "whole calls that all claim index zero": (
        [call(index=0, id=id, function={"name": id or "z", "arguments": "{}"}) for id in ("a", "b", "")],
        [("a", "a", "{}"), ("b", "b", "{}"), ("", "z", "{}")],
    ),
    "fragments without an index go on with the last call": (
        [call(id="a", function={"name": "x", "arguments": "{"}), call(function={"arguments": "}"})],
        [("a", "x", "{}")],
    ),
    "ids that repeat": ([call(index=place, id="a", function=FUNCTION) for place in range(3)], [("a", "x", "{}")] * 3),
    "arguments before their name": (
        [call(index=0, function={"arguments": "{}"}), call(index=0, function={"name": "x"})],
        [("", "x", "{}")],
    ),
    "a name repeated in every chunk": (
        [call(index=0, id="a", function={"name": "x", "arguments": piece}) for piece in ("{", "}", "")],
        [("a", "x", "{}")],
    ),
    "arguments as an object": (
        [call(index=0, id="a", function={"name": "x", "arguments": {"n": 1}})],
        [("a", "x", '{"n":1}')],
    ),
}


@pytest.mark.parametrize(("chunks", "calls"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(
    ("reason", "finish"), [("tool_calls", "tool_calls"), ("stop", "tool_calls"), ("length", "length")]
)
def test_calls_are_told_apart_however_servers_write_them(
    chunks: list[Chunk], calls: list[tuple[str, str, str]], reason: str, finish: str
):
    deltas = read(*chunks, chunk(reason))
    assert (calls_in(deltas), end_of(deltas).finish) == (calls, finish)


@pytest.mark.parametrize("names", [["get_", "time"], ["get_time", "get_time"], ["get", "get_time"], [None, "get_time"]])
def test_a_name_may_come_late_in_pieces_or_again(names: list[str | None]):
    fragments = [call(index=0, id="a", function={"name": name}) for name in names]
    deltas = read(*fragments, call(index=0, function={"arguments": "{}"}), chunk("tool_calls"))
    assert calls_in(deltas) == [("a", "get_time", "{}")]


def test_a_call_without_arguments_starts_at_the_end():
    deltas = read(call(index=0, id="a", function={"name": "x", "arguments": ""}), chunk("tool_calls"))
    assert deltas == [CallStarted(index=0, id="a", name="x"), ReplyEnd(finish="tool_calls")]


def test_a_call_that_never_gets_a_name_is_no_reply():
    with pytest.raises(ModelCutOff, match="no name"):
        read(call(index=0, id="a", function={"arguments": "{}"}), chunk("tool_calls"))


def test_the_old_form_of_a_call_is_a_call_too():
    deltas = read(
        chunk(function_call={"name": "x", "arguments": ""}),
        chunk(function_call={"arguments": "{}"}),
        chunk("function_call"),
    )
    assert calls_in(deltas) == [("", "x", "{}")]
    assert end_of(deltas).finish == "tool_calls"


def test_unknown_fields_of_a_call_are_kept_as_decoding_a_call_keeps_them():
    extra: Json = {"google": {"thought_signature": "s"}}
    function: Json = {"name": "x", "arguments": "{}"}
    deltas = read(
        call(index=0, id="a", type="function", function=function),
        call(index=1, id="b", type="function", function=function, extra_content=extra),
        chunk("tool_calls"),
    )
    call_row: Json = {"id": "b", "type": "function", "function": function, "extra_content": extra}
    (message,) = decode([{"role": "assistant", "content": None, "tool_calls": [call_row]}], model="m")
    assert isinstance(message, AssistantMessage)
    assert end_of(deltas).call_state == {1: message.tool_calls[0].state}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_shown_and_goes_back_under_its_own_name(field: str):
    deltas = read(chunk(None, **{field: "Let "}), chunk(None, **{field: "me"}), chunk(content="Hi"), chunk("stop"))
    state = Opaque(provider="openai", model="m", place="field", name=field, data='"Let me"')
    assert deltas == [
        ReasoningDelta(text="Let "),
        ReasoningDelta(text="me"),
        TextDelta(text="Hi"),
        ReplyEnd(finish="stop", state=(state,)),
    ]


def test_reasoning_under_two_names_is_shown_once_and_goes_back_under_both():
    deltas = read(chunk(reasoning="a", reasoning_content="a"), chunk("stop"))
    assert deltas[:-1] == [ReasoningDelta(text="a")]
    assert [part.name for part in end_of(deltas).state] == ["reasoning", "reasoning_content"]


def test_details_of_reasoning_are_collected_with_their_pieces_joined():
    deltas = read(
        chunk(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "a"}]),
        chunk(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": "b", "signature": None}]),
        chunk(reasoning_details=[{"type": "reasoning.text", "index": 0, "signature": "s"}]),
        chunk(reasoning_details=[{"type": "reasoning.encrypted", "index": 1, "data": "x"}]),
        chunk("stop"),
    )
    (state,) = end_of(deltas).state
    assert json.loads(state.data) == [
        {"type": "reasoning.text", "index": 0, "text": "ab", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "x"},
    ]


def test_usage_comes_in_a_last_chunk_without_choices():
    usage: Json = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 7},
    }
    deltas = read(chunk(content="x"), chunk("stop"), {"choices": [], "usage": usage}, b"[DONE]")
    assert end_of(deltas).usage == Usage(input=100, output=20, cached=64, reasoning=7)


def test_usage_may_stand_beside_the_last_choice():
    usage: Json = {"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": None}
    assert end_of(read({**chunk("stop"), "usage": usage})).usage == Usage(input=3, output=4)


def test_a_refusal_is_shown_as_words_and_ends_refused():
    assert read(chunk(refusal="I can"), chunk(refusal="not"), chunk("stop")) == [
        TextDelta(text="I can"),
        TextDelta(text="not"),
        ReplyEnd(finish="refused"),
    ]


@pytest.mark.parametrize("chunks", [[], [chunk(content="x")], [chunk(content="x"), b"[DONE]"], [chunk("")]])
def test_without_a_finish_reason_there_is_no_end(chunks: list[Chunk | bytes]):
    with pytest.raises(ModelCutOff):
        read(*chunks)


def test_half_of_a_surrogate_pair_is_replaced():
    assert read(b'{"choices":[{"delta":{"content":"a\\ud83d"}}]}', chunk("stop"))[0] == TextDelta(text="a\ufffd")


def test_content_in_blocks_is_read_as_words():
    assert read(chunk(content=[{"type": "text", "text": "a"}, {"type": "other"}]), chunk("stop"))[0] == TextDelta(
        text="a"
    )
