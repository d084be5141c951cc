"""The stream of OpenAI Responses: the deltas of each event, the ends of replies, and broken streams."""

from collections.abc import Mapping

import pytest

from recto.conversation.json import Json, dump
from recto.conversation.messages import Opaque, Text, ToolCall
from recto.errors import ModelBusy, ModelCutOff, ModelError, ModelRefused, ModelUnreachable, PageTooLong
from recto.models.deltas import join_deltas
from recto.models.openai_responses_api import ResponsesReader, read_usage
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta, Usage

Event = Mapping[str, Json]
WIRE = "openai-responses"
USAGE_ROW: Json = {"input_tokens": 3, "output_tokens": 2}
USAGE = Usage(input=3, output=2)


def added(place: int, **item: Json) -> Event:
    return {"type": "response.output_item.added", "output_index": place, "item": item}


def whole(place: int, **item: Json) -> Event:
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def adds(kind: str, place: int, delta: str, **more: Json) -> Event:
    return {"type": f"response.{kind}.delta", "output_index": place, "delta": delta, **more}


def says(place: int, *pieces: str, **more: Json) -> list[Event]:
    blocks: Json = [{"type": "output_text", "text": "".join(pieces)}]
    deltas = [adds("output_text", place, piece, content_index=0) for piece in pieces]
    return [added(place, type="message"), *deltas, whole(place, type="message", content=blocks, **more)]


def thinks(place: int, *parts: str, sealed: str | None = "gAAA") -> list[Event]:
    deltas = [adds("reasoning_summary_text", place, words, summary_index=n) for n, words in enumerate(parts)]
    summary: Json = [{"type": "summary_text", "text": words} for words in parts]
    item: dict[str, Json] = {"id": f"rs_{place}", "summary": summary, "encrypted_content": sealed, "status": None}
    return [added(place, type="reasoning", summary=[]), *deltas, whole(place, type="reasoning", content=[], **item)]


def calls(place: int, *pieces: str, id: str = "call_a") -> list[Event]:
    call: dict[str, Json] = {"type": "function_call", "id": f"fc_{place}", "call_id": id, "name": "look"}
    deltas = [adds("function_call_arguments", place, piece) for piece in pieces]
    arguments = "".join(pieces)
    done: Event = {"type": "response.function_call_arguments.done", "output_index": place, "arguments": arguments}
    return [added(place, **call, arguments=""), *deltas, done, whole(place, **call, arguments=arguments)]


def ends(kind: str = "completed", **response: Json) -> Event:
    return {"type": f"response.{kind}", "response": {"usage": USAGE_ROW, **response}}


def reasoning_item(place: int, *parts: str) -> Opaque:
    summary = [{"type": "summary_text", "text": words} for words in parts]
    item = {"type": "reasoning", "id": f"rs_{place}", "summary": summary, "encrypted_content": "gAAA"}
    return Opaque(provider=WIRE, model="m", place="block", name="reasoning", data=dump(item).decode())


def read(*events: Event) -> list[Delta]:
    reader = ResponsesReader(model="m")
    deltas = [delta for event in events for delta in reader.read(dump(event))]
    return [*deltas, reader.end()]


def read_end(*events: Event) -> ReplyEnd:
    last = read(*events)[-1]
    assert isinstance(last, ReplyEnd)
    return last


def test_a_summary_is_shown_part_by_part_and_the_thought_kept_with_what_goes_back():
    assert read(*thinks(0, "One.", "Two."), *says(1, "So."), ends()) == [
        ReasoningDelta(text="One."),
        ReasoningDelta(text="\n\nTwo."),
        TextDelta(text="So."),
        ReplyEnd(finish="stop", usage=USAGE, state=(reasoning_item(0, "One.", "Two."),)),
    ]


def test_thoughts_of_two_items_are_told_apart():
    deltas = read(*thinks(0, "One."), *thinks(1, "Two."), *says(2, "So."), ends())
    assert deltas[:2] == [ReasoningDelta(text="One."), ReasoningDelta(text="\n\nTwo.")]
    assert deltas[-1] == ReplyEnd(
        finish="stop", usage=USAGE, state=(reasoning_item(0, "One."), reasoning_item(1, "Two."))
    )


def test_a_thought_that_was_not_encrypted_does_not_go_back():
    assert read_end(*thinks(0, "One.", sealed=None), *says(1, "So."), ends()).state == ()


def test_a_thought_that_is_not_whole_does_not_go_back():
    start = added(0, type="reasoning", id="rs_0", encrypted_content="gA")
    assert read_end(start, *says(1, "So."), ends()).state == ()


def test_a_call_is_put_together_and_has_the_thought_that_led_to_it():
    assert read(*thinks(0), *calls(1, '{"a":', "1}"), ends()) == [
        CallStarted(index=0, id="call_a", name="look"),
        CallDelta(index=0, arguments='{"a":'),
        CallDelta(index=0, arguments="1}"),
        ReplyEnd(finish="tool_calls", usage=USAGE, call_state={0: reasoning_item(0)}),
    ]


def test_each_call_has_its_own_thought_and_words_theirs():
    end = read_end(
        *thinks(0), *says(1, "I look."), *thinks(2), *calls(3, "{}"), *thinks(4), *calls(5, "{}", id="call_b"), ends()
    )
    assert (end.state, end.call_state, end.parts) == (
        (reasoning_item(0),),
        {0: reasoning_item(2), 1: reasoning_item(4)},
        (),
    )


def test_what_comes_in_another_order_is_kept_in_that_order():
    end = read_end(*calls(0, "{}"), *thinks(1), *says(2, "So."), ends())
    call = ToolCall(id="call_a", name="look", arguments="{}")
    assert (end.finish, end.parts) == ("tool_calls", (call, reasoning_item(1), Text(text="So.")))


