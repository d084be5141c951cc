"""The gate over real HTTP, asked by the client that all tests use."""

import threading
import time
from collections.abc import Generator

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from recto.api.access.auth import Authenticator
from recto.api.access.gate import Gate, GateRules
from recto.config.access_settings import AuthSettings
from recto.testing.client import TOKEN, request
from recto.testing.process import free_port
from tests.api.test_auth_gate import ANNA, KEYS, ROUTES


async def broken(_request: Request) -> Response:
    raise RuntimeError("a secret of ours")


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    authenticator = Authenticator(AuthSettings(token=TOKEN, api_keys=KEYS))
    inside = [Middleware(Gate, authenticator=authenticator, rules=GateRules())]
    app, port = Starlette(routes=[*ROUTES, Route("/broken", broken)], middleware=inside), free_port()
    # Without a configuration of logs: it would be that of the whole process, and of the tests that come after.
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_config=None, ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    until = time.monotonic() + 20
    while not server.started and time.monotonic() < until:
        thread.join(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(20)


def test_C3_the_client_of_the_tests_sends_the_local_token_unless_told_otherwise(url: str):
    assert request(url, "GET", "/who").json == {"user": "local"}
    assert request(url, "GET", "/who", token=ANNA).json == {"user": "anna"}
    assert request(url, "GET", "/who", authorization=f"Bearer {ANNA}", token=None).json == {"user": "anna"}


def test_C3_nobody_is_told_what_to_send(url: str):
    reply = request(url, "GET", "/who", token=None)
    assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert "the file `token`" in str(reply.json["detail"])


def test_C3_a_refused_body_does_not_break_the_next_request(url: str):
    assert request(url, "POST", "/who", b"x" * 200_000, token="no-credential-of-ours").status == 401
    assert request(url, "POST", "/who", {"a": 1}).status == 200


def test_C2_a_stream_has_the_headers_too(url: str):
    reply = request(url, "GET", "/stream")
    assert reply.body == b"data: 1\n\ndata: 2\n\n"
    assert reply.headers["content-type"] == "text/event-stream"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["cache-control"] == "no-cache"


def test_C2_an_error_of_ours_is_answered_once_in_the_form_of_all_refusals(url: str):
    reply = request(url, "GET", "/broken")
    assert (reply.status, reply.json["code"]) == (500, "internal")
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert b"secret" not in reply.body


def test_C3_bytes_that_are_no_text_are_no_credential(url: str):
    assert request(url, "GET", "/who", token="\xff\xfe" * 20).status == 401
