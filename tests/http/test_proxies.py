"""Outbound connections through forward proxies (C6): choice of the proxy, tunnels, credentials, checked addresses."""

import re
import ssl
from collections.abc import Generator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from recto.config.access_settings import NetworkSettings
from recto.config.file_settings import OutboundSettings
from recto.config.run_settings import Timeouts
from recto.errors import FileRefused, ModelUnreachable, SettingsError
from recto.files.fetch.outbound import Outbound
from recto.http.client import HttpClient
from recto.http.network import Network
from recto.http.tunnel import ProxyRefused
from recto.models.choose import choose_model
from recto.models.deltas import join_deltas
from recto.models.ports import ReplyEnd, TextDelta
from recto.testing.model_server import Answer, ModelServer
from tests.files.a_web import Web, http
from tests.files.resolver import TableResolver
from tests.http.test_client import FRAMED, answers
from tests.models.raw_server import RawServer, Script, Talk
from tests.support.forward_proxy import ForwardProxy
from tests.waiting import wait_until

USER = "ann:p%40ss"
PROXY = "http://proxy.corp:3128"


@pytest.fixture(scope="module")
def proxy() -> Generator[ForwardProxy]:
    with ForwardProxy() as server:
        yield server


@pytest.fixture(scope="module")
def locked_proxy() -> Generator[ForwardProxy]:
    with ForwardProxy("ann:p@ss") as server:
        yield server


@pytest.mark.parametrize(
    ("environment", "url", "host"),
    [
        ({}, "https://api.example", None),
        ({"HTTPS_PROXY": PROXY}, "https://api.example", "proxy.corp"),
        ({"HTTPS_PROXY": PROXY}, "http://api.example", None),
        ({"HTTP_PROXY": PROXY}, "http://api.example", "proxy.corp"),
        ({"ALL_PROXY": PROXY}, "http://api.example", "proxy.corp"),
        ({"ALL_PROXY": "http://all", "https_proxy": "http://lower", "HTTPS_PROXY": PROXY}, "https://x", "lower"),
        ({"HTTPS_PROXY": "proxy.corp:3128"}, "https://api.example", "proxy.corp"),
        ({"HTTPS_PROXY": PROXY}, "https://localhost", None),
        ({"HTTPS_PROXY": PROXY}, "https://127.0.0.7", None),
        ({"HTTPS_PROXY": PROXY}, "https://[::1]", None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, "https://api.example", None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "other, .example"}, "https://api.example", None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "example"}, "https://api.example", None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "ample"}, "https://api.example", "proxy.corp"),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "api.example:8443"}, "https://api.example", "proxy.corp"),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "api.example:8443"}, "https://api.example:8443", None),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, "https://10.1.2.3", None),
        ({"HTTPS_PROXY": PROXY, "no_proxy": "example", "NO_PROXY": "other"}, "https://api.example", None),
    ],
)
def test_C6_the_usual_variables_choose_the_proxy(environment: Mapping[str, str], url: str, host: str | None):
    proxy = Network.from_environment(environment).proxy_for(urlsplit(url))
    assert (proxy and proxy.host) == host


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        (NetworkSettings(proxy="http://own:1"), "own"),
        (NetworkSettings(proxy="none"), None),
        (NetworkSettings(no_proxy=".example"), None),
        (NetworkSettings(no_proxy="other"), "proxy.corp"),
    ],
)
def test_C6_settings_take_precedence_over_the_environment(settings: NetworkSettings, host: str | None):
    network = Network.from_environment({"HTTPS_PROXY": PROXY, "NO_PROXY": "nothing"}, settings)
    proxy = network.proxy_for(urlsplit("https://api.example"))
    assert (proxy and proxy.host) == host


@pytest.mark.parametrize("value", ["https://proxy.corp", "ftp://u:secret@proxy", "http://", "http://u:secret@h:x/"])
def test_C6_a_bad_proxy_names_its_variable_and_hides_its_password(value: str):
    with pytest.raises(SettingsError, match=r"HTTPS_PROXY.*http://proxy\.example:3128") as error:
        Network.from_environment({"HTTPS_PROXY": value})
    assert "secret" not in str(error.value)


def test_C6_a_ca_file_that_cannot_be_read_is_reported_at_the_start(tmp_path: Path):
    (tmp_path / "empty.pem").write_text("no certificate")
    for name in ("empty.pem", "missing.pem"):
        with pytest.raises(SettingsError, match=r"RECTO_CA_FILE.*PEM"):
            Network.from_environment({}, NetworkSettings(ca_file=tmp_path / name))


