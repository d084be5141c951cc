"""Anthropic messages over HTTP against the recording model server: whole replies, broken ones, refusals, two calls."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest

from recto.conversation.json import Json, load
from recto.conversation.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolOffer,
    UserMessage,
)
from recto.errors import ModelBusy, ModelCutOff, ModelError, ModelRefused, ModelUnreachable, PageTooLong
from recto.models.anthropic_messages import ANTHROPIC_MESSAGES
from recto.models.deltas import join_deltas
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.ports import CallDelta, CallStarted, Delta, Model, ReasoningDelta, ReplyEnd, TextDelta, Usage, Used
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.testing.model_server import Answer, Call, ModelServer, failure, render
from tests.page.oracles import breaches

BODY = b'{"model":"m",  "messages":[]}'
THINKING = Answer(
    text="I look.",
    reasoning="Let me think.",
    signature="c2lnbmVk+/==",
    redacted="cmVkYWN0ZWQ=",
    calls=(Call(name="look", arguments='{"p": "好"}', id="toolu_a"), Call(name="time", id="toolu_b")),
    usage=Usage(input=100, output=9, cached=60, cache_written=30, reasoning=4),
)
LOOK = ToolOffer(name="look", description="Looks.", parameters='{"type":"object"}')


def model_at(root: str, key: str = "") -> EndpointModel:
    endpoint = Endpoint(base_url=root, key=key, key_setting="KEY_SETTING", protocol=ANTHROPIC_MESSAGES)
    return EndpointModel("m", endpoint)


async def deltas_of(model: Model, body: bytes = BODY, into: list[Delta] | None = None) -> list[Delta]:
    found: list[Delta] = [] if into is None else into
    try:
        async for delta in model.stream(body):
            found += [delta]
    finally:
        await model.aclose()
    return found


async def answered(answer: Answer) -> list[Delta]:
    with ModelServer([answer]) as server:
        return await deltas_of(model_at(server.root))


def letters(deltas: list[Delta]) -> list[tuple[str, str]]:
    """What was said, letter by letter: the same, however the deltas were put together."""
    apart: list[tuple[str, str]] = []
    for delta in deltas:
        match delta:
            case TextDelta(text=text) | ReasoningDelta(text=text):
                apart += [(type(delta).__name__, letter) for letter in text]
            case CallDelta(index=index, arguments=arguments):
                apart += [(f"call {index}", letter) for letter in arguments]
            case CallStarted():
                apart.append(("call", delta.id))
            case Used():
                pass
            case ReplyEnd():
                apart.append(("ended", delta.finish))
    return apart


def message_of(deltas: list[Delta]) -> AssistantMessage:
    """The reply as the log has it: state, words, calls."""
    ended = deltas[-1]
    assert isinstance(ended, ReplyEnd)
    words = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    written = [delta for delta in deltas if isinstance(delta, CallDelta)]
    calls = [
        ToolCall(id=one.id, name=one.name, arguments="".join(d.arguments for d in written if d.index == one.index))
        for one in deltas
        if isinstance(one, CallStarted)
    ]
    parts: tuple[AssistantPart, ...] = (*ended.state, Text(text=words), *calls)
    return AssistantMessage(id="a", parts=parts)


def test_it_is_a_model():
    model: Model = model_at("http://127.0.0.1:1")
    assert (model.name, model.target.model, model.target.wire) == ("m", "m", "anthropic")
    assert model.options == {"stream": True, "max_tokens": 32_000, "cache_control": {"type": "ephemeral"}}


@pytest.mark.asyncio
async def test_the_bytes_sent_are_the_bytes_given_with_the_key_in_its_own_header():
    with ModelServer() as server:
        await deltas_of(model_at(f"{server.root}/", key="sk-1"))
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/messages", BODY)
    assert {"x-api-key": "sk-1", "anthropic-version": "2023-06-01"}.items() <= request.headers.items()
    assert "authorization" not in request.headers


@pytest.mark.asyncio
async def test_a_reply_comes_as_deltas_and_one_end():
    found = list(join_deltas(await answered(THINKING)))
    assert found[:-1] == [
        Used(usage=replace(THINKING.usage or Usage(), output=1, reasoning=0)),
        ReasoningDelta(text="Let me think."),
        TextDelta(text="I look."),
        CallStarted(index=0, id="toolu_a", name="look"),
        CallDelta(index=0, arguments='{"p": "好"}'),
        CallStarted(index=1, id="toolu_b", name="time"),
        CallDelta(index=1, arguments="{}"),
    ]
    ended = found[-1]
    assert isinstance(ended, ReplyEnd)
    assert (ended.finish, ended.usage) == ("tool_calls", THINKING.usage)
    assert [(state.name, load(state.data)) for state in ended.state] == [
        ("thinking", {"type": "thinking", "thinking": "Let me think.", "signature": "c2lnbmVk+/=="}),
        ("redacted_thinking", {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="}),
    ]


async def second_request(asked_of: str) -> tuple[Mapping[str, Json], bytes]:
    """What is sent after a reply with thinking and two calls, to a model of that name."""
    with ModelServer([THINKING, Answer(text="Done.")]) as server:
        model = model_at(server.root)
        question = UserMessage(id="u", response_id="a", parts=(Text(text="go"),))
        page, _ = assemble(Facts(log=(question,), target=model.target, tools=(LOOK,), options=model.options))
        reply = message_of(await deltas_of(model, page.body))
        results = [ToolMessage(id=id, tool_call_id=id, parts=(Text(text="seen"),)) for id in ("toolu_a", "toolu_b")]
        log: tuple[Message, ...] = (question, reply, *results)
        target = replace(model.target, model=asked_of)
        page, _ = assemble(Facts(log=log, target=target, tools=(LOOK,), options=model.options))
        await deltas_of(model, page.body)
    first, second = server.requests
    assert breaches(first.page, "anthropic") == []
    assert breaches(second.page, "anthropic") == []
    return second.page, second.body


@pytest.mark.asyncio
async def test_signed_thinking_goes_back_verbatim_and_in_its_place_to_the_model_that_made_it():
    page, body = await second_request("m")
    assert cast("Sequence[Json]", page["messages"])[1] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Let me think.", "signature": "c2lnbmVk+/=="},
            {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_a", "name": "look", "input": {"p": "好"}},
            {"type": "tool_use", "id": "toolu_b", "name": "time", "input": {}},
        ],
    }
    assert b'{"type":"thinking","thinking":"Let me think.","signature":"c2lnbmVk+/=="}' in body
    assert '"input":{"p": "好"}'.encode() in body


@pytest.mark.asyncio
async def test_signed_thinking_does_not_go_to_another_model():
    _, body = await second_request("n")
    assert b"thinking" not in body
    assert b"I look." in body


@pytest.mark.asyncio
async def test_every_byte_alone_gives_the_same_reply():
    alone = await answered(replace(THINKING, fragment=1))
    assert list(join_deltas(alone)) == list(join_deltas(await answered(THINKING)))


@pytest.mark.full
@pytest.mark.asyncio
async def test_a_stream_cut_at_any_byte_is_cut_off_or_whole_and_never_wrong():
    short = Answer(text="好.", reasoning="hm", calls=(Call(name="look", arguments='{"a":1}', id="c"),))
    whole, size = letters(await answered(short)), len(render(short, "anthropic"))
    with ModelServer([replace(short, cut_at=place) for place in range(size + 1)]) as server:
        model = model_at(server.root)
        for place in range(size + 1):
            found: list[Delta] = []
            try:
                await deltas_of(model, into=found)
            except ModelCutOff:
                assert not any(isinstance(delta, ReplyEnd) for delta in found)
                assert whole[: len(letters(found))] == letters(found), f"cut at {place}"
            else:
                assert letters(found) == whole
                assert place == size, f"cut at {place}"
    assert len(server.requests) == size + 1


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (("overloaded_error", "Overloaded"), ModelBusy),
        (("rate_limit_error", "Slow down"), ModelBusy),
        (("api_error", "Internal server error"), ModelUnreachable),
        (("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), PageTooLong),
    ],
)
@pytest.mark.asyncio
async def test_an_error_in_the_middle_of_a_stream_is_the_error_it_means(fault: tuple[str, str], kind: type[ModelError]):
    found: list[Delta] = []
    with ModelServer([Answer(text="a b", fault=fault)]) as server, pytest.raises(ModelError) as caught:
        await deltas_of(model_at(server.root), into=found)
    assert type(caught.value) is kind
    assert letters(found) == [("TextDelta", letter) for letter in "a b"][: len(letters(found))]
    assert not any(isinstance(delta, ReplyEnd) for delta in found)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failure(400, "max_tokens: Field required"), ModelRefused),
        (failure(400, "prompt is too long: 210000 tokens > 200000 maximum"), PageTooLong),
        (failure(401), ModelRefused),
        (failure(404), ModelRefused),
        (failure(413), PageTooLong),
        (failure(429), ModelBusy),
        (failure(500), ModelUnreachable),
        (failure(529), ModelBusy),
    ],
)
@pytest.mark.asyncio
async def test_a_status_is_the_error_it_means(answer: Answer, kind: type[ModelError]):
    with pytest.raises(ModelError) as caught:
        await answered(answer)
    assert type(caught.value) is kind


@pytest.mark.parametrize("status", [429, 529])
@pytest.mark.asyncio
async def test_busy_says_how_long_to_wait(status: int):
    with pytest.raises(ModelBusy) as caught:
        await answered(failure(status, retry_after="7"))
    assert caught.value.retry_after == 7.0


@pytest.mark.asyncio
async def test_a_wrong_key_is_told_by_its_setting():
    with pytest.raises(ModelRefused, match="KEY_SETTING"):
        await answered(failure(401))


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("length", "length"),
        ("content_filter", "refused"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "length"),
    ],
)
@pytest.mark.asyncio
async def test_a_reply_that_did_not_end_by_itself_says_how_it_ended(reason: str, finish: str):
    ended = (await answered(Answer(text="a", finish=reason)))[-1]
    assert isinstance(ended, ReplyEnd)
    assert ended.finish == finish


@pytest.mark.asyncio
async def test_a_server_that_does_not_stream_is_understood():
    body = b'{"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}'
    answer = Answer(body=body, headers=(("Content-Type", "application/json"),))
    assert await answered(answer) == [TextDelta(text="Hi"), ReplyEnd(finish="stop")]
