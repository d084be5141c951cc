"""The client of models over TLS: whom it trusts, what it says first, and that everything holds there as well."""

import socket
import ssl
from pathlib import Path

import pytest

from recto.config.run_settings import Timeouts
from recto.errors import ModelCutOff, ModelUnreachable
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.ports import TextDelta
from recto.testing.model_server import Answer, render
from tests.http.test_client import (
    ANSWER_BYTES,
    BODY,
    CHUNKED,
    FRAMED,
    LAST,
    WHOLE,
    Run,
    answers,
    chunk,
    problem_of,
    replies,
    run,
)
from tests.models.raw_server import RawServer, Talk
from tests.waiting import settle

__all__ = ["run"]


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    """Return the TLS context of a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system trusts it."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))


def model_at(server: RawServer, *, host: str = "localhost", timeouts: Timeouts | None = None) -> EndpointModel:
    url = f"https://{host}:{server.port}/v1"
    return EndpointModel("m", Endpoint(base_url=url, timeouts=timeouts or Timeouts()))


@pytest.mark.usefixtures("trusted")
def test_a_server_that_the_system_trusts_is_told_the_name_and_the_protocol(run: Run, tls: ssl.SSLContext):
    names: list[str | None] = []
    protocols: list[str | None] = []
    tls.sni_callback = lambda _socket, name, _context: names.append(name)
    tls.set_alpn_protocols(["h2", "http/1.1"])

    def play(talk: Talk) -> None:
        assert isinstance(talk.socket, ssl.SSLSocket)
        protocols.append(talk.socket.selected_alpn_protocol())
        talk.answer(FRAMED)
        talk.answer(FRAMED)

    with RawServer(play, tls=tls) as server:
        assert run(replies(model_at(server), 2)) == [WHOLE, WHOLE]
    assert (names, protocols) == (["localhost"], ["http/1.1"])


def test_a_server_that_nobody_vouches_for_gets_nothing(run: Run, tls: ssl.SSLContext):
    with RawServer(answers(FRAMED), tls=tls) as server:
        problem = problem_of(run, ModelUnreachable, model_at(server))
    assert problem.endswith("localhost cannot be reached (SSLCertVerificationError). Check the base url.")
    assert server.requests == []


@pytest.mark.usefixtures("trusted")
def test_a_certificate_of_another_name_is_none(run: Run, tls: ssl.SSLContext):
    with RawServer(answers(FRAMED), tls=tls) as server:
        assert "SSLCertVerificationError" in problem_of(run, ModelUnreachable, model_at(server, host="127.0.0.1"))
    assert server.requests == []


def listens(talk: Talk) -> None:
    while talk.socket.recv(1000):
        pass


def test_a_server_that_never_speaks_TLS_is_unreachable_in_time(run: Run):
    impatient = Timeouts(connect=0.2, first_byte=60, between_bytes=60)
    with RawServer(listens) as server:
        assert "no response in time" in problem_of(run, ModelUnreachable, model_at(server, timeouts=impatient))


def test_a_server_that_speaks_no_TLS_is_unreachable(run: Run):
    with RawServer(lambda talk: talk.send(FRAMED)) as server:
        assert "cannot be reached" in problem_of(run, ModelUnreachable, model_at(server))


@pytest.mark.usefixtures("trusted")
def test_a_reply_whose_connection_just_ends_is_cut_off(run: Run, tls: ssl.SSLContext):
    def play(talk: Talk) -> None:
        talk.answer(CHUNKED + chunk(ANSWER_BYTES[:20]))
        # Without a word of farewell, as TLS wants one.
        talk.socket.shutdown(socket.SHUT_RDWR)

    with RawServer(play, tls=tls) as server:
        assert "broke before the reply was whole" in problem_of(run, ModelCutOff, model_at(server))


@pytest.mark.usefixtures("trusted")
def test_a_reader_that_comes_back_gets_all_that_was_held_up(run: Run, tls: ssl.SSLContext):
    text = "word " * 40_000

    async def slowly(model: EndpointModel) -> str:
        words: list[str] = []
        async for delta in model.stream(BODY):
            words += [delta.text] if isinstance(delta, TextDelta) else []
            if len(words) < 5:
                await settle()
        await model.aclose()
        return "".join(words)

    with RawServer(answers(CHUNKED + chunk(render(Answer(text=text))) + LAST, stays=True), tls=tls) as server:
        assert run(slowly(model_at(server))) == text
