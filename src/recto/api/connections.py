"""Limits of client connections: header size and time, idle time, unread responses, and number.

At the limit, a new connection replaces the one that has been idle longest, so that silent clients lock nobody out.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from typing import ClassVar

from httptools import HttpRequestParser
from starlette.requests import Request
from uvicorn._types import HTTPScope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from recto.api.access.audit import RareLines
from recto.api.access.browsers import ALWAYS, NO_PAGE
from recto.api.access.rate import neighbourhood
from recto.api.problems import CODES, problem
from recto.config.access_settings import ConnectionLimits

LOGGER = logging.getLogger("recto.connections")
# Maximum number of pipelined requests of a connection. Browsers send none.
MOST_AHEAD = 32
# Name of the ASGI extension that reads a body directly from the socket, and its piece size.
DIRECT, DIRECT_BYTES = "recto.body", 2**20
BAD, SLOW, LARGE, FULL = 400, 408, 431, 503


class Connections:
    """All connections of a server, and the idle ones in the order in which they became idle."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._proxies = [ip_network(part.strip()) for part in limits.proxies.split(",") if part.strip()]
        self._addresses = dict[Connection, str]()
        self._counts = Counter[str]()
        self._idle = dict[Connection, None]()
        self._idle_of = dict[str, dict[Connection, None]]()
        self._lines = RareLines(LOGGER)

    def add(self, connection: Connection) -> bool:
        """Register a connection. Returns False if the limit is reached and no connection is idle."""
        peer = connection.client[0] if connection.client else ""
        address = neighbourhood(peer)
        self._addresses[connection] = address
        self._counts[address] += 1
        is_many = self._counts[address] > self.limits.address_connections and not self._is_proxy(peer)
        if is_many and not self._make_room(self._idle_of.get(address, {})):
            return False
        if len(self._addresses) > self.limits.connections and not self._make_room(self._idle):
            return False
        self.rest(connection)
        return True

    def _is_proxy(self, peer: str) -> bool:
        try:
            return any(ip_address(peer) in network for network in self._proxies)
        except ValueError:
            return False

    def _make_room(self, idle: Iterable[Connection]) -> bool:
        """Abort the connection that has been idle for longest."""
        oldest = next(iter(idle), None)
        if oldest is None:
            return False
        self.log(oldest, "was closed for a newer one")
        self.remove(oldest)
        oldest.transport.abort()
        return True

    def rest(self, connection: Connection) -> None:
        """Mark the connection as idle."""
        address = self._addresses.get(connection)
        if address is not None:
            self._idle[connection] = None
            self._idle_of.setdefault(address, {})[connection] = None

    def work(self, connection: Connection) -> None:
        """Mark the connection as busy, so that no new connection replaces it."""
        if self._idle.pop(connection, self) is None:
            address = self._addresses[connection]
            del self._idle_of[address][connection]
            if not self._idle_of[address]:
                del self._idle_of[address]

    def remove(self, connection: Connection) -> None:
        """Remove a closed connection. Idempotent."""
        self.work(connection)
        address = self._addresses.pop(connection, None)
        if address is not None:
            self._counts[address] -= 1
            if not self._counts[address]:
                del self._counts[address]

    def log(self, connection: Connection, what: str) -> None:
        """Log an event of a connection."""
        self._lines.log(f"a connection {what}", f", from {connection.client[0] if connection.client else '-'}")


