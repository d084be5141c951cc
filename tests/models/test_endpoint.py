"""An endpoint over HTTP against the recording model server: whole replies, broken ones, refusals, cancelling."""

import asyncio
import threading
from datetime import UTC, datetime

import pytest

from recto.agents.agent import Sampling
from recto.config.run_settings import Timeouts
from recto.conversation.messages import Opaque
from recto.errors import ModelBusy, ModelCutOff, ModelError, ModelRefused, ModelUnreachable, PageTooLong
from recto.models.deltas import join_deltas
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.ports import CallDelta, CallStarted, Delta, Model, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.testing.model_server import Answer, Call, ModelServer, events, failure, render

BODY = '{"model":"m",  "messages":[{"role":"user","content":"好"}]}'.encode()
CALLING = Answer(text="I look.", calls=(Call(name="read", arguments='{"path":"a.py"}', id="c1"),), usage=None)
QUICK = Timeouts(connect=0.1, first_byte=0.1, between_bytes=0.1)


def model_at(url: str, *, key: str = "", timeouts: Timeouts | None = None) -> EndpointModel:
    endpoint = Endpoint(base_url=url, key=key, key_setting="KEY_SETTING", timeouts=timeouts or Timeouts())
    return EndpointModel("m", endpoint, clock=lambda: datetime(2026, 11, 6, 8, 49, 37, tzinfo=UTC))


async def deltas_of(model: EndpointModel, into: list[Delta] | None = None) -> list[Delta]:
    found: list[Delta] = [] if into is None else into
    try:
        async for delta in model.stream(BODY):
            found += [delta]
    finally:
        await model.aclose()
    return found


async def answered(answer: Answer, *, timeouts: Timeouts | None = None) -> list[Delta]:
    with ModelServer([answer]) as server:
        return await deltas_of(model_at(server.url, timeouts=timeouts))


def letters(deltas: list[Delta]) -> list[Delta]:
    """Deltas of one letter each: the same, however they were put together."""
    apart: list[Delta] = []
    for delta in deltas:
        match delta:
            case TextDelta(text=text):
                apart += [TextDelta(text=letter) for letter in text]
            case CallDelta(index=index, arguments=arguments):
                apart += [CallDelta(index=index, arguments=letter) for letter in arguments]
            case _:
                apart.append(delta)
    return apart


@pytest.mark.asyncio
async def test_a_reply_comes_as_deltas_and_one_end():
    answer = Answer(text="Hi you", reasoning="hm", usage=Usage(input=9, output=3, cached=4, reasoning=1))
    state = Opaque(provider="openai", model="m", place="field", name="reasoning_content", data='"hm"')
    assert await answered(answer) == [
        ReasoningDelta(text="hm"),
        TextDelta(text="Hi you"),
        ReplyEnd(finish="stop", usage=Usage(input=9, output=3, cached=4, reasoning=1), state=(state,)),
    ]


@pytest.mark.asyncio
async def test_the_bytes_sent_are_the_bytes_given():
    with ModelServer() as server:
        await deltas_of(model_at(server.url, key="sk-1"))
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/v1/chat/completions", BODY)
    wanted = {"content-type": "application/json", "accept-encoding": "identity", "authorization": "Bearer sk-1"}
    assert wanted.items() <= request.headers.items()


@pytest.mark.asyncio
async def test_without_a_key_nothing_is_said_of_one():
    with ModelServer() as server:
        await deltas_of(model_at(f"{server.url}/"))
    (request,) = server.requests
    assert "authorization" not in request.headers


@pytest.mark.asyncio
async def test_calls_that_follow_one_another_share_a_connection():
    with ModelServer() as server:
        model = model_at(server.url)
        for _ in range(3):
            assert [delta async for delta in model.stream(BODY)]
        await model.aclose()
    assert {request.connection for request in server.requests} == {0}


@pytest.mark.asyncio
async def test_every_byte_alone_gives_the_same_reply():
    answer = Answer(text="好 more", reasoning="嗯", calls=CALLING.calls, fragment=1)
    alone = await answered(answer)
    assert list(join_deltas(alone)) == await answered(Answer(text="好 more", reasoning="嗯", calls=CALLING.calls))


