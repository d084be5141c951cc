"""How long the client of models waits, told by a clock that the test drives: no socket, no waiting."""

import asyncio
from collections.abc import Callable, Iterable

import pytest

from recto.config.run_settings import Timeouts
from recto.http.client import STALE_SECONDS, BrokenAnswer, ClosedUnanswered, HttpClient, HttpConnection
from tests.api.virtual_time import run_virtually

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
A, LAST = b"1\r\na\r\n", b"0\r\n\r\n"
BETWEEN = 10.0
REQUEST = (b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",)


class Transport(asyncio.Transport):
    """A transport that sends nowhere and knows whether it was closed."""

    is_closed = False

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


def connected(client: HttpClient | None = None) -> tuple[HttpConnection, Transport]:
    connection, transport = HttpConnection(client or HttpClient("http://host/x", {})), Transport()
    connection.connection_made(transport)
    return connection, transport


def at(second: float, act: Callable[..., object], *arguments: object) -> None:
    asyncio.get_running_loop().call_at(second, act, *arguments)


@pytest.mark.parametrize(
    ("received", "given_up"),
    [
        ([], 60.0),
        ([(1.0, HEAD)], 60.0),
        ([(1.0, HEAD + A)], 1.0 + BETWEEN),
        ([(1.0, HEAD + A), (9.0, A)], 9.0 + BETWEEN),
        ([(1.0, HEAD), *((second + 0.5, b"5;a=" if second == 2 else b"b") for second in range(2, 200))], 60.0),
    ],
    ids=["nothing", "a head alone", "a first word", "two words", "bytes that bring nothing of the body"],
)
def test_a_server_that_falls_silent_is_given_up_in_time(received: list[tuple[float, bytes]], given_up: float):
    async def read_all() -> float:
        connection, _ = connected()
        for second, data in received:
            at(second, connection.data_received, data)
        with pytest.raises(TimeoutError):
            await connection.request(REQUEST, 60.0, BETWEEN)
            while await connection.read():
                pass
        return asyncio.get_running_loop().time()

    second, _ = run_virtually(read_all())
    assert given_up <= second <= given_up + 1.0


def test_a_slow_reader_is_not_taken_for_a_silent_server_and_gets_what_came_before_the_end():
    async def read_late() -> list[bytes]:
        connection, _ = connected()
        for second in (1.0, 5.0, 105.0):
            at(second, connection.data_received, HEAD + A if second == 1.0 else A)
        at(105.0, connection.connection_lost, None)
        answer = await connection.request(REQUEST, 60.0, BETWEEN)
        pieces = [await answer.read()]
        late = asyncio.get_running_loop().create_future()
        at(100.0, late.set_result, None)
        await late
        pieces += [await answer.read(), await answer.read()]
        with pytest.raises(BrokenAnswer):
            await answer.read()
        return pieces

    assert run_virtually(read_late())[0] == [b"a", b"a", b"a"]


def test_a_connection_that_nobody_uses_is_closed_after_a_while():
    async def wait_idle() -> list[bool]:
        client = HttpClient("http://host/x", {}, idle_seconds=15.0)
        connection, transport = connected(client)
        at(0.0, connection.data_received, HEAD + A + LAST)
        answer = await connection.request(REQUEST, 60.0, BETWEEN)
        assert (await answer.read(), await answer.read()) == (b"a", b"")
        answer.close()
        flags, later = list[bool](), asyncio.get_running_loop().create_future()
        for second in (14.0, 16.0):
            at(second, lambda: flags.append(transport.is_closed))
        at(17.0, later.set_result, None)
        await later
        return flags

    assert run_virtually(wait_idle())[0] == [False, True]


def test_a_request_that_was_worked_on_for_a_while_is_not_sent_again():
    async def ask_on_a_used_connection() -> None:
        client = HttpClient("http://host/x", {})
        connection, _ = connected(client)
        client.keep(connection)
        at(STALE_SECONDS + 0.1, connection.connection_lost, None)
        with pytest.raises(ClosedUnanswered, match="closed before the response"):
            await client.post(b"{}", Timeouts())
        client.close()

    run_virtually(ask_on_a_used_connection())
