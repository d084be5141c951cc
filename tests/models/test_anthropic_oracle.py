"""The official Anthropic client as the judge of our model server's wire, of our reader, and of the pages we send."""

import asyncio
from typing import cast

import anthropic
import pytest
from anthropic.types import Message, TextBlock, ThinkingBlock, ToolUseBlock

from recto.conversation.json import load
from recto.models.anthropic_messages import ANTHROPIC_MESSAGES
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.testing.model_server import Answer, Call, ModelServer, failure

ANSWERS = [
    Answer(text="Hello  there,\n好 you."),
    Answer(text="So.", reasoning="Let me think.", usage=Usage(input=70, output=9, cached=64, reasoning=4)),
    Answer(text="So.", reasoning="Hm.", redacted="xx", usage=Usage(input=70, output=9, cached=30, cache_written=20)),
    Answer(calls=(Call(name="read", arguments='{"path":"src/好.py"}', id="a"), Call(name="time", id="b"))),
    Answer(text="I look.", calls=(Call(name="read", arguments='{"path": "x"}', id="a"),), fragment=3),
    Answer(text="Too lo", finish="length"),
    Answer(text="I will not.", finish="content_filter"),
]
ENDINGS = {"end_turn": "stop", "tool_use": "tool_calls", "max_tokens": "length", "refusal": "refused"}


def ask(server: ModelServer) -> Message:
    with (
        anthropic.Anthropic(base_url=server.root, api_key="k", max_retries=0) as client,
        client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream,
    ):
        return stream.get_final_message()


async def read(server: ModelServer) -> list[Delta]:
    model = EndpointModel("m", Endpoint(base_url=server.root, protocol=ANTHROPIC_MESSAGES))
    deltas = [delta async for delta in model.stream(b"{}")]
    await model.aclose()
    return deltas


def calls_of(deltas: list[Delta]) -> list[tuple[str, str, object]]:
    written = [delta for delta in deltas if isinstance(delta, CallDelta)]
    return [
        (call.id, call.name, load("".join(more.arguments for more in written if more.index == call.index)))
        for call in deltas
        if isinstance(call, CallStarted)
    ]


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_official_client_and_our_reader_read_the_same_reply(answer: Answer):
    with ModelServer([answer, answer]) as server:
        message = ask(server)
        ours = asyncio.run(read(server))
    texts = "".join(block.text for block in message.content if isinstance(block, TextBlock))
    assert texts == answer.text == "".join(delta.text for delta in ours if isinstance(delta, TextDelta))
    thoughts = "".join(block.thinking for block in message.content if isinstance(block, ThinkingBlock))
    assert thoughts == answer.reasoning == "".join(delta.text for delta in ours if isinstance(delta, ReasoningDelta))
    calls = [(block.id, block.name, block.input) for block in message.content if isinstance(block, ToolUseBlock)]
    assert calls == calls_of(ours)
    ended = ours[-1]
    assert isinstance(ended, ReplyEnd)
    assert ended.finish == ENDINGS[str(message.stop_reason)]
    assert ended.usage == answer.usage == usage_of(message)


@pytest.mark.parametrize("answer", ANSWERS[1:3])
def test_the_official_client_would_send_back_the_very_blocks_we_keep(answer: Answer):
    with ModelServer([answer, answer]) as server:
        message = ask(server)
        ended = asyncio.run(read(server))[-1]
    assert isinstance(ended, ReplyEnd)
    kinds = ("thinking", "redacted_thinking")
    theirs = [block.model_dump(exclude_none=True) for block in message.content if block.type in kinds]
    assert theirs == [load(state.data) for state in ended.state]


def usage_of(message: Message) -> Usage:
    usage = message.usage
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    details = usage.output_tokens_details
    return Usage(
        input=usage.input_tokens + cached + written,
        output=usage.output_tokens,
        cached=cached,
        cache_written=written,
        reasoning=details.thinking_tokens if details else 0,
    )


def test_the_official_client_sees_a_failure_as_its_status_and_type():
    with (
        ModelServer([failure(429, "slow", retry_after="7")]) as server,
        pytest.raises(anthropic.RateLimitError) as caught,
    ):
        ask(server)
    assert caught.value.response.headers["retry-after"] == "7"
    body = cast("dict[str, object]", caught.value.body)
    assert body["type"] == "error"
    assert body["error"] == {"type": "rate_limit_error", "message": "slow"}


def test_the_official_client_sees_an_error_in_the_stream():
    answer = Answer(text="a", fault=("overloaded_error", "Overloaded"))
    with ModelServer([answer]) as server, pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
        ask(server)


def test_another_address_is_not_found():
    with (
        ModelServer() as server,
        anthropic.Anthropic(base_url=server.root, api_key="k", max_retries=0) as client,
        pytest.raises(anthropic.NotFoundError),
    ):
        client.models.list()
