"""What a connection may cost before anybody is known: heads, silence, bodies, how many there are. A real server."""

import contextlib
import re
import resource
import socket
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import cast
from urllib.parse import urlsplit

import pytest

from recto.api.files.attachments import ATTACHMENTS
from recto.api.listen import OTHER_FILES, with_files_for
from recto.config.access_settings import ConnectionLimits
from recto.conversation.json import load_object
from recto.testing.client import RUNS, TOKEN, request
from recto.testing.process import ServerProcess
from tests.api.forms import FORM, file, form_of
from tests.costs import STANDSTILL, costs_of, worked

pytestmark = pytest.mark.full

PROXY = "127.0.0.9"
SETTINGS = {
    "RECTO_MODEL": "demo",
    "RECTO_AGENT": "chat",
    "RECTO_HEADER_SECONDS": "1",
    "RECTO_BODY_SECONDS": "1",
    "RECTO_KEEP_ALIVE_SECONDS": "1",
    "RECTO_UNREAD_SECONDS": "1",
    "RECTO_ADDRESS_CONNECTIONS": "50",
    "RECTO_CONNECTIONS": "120",
    "RECTO_PROXIES": PROXY,
}
HEAD = (
    f"POST {RUNS} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n"
).encode()
LONG, END = b"x" * 65_536, b"\r\n\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked" + END
GET = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
REFUSED = re.compile(rb"HTTP/1.1 (\d{3}) .*?\r\n\r\n(.*)", re.DOTALL)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServerProcess]:
    with ServerProcess.serve(tmp_path_factory.mktemp("connections"), SETTINGS) as server:
        yield server
        assert "Traceback" not in server.output


def dial(url: str, source: str = "127.0.0.1", seconds: float = 10.0) -> socket.socket:
    address = urlsplit(url)
    return socket.create_connection((address.hostname or "", address.port or 0), seconds, source_address=(source, 0))


def answer(connection: socket.socket) -> tuple[int, str]:
    """The status of the problem that is answered before the connection is closed, and its code."""
    found = REFUSED.search(rest(connection))
    assert found
    assert b"content-type: application/problem+json" in found[0]
    assert b"x-content-type-options: nosniff" in found[0]
    assert b"connection: close" in found[0]
    return int(found[1]), str((load_object(found[2]) or {})["code"])


def rest(connection: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    pieces = list[bytes]()
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)


def push(connection: socket.socket, piece: bytes, times: int) -> int:
    """Send a piece again and again, until nobody listens. How often it was taken."""
    for count in range(times):
        try:
            connection.sendall(piece)
        except OSError:
            return count
    return times


def holds_nobody_up(server: ServerProcess, attack: Callable[[], object]) -> bool:
    """Whether somebody else who asks all the time never waits long."""
    return costs_of(server, attack).standstill < STANDSTILL


# Heads


@pytest.mark.parametrize("piece", [b"x" * 1_000_000, b"a:b\r\n" * 200_000], ids=["one header", "small headers"])
def test_C3_a_hundred_megabytes_of_headers_hold_nobody_up(server: ServerProcess, piece: bytes):
    def attack() -> None:
        with dial(server.url) as one:
            one.sendall(b"GET /healthz HTTP/1.1\r\nx: ")
            assert push(one, piece, 100) < 10

    assert holds_nobody_up(server, attack)


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        (HEAD + b"x: " + LONG + END, 431, "too_large"),
        (b"GET /" + LONG + b" HTTP/1.1" + END, 431, "too_large"),
        (HEAD + b"a: b\r\n" * 100 + b"\r\n", 431, "too_large"),
        (CHUNKED + b"0\r\n" + b"a: b\r\n" * 100 + b"\r\n", 431, "too_large"),
        (CHUNKED + b"1;" + LONG * 3, 431, "too_large"),
        (CHUNKED + b"no number\r\n", 400, "bad_request"),
        (b"What is this?\r\n\r\n", 400, "bad_request"),
    ],
)
def test_C3_a_head_that_is_too_large_or_none_is_refused_as_a_problem(
    server: ServerProcess, head: bytes, status: int, code: str
):
    with dial(server.url) as one:
        one.sendall(head)
        assert answer(one) == (status, code)


def test_C3_a_head_within_the_limits_is_taken(server: ServerProcess):
    fields = {f"x_{number}": "y" * 600 for number in range(90)}
    assert request(server.url, "GET", "/healthz", **fields).status == 200


def test_C3_thousands_of_requests_sent_ahead_hold_nobody_up(server: ServerProcess):
    def attack() -> None:
        with dial(server.url) as one:
            assert push(one, GET * 10_000, 100) < 100

    assert holds_nobody_up(server, attack)


# Silence


def test_C3_a_thousand_silent_connections_lock_nobody_out_and_fill_no_log(server: ServerProcess):
    before = len(server.output.splitlines())

    def attack() -> None:
        with ExitStack() as held:
            for _ in range(1_000):
                held.enter_context(dial(server.url))
            assert request(server.url, "GET", "/readyz").status == 200

    assert holds_nobody_up(server, attack)
    problem = server.output.splitlines()[before:]
    assert any("recto.connections a connection gave way to newer ones, from 127.0.0.1" in line for line in problem)
    assert len(problem) < 10


