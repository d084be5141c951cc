"""P7 over real sockets: readers that never read cost little, are ended, and go on from where they were."""

import re
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from recto.testing.model_server import Answer
from tests.api.scripted_server import ALICE, BOB, Scripted, scripted_server
from tests.api.wrong_inputs import assert_refused
from tests.costs import open_sockets, resident
from tests.support.client import RUNS, ReceivedEvent, ask, parse_events, read_events, request, start
from tests.waiting import wait_for

pytestmark = pytest.mark.full

READERS = 200
# What all of them together may cost a server.
MOST_BYTES = 128 * 2**20
STREAM = "text/event-stream"
SETTINGS = {"RECTO_UNREAD_SECONDS": "1", "RECTO_STREAMS": "203"}
LIMIT = (
    "You have 200 event streams open, which is the limit. Close one, or wait for one to end. Runs without "
    "Accept: text/event-stream are still accepted; read their events later."
)
FULL = "This server has 203 event streams open, which is the limit. Try again in a moment."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    with scripted_server(tmp_path_factory.mktemp("slow"), SETTINGS) as one:
        yield one


@pytest.fixture(scope="module")
def long_run(server: Scripted) -> str:
    """A run that said 12 MB and has ended."""
    server.answers.append(Answer(text=" ".join(["\u957fx" * 4_000] * 750)))
    run = start(server.url, ask("say much"), token=ALICE)
    server.reader(run).wait()
    return run


@contextmanager
def silent_readers(server: Scripted, run: str, count: int, token: str = ALICE) -> Generator[list[socket.socket]]:
    """Sockets that asked for the events of a run and read none of them."""
    address = urlsplit(server.url)
    request_text = f"GET {RUNS}/{run}/events?protocolVersion=1.0 HTTP/1.1\r\nHost: {address.netloc}\r\n"
    sockets: list[socket.socket] = []
    try:
        for _ in range(count):
            one = socket.socket()
            sockets.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            one.settimeout(20)
            one.connect((address.hostname or "", address.port or 0))
            one.sendall(f"{request_text}Authorization: Bearer {token}\r\n\r\n".encode())
        yield sockets
    finally:
        for one in sockets:
            one.close()


def what_came(one: socket.socket) -> list[ReceivedEvent]:
    """The whole events that reached a reader before its connection was ended."""
    pieces = list[bytes]()
    try:
        while piece := one.recv(65_536):
            pieces.append(piece)
    except ConnectionResetError:
        pass
    body = b"".join(pieces).partition(b"\r\n\r\n")[2]
    unchunked = re.sub(rb"(?:\A|\r\n)[0-9a-f]+\r\n", b"", body)
    return list(parse_events(iter(unchunked.splitlines(keepends=True))))


def statuses(sockets: Sequence[socket.socket]) -> set[bytes]:
    """How requests were answered, once all of them were."""
    return {one.recv(15, socket.MSG_WAITALL | socket.MSG_PEEK) for one in sockets}


def test_P7_readers_that_never_read_cost_little_are_ended_and_may_go_on(server: Scripted, long_run: str):
    memory, others, sizes = resident(server.pid), open_sockets(server.pid), list[int]()

    def are_ended() -> bool:
        sizes.append(resident(server.pid) - memory)
        return open_sockets(server.pid) < others + READERS / 10

    with silent_readers(server, long_run, READERS) as sockets:
        assert statuses(sockets) == {b"HTTP/1.1 200 OK"}
        wait_for(are_ended, "the end of the silent readers")
        assert request(server.url, "GET", "/healthz").status == 200
        came = what_came(sockets[0])
    assert max(sizes) < MOST_BYTES
    after = came[-1].number if came else 0
    whole = [received.number for received in read_events(server.url, long_run, token=ALICE)]
    rest = [received.number for received in read_events(server.url, long_run, after, token=ALICE)]
    assert len(rest) > len(whole) / 2
    assert [received.number for received in came] + rest == whole


def test_P7_a_user_and_a_server_have_so_many_streams_and_no_more(server: Scripted):
    waiting_run, _ = server.begin(ask("hold"))
    of_bob = start(server.url, ask("hold"), token=BOB)
    # One reads what the run said until it was held.
    with silent_readers(server, waiting_run, READERS - 1) as sockets:
        assert statuses(sockets) == {b"HTTP/1.1 200 OK"}
        rejection = server.post(ask("one more"), accept=STREAM)
        assert_refused(rejection, 429, LIMIT, "limit_reached")
        assert int(rejection.headers["retry-after"]) >= 1
        assert request(server.url, "GET", f"{RUNS}/{waiting_run}/events", token=ALICE).status == 429
        # What is no stream goes on, and so does everybody else.
        assert server.post(ask("hello")).status == 202
        assert server.post(ask("hello"), BOB, accept=STREAM).status == 200
        with silent_readers(server, of_bob, 3, BOB) as more:
            assert statuses(more) == {b"HTTP/1.1 200 OK"}
            full = server.post(ask("hello"), BOB, accept=STREAM)
            assert (full.status, full.json["detail"], full.json["code"]) == (503, FULL, "busy")
            assert int(full.headers["retry-after"]) >= 1
            assert server.post(ask("hello"), BOB).status == 202
    server.go.set()
    server.reader(waiting_run).wait()
