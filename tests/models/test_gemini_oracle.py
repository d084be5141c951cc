"""The official Gemini client as the judge of our model server's wire, of our reader, and of the pages we send."""

import asyncio
import base64
from collections.abc import Iterator

import pytest
from google import genai
from google.genai import errors, types

from recto.conversation.json import Json, dump, load
from recto.errors import ModelBusy
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.gemini_content import BROKEN, FINISHES, GEMINI_CONTENT
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.testing.model_server import Answer, Call, ModelServer, failure

ANSWERS = [
    Answer(text="Hello  there,\n好 you."),
    Answer(text="So.", reasoning="Let me think.", usage=Usage(input=70, output=9, cached=64, reasoning=4)),
    Answer(calls=(Call(name="read", arguments='{"path":"src/好.py"}', id="a"), Call(name="time", id="b"))),
    Answer(text="I look.", reasoning="Hm.", calls=(Call(name="read", arguments='{"path": "x"}', id="a"),), fragment=3),
    Answer(text="Too lo", finish="length"),
    Answer(text="I will", finish="content_filter"),
]
ENDINGS = {"STOP": ("stop", "tool_calls"), "MAX_TOKENS": ("length",), "SAFETY": ("filtered",)}


def client_of(server: ModelServer) -> genai.Client:
    return genai.Client(api_key="k", http_options=types.HttpOptions(base_url=server.root, api_version="v1beta"))


def ask(server: ModelServer) -> list[types.GenerateContentResponse]:
    with client_of(server) as client:
        stream = client.models.generate_content_stream(model="m", contents="hi")  # pyright: ignore[reportUnknownMemberType] - it takes pictures of a package that is not here
        return list(stream)


def parts_of(chunks: list[types.GenerateContentResponse]) -> Iterator[types.Part]:
    for chunk in chunks:
        for candidate in chunk.candidates or ():
            yield from (candidate.content and candidate.content.parts) or ()


async def read(server: ModelServer) -> list[Delta]:
    model = EndpointModel("m", Endpoint(base_url=f"{server.root}/v1beta", protocol=GEMINI_CONTENT))
    try:
        return [delta async for delta in model.stream(b"{}")]
    finally:
        await model.aclose()


def calls_of(deltas: list[Delta]) -> list[tuple[str, str, Json]]:
    written = {delta.index: delta.arguments for delta in deltas if isinstance(delta, CallDelta)}
    return [(call.id, call.name, load(written[call.index])) for call in deltas if isinstance(call, CallStarted)]


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_official_client_and_our_reader_read_the_same_reply(answer: Answer):
    with ModelServer([answer, answer]) as server:
        chunks = ask(server)
        ours = asyncio.run(read(server))
    assert {request.path for request in server.requests} == {"/v1beta/models/m:streamGenerateContent?alt=sse"}
    parts = list(parts_of(chunks))
    texts = "".join(part.text or "" for part in parts if not part.thought)
    assert texts == answer.text == "".join(delta.text for delta in ours if isinstance(delta, TextDelta))
    thoughts = "".join(part.text or "" for part in parts if part.thought)
    assert thoughts == answer.reasoning == "".join(delta.text for delta in ours if isinstance(delta, ReasoningDelta))
    calls = [(call.id, call.name, call.args) for part in parts if (call := part.function_call)]
    assert calls == calls_of(ours)
    ended, last = ours[-1], chunks[-1]
    assert isinstance(ended, ReplyEnd)
    assert last.candidates and last.candidates[0].finish_reason
    assert ended.finish in ENDINGS[last.candidates[0].finish_reason.value]
    assert ended.usage == answer.usage == usage_of(last.usage_metadata)
    signed = [load(state.data) for state in (*ended.state, *ended.call_state.values())]
    theirs = [base64.b64encode(part.thought_signature).decode() for part in parts if part.thought_signature]
    assert [one if isinstance(one, str) else one["thoughtSignature"] for one in signed] == theirs  # pyright: ignore[reportArgumentType, reportCallIssue, reportIndexIssue, reportOptionalSubscript] - a part or its signature
    assert len(theirs) == bool(answer.reasoning)


def usage_of(usage: types.GenerateContentResponseUsageMetadata | None) -> Usage:
    assert usage
    thoughts = usage.thoughts_token_count or 0
    return Usage(
        input=usage.prompt_token_count or 0,
        output=(usage.candidates_token_count or 0) + thoughts,
        cached=usage.cached_content_token_count or 0,
        reasoning=thoughts,
    )


def test_the_official_client_sees_a_failure_as_its_status():
    with ModelServer([failure(429, "slow")]) as server, pytest.raises(errors.ClientError) as caught:
        ask(server)
    assert (caught.value.code, caught.value.status, caught.value.message) == (429, "RESOURCE_EXHAUSTED", "slow")


def test_the_official_client_sees_an_error_in_the_stream():
    answer = Answer(text="a", fault=("UNAVAILABLE", "The model is overloaded."))
    with ModelServer([answer]) as server, pytest.raises(errors.ServerError, match="overloaded"):
        ask(server)


@pytest.mark.asyncio
@pytest.mark.parametrize(("delay", "seconds"), [("34.5s", 34.5), ("soon", None), (7, None)])
async def test_the_details_of_a_refusal_say_how_long_to_wait(delay: Json, seconds: float | None):
    info: Json = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    other: Json = {"@type": "type.googleapis.com/google.rpc.Help"}
    refused = Answer(
        status=429,
        headers=(("Content-Type", "application/json"),),
        body=dump({"error": {"code": 429, "message": "slow", "details": [other, info]}}),
    )
    with ModelServer([refused]) as server, pytest.raises(ModelBusy) as caught:
        await read(server)
    assert caught.value.retry_after == seconds


def test_every_way_a_reply_may_end_is_known():
    plain = {"STOP", "CONTINUATION", "FINISH_REASON_UNSPECIFIED"}
    assert {reason.value for reason in types.FinishReason} == {*plain, *FINISHES, *BROKEN}
