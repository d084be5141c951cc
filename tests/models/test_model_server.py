"""The recording model server, with the official client as the judge of its wire and of our reader."""

import asyncio
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import openai
import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta

from recto.conversation.json import dump, load
from recto.errors import ModelUnreachable
from recto.models.anthropic_messages import ANTHROPIC_MESSAGES
from recto.models.deltas import join_deltas
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.gemini_content import GEMINI_CONTENT
from recto.models.ports import CallDelta, CallStarted, Delta, ReasoningDelta, ReplyEnd, TextDelta, Usage, Used
from recto.testing.model_server import Answer, Call, ModelServer, Request, failure, render

ANSWERS = [
    Answer(text="Hello  there,\n好 you."),
    Answer(text="So.", reasoning="Let me think.", usage=Usage(input=70, output=9, cached=64, reasoning=4)),
    Answer(calls=(Call(name="read", arguments='{"path":"src/好.py"}', id="a"), Call(name="time", id="b"))),
    Answer(text="I look.", calls=(Call(name="read", arguments='{"path": "x"}', id="a"),), fragment=3),
    Answer(text="Too lo", finish="length", usage=None),
]


def ask(server: ModelServer, body: dict[str, str] | None = None) -> list[ChatCompletionChunk]:
    with openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        stream = client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            extra_body=body,
        )
        return list(stream)


async def read(server: ModelServer, endpoint: Endpoint | None = None) -> list[Delta]:
    model = EndpointModel("m", endpoint or Endpoint(base_url=server.url))
    try:
        return [delta async for delta in model.stream(b"{}")]
    finally:
        await model.aclose()


def calls_of(chunks: list[ChatCompletionChunk]) -> list[tuple[str, str, str]]:
    """Calls as the official client's users put them together."""
    calls: dict[int, tuple[str, str, str]] = {}
    for fragment in (fragment for one in deltas_of(chunks) for fragment in one.tool_calls or ()):
        id, name, arguments = calls.get(fragment.index, ("", "", ""))
        function = fragment.function
        more = (function.name or "", function.arguments or "") if function else ("", "")
        calls[fragment.index] = (id + (fragment.id or ""), name + more[0], arguments + more[1])
    return list(calls.values())


def deltas_of(chunks: list[ChatCompletionChunk]) -> Iterator[ChoiceDelta]:
    yield from (chunk.choices[0].delta for chunk in chunks if chunk.choices)


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_official_client_and_our_reader_read_the_same_reply(answer: Answer):
    with ModelServer([answer, answer]) as server:
        chunks = ask(server)
        ours = asyncio.run(read(server))
    texts = "".join(delta.content or "" for delta in deltas_of(chunks))
    assert texts == answer.text == "".join(delta.text for delta in ours if isinstance(delta, TextDelta))
    assert answer.reasoning == "".join(delta.text for delta in ours if isinstance(delta, ReasoningDelta))
    started = [delta for delta in ours if isinstance(delta, CallStarted)]
    written = [delta for delta in ours if isinstance(delta, CallDelta)]
    assert calls_of(chunks) == [
        (call.id, call.name, "".join(more.arguments for more in written if more.index == call.index))
        for call in started
    ]
    finish = next(
        chunk.choices[0].finish_reason for chunk in chunks if chunk.choices and chunk.choices[0].finish_reason
    )
    last = ours[-1]
    assert isinstance(last, ReplyEnd)
    assert last.finish == finish
    assert last.usage == answer.usage
    reported = chunks[-1].usage
    assert (reported and reported.prompt_tokens) == (answer.usage and answer.usage.input)


@pytest.mark.parametrize("answer", ANSWERS[:4])
def test_a_script_says_the_same_over_every_wire(answer: Answer):
    with ModelServer([answer] * 3) as server:
        chat = asyncio.run(read(server))
        messages = asyncio.run(read(server, Endpoint(base_url=server.root, protocol=ANTHROPIC_MESSAGES)))
        gemini = Endpoint(base_url=f"{server.root}/v1beta", protocol=GEMINI_CONTENT)
        contents = asyncio.run(read(server, gemini))
    paths = ["/v1/chat/completions", "/v1/messages", "/v1beta/models/m:streamGenerateContent?alt=sse"]
    assert [request.path for request in server.requests] == paths
    assert list(map(_stateless, said(chat))) == list(map(_stateless, said(messages)))
    assert list(map(_stateless, said(chat))) == list(map(_stateless, said(contents)))


