"""The official OpenAI client as the judge of our fake's stream of Responses, and of our reader."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import openai
import pytest
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseErrorEvent,
    ResponseFunctionToolCall,
    ResponseIncompleteEvent,
    ResponseReasoningItem,
    ResponseStreamEvent,
)
from pydantic import TypeAdapter

from recto.conversation.json import load
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.openai_responses_api import OPENAI_RESPONSES
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.models.sse import EventReader
from recto.testing.model_server import Answer, Call, ModelServer, failure, render

EVENTS: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
ANSWERS = [
    Answer(text="Hello  there,\n好 you."),
    Answer(text="So.", reasoning="Let me think.", usage=Usage(input=70, output=9, cached=64, reasoning=4)),
    Answer(text="So.", reasoning="Hm.", redacted="xx", usage=Usage(input=70, output=9, cached=30, cache_written=20)),
    Answer(calls=(Call(name="read", arguments='{"path":"src/好.py"}', id="a"), Call(name="time", id="b"))),
    Answer(text="I look.", reasoning="Hm.", calls=(Call(name="read", arguments='{"path": "x"}', id="a"),), fragment=3),
    Answer(text="Too lo", finish="length"),
    Answer(text="I wi", finish="content_filter"),
    Answer(text="Who knows.", usage=None),
]
ENDINGS = {"max_output_tokens": "length", "content_filter": "filtered"}


async def ask(server: ModelServer) -> list[ResponseStreamEvent]:
    async with openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        stream = await client.responses.create(model="m", input="hi", stream=True, store=False)
        return [event async for event in cast("AsyncIterator[ResponseStreamEvent]", stream)]


async def read(server: ModelServer) -> list[Delta]:
    model = EndpointModel("m", Endpoint(base_url=server.url, protocol=OPENAI_RESPONSES))
    deltas = [delta async for delta in model.stream(b"{}")]
    await model.aclose()
    return deltas


def last_response(events: list[ResponseStreamEvent]) -> Response:
    last = events[-1]
    assert isinstance(last, (ResponseCompletedEvent, ResponseIncompleteEvent))
    return last.response


def calls_of(deltas: list[Delta]) -> list[tuple[str, str, str]]:
    written = [delta for delta in deltas if isinstance(delta, CallDelta)]
    return [
        (call.id, call.name, "".join(more.arguments for more in written if more.index == call.index))
        for call in deltas
        if isinstance(call, CallStarted)
    ]


@pytest.mark.parametrize("answer", ANSWERS)
def test_every_event_of_our_fake_is_one_of_the_providers(answer: Answer):
    events = [EVENTS.validate_json(data) for data in EventReader().feed(render(answer, "openai-responses"))]
    assert [event.sequence_number for event in events] == [*range(len(events))]
    assert (events[0].type, last_response(events).output_text) == ("response.created", answer.text)


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_official_client_and_our_reader_read_the_same_reply(answer: Answer):
    with ModelServer([answer, answer]) as server:
        theirs = asyncio.run(ask(server))
        ours = asyncio.run(read(server))
    response = last_response(theirs)
    said = "".join(event.delta for event in theirs if event.type == "response.output_text.delta")
    assert said == response.output_text == answer.text
    assert said == "".join(delta.text for delta in ours if isinstance(delta, TextDelta))
    thoughts = "".join(event.delta for event in theirs if event.type == "response.reasoning_summary_text.delta")
    assert thoughts == answer.reasoning == "".join(delta.text for delta in ours if isinstance(delta, ReasoningDelta))
    calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
    assert [(call.call_id, call.name, call.arguments) for call in calls] == calls_of(ours)
    ended = ours[-1]
    assert isinstance(ended, ReplyEnd)
    reason = response.incomplete_details.reason if response.incomplete_details else None
    assert ended.finish == (ENDINGS[str(reason)] if reason else "tool_calls" if calls else "stop")
    assert ended.usage == answer.usage == usage_of(response)


@pytest.mark.parametrize("answer", [ANSWERS[1], ANSWERS[2], ANSWERS[4]])
def test_the_official_client_would_send_back_the_very_thoughts_we_keep(answer: Answer):
    with ModelServer([answer, answer]) as server:
        response = last_response(asyncio.run(ask(server)))
        ended = asyncio.run(read(server))[-1]
    assert isinstance(ended, ReplyEnd)
    thoughts = [item for item in response.output if isinstance(item, ResponseReasoningItem)]
    theirs = [item.model_dump(exclude_none=True) for item in thoughts]
    assert theirs == [load(state.data) for state in (*ended.state, *ended.call_state.values())]


def usage_of(response: Response) -> Usage | None:
    usage = response.usage
    if usage is None:
        return None
    return Usage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=usage.input_tokens_details.cached_tokens,
        cache_written=usage.input_tokens_details.cache_write_tokens,
        reasoning=usage.output_tokens_details.reasoning_tokens,
    )


def test_the_official_client_sees_a_failure_as_its_status():
    with (
        ModelServer([failure(429, "slow", retry_after="7")]) as server,
        pytest.raises(openai.RateLimitError, match="slow") as caught,
    ):
        asyncio.run(ask(server))
    assert caught.value.response.headers["retry-after"] == "7"


def test_the_official_client_sees_an_error_in_the_stream():
    with ModelServer([Answer(text="a", fault=("server_error", "Overloaded"))]) as server:
        last = asyncio.run(ask(server))[-1]
    assert isinstance(last, ResponseErrorEvent)
    assert (last.code, last.message) == ("server_error", "Overloaded")
