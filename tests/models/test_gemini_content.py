"""Gemini's stream: the deltas of each event, the ends of replies, and broken streams."""

from collections.abc import Mapping

import pytest

from recto.conversation.json import Json, dump
from recto.conversation.messages import Text
from recto.errors import ModelCutOff
from recto.models.gemini_content import ContentReader, read_usage
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, ReplyUsage, TextDelta, Usage
from recto.page.wire.gemini import part_state, signature_state

STOP: Mapping[str, Json] = {"candidates": [{"finishReason": "STOP"}]}
CODE: Json = {"executableCode": {"language": "PYTHON", "code": "1"}}


def says(*parts: Json, finish: str | None = None) -> Mapping[str, Json]:
    ending: dict[str, Json] = {"finishReason": finish} if finish else {}
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **ending}]}


def calls(name: str = "look", **fields: Json) -> Json:
    return {"functionCall": {"name": name, **fields}}


def read(*events: Mapping[str, Json]) -> list[Delta]:
    reader = ContentReader(model="m")
    deltas = [delta for event in events for delta in reader.read(dump(event))]
    return [*[delta for delta in deltas if not isinstance(delta, ReplyUsage)], reader.end()]


def read_end(*events: Mapping[str, Json]) -> ReplyEnd:
    last = read(*events)[-1]
    assert isinstance(last, ReplyEnd)
    return last


def test_words_and_thoughts_come_as_they_are_said():
    thinks: Json = {"text": "Hm.", "thought": True, "thoughtSignature": "never"}
    assert read(says(thinks), says({"text": "Hi"}), says({"text": " you"}, finish="STOP")) == [
        ReasoningDelta(text="Hm."),
        TextDelta(text="Hi"),
        TextDelta(text=" you"),
        ReplyEnd(finish="stop"),
    ]


def test_calls_come_whole_with_the_id_they_were_given_or_none():
    signed_block: Json = {"functionCall": {"name": "look", "args": {"at": "好"}}, "thoughtSignature": "c2ln"}
    deltas = read(says(signed_block), says(calls("time", id="f1")), STOP)
    assert deltas[:-1] == [
        CallStarted(index=0, id="", name="look"),
        CallDelta(index=0, arguments='{"at":"好"}'),
        CallStarted(index=1, id="f1", name="time"),
        CallDelta(index=1, arguments="{}"),
    ]
    assert deltas[-1] == ReplyEnd(finish="tool_calls", call_state={0: signature_state("c2ln", "m")})


def test_what_signs_words_stands_behind_them_and_they_are_joined_to_no_others():
    end = read_end(says({"text": "a"}), says({"text": "b", "thoughtSignature": "cw=="}), says({"text": "c"}), STOP)
    assert end.parts == (Text(text="a"), Text(text="b"), signature_state("cw==", "m"), Text(text="c"))


def test_a_signature_without_words_and_a_part_nobody_knows_are_kept_as_they_came():
    alone: Json = {"text": "", "thoughtSignature": "cw=="}
    end = read_end(says(CODE), says({"text": "a"}), says(alone, finish="STOP"))
    code, signed_state = (
        part_state({"executableCode": {"language": "PYTHON", "code": "1"}}, "m"),
        part_state(alone, "m"),
    )
    assert end.parts == (code, Text(text="a"), signed_state)
    assert end.state == (code, signed_state)


def test_a_prompt_that_was_blocked_is_filtered():
    blocked: Mapping[str, Json] = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    assert read({**blocked, "usageMetadata": {"promptTokenCount": 7}}) == [
        ReplyEnd(finish="filtered", usage=Usage(input=7))
    ]


def test_thoughts_are_beside_the_answer_and_the_last_count_stands():
    first: Mapping[str, Json] = {"promptTokenCount": 10, "totalTokenCount": 10}
    last: Mapping[str, Json] = {
        "promptTokenCount": 10,
        "cachedContentTokenCount": 8,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 4,
        "toolUsePromptTokenCount": 1,
    }
    reader = ContentReader(model="m")
    events = [{**says({"text": "a"}), "usageMetadata": first}, {**STOP, "usageMetadata": last}]
    deltas = [delta for event in events for delta in reader.read(dump(event))]
    assert deltas == [ReplyUsage(usage=Usage(input=10)), TextDelta(text="a")]
    assert reader.end().usage == Usage(input=11, output=7, cached=8, reasoning=4)
    assert read_usage({}) is None


def test_a_stream_that_ends_without_a_reason_is_cut_off():
    with pytest.raises(ModelCutOff, match="before the reply did"):
        read(says({"text": "a"}))
    with pytest.raises(ModelCutOff):
        read()


def test_a_call_without_a_name_is_no_reply():
    with pytest.raises(ModelCutOff, match="no name"):
        read(says({"functionCall": {"args": {}}}), STOP)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"candidates": []},
        {"candidates": [1]},
        {"candidates": {}},
        says(1, "x", None, {}, {"text": 1}),
        {"usageMetadata": 3, "promptFeedback": "no"},
    ],
)
def test_what_says_nothing_adds_nothing(event: Mapping[str, Json]):
    deltas = [delta for delta in read(event, STOP) if isinstance(delta, (TextDelta, ReasoningDelta, CallStarted))]
    assert deltas == []
