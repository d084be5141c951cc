"""Limits of a connection before its user is known: heads, silence, bodies, number of connections."""

import asyncio
import gc
import re
import resource
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from recto.api.listen import OTHER_FILES, fit_open_files
from recto.api.server import ROUTES
from recto.config.access_settings import BodyLimits, ConnectionLimits
from recto.conversation.json import load_object
from tests.api.local_api import local_api
from tests.api.raw_connection import RawConnection, RawServer
from tests.api.virtual_time import at, run_virtually
from tests.costs import standstill_limit
from tests.support.client import RUNS
from tests.waiting import settle, wait_until

HEAD = b"POST / HTTP/1.1\r\nhost: localhost\r\n"
LONG, END = b"x" * 65_536, b"\r\n\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked" + END
GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
HALF = HEAD + b"content-length: 99\r\n\r\n{"
REJECTION = re.compile(rb"HTTP/1.1 (\d{3}) .*?\r\n\r\n(.*)", re.DOTALL)
LARGE = b"x" * 5_000_000


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer each request once its body is there."""
    request = Request(scope, receive)
    with suppress(ClientDisconnect):
        await request.body()
        body = LARGE[: int(request.url.path[1:] or 2)]
        await PlainTextResponse(body)(scope, receive, send)


async def refusal(connection: RawConnection) -> tuple[int, str]:
    """Return the status and the code of the problem that is answered before the connection is closed."""
    match = REJECTION.search(await connection.rest())
    assert match
    assert b"content-type: application/problem+json" in match[0]
    assert b"x-content-type-options: nosniff" in match[0]
    assert b"connection: close" in match[0]
    return int(match[1]), str((load_object(match[2]) or {})["code"])


# Heads


@pytest.mark.parametrize("piece", [b"x" * 1_000_000, b"a:b\r\n" * 200_000], ids=["one header", "small headers"])
async def test_C3_endless_headers_are_not_read(piece: bytes):
    async with RawServer(app) as server:
        one = await server.dial()
        one.writer.write(b"GET /healthz HTTP/1.1\r\nx: ")
        assert await one.push(piece, 100) < 3


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        (HEAD + b"x: " + LONG + END, 431, "too_large"),
        (b"GET /" + LONG + b" HTTP/1.1" + END, 431, "too_large"),
        (HEAD + b"a: b\r\n" * 100 + b"\r\n", 431, "too_large"),
        (CHUNKED + b"0\r\n" + b"a: b\r\n" * 100 + b"\r\n", 431, "too_large"),
        (CHUNKED + b"1;" + LONG * 6, 431, "too_large"),
        (CHUNKED + b"no number\r\n", 400, "bad_request"),
        (b"What is this?\r\n\r\n", 400, "bad_request"),
    ],
)
async def test_C3_a_head_that_is_too_large_or_none_is_refused_as_a_problem(head: bytes, status: int, code: str):
    async with RawServer(app) as server:
        one = await server.dial()
        one.writer.write(head)
        assert await refusal(one) == (status, code)


async def test_C3_a_head_within_the_limits_is_supported():
    async with RawServer(app) as server:
        one = await server.dial()
        fields = b"".join(b"\r\nx-%d: %b" % (number, b"y" * 600) for number in range(90))
        assert await one.is_served(GET.replace(END, fields + END))


async def test_C3_thousands_of_requests_sent_ahead_are_neither_read_nor_answered():
    async with RawServer(app) as server:
        one = await server.dial()
        assert await one.push(GET * 10_000, 100) < 10
        assert (await one.rest()).count(b"HTTP/1.1 200") <= 33


# Silence


@pytest.mark.parametrize(
    ("data", "second", "answer"),
    [
        (b"", 10, b""),
        (b"\r\n", 10, b"HTTP/1.1 408"),
        (b"GET /healthz HTTP/1.1\r\nhost: lo", 10, b"HTTP/1.1 408"),
        (GET, 5, b"HTTP/1.1 200"),
        (GET + b"\r\n", 5, b"HTTP/1.1 200"),
    ],
)
def test_C3_a_connection_that_falls_silent_before_a_request_is_closed(data: bytes, second: int, answer: bytes):
    async def fall_silent() -> bytes:
        async with RawServer(app) as server:
            one = await server.dial()
            one.writer.write(data)
            return await one.rest()

    body, end = run_virtually(fall_silent())
    assert (body[: len(answer)], bool(body), end) == (answer, bool(answer), second)


def test_C3_a_head_that_comes_byte_by_byte_has_no_more_time():
    async def drip() -> bytes:
        async with RawServer(app) as server:
            one = await server.dial()
            for second, byte in enumerate(GET[:20]):
                asyncio.get_running_loop().call_at(second, one.writer.write, bytes([byte]))
            return await one.rest()

    assert run_virtually(drip())[1] == 10


def test_P7_P9_a_reader_that_takes_nothing_of_an_answer_is_left_and_a_slow_one_is_not():
    async def read(*seconds: float) -> int:
        async with RawServer(app) as server:
            one, size = await server.dial(), 0
            one.writer.write(GET.replace(b"/", b"/5000000", 1))
            for second in seconds:
                await at(second)
                size += len(await one.reader.read(1_000_000))
            return size + len(await one.rest())

    assert run_virtually(read(*range(59, 1_200, 59)))[0] > len(LARGE)
    assert run_virtually(read(121))[0] < len(LARGE)


def test_P7_P9_no_answer_keeps_a_connection_open_whose_reader_takes_nothing():
    async def take_nothing(size: int) -> int:
        async with RawServer(app) as server:
            one = await server.dial()
            one.stop_reading()
            one.writer.write(GET.replace(b"/", b"/%d" % size, 1))
            await at(1_000)
            return server.open_connections

    # A socket holds about 220 kB: little of an answer may be left, or much.
    assert [run_virtually(take_nothing(size))[0] for size in range(200_000, 300_000, 20_000)] == [0] * 5


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", RUNS),
        ("POST", "/api/v1/chat"),
        ("POST", "/api/v1/agent/threads/x/fork"),
        ("POST", "/api/v1/agent/datasets"),
        ("PATCH", "/api/v1/profile"),
    ],
)
async def test_P2_a_body_that_falls_silent_is_refused(tmp_path: Path, method: str, path: str):
    async with local_api(tmp_path, ROUTES) as api:
        api.change(bodies=BodyLimits(seconds=0.01))
        answer = await api.send(method, path, [b"{"], end="silent")
    assert (answer.status, answer.json["code"]) == (408, "too_slow")


# Bodies

IDS = b'{"threadId": "550e8400-e29b-41d4-a716-446655440000", "runId": "r", "messages": ['
MESSAGE = b'{"id": "m", "role": "user", "content": "hi"}'


def fill(before: bytes, part: bytes, after: bytes, size: int = 262_144) -> bytes:
    """A body of as many of a part as there is room for."""
    return before + b",".join([part] * ((size - len(before) - len(after)) // (len(part) + 1))) + after


CHATS = [(b"{}", 8_388_608, 413), (b"{}", 1_048_576, 413), (b"1", 1_048_576, 422)]
PARTS = [
    ("POST", RUNS, fill(IDS, b"{}", b"]}"), 422),
    ("POST", RUNS, fill(IDS, b'{"id":"","role":"user","content":""}', b"]}"), 422),
    ("POST", RUNS, fill(IDS + b'{"id": "m", "role": "user", "content": [', b'{"type":"binary"}', b"]}]}"), 422),
    ("POST", RUNS, fill(IDS + MESSAGE + b'], "tools": [', b'{"name":"a"}', b"]}"), 422),
    ("POST", RUNS, fill(IDS + MESSAGE + b'], "state": [', b"[]", b',"\\u0000"]}'), 422),
    ("POST", "/api/v1/agent/datasets", fill(b'{"name": "a", "sharedWith": [', b"{}", b"]}"), 422),
    ("PATCH", "/api/v1/profile", fill(b'{"a": [', b"{}", b"]}"), 200),
    ("PATCH", "/api/v1/profile", fill(b'{"a": [', b"[1234567890123456789]", b"]}"), 200),
    ("PATCH", "/api/v1/agent/threads/550e8400-e29b-41d4-a716-446655440000", fill(b'{"a": [', b"[]", b"]}"), 422),
    *[("POST", "/api/v1/chat", fill(b'{"messages": [', part, b"]}", size), status) for part, size, status in CHATS],
]


@pytest.fixture(scope="module")
def frozen_heap() -> Generator[None]:
    """Keep the garbage collector off what earlier tests left behind, as the server keeps it off its own modules."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("frozen_heap")
