"""Anthropic's stream, event by event: what each adds, how a reply ends, and what is no reply at all."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json, dump
from recto.conversation.messages import Opaque, Text, ToolCall
from recto.errors import ModelBusy, ModelCutOff, ModelError, ModelUnreachable, PageTooLong
from recto.models.anthropic_messages import MessagesReader, read_usage
from recto.models.deltas import join_deltas
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta, Usage, Used
from recto.models.sse import EventReader
from recto.testing.model_server import Answer, Call, render

START: Mapping[str, Json] = {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}
STOP: Mapping[str, Json] = {"type": "message_stop"}


def begins(index: int, **block: Json) -> Mapping[str, Json]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def adds(index: int, **delta: Json) -> Mapping[str, Json]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def ends(index: int) -> Mapping[str, Json]:
    return {"type": "content_block_stop", "index": index}


def stops(reason: str | None = "end_turn") -> Mapping[str, Json]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 2}}


def says(index: int, *pieces: str) -> list[Mapping[str, Json]]:
    deltas = [adds(index, type="text_delta", text=piece) for piece in pieces]
    return [begins(index, type="text", text=""), *deltas, ends(index)]


def thinks(index: int, words: str, signature: str = "s") -> list[Mapping[str, Json]]:
    thought = adds(index, type="thinking_delta", thinking=words)
    signed = [adds(index, type="signature_delta", signature=signature)] if signature else []
    return [begins(index, type="thinking", thinking="", signature=""), thought, *signed, ends(index)]


def calls(index: int, *pieces: str, id: str = "toolu_a", name: str = "look") -> list[Mapping[str, Json]]:
    deltas = [adds(index, type="input_json_delta", partial_json=piece) for piece in pieces]
    return [begins(index, type="tool_use", id=id, name=name, input={}), *deltas, ends(index)]


def read(events: Iterable[Mapping[str, Json]]) -> list[Delta]:
    reader = MessagesReader(model="m")
    found = [delta for event in events for delta in reader.read(dump(event))]
    return [*[delta for delta in found if not isinstance(delta, Used)], reader.end()]


def test_the_tokens_of_the_prompt_are_known_before_the_first_word():
    reader = MessagesReader(model="m")
    assert list(reader.read(dump(START))) == [Used(usage=Usage(input=3, output=1))]
    silent = MessagesReader(model="m")
    assert list(silent.read(dump({"type": "message_start", "message": {}}))) == []


def ended(events: Iterable[Mapping[str, Json]]) -> ReplyEnd:
    last = read(events)[-1]
    assert isinstance(last, ReplyEnd)
    return last


def thought(words: str, signature: str = "s") -> Opaque:
    data = dump({"type": "thinking", "thinking": words, "signature": signature}).decode()
    return Opaque(provider="anthropic", model="m", place="block", name="thinking", data=data)


def test_words_come_as_they_are_said():
    assert read([START, {"type": "ping"}, *says(0, "Hi", " you"), stops(), STOP]) == [
        TextDelta(text="Hi"),
        TextDelta(text=" you"),
        ReplyEnd(finish="stop", usage=Usage(input=3, output=2)),
    ]


def test_thinking_is_shown_and_its_signed_block_kept_verbatim():
    assert read([START, *thinks(0, "hm", "sig=="), *says(1, "So."), stops(), STOP]) == [
        ReasoningDelta(text="hm"),
        TextDelta(text="So."),
        ReplyEnd(finish="stop", usage=Usage(input=3, output=2), state=(thought("hm", "sig=="),)),
    ]


def test_signed_blocks_stay_in_the_order_they_came():
    redacted = begins(1, type="redacted_thinking", data="xx")
    found = ended([START, *thinks(0, "a"), redacted, ends(1), *thinks(2, "b"), *says(3, "So."), stops(), STOP])
    sealed = Opaque(
        provider="anthropic",
        model="m",
        place="block",
        name="redacted_thinking",
        data='{"type":"redacted_thinking","data":"xx"}',
    )
    assert found.state == (thought("a"), sealed, thought("b"))
    assert found.parts == ()


def test_thinking_that_shows_nothing_is_kept_all_the_same():
    events = [
        START,
        begins(0, type="thinking", thinking="", signature=""),
        adds(0, type="signature_delta", signature="s"),
    ]
    assert read([*events, ends(0), *says(1, "So."), stops(), STOP]) == [
        TextDelta(text="So."),
        ReplyEnd(finish="stop", usage=Usage(input=3, output=2), state=(thought(""),)),
    ]


def test_thinking_that_was_never_signed_does_not_go_back():
    assert ended([START, *thinks(0, "hm", ""), stops("max_tokens"), STOP]).state == ()


def test_thinking_between_words_and_calls_keeps_its_place():
    events = [
        START,
        *thinks(0, "a"),
        *says(1, "I look."),
        *thinks(2, "b"),
        *calls(3, '{"p":1}'),
        stops("tool_use"),
        STOP,
    ]
    found = ended(events)
    call = ToolCall(id="toolu_a", name="look", arguments='{"p":1}')
    assert found.parts == (thought("a"), Text(text="I look."), thought("b"), call)
    assert found.state == (thought("a"), thought("b"))


def test_calls_in_parallel_are_told_apart():
    first, second = calls(0, '{"a"', ":1}"), calls(1, "", '{"b":2}', id="toolu_b", name="read")
    assert read([START, *first, *second, stops("tool_use"), STOP]) == [
        CallStarted(index=0, id="toolu_a", name="look"),
        CallDelta(index=0, arguments='{"a"'),
        CallDelta(index=0, arguments=":1}"),
        CallStarted(index=1, id="toolu_b", name="read"),
        CallDelta(index=1, arguments='{"b":2}'),
        ReplyEnd(finish="tool_calls", usage=Usage(input=3, output=2)),
    ]


@pytest.mark.parametrize("close", [True, False])
def test_a_call_without_arguments_has_an_empty_object(close: bool):
    events = calls(0, "") if close else calls(0, "")[:-1]
    assert read([START, *events, stops("tool_use"), STOP])[1] == CallDelta(index=0, arguments="{}")


def test_an_input_that_came_at_once_is_its_arguments():
    whole = begins(0, type="tool_use", id="x", name="look", input={"a": "好"})
    assert read([START, whole, ends(0), stops("tool_use"), STOP])[1] == CallDelta(index=0, arguments='{"a":"好"}')


def test_calls_without_an_id_or_with_the_same_one_are_told_apart_by_their_index():
    events = [*calls(0, "{}", id=""), *calls(1, "{}", id="x"), *calls(2, "{}", id="x")]
    found = [delta for delta in read([START, *events, stops("tool_use"), STOP]) if isinstance(delta, CallStarted)]
    assert [(delta.index, delta.id) for delta in found] == [(0, ""), (1, "x"), (2, "x")]


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "length"),
        ("refusal", "refused"),
        ("a_later_reason", "stop"),
    ],
)
def test_each_reason_to_stop_is_an_ending(reason: str, finish: str):
    assert ended([START, *says(0, "a"), stops(reason), STOP]).finish == finish


def test_a_call_cut_by_the_limit_is_an_ending_by_length():
    assert ended([START, *calls(0, '{"a":'), stops("max_tokens"), STOP]).finish == "length"


def test_what_is_cached_counts_as_input():
    counts = {"input_tokens": 5, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20, "output_tokens": 1}
    start: Mapping[str, Json] = {"type": "message_start", "message": {"usage": counts}}
    details: dict[str, Json] = {
        "output_tokens": 9,
        "output_tokens_details": {"thinking_tokens": 4},
        "input_tokens": None,
    }
    assert ended([start, *says(0, "a"), {**stops(), "usage": details}, STOP]).usage == Usage(
        input=95, output=9, cached=70, cache_written=20, reasoning=4
    )


def test_X4_a_count_that_no_call_can_have_is_no_usage():
    assert read_usage({"input_tokens": 2**63, "output_tokens": 1}) is None
    assert read_usage({"input_tokens": 1.0e300, "output_tokens": 1}) is None
    assert read_usage({"input_tokens": 10**9, "output_tokens": 1}) == Usage(input=10**9, output=1)


def test_without_counts_there_is_no_usage():
    assert read_usage(None) is None
    assert read_usage({}) is None


def test_events_and_deltas_of_a_later_version_are_passed_over():
    later = [{"type": "later"}, begins(0, type="later", x=1), adds(0, type="later_delta"), ends(0)]
    citing = [begins(1, type="text", text=""), adds(1, type="citations_delta", citation={}), ends(1)]
    assert read([START, *later, *citing, *says(2, "a"), stops(), STOP])[0] == TextDelta(text="a")


def test_a_server_that_does_not_stream_is_understood():
    content = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Hi"}]
    call: Mapping[str, Json] = {"type": "tool_use", "id": "x", "name": "look", "input": {}}
    usage = {"input_tokens": 1, "output_tokens": 2}
    message: Mapping[str, Json] = {
        "type": "message",
        "content": [*content, call],
        "stop_reason": "tool_use",
        "usage": usage,
    }
    assert read([message]) == [
        ReasoningDelta(text="hm"),
        TextDelta(text="Hi"),
        CallStarted(index=0, id="x", name="look"),
        CallDelta(index=0, arguments="{}"),
        ReplyEnd(finish="tool_calls", usage=Usage(input=1, output=2), state=(thought("hm"),)),
    ]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, ModelBusy),
        ({"type": "api_error", "message": "Internal"}, ModelUnreachable),
        ({"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}, PageTooLong),
    ],
)
def test_an_error_in_the_stream_is_the_error_it_means(error: Json, kind: type[ModelError]):
    with pytest.raises(kind):
        read([START, *says(0, "a"), {"type": "error", "error": error}])


def test_an_error_without_a_type_of_event_is_an_error_too():
    with pytest.raises(ModelUnreachable):
        read([{"error": {"message": "oops"}}])


@pytest.mark.parametrize(
    "events",
    [
        [],
        [START],
        [START, *says(0, "a")],
        [START, *says(0, "a"), STOP],
        [START, *says(0, "a"), stops(None), STOP],
        [START, adds(0, type="text_delta", text="a"), stops(), STOP],
        [START, ends(7), stops(), STOP],
        [START, begins(0, type="tool_use", id="x"), stops("tool_use"), STOP],
    ],
)
def test_what_never_came_to_its_end_is_cut_off(events: list[Mapping[str, Json]]):
    with pytest.raises(ModelCutOff):
        read(events)


@pytest.mark.parametrize("data", [b"{oops", b"7", b"[]", b'"x"', b"null"])
def test_what_is_no_object_is_cut_off(data: bytes):
    with pytest.raises(ModelCutOff):
        list(MessagesReader(model="m").read(data))


@pytest.mark.parametrize("data", [b"", b"  "])
def test_empty_data_says_nothing(data: bytes):
    assert list(MessagesReader(model="m").read(data)) == []


def test_nothing_is_read_after_the_stream_said_it_is_done():
    reader = MessagesReader(model="m")
    for event in (START, *says(0, "a"), stops(), STOP):
        list(reader.read(dump(event)))
    assert reader.done
    assert list(reader.read(b"{oops")) == []


words = st.text(st.characters(codec="utf-8"), max_size=20)
answers = st.builds(
    Answer,
    text=words,
    reasoning=words,
    redacted=st.sampled_from(["", "xx"]),
    calls=st.lists(
        st.builds(Call, name=st.just("look"), arguments=st.sampled_from(["{}", '{"a":"好"}'])), max_size=2
    ).map(lambda found: tuple(Call(name=one.name, arguments=one.arguments, id=f"c{n}") for n, one in enumerate(found))),
)


@given(answer=answers, size=st.integers(1, 50))
def test_a_reply_reads_the_same_however_its_bytes_are_cut(answer: Answer, size: int):
    body = render(answer, "anthropic")
    events, reader = EventReader(), MessagesReader(model="m")
    fragments = [body[start : start + size] for start in range(0, len(body), size)]
    found = list(
        join_deltas(delta for fragment in fragments for data in events.feed(fragment) for delta in reader.read(data))
    )
    assert "".join(delta.text for delta in found if isinstance(delta, TextDelta)) == answer.text
    assert "".join(delta.text for delta in found if isinstance(delta, ReasoningDelta)) == answer.reasoning
    assert [delta.arguments for delta in found if isinstance(delta, CallDelta)] == [
        call.arguments for call in answer.calls
    ]
    assert reader.end().usage == answer.usage
    assert len(reader.end().state) == bool(answer.reasoning) + bool(answer.redacted)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "index", "delta"]), inner),
    max_leaves=6,
)
KINDS = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message",
]


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(KINDS)},
            optional={
                "index": json_values,
                "content_block": json_values,
                "delta": json_values,
                "usage": json_values,
                "message": json_values,
                "content": json_values,
            },
        ),
        max_size=5,
    )
)
def test_whatever_a_server_sends_is_a_reply_or_a_model_error(events: list[Mapping[str, Json]]):
    try:
        assert isinstance(read(events)[-1], ReplyEnd)
    except ModelError:
        return
