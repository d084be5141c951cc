"""Anthropic's stream: the deltas of each event, the ends of replies, and broken streams."""

from collections.abc import Iterable, Mapping

import pytest

from recto.conversation.json import Json, dump
from recto.conversation.messages import Opaque, Text, ToolCall
from recto.errors import ModelCutOff
from recto.models.anthropic_messages import MessagesReader, read_usage
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, ReplyUsage, TextDelta, Usage

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
    thinking_events = adds(index, type="thinking_delta", thinking=words)
    signature_events = [adds(index, type="signature_delta", signature=signature)] if signature else []
    return [begins(index, type="thinking", thinking="", signature=""), thinking_events, *signature_events, ends(index)]


def calls(index: int, *pieces: str, id: str = "toolu_a", name: str = "look") -> list[Mapping[str, Json]]:
    deltas = [adds(index, type="input_json_delta", partial_json=piece) for piece in pieces]
    return [begins(index, type="tool_use", id=id, name=name, input={}), *deltas, ends(index)]


def read(events: Iterable[Mapping[str, Json]]) -> list[Delta]:
    reader = MessagesReader(model="m")
    deltas = [delta for event in events for delta in reader.read(dump(event))]
    return [*[delta for delta in deltas if not isinstance(delta, ReplyUsage)], reader.end()]


def test_the_tokens_of_the_prompt_are_known_before_the_first_word():
    reader = MessagesReader(model="m")
    assert list(reader.read(dump(START))) == [ReplyUsage(usage=Usage(input=3, output=1))]
    silent = MessagesReader(model="m")
    assert list(silent.read(dump({"type": "message_start", "message": {}}))) == []


def read_end(events: Iterable[Mapping[str, Json]]) -> ReplyEnd:
    last = read(events)[-1]
    assert isinstance(last, ReplyEnd)
    return last


def thinking_state(words: str, signature: str = "s") -> Opaque:
    data = dump({"type": "thinking", "thinking": words, "signature": signature}).decode()
    return Opaque(provider="anthropic", model="m", place="block", name="thinking", data=data)


def test_thinking_is_shown_and_its_signed_block_kept_verbatim():
    assert read([START, *thinks(0, "hm", "sig=="), *says(1, "So."), stops(), STOP]) == [
        ReasoningDelta(text="hm"),
        TextDelta(text="So."),
        ReplyEnd(finish="stop", usage=Usage(input=3, output=2), state=(thinking_state("hm", "sig=="),)),
    ]


def test_signed_blocks_stay_in_the_order_they_came():
    redacted = begins(1, type="redacted_thinking", data="xx")
    end = read_end([START, *thinks(0, "a"), redacted, ends(1), *thinks(2, "b"), *says(3, "So."), stops(), STOP])
    sealed = Opaque(
        provider="anthropic",
        model="m",
        place="block",
        name="redacted_thinking",
        data='{"type":"redacted_thinking","data":"xx"}',
    )
    assert end.state == (thinking_state("a"), sealed, thinking_state("b"))
    assert end.parts == ()


def test_thinking_that_was_never_signed_does_not_go_back():
    assert read_end([START, *thinks(0, "hm", ""), stops("max_tokens"), STOP]).state == ()


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
    end = read_end(events)
    call = ToolCall(id="toolu_a", name="look", arguments='{"p":1}')
    assert end.parts == (thinking_state("a"), Text(text="I look."), thinking_state("b"), call)
    assert end.state == (thinking_state("a"), thinking_state("b"))


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


def test_what_is_cached_counts_as_input():
    counts = {"input_tokens": 5, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20, "output_tokens": 1}
    start: Mapping[str, Json] = {"type": "message_start", "message": {"usage": counts}}
    details: dict[str, Json] = {
        "output_tokens": 9,
        "output_tokens_details": {"thinking_tokens": 4},
        "input_tokens": None,
    }
    assert read_end([start, *says(0, "a"), {**stops(), "usage": details}, STOP]).usage == Usage(
        input=95, output=9, cached=70, cache_written=20, reasoning=4
    )


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
        ReplyEnd(finish="tool_calls", usage=Usage(input=1, output=2), state=(thinking_state("hm"),)),
    ]


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