def said(deltas: list[Delta]) -> list[Delta]:
    """What is said, without what some tell of the prompt's tokens beforehand; arguments as values."""
    rest = [delta for delta in join_deltas(deltas) if not isinstance(delta, Used)]
    return [_compact(delta) if isinstance(delta, CallDelta) else delta for delta in rest]


def _compact(delta: CallDelta) -> CallDelta:
    return replace(delta, arguments=dump(load(delta.arguments)).decode())


def _stateless(delta: Delta) -> Delta:
    return replace(delta, state=(), parts=(), call_state={}) if isinstance(delta, ReplyEnd) else delta


def test_an_error_in_the_stream_of_openai_is_seen_by_the_official_client_and_by_ours():
    answer = Answer(text="a", fault=("server_error", "broken"))
    with ModelServer([answer, answer]) as server:
        with pytest.raises(openai.APIError, match="broken"):
            ask(server)
        with pytest.raises(ModelUnreachable, match="broken"):
            asyncio.run(read(server))


def test_the_official_client_sees_a_failure_as_its_status():
    with ModelServer([failure(429, "slow", retry_after="7")]) as server, pytest.raises(openai.RateLimitError) as caught:
        ask(server)
    assert caught.value.response.headers["retry-after"] == "7"


def test_a_script_may_be_a_function_of_the_request():
    def echo(request: Request) -> Answer:
        return Answer(text=f"{request.number} {request.page['topic']}")

    with ModelServer(echo) as server:
        texts = ["".join(delta.content or "" for delta in deltas_of(ask(server, {"topic": "tea"}))) for _ in range(2)]
    assert texts == ["0 tea", "1 tea"]


def test_when_the_script_runs_out_a_plain_text_is_answered():
    with ModelServer() as server:
        assert "".join(delta.content or "" for delta in deltas_of(ask(server))) == "Nothing more is scripted."


def test_a_script_that_fails_is_told_to_the_client():
    def broken(request: Request) -> Answer:
        return Answer(text=request.headers["nope"])

    with ModelServer(broken) as server, pytest.raises(openai.InternalServerError, match="nope"):
        ask(server)


def test_another_address_is_not_found():
    with (
        ModelServer() as server,
        openai.OpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
        pytest.raises(openai.NotFoundError),
    ):
        client.models.list()
    assert [(request.method, request.path) for request in server.requests] == [("GET", "/v1/models")]


def test_an_answer_waits_at_its_gate():
    gate = threading.Event()
    with ModelServer([Answer(text="a b", hold=gate, hold_after=2)]) as server:
        asking = threading.Thread(target=ask, args=(server,))
        asking.start()
        (request,) = server.wait_requests(1)
        assert request.wait_held()
        assert asking.is_alive()
        gate.set()
        asking.join(5)
        assert not asking.is_alive()
    assert not request.disconnected


def test_the_body_on_the_wire_is_the_body_rendered():
    answer = Answer(text="a b", calls=(Call(name="x"),))
    with ModelServer([answer]) as server:
        request = urllib.request.Request(f"{server.url}/chat/completions", data=b"{}", method="POST")
        with urllib.request.urlopen(request, timeout=5) as response:
            assert response.read() == render(answer)


def test_as_a_program_it_answers_with_as_many_words_as_asked():
    command = [sys.executable, "-m", "recto.testing.model_server", "--tokens", "7"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        url = program.stdout.readline().strip()
        request = urllib.request.Request(f"{url}/chat/completions", data=b"{}", method="POST")
        with urllib.request.urlopen(request, timeout=5) as response:
            body = response.read()
        program.terminate()
    assert body == render(Answer(text="word " * 7))
    assert body.count(b'"word ') == 7
