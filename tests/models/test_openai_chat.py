"""A streamed reply on the OpenAI wire, read chunk by chunk: well-behaved servers first, then the others."""

import json
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json
from recto.conversation.messages import AssistantMessage, Opaque
from recto.errors import ModelBusy, ModelCutOff, ModelError, ModelRefused, ModelUnreachable, PageTooLong
from recto.models.openai_chat import ChatReader
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.models.sse import EventReader
from recto.page.wire.formats import decode
from recto.testing.model_server import Answer, Call, render

Chunk = Mapping[str, Json]


def chunk(finish: str | None = None, **delta: Json) -> Chunk:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def call(**fragment: Json) -> Chunk:
    return chunk(tool_calls=[fragment])


def read(*chunks: Chunk | bytes) -> list[Delta]:
    """The deltas of a stream that ends well."""
    reader = ChatReader(model="m")
    events = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in chunks]
    deltas = [delta for event in events for delta in reader.read(event)]
    return [*deltas, reader.end()]


def calls_in(deltas: list[Delta]) -> list[tuple[str, str, str]]:
    started = [delta for delta in deltas if isinstance(delta, CallStarted)]
    written = [delta for delta in deltas if isinstance(delta, CallDelta)]
    return [
        (one.id, one.name, "".join(more.arguments for more in written if more.index == one.index)) for one in started
    ]


def end_of(deltas: list[Delta]) -> ReplyEnd:
    last = deltas[-1]
    assert isinstance(last, ReplyEnd)
    return last


def test_words_come_as_they_are_written():
    assert read(chunk(role="assistant", content=""), chunk(content="Hel"), chunk(content="lo"), chunk("stop")) == [
        TextDelta(text="Hel"),
        TextDelta(text="lo"),
        ReplyEnd(finish="stop"),
    ]


@given(st.lists(st.integers(0, 5000), max_size=40))
def test_any_fragmentation_of_a_stream_gives_the_same_deltas(places: list[int]):
    answer = Answer(text="好 of 12*7", reasoning="hm hm", calls=(Call(name="a", arguments='{"x":"好"}', id="1"),))
    whole = render(answer)
    borders = [0, *sorted(place % (len(whole) + 1) for place in places), len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(borders)]
    assert read(*events([whole])) == read(*events(pieces))


def events(pieces: list[bytes]) -> list[bytes]:
    reader = EventReader()
    return [data for piece in pieces for data in reader.feed(piece)]


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


def test_fragments_of_several_calls_may_alternate():
    deltas = read(
        call(index=0, id="a", function={"name": "x", "arguments": '{"n"'}),
        call(index=1, id="b", function={"name": "y", "arguments": "{"}),
        call(index=0, function={"arguments": ":1}"}),
        call(index=1, function={"arguments": "}"}),
        chunk("tool_calls"),
    )
    assert calls_in(deltas) == [("a", "x", '{"n":1}'), ("b", "y", "{}")]


def test_a_call_may_come_whole_in_one_chunk():
    deltas = read(call(id="a", function={"name": "x", "arguments": "{}"}), chunk("tool_calls"))
    assert calls_in(deltas) == [("a", "x", "{}")]


def test_whole_calls_without_index_and_id_are_told_apart():
    whole: Json = {"function": {"name": "x", "arguments": '{"a":1}'}}
    assert calls_in(read(chunk(tool_calls=[whole, whole]), chunk(tool_calls=[whole]), chunk("stop"))) == [
        ("", "x", '{"a":1}'),
        ("", "x", '{"a":1}'),
        ("", "x", '{"a":1}'),
    ]


def test_whole_calls_that_all_claim_index_zero_are_told_apart():
    deltas = read(
        call(index=0, id="a", function={"name": "x", "arguments": "{}"}),
        call(index=0, id="b", function={"name": "y", "arguments": "{}"}),
        call(index=0, id="", function={"name": "z", "arguments": "{}"}),
        chunk("tool_calls"),
    )
    assert calls_in(deltas) == [("a", "x", "{}"), ("b", "y", "{}"), ("", "z", "{}")]


def test_fragments_without_an_index_go_on_with_the_last_call():
    deltas = read(
        call(id="a", function={"name": "x", "arguments": "{"}), call(function={"arguments": "}"}), chunk("stop")
    )
    assert calls_in(deltas) == [("a", "x", "{}")]


def test_ids_that_repeat_in_a_reply_are_told_as_they_came():
    function: Json = {"name": "x", "arguments": "{}"}
    deltas = read(
        call(index=0, id="a", function=function),
        call(index=1, id="a", function=function),
        call(index=2, id="a", function=function),
        chunk("tool_calls"),
    )
    assert [id for id, _, _ in calls_in(deltas)] == ["a", "a", "a"]


@pytest.mark.parametrize("names", [["get_", "time"], ["get_time", "get_time"], ["get", "get_time"], [None, "get_time"]])
def test_a_name_may_come_late_in_pieces_or_again(names: list[str | None]):
    fragments = [call(index=0, id="a", function={"name": name}) for name in names]
    deltas = read(*fragments, call(index=0, function={"arguments": "{}"}), chunk("tool_calls"))
    assert calls_in(deltas) == [("a", "get_time", "{}")]