@pytest.mark.asyncio
async def test_a_stream_cut_at_any_byte_never_ends_as_if_it_were_whole():
    # Every seventh byte over a socket; test_readers cuts at every byte.
    places = range(0, len(render(CALLING)), 7)
    whole = await answered(CALLING)
    script = [Answer(text=CALLING.text, calls=CALLING.calls, usage=None, cut_at=place) for place in places]
    with ModelServer(script) as server:
        model = model_at(server.url)
        for place in places:
            found: list[Delta] = []
            with pytest.raises(ModelCutOff):
                await deltas_of(model, found)
            assert letters(whole)[: len(letters(found))] == letters(found), f"cut at {place}"
            assert not any(isinstance(delta, ReplyEnd) for delta in found)
    assert len(server.requests) == len(places)
    assert [type(delta) for delta in whole if not isinstance(delta, TextDelta)] == [
        CallStarted,
        CallDelta,
        ReplyEnd,
    ]


@pytest.mark.asyncio
async def test_a_stream_cut_after_it_said_it_is_done_is_whole():
    cut = Answer(text=CALLING.text, calls=CALLING.calls, usage=None, cut_at=len(render(CALLING)))
    assert await answered(cut) == await answered(CALLING)


@pytest.mark.asyncio
async def test_words_that_came_before_the_connection_broke_are_read_even_late():
    cut = Answer(text="a b c", cut_at=len(render(Answer(text="a b c"))), fragment=200, delay=0.001)
    with ModelServer([cut]) as server:
        model = model_at(server.url)
        found: list[Delta] = []
        async for delta in model.stream(BODY):
            found.append(delta)
            await asyncio.sleep(0.05)
        await model.aclose()
    assert isinstance(found[-1], ReplyEnd)


@pytest.mark.parametrize("framing", ["chunked", "length"])
@pytest.mark.asyncio
async def test_without_a_last_word_a_finished_reply_in_its_frame_is_whole(framing: str):
    answer = Answer(text="a", done=False, framing="length" if framing == "length" else "chunked")
    assert isinstance((await answered(answer))[-1], ReplyEnd)


@pytest.mark.asyncio
async def test_without_a_last_word_and_without_a_frame_nobody_knows():
    with pytest.raises(ModelCutOff, match="without saying"):
        await answered(Answer(text="a", done=False, framing="close"))


@pytest.mark.asyncio
async def test_with_its_last_word_a_reply_needs_no_frame():
    assert isinstance((await answered(Answer(text="a", framing="close")))[-1], ReplyEnd)


@pytest.mark.asyncio
async def test_without_a_last_word_a_finished_reply_that_is_cut_is_not_whole():
    size = len(render(Answer(text="a", done=False)))
    with pytest.raises(ModelCutOff):
        await answered(Answer(text="a", done=False, cut_at=size))


@pytest.mark.asyncio
async def test_a_body_that_ends_well_without_a_finish_is_cut_off():
    unfinished = b"".join(events(Answer(text="a b"))[:2])
    with pytest.raises(ModelCutOff, match="before the reply did"):
        await answered(Answer(body=unfinished))


@pytest.mark.parametrize("body", [b"data: {oops\n\n", b"data: 7\n\n", b"<html>", b""])
@pytest.mark.asyncio
async def test_a_body_that_is_no_stream_of_the_protocol_is_cut_off(body: bytes):
    with pytest.raises(ModelCutOff):
        await answered(Answer(body=body))


@pytest.mark.asyncio
async def test_a_compressed_answer_is_told_to_be_unreadable():
    with pytest.raises(ModelCutOff, match="compressed"):
        await answered(Answer(text="a", headers=(("Content-Encoding", "gzip"),)))


@pytest.mark.asyncio
async def test_a_server_that_does_not_stream_is_understood():
    body = b'{"choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}'
    answer = Answer(body=body, headers=(("Content-Type", "application/json"),))
    assert await answered(answer) == [TextDelta(text="Hi"), ReplyEnd(finish="stop")]


