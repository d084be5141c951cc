"""The official clients as judges of the model server's wire and of our readers: both read the same reply."""

import pytest

from recto.conversation.json import Json, load
from recto.models.anthropic_messages import ANTHROPIC_MESSAGES
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.gemini_content import BROKEN, FINISHES, GEMINI_CONTENT
from recto.models.openai_responses_api import OPENAI_RESPONSES
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta, Usage
from recto.models.sse import EventReader
from recto.page.wire.base import WireName
from recto.page.wire.formats import WIRES
from recto.testing.model_server import Answer, Call, ModelServer, failure, render
from tests.oracles.official_clients import OFFICIAL

EACH_WIRE = pytest.mark.parametrize("wire", WIRES)
ANSWERS = {
    "text": Answer(text="Hello  there,\n好 you."),
    "thoughts": Answer(text="So.", reasoning="Let me think.", usage=Usage(input=70, output=9, cached=64, reasoning=4)),
    "calls": Answer(calls=(Call(name="read", arguments='{"path":"src/好.py"}', id="a"), Call(name="time", id="b"))),
    "fragments": Answer(text="I look.", calls=(Call(name="read", arguments='{"path": "x"}', id="a"),), fragment=3),
    "length": Answer(text="Too lo", finish="length"),
}
FILTERED = Answer(text="I will", finish="content_filter")
REDACTED = Answer(
    text="So.", reasoning="Hm.", redacted="xx", usage=Usage(input=70, output=9, cached=30, cache_written=20)
)
CASES = [
    *((answer, wire) for answer in ANSWERS.values() for wire in WIRES),
    *((FILTERED, wire) for wire in WIRES if wire != "openai"),
    *((REDACTED, wire) for wire in ("openai-responses", "anthropic")),
]


def endpoint_of(server: ModelServer, wire: WireName) -> Endpoint:
    endpoints: dict[WireName, Endpoint] = {
        "openai": Endpoint(base_url=server.url),
        "openai-responses": Endpoint(base_url=server.url, protocol=OPENAI_RESPONSES),
        "anthropic": Endpoint(base_url=server.root, protocol=ANTHROPIC_MESSAGES),
        "gemini": Endpoint(base_url=f"{server.root}/v1beta", protocol=GEMINI_CONTENT),
    }
    return endpoints[wire]


async def read(server: ModelServer, wire: WireName) -> list[Delta]:
    model = EndpointModel("m", endpoint_of(server, wire))
    try:
        return [delta async for delta in model.stream(b"{}")]
    finally:
        await model.aclose()


def calls_of(deltas: list[Delta]) -> list[tuple[str, str, Json]]:
    parts = [delta for delta in deltas if isinstance(delta, CallDelta)]
    return [
        (call.id, call.name, load("".join(more.arguments for more in parts if more.index == call.index)))
        for call in deltas
        if isinstance(call, CallStarted)
    ]


@pytest.mark.parametrize(("answer", "wire"), CASES)
async def test_the_official_client_and_our_reader_read_the_same_reply(answer: Answer, wire: WireName):
    with ModelServer([answer, answer]) as server:
        theirs = OFFICIAL[wire](server)
        ours = await read(server, wire)
    end = ours[-1]
    assert isinstance(end, ReplyEnd)
    assert theirs.text == answer.text == "".join(delta.text for delta in ours if isinstance(delta, TextDelta))
    thoughts = "".join(delta.text for delta in ours if isinstance(delta, ReasoningDelta))
    assert theirs.thoughts == answer.reasoning == thoughts
    assert theirs.calls == calls_of(ours)
    assert theirs.finish == end.finish
    assert theirs.usage == answer.usage == end.usage
    # The provider gets back the very state it sent.
    states = [load(state.data) for state in (*end.state, *end.call_state.values())]
    assert list(theirs.state) == [signature(one) if wire == "gemini" else one for one in states]


def signature(part: Json) -> Json:
    return part["thoughtSignature"] if isinstance(part, dict) else part


@EACH_WIRE
def test_the_official_client_sees_a_failure_as_its_status(wire: WireName):
    with (
        ModelServer([failure(429, "slow", retry_after="7")]) as server,
        pytest.raises(Exception, match="slow") as error,
    ):
        OFFICIAL[wire](server)
    assert type(error.value).__name__ == ("ClientError" if wire == "gemini" else "RateLimitError")


@EACH_WIRE
def test_the_official_client_sees_an_error_in_the_stream(wire: WireName):
    kind = {"anthropic": "overloaded_error", "gemini": "UNAVAILABLE"}.get(wire, "server_error")
    with (
        ModelServer([Answer(text="a", fault=(kind, "Overloaded"))]) as server,
        pytest.raises(Exception, match=r"(?i)overload"),
    ):
        OFFICIAL[wire](server)


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_every_event_of_the_scripted_responses_is_one_of_the_providers(answer: Answer):
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    adapter: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
    events = [adapter.validate_json(data) for data in EventReader().feed(render(answer, "openai-responses"))]
    assert [event.sequence_number for event in events] == [*range(len(events))]


def test_our_gemini_reader_knows_every_way_a_reply_may_end():
    from google.genai import types

    plain = {"STOP", "CONTINUATION", "FINISH_REASON_UNSPECIFIED"}
    assert {reason.value for reason in types.FinishReason} == {*plain, *FINISHES, *BROKEN}