def test_arguments_wait_for_a_name_that_comes_after_them():
    deltas = read(
        call(index=0, function={"arguments": "{}"}), call(index=0, function={"name": "x"}), chunk("tool_calls")
    )
    assert calls_in(deltas) == [("", "x", "{}")]


def test_a_name_repeated_in_every_chunk_is_one_name():
    deltas = read(
        *(call(index=0, id="a", function={"name": "x", "arguments": piece}) for piece in ("{", "}", "")),
        chunk("tool_calls"),
    )
    assert calls_in(deltas) == [("a", "x", "{}")]


def test_a_call_without_arguments_starts_at_the_end():
    deltas = read(call(index=0, id="a", function={"name": "x", "arguments": ""}), chunk("tool_calls"))
    assert deltas == [CallStarted(index=0, id="a", name="x"), ReplyEnd(finish="tool_calls")]


def test_arguments_sent_as_an_object_become_text():
    deltas = read(call(index=0, id="a", function={"name": "x", "arguments": {"n": 1}}), chunk("stop"))
    assert calls_in(deltas) == [("a", "x", '{"n":1}')]


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
    written: Json = {"id": "b", "type": "function", "function": function, "extra_content": extra}
    (message,) = decode([{"role": "assistant", "content": None, "tool_calls": [written]}], model="m")
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


@pytest.mark.parametrize("count", ["9223372036854775808", "123456789012345678901234567890", "1e308", "1e999"])
def test_X4_a_count_that_no_call_can_have_is_no_usage_and_the_reply_stands(count: str):
    written = f'{{"choices": [], "usage": {{"prompt_tokens": {count}, "completion_tokens": 4}}}}'
    deltas = read(chunk(content="x"), chunk("stop"), written.encode(), b"[DONE]")
    assert (deltas[0], end_of(deltas).usage) == (TextDelta(text="x"), Usage(output=4) if count == "1e999" else None)


def test_no_usage_is_none_and_not_zero():
    assert end_of(read({**chunk("stop"), "usage": None})).usage is None


@pytest.mark.parametrize(
    ("reason", "finish"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "filtered"), ("eos", "stop"), ("tool_calls", "stop")],
)
def test_each_finish_reason_has_its_ending(reason: str, finish: str):
    assert end_of(read(chunk(reason))).finish == finish


def test_stop_with_calls_counts_as_calls():
    assert end_of(read(call(id="a", function={"name": "x", "arguments": "{}"}), chunk("stop"))).finish == "tool_calls"


def test_calls_cut_by_length_end_by_length():
    assert end_of(read(call(id="a", function={"name": "x", "arguments": "{"}), chunk("length"))).finish == "length"


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


def test_nothing_is_read_after_the_stream_said_it_is_done():
    assert read(chunk(content="x"), chunk("stop"), b"[DONE]", chunk(content="y")) == [
        TextDelta(text="x"),
        ReplyEnd(finish="stop"),
    ]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "slow down", "type": "rate_limit_error"}, ModelBusy),
        ({"message": "no", "code": 429}, ModelBusy),
        ({"message": "no", "code": "insufficient_quota"}, ModelRefused),
        ({"message": "oops", "type": "server_error"}, ModelUnreachable),
        ({"message": "overloaded", "code": 502}, ModelUnreachable),
        ({"message": "bad", "type": "invalid_request_error"}, ModelRefused),
        ({"message": "x", "code": "context_length_exceeded"}, PageTooLong),
        ({"message": "This model's maximum context length is 8192 tokens"}, PageTooLong),
        ("something", ModelUnreachable),
    ],
)
def test_an_error_in_the_stream_is_the_error_it_names(error: Json, kind: type[ModelError]):
    with pytest.raises(kind):
        read(chunk(content="x"), {"error": error})


def test_a_server_that_gave_up_gave_no_reply():
    with pytest.raises(ModelUnreachable, match="gave up"):
        read(chunk(content="x"), chunk("error"))


@pytest.mark.parametrize("data", [b"{oops", b"[1]", b"null", b"7"])
def test_an_event_that_is_no_json_object_is_no_stream_of_the_protocol(data: bytes):
    with pytest.raises(ModelCutOff):
        read(data)


def test_half_of_a_surrogate_pair_is_replaced():
    assert read(b'{"choices":[{"delta":{"content":"a\\ud83d"}}]}', chunk("stop"))[0] == TextDelta(text="a\ufffd")


def test_content_in_blocks_is_read_as_words():
    assert read(chunk(content=[{"type": "text", "text": "a"}, {"type": "other"}]), chunk("stop"))[0] == TextDelta(
        text="a"
    )


NAMES = [
    "choices",
    "delta",
    "content",
    "tool_calls",
    "function",
    "name",
    "id",
    "index",
    "usage",
    "prompt_tokens",
    "error",
]
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.sampled_from(["", "a", "stop"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=3), st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES), max_size=3))
def test_whatever_json_comes_gives_deltas_or_a_model_error(choices: list[Json], calls: list[dict[str, Json]]):
    try:
        deltas = read({"choices": choices}, chunk(tool_calls=calls), chunk("stop"))
    except ModelError:
        return
    assert isinstance(deltas[-1], ReplyEnd)