async def ask_model(port: int, environment: Mapping[str, str]) -> list[object]:
    model = choose_model("compatible:m", {"RECTO_MODEL_URL": f"http://model.test:{port}/v1", **environment})
    try:
        return list(join_deltas([delta async for delta in model.stream(b'{"model":"m"}')]))
    finally:
        await model.aclose()


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_C6_a_model_is_called_through_a_proxy_with_credentials(locked_proxy: ForwardProxy, scheme: str):
    with ModelServer([Answer(text="a b", usage=None)]) as server:
        port = urlsplit(server.url).port or 0
        deltas = await ask_model(port, {"ALL_PROXY": locked_proxy.url(USER, scheme)})
    assert deltas == [TextDelta(text="a b"), ReplyEnd(finish="stop")]


async def test_C6_a_refusal_names_the_variable_of_the_proxy_without_address_and_password(locked_proxy: ForwardProxy):
    environment = {"RECTO_MODEL_URL": "https://model.test/v1", "HTTPS_PROXY": locked_proxy.url("ann:wrong")}
    model = choose_model("compatible:m", environment)
    with pytest.raises(ModelUnreachable, match="the proxy of HTTPS_PROXY") as error:
        _deltas = [delta async for delta in model.stream(b"{}")]
    # Callers of the gateway read this too: it names neither the password nor the address.
    assert not {"wrong", str(locked_proxy.port)} & set(re.split(r"\W", str(error.value)))


async def test_C6_a_proxy_that_is_gone_is_named_by_its_variable():
    model = choose_model("compatible:m", {"RECTO_MODEL_URL": "http://m.test/v1", "ALL_PROXY": "127.0.0.1:1"})
    with pytest.raises(ModelUnreachable, match="the proxy of ALL_PROXY cannot be reached"):
        _deltas = [delta async for delta in model.stream(b"{}")]


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_C6_tls_goes_through_a_tunnel_to_the_named_host(
    proxy: ForwardProxy, certificate: Path, server_tls: ssl.SSLContext, scheme: str
):
    network = Network.from_environment({"HTTPS_PROXY": proxy.url(scheme=scheme)}, NetworkSettings(ca_file=certificate))
    with RawServer(answers(FRAMED), tls=server_tls) as server:
        client = HttpClient(f"https://model.test:{server.port}/v1", {}, network=network)
        answer = await client.post(b"{}", Timeouts())
        assert answer.status == 200
        client.close()
    assert b"POST /v1 HTTP/1.1" in server.requests[0]
    assert f"model.test:{server.port}".encode() in server.requests[0]


@pytest.mark.parametrize("end", [b"HTTP/1.1 407 No\r\n\r\n", b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b""])
async def test_C6_a_tunnel_that_is_refused_sends_nothing_to_the_proxy(end: bytes):
    def play(talk: Talk) -> None:
        talk.answer(*(bytes([byte]) for byte in end))

    await assert_refused(play)


async def assert_refused(script: Script) -> None:
    with RawServer(script) as server:
        network = Network.from_environment({"HTTPS_PROXY": f"http://127.0.0.1:{server.port}"})
        client = HttpClient("https://api.example/v1", {"Authorization": "Bearer secret"}, network=network)
        with pytest.raises(ProxyRefused):
            await client.post(b"{}", Timeouts())
    assert [request.split(b"\r\n")[0] for request in server.requests] == [b"CONNECT api.example:443 HTTP/1.1"]
    assert b"secret" not in server.requests[0]


@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_D7_a_guarded_fetch_tunnels_to_the_checked_address(proxy: ForwardProxy, scheme: str):
    """The proxy would resolve inside.test to this machine. It gets the address that was checked, never the name."""
    network = Network.from_environment({"ALL_PROXY": proxy.url(scheme=scheme)})
    resolve = TableResolver({"files.test": [["127.0.0.1"]], "inside.test": [["127.0.0.2"]]})
    async with Web() as web:
        web.answers["/"] = http(b"hello")
        outbound = Outbound(OutboundSettings(), resolve=resolve, allowance=("127.0.0.1/32",), network=network)
        hosts = (f"*:{web.port}",)
        proxy.connections.clear()
        async with outbound.fetch(f"http://files.test:{web.port}/", hosts=hosts) as file:
            assert b"".join([piece async for piece in file.pieces]) == b"hello"
        with pytest.raises(FileRefused, match="not public"):
            async with outbound.fetch(f"http://inside.test:{web.port}/", hosts=hosts):
                pass
        assert web.accepted == 1
    await wait_until(lambda: any(f"-> 127.0.0.1:{web.port}" in line for line in proxy.connections), "the proxy's line")
    assert not any("inside.test" in line for line in proxy.connections)