@pytest.mark.asyncio
async def test_an_error_under_a_good_status_is_an_error():
    body = b'{"error":{"message":"slow down","code":429}}'
    with pytest.raises(ModelBusy, match="slow down"):
        await answered(Answer(body=body, headers=(("Content-Type", "application/json"),)))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failure(400), ModelRefused),
        (failure(400, code="context_length_exceeded"), PageTooLong),
        (failure(401), ModelRefused),
        (failure(404), ModelRefused),
        (failure(408), ModelUnreachable),
        (failure(413), PageTooLong),
        (failure(429), ModelBusy),
        (failure(429, code="insufficient_quota"), ModelRefused),
        (failure(500), ModelUnreachable),
        (failure(503), ModelUnreachable),
        (failure(529), ModelBusy),
        (Answer(status=307, headers=(("Location", "/v1/chat/completions"),), body=b""), ModelRefused),
    ],
)
@pytest.mark.asyncio
async def test_a_status_is_the_error_it_means(answer: Answer, kind: type[ModelError]):
    with pytest.raises(ModelError) as caught:
        await answered(answer)
    assert type(caught.value) is kind


@pytest.mark.parametrize(("value", "seconds"), [("7", 7.0), ("Fri, 06 Nov 2026 08:49:47 GMT", 10.0), ("x", None)])
@pytest.mark.asyncio
async def test_busy_says_how_long_to_wait(value: str, seconds: float | None):
    with pytest.raises(ModelBusy) as caught:
        await answered(failure(429, retry_after=value))
    assert caught.value.retry_after == seconds


@pytest.mark.asyncio
async def test_a_refusal_whose_body_is_cut_is_still_the_refusal():
    with pytest.raises(ModelRefused, match="KEY_SETTING"):
        await answered(Answer(status=401, body=b'{"error":"no"}', cut_at=3))


@pytest.mark.asyncio
async def test_nobody_at_the_address_is_unreachable():
    with ModelServer() as server:
        url = server.url
    with pytest.raises(ModelUnreachable, match="cannot be reached"):
        await deltas_of(model_at(url))


@pytest.mark.asyncio
async def test_of_an_address_that_cannot_be_reached_only_the_host_and_the_setting_are_told():
    with ModelServer() as server:
        url = server.url.replace("://", "://user:hunter2@")
    with pytest.raises(ModelUnreachable, match=r": 127\.0\.0\.1 cannot be reached \(\w+\)\. Check the base url\.$"):
        await deltas_of(model_at(url))


@pytest.mark.asyncio
async def test_a_server_that_never_answers_is_unreachable_in_time():
    with pytest.raises(ModelUnreachable, match="no sign of life"):
        await answered(Answer(hang=True), timeouts=QUICK)


@pytest.mark.asyncio
async def test_a_server_that_falls_silent_is_unreachable_in_time_however_long_it_had_to_begin():
    silent = Answer(text="a b c", hold=threading.Event(), hold_after=3)
    patient = Timeouts(connect=60, first_byte=60, between_bytes=0.1)
    async with asyncio.timeout(20):
        with pytest.raises(ModelUnreachable, match="no sign of life"):
            await answered(silent, timeouts=patient)


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


def test_it_is_a_model():
    model: Model = model_at("http://127.0.0.1:1/v1")
    assert (model.name, model.target.model, model.target.wire, model.window) == ("m", "m", "openai", 128_000)
    assert model.options == {"stream": True, "stream_options": {"include_usage": True}}


def test_what_an_agent_asks_for_stands_over_the_usual_and_what_the_model_was_given_over_both():
    model = EndpointModel("m", Endpoint(base_url="http://x"), options={"temperature": 0, "seed": 1})
    asked = model.options_for(Sampling(temperature=0.5, max_tokens=9, tool_choice="none"), has_tools=False)
    assert asked == {**model.options, "temperature": 0, "seed": 1, "max_tokens": 9}


def test_the_key_is_not_in_what_is_printed_of_an_endpoint():
    assert "sk-1" not in repr(Endpoint(base_url="http://x", key="sk-1"))


@pytest.mark.asyncio
async def test_a_slow_reader_of_a_reply_is_not_taken_for_a_silent_server():
    with ModelServer([Answer(text="a b", delay=0.01)]) as server:
        model = model_at(server.url, timeouts=Timeouts(connect=5, first_byte=5, between_bytes=0.3))
        found: list[Delta] = []
        async for delta in model.stream(BODY):
            found.append(delta)
            await asyncio.sleep(0.35)
        await model.aclose()
    assert isinstance(found[-1], ReplyEnd)
