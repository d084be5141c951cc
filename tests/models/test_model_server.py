"""The scripted model server of `recto.testing`. tests/oracles compares its wire with the official clients."""

import asyncio
import subprocess
import sys
import threading
import urllib.request
from dataclasses import replace

import pytest

from recto.conversation.json import Json, dump, load
from recto.errors import ModelBusy, ModelUnreachable
from recto.models.anthropic_messages import ANTHROPIC_MESSAGES
from recto.models.deltas import join_deltas
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.gemini_content import GEMINI_CONTENT
from recto.models.ports import CallDelta, Delta, ReplyEnd, TextDelta, Usage, Used
from recto.testing.model_server import Answer, Call, ModelServer, Request, render

ANSWERS = [
    Answer(text="Hello  there,\n好 you."),
    Answer(text="So.", reasoning="Let me think.", usage=Usage(input=70, output=9, cached=64, reasoning=4)),
    Answer(text="I look.", calls=(Call(name="read", arguments='{"path": "x"}', id="a"),), fragment=3),
]


async def read(server: ModelServer, endpoint: Endpoint | None = None, body: bytes = b"{}") -> list[Delta]:
    model = EndpointModel("m", endpoint or Endpoint(base_url=server.url))
    try:
        return [delta async for delta in model.stream(body)]
    finally:
        await model.aclose()


def text_of(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_script_gives_the_same_reply_over_every_wire(answer: Answer):
    with ModelServer([answer] * 3) as server:
        chat = asyncio.run(read(server))
        messages = asyncio.run(read(server, Endpoint(base_url=server.root, protocol=ANTHROPIC_MESSAGES)))
        gemini = Endpoint(base_url=f"{server.root}/v1beta", protocol=GEMINI_CONTENT)
        contents = asyncio.run(read(server, gemini))
    paths = ["/v1/chat/completions", "/v1/messages", "/v1beta/models/m:streamGenerateContent?alt=sse"]
    assert [request.path for request in server.requests] == paths
    assert comparable(chat) == comparable(messages) == comparable(contents)


def comparable(deltas: list[Delta]) -> list[Delta]:
    """Leave out opaque state and early token counts, and compare arguments as values."""
    rest = [delta for delta in join_deltas(deltas) if not isinstance(delta, Used)]
    return [_plain(delta) for delta in rest]


def _plain(delta: Delta) -> Delta:
    if isinstance(delta, CallDelta):
        return replace(delta, arguments=dump(load(delta.arguments)).decode())
    return replace(delta, state=(), parts=(), call_state={}) if isinstance(delta, ReplyEnd) else delta


def test_an_error_in_the_stream_is_raised():
    answer = Answer(text="a", fault=("server_error", "broken"))
    with ModelServer([answer]) as server, pytest.raises(ModelUnreachable, match="broken"):
        asyncio.run(read(server))


@pytest.mark.parametrize(("delay", "seconds"), [("34.5s", 34.5), ("soon", None), (7, None)])
def test_the_details_of_a_gemini_refusal_give_the_time_to_wait(delay: Json, seconds: float | None):
    info: Json = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    other: Json = {"@type": "type.googleapis.com/google.rpc.Help"}
    refused = Answer(
        status=429,
        headers=(("Content-Type", "application/json"),),
        body=dump({"error": {"code": 429, "message": "slow", "details": [other, info]}}),
    )
    with ModelServer([refused]) as server, pytest.raises(ModelBusy) as caught:
        asyncio.run(read(server, Endpoint(base_url=f"{server.root}/v1beta", protocol=GEMINI_CONTENT)))
    assert caught.value.retry_after == seconds


def test_a_script_may_be_a_function_of_the_request():
    def echo(request: Request) -> Answer:
        return Answer(text=f"{request.number} {request.page['topic']}")

    with ModelServer(echo) as server:
        texts = [text_of(asyncio.run(read(server, body=b'{"topic": "tea"}'))) for _ in range(2)]
    assert texts == ["0 tea", "1 tea"]


def test_when_the_script_runs_out_a_plain_text_is_the_answer():
    with ModelServer() as server:
        assert text_of(asyncio.run(read(server))) == "Nothing more is scripted."


def test_an_answer_waits_at_its_gate():
    gate = threading.Event()
    with ModelServer([Answer(text="a b", hold=gate, hold_after=2)]) as server:
        asking = threading.Thread(target=lambda: asyncio.run(read(server)))
        asking.start()
        (request,) = server.wait_requests(1)
        assert request.wait_held()
        assert asking.is_alive()
        gate.set()
        asking.join()
    assert not request.disconnected


def test_as_a_program_it_answers_with_as_many_words_as_its_option_says():
    command = [sys.executable, "-m", "recto.testing.model_server", "--tokens", "7"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        url = program.stdout.readline().strip()
        request = urllib.request.Request(f"{url}/chat/completions", data=b"{}", method="POST")
        with urllib.request.urlopen(request) as response:
            body = response.read()
        program.terminate()
    assert body == render(Answer(text="word " * 7))
    assert body.count(b'"word ') == 7
