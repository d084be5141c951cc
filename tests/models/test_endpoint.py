"""HTTP endpoints and the scripted model server: complete replies, broken ones, errors, cancellation."""

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from recto.agents.agent import Sampling
from recto.config.run_settings import Timeouts
from recto.conversation.json import Json, dump
from recto.conversation.messages import Opaque
from recto.errors import ModelBusy, ModelCutOff, ModelRefused, ModelUnreachable
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.gemini_content import GEMINI_CONTENT
from recto.models.ports import Delta, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.testing.model_server import Answer, Call, ModelServer, events, failure, render

BODY = '{"model":"m",  "messages":[{"role":"user","content":"好"}]}'.encode()
CALLING = Answer(text="I look.", calls=(Call(name="read", arguments='{"path":"a.py"}', id="c1"),), usage=None)
QUICK = Timeouts(connect=0.1, first_byte=0.1, between_bytes=0.1)


def model_at(url: str, *, key: str = "", timeouts: Timeouts | None = None) -> EndpointModel:
    endpoint = Endpoint(base_url=url, key=key, key_setting="KEY_SETTING", timeouts=timeouts or Timeouts())
    return EndpointModel("m", endpoint, clock=lambda: datetime(2026, 11, 6, 8, 49, 37, tzinfo=UTC))


async def deltas_of(model: EndpointModel, into: list[Delta] | None = None) -> list[Delta]:
    deltas: list[Delta] = [] if into is None else into
    try:
        async for delta in model.stream(BODY):
            deltas += [delta]
    finally:
        await model.aclose()
    return deltas


async def read_answer(answer: Answer, *, timeouts: Timeouts | None = None) -> list[Delta]:
    with ModelServer([answer]) as server:
        return await deltas_of(model_at(server.url, timeouts=timeouts))


@pytest.mark.asyncio
async def test_a_reply_comes_as_deltas_and_one_end():
    answer = Answer(text="Hi you", reasoning="hm", usage=Usage(input=9, output=3, cached=4, reasoning=1))
    state = Opaque(provider="openai", model="m", place="field", name="reasoning_content", data='"hm"')
    assert await read_answer(answer) == [
        ReasoningDelta(text="hm"),
        TextDelta(text="Hi you"),
        ReplyEnd(finish="stop", usage=Usage(input=9, output=3, cached=4, reasoning=1), state=(state,)),
    ]


@pytest.mark.asyncio
async def test_without_a_key_nothing_is_said_of_one():
    with ModelServer() as server:
        await deltas_of(model_at(f"{server.url}/"))
    (request,) = server.requests
    assert "authorization" not in request.headers


SIZE = len(render(Answer(text="a", done=False)))
ENDINGS: dict[str, tuple[Answer, bool]] = {
    "a last word, cut right behind it": (Answer(text="a", cut_at=len(render(Answer(text="a")))), True),
    "a last word and no frame": (Answer(text="a", framing="close"), True),
    "no last word in chunks": (Answer(text="a", done=False), True),
    "no last word with a length": (Answer(text="a", done=False, framing="length"), True),
    "no last word and no frame": (Answer(text="a", done=False, framing="close"), False),
    "no last word, cut": (Answer(text="a", done=False, cut_at=SIZE), False),
    "no finish": (Answer(body=b"".join(events(Answer(text="a b"))[:2])), False),
    "no stream": (Answer(body=b"<html>"), False),
    "no body": (Answer(body=b""), False),
}


@pytest.mark.parametrize(("answer", "is_whole"), ENDINGS.values(), ids=ENDINGS)
@pytest.mark.asyncio
async def test_a_reply_is_whole_only_if_its_last_word_or_its_frame_says_so(answer: Answer, is_whole: bool):
    if is_whole:
        assert isinstance((await read_answer(answer))[-1], ReplyEnd)
    else:
        with pytest.raises(ModelCutOff):
            await read_answer(answer)


@pytest.mark.asyncio
async def test_a_compressed_answer_is_told_to_be_unreadable():
    with pytest.raises(ModelCutOff, match="compressed"):
        await read_answer(Answer(text="a", headers=(("Content-Encoding", "gzip"),)))


@pytest.mark.asyncio
async def test_a_server_that_does_not_stream_is_understood():
    body = b'{"choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}'
    answer = Answer(body=body, headers=(("Content-Type", "application/json"),))
    assert await read_answer(answer) == [TextDelta(text="Hi"), ReplyEnd(finish="stop")]