class Connection(HttpToolsProtocol):
    """A connection that is closed when it exceeds its limits."""

    table: ClassVar[Connections]

    # Bytes received since the last complete headers, piece of a body or request.
    _pending = 0
    _head = 0
    # Received and declared bytes of the current body.
    _received_bytes = _length = 0
    _rejection: tuple[int, str] | None = None
    _timeout: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the header timeout, or reject the connection at the limit."""
        super().connection_made(transport)
        # Write more only after the client has read everything.
        transport.set_write_buffer_limits(high=0)
        if self.table.add(self):
            self._set_timeout(self.table.limits.header_seconds, self._end_silence)
        else:
            self._reject(FULL, "exceeds the connection limit")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers and unregister the connection."""
        self._cancel_timeout()
        self._unset_keepalive_if_required()
        self.resume_writing()
        self.table.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the data and check the limits."""
        self._pending += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._pending > self.table.limits.header_bytes:
            self._reject(LARGE, "sent too many bytes of headers")
        elif not self._is_busy() and self._timeout is None:
            self._set_timeout(self.table.limits.header_seconds, self._end_silence)

    def on_message_begin(self) -> None:
        """Start counting the headers."""
        super().on_message_begin()
        self._head = 0

    def on_url(self, url: bytes) -> None:
        """Count the bytes of a part of the url."""
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the bytes of a header or trailer."""
        super().on_header(name, value)
        self._count(len(name) + len(value))

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > self.table.limits.header_bytes:
            self._stop_reading(LARGE, "sent too many bytes of headers")
        if len(self.headers) > self.table.limits.header_fields:
            self._stop_reading(LARGE, "sent too many headers")

    def on_headers_complete(self) -> None:
        """Start a request, whose headers are complete."""
        if len(self.pipeline) >= MOST_AHEAD:
            self._stop_reading(BAD, "pipelined too many requests")
        self._pending = self._received_bytes = 0
        self._length = next((int(value) for name, value in self.headers if name == b"content-length"), 0)
        self._cancel_timeout()
        self.table.work(self)
        if self._length >= DIRECT_BYTES and self.scheme == "http" and os.name == "posix":
            self.scope["extensions"] = {DIRECT: {"read": partial(self._read_directly, self.scope)}}
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count a piece of a body."""
        self._pending = 0
        self._received_bytes += len(body)
        super().on_body(body)

    async def _read_directly(self, scope: HTTPScope) -> AsyncGenerator[bytes]:
        """Yield the rest of a long body directly from the socket.

        `request.stream()` takes twice the time for a large file, because it copies each piece four times and its pieces
        are a quarter of the size. A disconnect only ends this generator; the next read of the stream reports it.
        """
        # Leave the socket alone if the whole body has arrived, because a pipelined request may follow.
        if scope is not self.scope or self._received_bytes == self._length or self.transport.is_closing():
            return
        self.flow.pause_reading()
        with self.transport.get_extra_info("socket").dup() as source:
            buffer, self.cycle.body = bytes(self.cycle.body), bytearray()
            if buffer:
                yield buffer
            while self._received_bytes < self._length:
                try:
                    piece = await self.loop.sock_recv(source, min(self._length - self._received_bytes, DIRECT_BYTES))
                except OSError:
                    return
                if not piece:
                    return
                self._received_bytes += len(piece)
                yield piece
        # Replace the parser, which still waits for the body.
        parser = HttpRequestParser(self)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self.parser = parser
        self.on_message_complete()

    def on_message_complete(self) -> None:
        """Finish a request."""
        self._pending = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Finish a response."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._close()
        elif not self._is_busy():
            self.table.rest(self)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that sent no further request in time."""
        self._close()

    def pause_writing(self) -> None:
        """Watch a client that does not read its response."""
        super().pause_writing()
        if self._unread is None:
            self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop watching the client."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - as uvicorn has it
        """Reject a request that cannot be parsed or exceeds a limit."""
        self._reject(*(self._rejection or (BAD, "sent invalid HTTP")))

    def _is_busy(self) -> bool:
        return bool(self.pipeline) or (self.cycle is not None and not self.cycle.response_complete)  # pyright: ignore[reportUnnecessaryComparison] - None before the first request

    def _stop_reading(self, status: int, what: str) -> None:
        """Make the parser fail, so that uvicorn calls `send_400_response`."""
        self._rejection = (status, what)
        raise ValueError(what)

    def _end_silence(self) -> None:
        self._timeout = None
        if self._pending:
            self._reject(SLOW, "did not complete its headers in time")
        else:
            self.table.log(self, "sent no request in time")
            self._close()

    def _reject(self, status: int, what: str) -> None:
        """Send a problem and close. Abort if another response is in progress."""
        self.table.log(self, what)
        if self._is_busy() and (self.pipeline or self.cycle.response_started):
            self.transport.abort()
            return
        answer = problem(status, "busy" if status == FULL else CODES[status], f"Closed: this connection {what}.")
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
        fields = [*answer.raw_headers, *ALWAYS, NO_PAGE, (b"connection", b"close")]
        lines += [name + b": " + value for name, value in fields]
        self.transport.write(b"\r\n".join([*lines, b"", bytes(answer.body)]))
        self._close()

    def _close(self) -> None:
        """Close once the client has read everything. A client that does not read is aborted, as during a response."""
        self._cancel_timeout()
        self.transport.close()

    def _watch(self, waiting: int) -> None:
        self._unread = self.loop.call_later(self.table.limits.unread_seconds, self._check_reader, waiting)

    def _check_reader(self, waiting: int) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent < waiting:
            self._watch(unsent)
        else:
            self.table.log(self, "did not read its response in time")
            self.transport.abort()

    def _set_timeout(self, seconds: float, then: Callable[[], None]) -> None:
        self._cancel_timeout()
        self._timeout = self.loop.call_later(seconds, then)

    def _cancel_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None


async def body_of(request: Request) -> AsyncGenerator[bytes]:
    """Yield the body of a request, in large pieces if it is long. Unless closed, it keeps the connection open."""
    stream = request.stream()
    # The first read makes the server send "100 Continue".
    yield await anext(stream, b"")
    read: Callable[[], AsyncGenerator[bytes]] | None = request.scope.get("extensions", {}).get(DIRECT, {}).get("read")
    if read is not None:
        async with aclosing(read()) as pieces:
            async for piece in pieces:
                yield piece
    async for piece in stream:
        yield piece


def make_connection_class(limits: ConnectionLimits) -> type[Connection]:
    """Return the connection class of one server."""

    class Limited(Connection):
        table = Connections(limits)

    return Limited