@pytest.mark.parametrize("sent", [b"", b"\r\n", b"GET /healthz HTTP/1.1\r\nhost: lo", GET, GET + b"\r\n"])
def test_C3_who_falls_silent_before_a_request_is_closed(server: ServerProcess, sent: bytes):
    with dial(server.url) as one:
        one.sendall(sent)
        begun = time.monotonic()
        said = rest(one)
        assert 0.5 < time.monotonic() - begun < 4
        assert said.startswith(b"HTTP/1.1 200" if GET in sent else b"HTTP/1.1 408" if sent.strip() else b"")


def test_C3_a_head_that_comes_byte_by_byte_has_no_more_time(server: ServerProcess):
    with dial(server.url) as one:
        begun = time.monotonic()
        while push(one, b"G" if time.monotonic() - begun < 0.1 else b"E", 1):
            time.sleep(0.05)
            assert time.monotonic() - begun < 4


@pytest.mark.parametrize("path", [RUNS, "/api/v1/chat", "/api/v1/agent/threads/x/fork", "/api/v1/agent/datasets"])
def test_P2_a_body_that_falls_silent_is_refused(server: ServerProcess, path: str):
    with dial(server.url) as one:
        one.sendall(HEAD.replace(RUNS.encode(), path.encode()) + b"content-length: 99\r\n\r\n{")
        assert answer(one) == (408, "too_slow")


def test_P9_who_takes_nothing_of_a_file_is_left(server: ServerProcess):
    form = form_of(file("notes.txt", b"buy milk\n" * 1_500_000))
    kept = request(server.url, "POST", ATTACHMENTS, form, content_type=FORM).json
    (entry,) = cast("list[Mapping[str, str]]", kept["attachments"])
    with dial(server.url) as one:
        url = urlsplit(entry["url"])
        one.sendall(f"GET {url.path}?{url.query} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        expect_soon(lambda: "took nothing of its answer in time" in server.output)


# Bodies

IDS = b'{"threadId": "550e8400-e29b-41d4-a716-446655440000", "runId": "r", "messages": ['
SAID = b'{"id": "m", "role": "user", "content": "hi"}'


def filled(before: bytes, part: bytes, after: bytes, size: int = 262_144) -> bytes:
    """A body of as many of a part as there is room for."""
    return before + b",".join([part] * ((size - len(before) - len(after)) // (len(part) + 1))) + after


CHATS = [(b"{}", 8_388_608, 413), (b"{}", 1_048_576, 413), (b"1", 1_048_576, 422)]


@pytest.mark.parametrize(("part", "size", "status"), CHATS)
def test_P16_eight_long_histories_at_once_hold_nobody_up(server: ServerProcess, part: bytes, size: int, status: int):
    body = filled(b'{"messages": [', part, b"]}", size)

    def attack() -> None:
        with ThreadPoolExecutor(8) as several:
            asked = [several.submit(request, server.url, "POST", "/api/v1/chat", body) for _ in range(8)]
            assert {one.result().status for one in asked} == {status}

    assert holds_nobody_up(server, attack)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", RUNS, filled(IDS, b"{}", b"]}"), 422),
        ("POST", RUNS, filled(IDS, b'{"id":"","role":"user","content":""}', b"]}"), 422),
        ("POST", RUNS, filled(IDS + b'{"id": "m", "role": "user", "content": [', b'{"type":"binary"}', b"]}]}"), 422),
        ("POST", RUNS, filled(IDS + SAID + b'], "tools": [', b'{"name":"a"}', b"]}"), 422),
        ("POST", RUNS, filled(IDS + SAID + b'], "state": [', b"[]", b',"\\u0000"]}'), 422),
        ("POST", "/api/v1/agent/datasets", filled(b'{"name": "a", "sharedWith": [', b"{}", b"]}"), 422),
        ("PATCH", "/api/v1/profile", filled(b'{"a": [', b"{}", b"]}"), 200),
        ("PATCH", "/api/v1/profile", filled(b'{"a": [', b"[1234567890123456789]", b"]}"), 200),
        ("PATCH", "/api/v1/agent/threads/550e8400-e29b-41d4-a716-446655440000", filled(b'{"a": [', b"[]", b"]}"), 422),
    ],
    ids=lambda value: f"{value[:60]!r}" if isinstance(value, bytes) else None,
)
def test_P2_a_body_of_many_parts_costs_the_server_little_work(
    server: ServerProcess, method: str, path: str, body: bytes, status: int
):
    before = worked(server.pid)
    assert request(server.url, method, path, body).status == status
    assert worked(server.pid) - before < STANDSTILL


# How many


def test_C3_connections_at_work_are_kept_and_others_of_their_address_are_told_to_wait(server: ServerProcess):
    with ExitStack() as held:
        for _ in range(50):
            one = held.enter_context(dial(server.url, "127.0.0.3"))
            one.sendall(HEAD + b"content-length: 99\r\n\r\n{")
        time.sleep(0.1)
        assert answer(held.enter_context(dial(server.url, "127.0.0.3"))) == (503, "busy")
        assert request(server.url, "GET", "/readyz").status == 200


def test_C3_no_more_connections_are_asked_for_than_files_may_be_open():
    given = ConnectionLimits(connections=10**9)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert with_files_for(given).connections == hard - min(OTHER_FILES, hard // 2)
    assert with_files_for(ConnectionLimits(connections=100)).connections == 100


def test_C3_a_proxy_that_is_named_may_have_more_than_others(server: ServerProcess):
    with ExitStack() as held:
        first, *_ = [held.enter_context(dial(server.url, PROXY)) for _ in range(60)]
        first.sendall(GET)
        assert first.recv(65_536).startswith(b"HTTP/1.1 200")


def expect_soon(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)
