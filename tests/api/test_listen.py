"""Listening: whose word on a client's address is believed (C3), and what is told of a start that fails."""

import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

from recto.api.listen import configure, listen
from recto.api.route import Route
from recto.api.router import Api
from recto.config.access_settings import ConnectionLimits
from recto.errors import RectoError, SettingsError
from recto.testing.process import ServerProcess
from tests.api.test_auth_gate import ask
from tests.support.client import request


async def address(request: Request) -> Response:
    return PlainTextResponse(request.client.host if request.client else "-")


async def client_address(proxies: str, peer: str) -> str:
    """The address of a client of ours that says it is 9.9.9.9."""
    api = Api([Route(method="GET", path="/", handler=address, tag="")])
    config = configure(api, "127.0.0.1", 0, ConnectionLimits(proxies=proxies))
    config.load()
    app = cast("ASGIApp", config.loaded_app)  # pyright: ignore[reportUnknownMemberType] - uvicorn does not say
    return (await ask(app, "GET", "/", None, peer, x_forwarded_for="9.9.9.9")).body.decode()


@pytest.mark.parametrize(
    ("proxies", "peer", "believed"),
    [
        ("", "127.0.0.1", False),
        ("127.0.0.1", "127.0.0.1", True),
        ("10.0.0.0/8, ::1", "10.1.2.3", True),
        ("10.0.0.0/8, ::1", "::1", True),
        ("10.0.0.0/8, ::1", "127.0.0.1", False),
    ],
)
async def test_C3_an_address_that_was_passed_on_is_believed_of_known_proxies_only(
    proxies: str, peer: str, believed: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    assert await client_address(proxies, peer) == ("9.9.9.9" if believed else peer)


@pytest.mark.full
def test_C3_nobody_on_this_machine_can_write_another_address_into_the_audit_log(tmp_path: Path):
    with ServerProcess.serve(tmp_path, {}) as server:
        request(server.url, "GET", "/api/v1/agent/agents", token="a-wrong-token-of-ours", x_forwarded_for="9.9.9.9")
        assert "reason wrong_credential, user nobody, from 127.0.0.1" in server.output
        assert "9.9.9.9" not in server.output


@pytest.fixture
def signals_as_they_were() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("signals_as_they_were")
@pytest.mark.parametrize(
    ("failure", "kind", "problem"),
    [
        (SettingsError(name="a", value="b", allowed="c"), RectoError, "Setting a is 'b'; c"),
        (PermissionError(13, "no", "node"), OSError, r"\[Errno 13\] no: 'node'"),
        (ValueError("of no use"), OSError, "^The server could not start: ValueError: of no use$"),
    ],
)
def test_C1_what_kept_the_server_from_starting_is_told_and_the_port_is_not_blamed(
    failure: Exception, kind: type[Exception], problem: str
):
    @asynccontextmanager
    async def failing(api: Api) -> AsyncGenerator[None]:
        api.state.failure = failure
        raise failure
        yield

    with pytest.raises(kind, match=problem):
        listen(Api([], lifespan=failing), "127.0.0.1", 0, print)