def test_what_words_are_for_goes_back_with_them():
    end = read_end(*says(0, "I look.", phase="commentary"), *says(1, "So.", phase="final_answer"), ends())
    first, second = (
        Opaque(provider=WIRE, model="m", place="field", name="phase", data=data)
        for data in ('"commentary"', '"final_answer"')
    )
    assert end.parts == (first, Text(text="I look."), second, Text(text="So."))


def test_what_a_tool_of_the_providers_does_is_passed_over():
    search = [added(0, type="web_search_call", id="ws"), whole(0, type="web_search_call", id="ws")]
    assert read(*search, *says(1, "So."), ends()) == [TextDelta(text="So."), ReplyEnd(finish="stop", usage=USAGE)]


def test_events_of_a_later_version_and_pings_are_passed_over():
    assert read({"type": "response.dance"}, {"type": "keepalive"}, {}, *says(0, "a"), ends())[0] == TextDelta(text="a")


def test_an_item_that_comes_whole_is_said_at_once():
    call: dict[str, Json] = {"type": "function_call", "call_id": "call_a", "name": "look", "arguments": "{}"}
    words: Json = [{"type": "output_text", "text": "a"}]
    summary: Json = [{"text": "One."}, {"text": "Two."}]
    deltas = read(
        whole(0, type="reasoning", summary=summary), whole(1, type="message", content=words), whole(2, **call), ends()
    )
    assert deltas[:-1] == [
        ReasoningDelta(text="One.\n\nTwo."),
        TextDelta(text="a"),
        CallStarted(index=0, id="call_a", name="look"),
        CallDelta(index=0, arguments="{}"),
    ]


def test_a_reply_that_does_not_stream_is_read_as_one():
    streamed = (*thinks(0, "One."), *says(1, "So."), *calls(2, "{}"))
    items: Json = [event["item"] for event in streamed if event["type"] == "response.output_item.done"]
    body: Event = {"object": "response", "status": "completed", "error": None, "output": items, "usage": USAGE_ROW}
    assert read(body) == list(join_deltas(read(*streamed, ends())))
    assert read(ends(output=items)) == read(body)


@pytest.mark.parametrize(
    ("details", "finish"),
    [
        ({"reason": "max_output_tokens"}, "length"),
        ({"reason": "content_filter"}, "filtered"),
        ({"reason": "steered"}, "length"),
        (None, "length"),
    ],
)
def test_a_reply_that_is_incomplete_says_why(details: Json, finish: str):
    end = read_end(
        added(0, type="message"), adds("output_text", 0, "Too lo"), ends("incomplete", incomplete_details=details)
    )
    assert (end.finish, end.usage) == (finish, USAGE)
    body: Event = {"object": "response", "status": "incomplete", "output": [], "incomplete_details": details}
    assert read_end(body).finish == finish


def test_a_refusal_is_words_and_the_reply_refused():
    refusal: Json = [{"type": "refusal", "refusal": "I will not."}]
    streamed = [added(0, type="message"), adds("refusal", 0, "I will not."), whole(0, type="message", content=refusal)]
    expected = [TextDelta(text="I will not."), ReplyEnd(finish="refused", usage=USAGE)]
    assert read(*streamed, ends()) == expected
    assert read(*streamed[:2], ends()) == expected
    assert read(ends(output=[{"type": "message", "content": refusal}])) == expected


FAULTS: dict[str, tuple[Json, type[ModelError]]] = {
    "a server that failed": ({"code": "server_error", "message": "oops"}, ModelUnreachable),
    "too many questions": ({"code": "rate_limit_exceeded", "message": "slow"}, ModelBusy),
    "a page that is too long": ({"code": "context_length_exceeded", "message": "too long"}, PageTooLong),
    "a prompt it does not take": ({"code": "invalid_prompt", "message": "no"}, ModelRefused),
    "a picture it cannot read": ({"code": "image_parse_error", "message": "no"}, ModelRefused),
    "a policy": ({"code": "bio_policy", "message": "no"}, ModelRefused),
    "something nobody knows": ({"code": None, "message": "oops"}, ModelUnreachable),
}


@pytest.mark.parametrize(("error", "fault"), FAULTS.values(), ids=FAULTS.keys())
def test_what_fails_is_told_as_what_it_means(error: Mapping[str, Json], fault: type[ModelError]):
    for event in (
        ends("failed", error=error),
        {"type": "error", **error},
        {"type": "error", "error": error},
        {"error": error},
        {"object": "response", "status": "failed", "error": error},
    ):
        with pytest.raises(fault, match=str(error["message"]).replace("too long", "too long for it")):
            read(*says(0, "a"), event)


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        (says(0, "a"), "the stream ended before the reply did"),
        ([adds("output_text", 0, "a")], "refers to an item that never started"),
        ([added(0, type="function_call", call_id="c")], "a tool call in its reply has no name"),
        ([{"object": "response", "status": "cancelled"}], r"gave up the reply \(cancelled\)"),
        ([{"object": "response"}], r"gave up the reply \(no status\)"),
    ],
)
def test_a_reply_that_is_not_whole_is_cut_off(events: list[Event], problem: str):
    with pytest.raises(ModelCutOff, match=problem):
        read(*events)


def test_tokens_are_counted_as_they_are_reported():
    usage: Json = {
        "input_tokens": 70,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 5},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 4},
    }
    assert read_usage(usage) == Usage(input=70, output=9, cached=64, cache_written=5, reasoning=4)
    assert read_usage(None) is None
    assert read_usage({}) is None