@pytest.mark.asyncio
async def test_an_error_under_a_good_status_is_an_error():
    body = b'{"error":{"message":"slow down","code":429}}'
    with pytest.raises(ModelBusy, match="slow down"):
        await read_answer(Answer(body=body, headers=(("Content-Type", "application/json"),)))


@pytest.mark.asyncio
async def test_a_redirect_is_refused_and_not_followed():
    with pytest.raises(ModelRefused, match="307"):
        await read_answer(Answer(status=307, headers=(("Location", "/v1/chat/completions"),), body=b""))


@pytest.mark.parametrize(("delay", "seconds"), [("34.5s", 34.5), ("soon", None), (7, None)])
@pytest.mark.asyncio
async def test_the_details_of_a_gemini_refusal_give_the_time_to_wait(delay: Json, seconds: float | None):
    info: Json = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    body = dump({"error": {"code": 429, "message": "slow", "details": [{"@type": "Help"}, info]}})
    rejection = Answer(status=429, headers=(("Content-Type", "application/json"),), body=body)
    with ModelServer([rejection]) as server, pytest.raises(ModelBusy) as caught_error:
        endpoint = Endpoint(base_url=f"{server.root}/v1beta", protocol=GEMINI_CONTENT)
        await deltas_of(EndpointModel("m", endpoint))
    assert caught_error.value.retry_after == seconds


@pytest.mark.parametrize(("value", "seconds"), [("7", 7.0), ("Fri, 06 Nov 2026 08:49:47 GMT", 10.0), ("x", None)])
@pytest.mark.asyncio
async def test_busy_says_how_long_to_wait(value: str, seconds: float | None):
    with pytest.raises(ModelBusy) as caught_error:
        await read_answer(failure(429, retry_after=value))
    assert caught_error.value.retry_after == seconds


@pytest.mark.asyncio
async def test_a_refusal_whose_body_is_cut_is_still_the_refusal():
    with pytest.raises(ModelRefused, match="KEY_SETTING"):
        await read_answer(Answer(status=401, body=b'{"error":"no"}', cut_at=3))


@pytest.mark.asyncio
async def test_of_an_address_that_cannot_be_reached_only_the_host_and_the_setting_are_told():
    with ModelServer() as server:
        url = server.url.replace("://", "://user:hunter2@")
    with pytest.raises(ModelUnreachable, match=r": 127\.0\.0\.1 cannot be reached \(\w+\)\. Check the base url\.$"):
        await deltas_of(model_at(url))


@pytest.mark.asyncio
async def test_a_server_that_never_answers_is_unreachable_in_time():
    with pytest.raises(ModelUnreachable, match="no response in time"):
        await read_answer(Answer(hang=True), timeouts=QUICK)


@pytest.mark.asyncio
async def test_closing_the_stream_ends_the_call_at_once():
    with ModelServer([Answer(text="a b c", hold=threading.Event(), hold_after=3)]) as server:
        model = model_at(server.url)
        stream = model.stream(BODY)
        assert isinstance(await anext(stream), TextDelta)
        (request,) = server.requests
        assert not request.disconnected
        await stream.aclose()
        assert await asyncio.to_thread(request.wait_disconnected, 5)
        await model.aclose()


@pytest.mark.parametrize("answer", [Answer(hang=True), Answer(text="a", hold=threading.Event(), hold_after=1)])
@pytest.mark.asyncio
async def test_cancelling_the_task_ends_the_call_at_once(answer: Answer):
    with ModelServer([answer]) as server:
        model = model_at(server.url)
        task = asyncio.create_task(deltas_of(model))
        (request,) = await asyncio.to_thread(server.wait_requests, 1)
        await asyncio.to_thread(request.wait_held)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(request.wait_disconnected, 5)


def test_what_an_agent_asks_for_stands_over_the_usual_and_what_the_model_was_given_over_both():
    model = EndpointModel("m", Endpoint(base_url="http://x"), options={"temperature": 0, "seed": 1})
    options = model.options_for(Sampling(temperature=0.5, max_tokens=9, tool_choice="none"), has_tools=False)
    assert options == {**model.options, "temperature": 0, "seed": 1, "max_tokens": 9}


def test_the_key_is_not_in_what_is_printed_of_an_endpoint():
    assert "sk-1" not in repr(Endpoint(base_url="http://x", key="sk-1"))
