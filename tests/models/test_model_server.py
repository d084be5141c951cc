"""The scripted model server of `recto.testing`. tests/oracles compares its wire formats with official clients."""

import asyncio
import subprocess
import sys
import threading
import urllib.request

import pytest

from recto.errors import ModelUnreachable
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.ports import TextDelta
from recto.testing.model_server import Answer, ModelServer, Request, render


async def read(server: ModelServer, body: bytes = b"{}") -> str:
    model = EndpointModel("m", Endpoint(base_url=server.url))
    try:
        return "".join([delta.text async for delta in model.stream(body) if isinstance(delta, TextDelta)])
    finally:
        await model.aclose()


def test_a_script_is_a_list_of_answers_and_a_plain_text_follows_it():
    with ModelServer([Answer(text="tea")]) as server:
        assert [asyncio.run(read(server)) for _ in range(2)] == ["tea", "Nothing more is scripted."]


def test_a_script_may_be_a_function_of_the_request():
    def echo(request: Request) -> Answer:
        return Answer(text=f"{request.number} {request.page['topic']}")

    with ModelServer(echo) as server:
        assert [asyncio.run(read(server, b'{"topic": "tea"}')) for _ in range(2)] == ["0 tea", "1 tea"]


def test_an_answer_breaks_with_the_fault_it_names():
    answer = Answer(text="a", fault=("server_error", "broken"))
    with ModelServer([answer]) as server, pytest.raises(ModelUnreachable, match="broken"):
        asyncio.run(read(server))


@pytest.mark.asyncio
async def test_an_answer_waits_until_the_test_lets_it_go_on():
    gate = threading.Event()
    with ModelServer([Answer(text="a b", hold=gate, hold_after=2)]) as server:
        reading = asyncio.create_task(read(server))
        (request,) = await asyncio.to_thread(server.wait_requests, 1)
        assert await asyncio.to_thread(request.wait_held)
        assert not reading.done()
        gate.set()
        assert await reading == "a b"


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
