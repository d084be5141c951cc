"""Readers of streamed replies: the rules for every provider's stream."""

from collections.abc import Callable, Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json, dump
from recto.errors import ModelBusy, ModelCutOff, ModelError, ModelUnreachable, PageTooLong
from recto.models.choose import PROVIDERS
from recto.models.deltas import join_deltas
from recto.models.faults import Blame
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, ReplyUsage, TextDelta
from recto.models.sse import EventReader
from recto.models.wire_protocol import ReplyReader
from recto.testing.model_server import Answer, Call, render

PROTOCOLS = {one.protocol.wire: one.protocol for one in PROVIDERS}
WIRES = tuple(PROTOCOLS)
OPENAI, ANTHROPIC, RESPONSES, GEMINI = "openai", "anthropic", "openai-responses", "gemini"
words = st.text(st.characters(codec="utf-8"), max_size=20)
calls = st.lists(st.sampled_from(["{}", '{"a":"好"}']), max_size=2).map(
    lambda items: tuple(Call(name="look", arguments=arguments, id=f"c{n}") for n, arguments in enumerate(items))
)
answers = st.builds(
    Answer, text=words, reasoning=words, calls=calls, finish=st.sampled_from((None, "length", "content_filter"))
)
FIELDS = (
    *("type", "index", "delta", "content_block", "usage", "message", "content", "stop_reason"),
    *("choices", "tool_calls", "function", "name", "id", "finish_reason", "error", "prompt_tokens"),
    *("output_index", "item", "response", "output", "call_id", "arguments", "summary", "status"),
    *("candidates", "parts", "text", "functionCall", "args", "finishReason", "usageMetadata", "thoughtSignature"),
)
KINDS = (
    *("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message"),
    *("response.output_item.added", "response.output_item.done", "response.output_text.delta", "response.completed"),
    *("text", "tool_use", "thinking", "function_call", "reasoning", "stop", "STOP", ""),
)
anything: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.sampled_from(KINDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)


def reader_of(wire: str) -> ReplyReader:
    return PROTOCOLS[wire].reader(model="m", blame=Blame(model="m"))


def read(reader: ReplyReader, fragments: Iterable[bytes]) -> list[Delta]:
    events = EventReader()
    return [delta for fragment in fragments for data in events.feed(fragment) for delta in reader.read(data)]


def letters(deltas: list[Delta]) -> list[tuple[object, ...]]:
    """Return the reply letter by letter, independent of joined deltas, without the tokens of the prompt."""
    apart: list[tuple[object, ...]] = []
    for delta in deltas:
        match delta:
            case TextDelta(text=text) | ReasoningDelta(text=text):
                apart += [(type(delta), letter) for letter in text]
            case CallDelta(index=index, arguments=arguments):
                apart += [(index, letter) for letter in arguments]
            case ReplyUsage():
                pass
            case _:
                apart.append((delta,))
    return apart


@pytest.mark.parametrize("wire", WIRES)
@given(answer=answers, places=st.lists(st.integers(0, 5000), max_size=40))
def test_a_reply_reads_the_same_however_its_bytes_are_cut(wire: str, answer: Answer, places: list[int]):
    body, whole, pieced = render(answer, wire), reader_of(wire), reader_of(wire)
    borders = [0, *sorted(place % (len(body) + 1) for place in places), len(body)]
    deltas = list(join_deltas(read(whole, [body])))
    apart = read(pieced, [body[start:end] for start, end in pairwise(borders)])
    assert (letters(apart), pieced.end()) == (letters(deltas), whole.end())
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == answer.text
    assert "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta)) == answer.reasoning
    assert [delta.name for delta in deltas if isinstance(delta, CallStarted)] == ["look"] * len(answer.calls)
    assert [delta.arguments for delta in deltas if isinstance(delta, CallDelta)] == [
        call.arguments for call in answer.calls
    ]
    assert whole.end().usage == answer.usage


@pytest.mark.parametrize("wire", WIRES)
@given(answer=answers, data=st.data())
def test_a_stream_cut_at_any_byte_is_the_beginning_of_its_reply_and_never_a_shorter_whole(
    wire: str, answer: Answer, data: st.DataObject
):
    body, whole, cut = render(answer, wire), reader_of(wire), reader_of(wire)
    expected = letters(read(whole, [body]))
    letters_read = letters(read(cut, [body[: data.draw(st.integers(0, len(body) - 1))]]))
    assert expected[: len(letters_read)] == letters_read
    try:
        reply_end = cut.end()
    except ModelCutOff:
        return
    assert (letters_read, reply_end.finish) == (expected, whole.end().finish)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("data", [b"{oops", b"7", b"[]", b'"x"', b"null"])