@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    PARTS,
    ids=lambda value: f"{value[:60]!r}" if isinstance(value, bytes) else None,
)
async def test_P2_P16_bodies_of_many_parts_keep_the_loop_from_nobody(
    tmp_path: Path, method: str, path: str, body: bytes, status: int
):
    async with local_api(tmp_path, ROUTES) as api:
        tasks = [asyncio.create_task(api.ask(method, path, body)) for _ in range(2)]
        longest = 0.0
        while not all(one.done() for one in tasks):
            before = time.thread_time()
            await settle(1)
            longest = max(longest, time.thread_time() - before)
        assert {one.result().status for one in tasks} == {status}
    assert longest < standstill_limit()


# How many


async def test_C3_silent_connections_give_way_to_newer_ones_and_fill_no_log(caplog: pytest.LogCaptureFixture):
    async with RawServer(app, ConnectionLimits(address_connections=50)) as server:
        first, *_, last = [await server.dial() for _ in range(300)]
        assert await last.is_served(GET)
        assert await first.rest() == b""
    assert [record.getMessage() for record in caplog.records] == ["a connection was closed for a newer one, from -"]


async def test_C3_connections_at_work_are_kept_and_others_of_their_address_are_told_to_wait():
    async with RawServer(app, ConnectionLimits(address_connections=5, proxies="127.0.0.9")) as server:
        busy = [await server.dial("127.0.0.3") for _ in range(5)]
        for one in busy:
            one.writer.write(HALF)
        await wait_until(lambda: server.at_work == 5)
        assert await refusal(await server.dial("127.0.0.3")) == (503, "busy")
        # A proxy may have more than others, and other addresses are served.
        for source in ("127.0.0.4", *["127.0.0.9"] * 8):
            assert await (await server.dial(source)).is_served(GET)
        for one in busy:
            assert await one.is_served(b"x" * 98)


def test_C3_no_more_connections_are_asked_for_than_files_may_be_open():
    limits = ConnectionLimits(connections=10**9)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert fit_open_files(limits).connections == hard - min(OTHER_FILES, hard // 2)
    assert fit_open_files(ConnectionLimits(connections=100)).connections == 100