def test_an_event_that_is_no_object_is_cut_off(wire: str, data: bytes):
    with pytest.raises(ModelCutOff):
        list(reader_of(wire).read(data))


@pytest.mark.parametrize("wire", WIRES)
@given(events=st.lists(st.dictionaries(st.sampled_from(FIELDS), anything, max_size=4), max_size=3))
def test_whatever_json_comes_gives_a_reply_or_a_model_error(wire: str, events: list[dict[str, Json]]):
    reader = reader_of(wire)
    try:
        for event in events:
            list(reader.read(dump(event)))
        assert isinstance(reader.end(), ReplyEnd)
    except ModelError as error:
        assert str(error)


@pytest.mark.parametrize("wire", [OPENAI, ANTHROPIC, RESPONSES])
def test_nothing_is_read_after_the_stream_said_it_is_done(wire: str):
    reader = reader_of(wire)
    assert read(reader, [render(Answer(text="a"), wire)])
    assert reader.done
    assert list(reader.read(b"{oops")) == []


ENDS: dict[str, Callable[[str], list[Json]]] = {
    OPENAI: lambda reason: [{"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}],
    ANTHROPIC: lambda reason: [{"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}],
    GEMINI: lambda reason: [{"candidates": [{"finishReason": reason}]}],
}
FINISHES: dict[str, dict[str, str]] = {
    OPENAI: {**dict.fromkeys(("stop", "tool_calls", "eos"), "stop"), "length": "length", "content_filter": "filtered"},
    ANTHROPIC: {
        **dict.fromkeys(("end_turn", "stop_sequence", "a_later_reason"), "stop"),
        **dict.fromkeys(("max_tokens", "model_context_window_exceeded", "pause_turn"), "length"),
        "refusal": "refused",
    },
    GEMINI: {
        **dict.fromkeys(("STOP", "A_LATER_ONE"), "stop"),
        "MAX_TOKENS": "length",
        **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "OTHER"), "filtered"),
    },
}


@pytest.mark.parametrize("wire", FINISHES)
def test_each_reason_to_stop_is_an_ending(wire: str):
    for reason, finish in FINISHES[wire].items():
        reader = reader_of(wire)
        for event in ENDS[wire](reason):
            list(reader.read(dump(event)))
        assert reader.end().finish == finish, reason


TOO_LONG = "The input token count (9) exceeds the maximum number of tokens allowed (1)."
ERRORS: list[tuple[str, Json, type[ModelError]]] = [
    (OPENAI, {"error": {"message": "slow down", "type": "rate_limit_error"}}, ModelBusy),
    (OPENAI, {"error": {"message": "x", "code": "context_length_exceeded"}}, PageTooLong),
    (OPENAI, {"error": "something"}, ModelUnreachable),
    (OPENAI, {"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}, ModelUnreachable),
    (ANTHROPIC, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, ModelBusy),
    (ANTHROPIC, {"error": {"message": "oops"}}, ModelUnreachable),
    (GEMINI, {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED"}}, ModelBusy),
    (GEMINI, {"error": {"code": 400, "message": TOO_LONG}}, PageTooLong),
    (GEMINI, {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, ModelUnreachable),
]


@pytest.mark.parametrize(("wire", "event", "kind"), ERRORS)
def test_an_error_in_the_stream_is_the_error_it_names(wire: str, event: Json, kind: type[ModelError]):
    reader = reader_of(wire)
    with pytest.raises(ModelError) as caught_error:
        list(reader.read(dump(event)))
        reader.end()
    assert type(caught_error.value) is kind


COUNTS = {OPENAI: "prompt_tokens", ANTHROPIC: "input_tokens", RESPONSES: "input_tokens", GEMINI: "promptTokenCount"}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("count", [b"9223372036854775808", b"123456789012345678901234567890", b"1e308"])
def test_X4_a_count_that_no_call_can_have_is_no_usage_and_the_reply_stands(wire: str, count: bytes):
    field = COUNTS[wire].encode()
    body = render(Answer(text="a"), wire)
    reader = reader_of(wire)
    assert TextDelta(text="a") in read(reader, [body.replace(b'"%b":' % field, b'"%b":%b,"was":' % (field, count))])
    assert reader.end().usage is None
