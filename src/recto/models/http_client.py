"""HTTP/1.1 to a model's address: a request in one write, its answer read as it comes, connections kept for the next.

No redirect is followed, nothing decompressed, no proxy asked. Errors are OSErrors and never show what was sent.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self, TypeAlias, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit

import httptools
from aiohappyeyeballs import start_connection  # pyright: ignore[reportUnknownVariableType] - addresses of any shape

from recto.config.run_settings import Timeouts

# Of bytes that bring nothing of a body: the head, answers before the answer, extensions of chunks, trailers.
MOST_OVERHEAD = 64 * 1024
# What waits to be read: with more than this no more is taken from the socket. More than any reader falls behind by:
# uvloop drops what it has not decrypted yet when a server hangs up on a connection that is held up.
MOST_WAITING = 1024 * 1024
# A connection that nobody used for so long is closed, and so are the oldest of more than so many.
IDLE_SECONDS, MOST_IDLE = 15.0, 100
# A kept connection that is closed so soon after a request was sent was closed before it came.
STALE_SECONDS = 1.0
# How long an address is good for, and how long the next one of a host waits for the one before it.
LOOKUP_SECONDS, NEXT_ADDRESS_SECONDS = 10.0, 0.25
# How soon a deadline is looked at again that passed while nobody was reading.
LOOK = 1.0
SWITCHING, LAST_INFORMATIONAL = 101, 199
# Everything that may stand in a path and a query, and what was quoted already.
IN_TARGET = "/?:@!$&'()*+,;=%~"
ENDS_LINE = re.compile(r"[\r\n\0]")
DEFAULT_PORTS = {"http": 80, "https": 443}

# Family, kind, protocol, name and address, as the system's resolver writes them.
_Address: TypeAlias = tuple[int, int, int, str, tuple[object, ...]]


class BrokenAnswer(ConnectionError):
    """An answer that is no HTTP, or whose connection broke before it was whole."""


class ClosedUnanswered(ConnectionError):
    """A connection that was closed before a byte of the answer came."""


class HttpClient:
    """Asks one host. How many calls run at once is decided elsewhere; idle connections are kept for a while.

    What is posted goes to its url with its headers; any other request names its own.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, idle_seconds: float = IDLE_SECONDS) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or DEFAULT_PORTS[parts.scheme]
        self._is_secure = parts.scheme == "https"
        self._head = _head("POST", parts, {"User-Agent": "recto", **headers})
        self._idle_seconds = idle_seconds
        self._tls: ssl.SSLContext | None = None
        self._addresses: Sequence[_Address] = ()
        self._addresses_until = 0.0
        self._lookup = asyncio.Lock()
        self._open: set[HttpConnection] = set()
        # When each is to be closed, the one that was used last at the end.
        self._idle: dict[HttpConnection, float] = {}
        self._cleaner: asyncio.TimerHandle | None = None

    async def post(self, body: bytes, timeouts: Timeouts) -> HttpConnection:
        """Send a body. Returns once the head of the answer is there; its connection is the answer, to be closed."""
        return await self._ask(self._head, body, timeouts)

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts
    ) -> HttpConnection:
        """Send any request to this host, as `post` does. A header with a line's end in it raises ValueError."""
        return await self._ask(_head(method, urlsplit(url), headers), body, timeouts)

    async def _ask(self, head: bytes, body: bytes, timeouts: Timeouts) -> HttpConnection:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeouts.connect + timeouts.first_byte
        request = (b"%b%d\r\n\r\n" % (head, len(body)), body)
        if self._idle:
            connection, _ = self._idle.popitem()
            sent = loop.time()
            try:
                return await connection.ask(request, deadline, timeouts.between_bytes)
            except ClosedUnanswered:
                # Closed while the request was on its way, nobody works on it; later, somebody may have.
                if loop.time() - sent > STALE_SECONDS:
                    raise
        connection = await self._connect(loop, timeouts.connect)
        return await connection.ask(request, deadline, timeouts.between_bytes)

    def close(self) -> None:
        """Close every connection, answered or not."""
        for connection in tuple(self._open):
            connection.abort()
        if self._cleaner is not None:
            self._cleaner.cancel()
            self._cleaner = None

    def add(self, connection: HttpConnection) -> None:
        """Take note of a connection that is open."""
        self._open.add(connection)

    def keep(self, connection: HttpConnection) -> None:
        """Take back a connection that can be used again."""
        loop = asyncio.get_running_loop()
        self._idle[connection] = loop.time() + self._idle_seconds
        if len(self._idle) > MOST_IDLE:
            next(iter(self._idle)).abort()
        if self._cleaner is None:
            self._cleaner = loop.call_later(self._idle_seconds, self._clean, loop)

    def drop(self, connection: HttpConnection) -> None:
        """Forget a connection that is closed."""
        self._open.discard(connection)
        self._idle.pop(connection, None)

    def _clean(self, loop: asyncio.AbstractEventLoop) -> None:
        for connection in [one for one, until in self._idle.items() if until <= loop.time()]:
            connection.abort()
        until = next(iter(self._idle.values()), None)
        self._cleaner = None if until is None else loop.call_at(until, self._clean, loop)

    async def _connect(self, loop: asyncio.AbstractEventLoop, seconds: float) -> HttpConnection:
        async with asyncio.timeout(seconds):
            found = await self._look_up(loop)
            # The loop's own way tries one address after the other, each for as long as the system likes.
            plain = await start_connection(found, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS, interleave=1)
            try:
                _, connection = await loop.create_connection(
                    lambda: HttpConnection(self),
                    sock=plain,
                    ssl=self._secured() if self._is_secure else None,
                    server_hostname=self._host if self._is_secure else None,
                )
            except BaseException:
                plain.close()
                raise
        return connection

    async def _look_up(self, loop: asyncio.AbstractEventLoop) -> Sequence[_Address]:
        # Calls that begin together ask once.
        async with self._lookup:
            if not self._addresses or self._addresses_until < loop.time():
                self._addresses = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
                self._addresses_until = loop.time() + LOOKUP_SECONDS
            return self._addresses

    def _secured(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls


class HttpConnection(asyncio.Protocol):
    """A connection, and the answer that comes over it: one at a time."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport = cast("asyncio.Transport", None)
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pieces: list[bytes] = []
        self._problem: Exception | None = None
        self._is_asked = self._is_paused = False

    async def ask(self, request: Sequence[bytes], deadline: float, between: float) -> Self:
        """Send a request and wait for the head of its answer. From its first byte on, `between` is the most to wait."""
        self.status = 0
        self._headers: dict[bytes, bytes] = {}
        self._has_begun = self._is_whole = self._may_stay = False
        self._waiting = self._overhead = 0
        self._is_asked = True
        self._deadline, self._between = deadline, between
        self._timer = self._loop.call_at(min(deadline, self._loop.time() + between), self._look)
        self._transport.writelines(request)
        try:
            while not self.status and self._problem is None:
                await self._wait()
            if self._problem and not self.status:
                raise self._problem
        except BaseException:
            self.close()
            raise
        return self

    def header(self, name: bytes) -> str:
        """A header of the answer by its name in small letters; nothing where there is none."""
        return self._headers.get(name, b"").decode("latin-1")

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        """The headers of the answer, by their names in small letters."""
        return self._headers

    @property
    def is_framed(self) -> bool:
        """Whether the end of the body can be told from a broken connection."""
        return b"content-length" in self._headers or self.header(b"transfer-encoding").lower() == "chunked"

    async def read(self) -> bytes:
        """What came next of the body; nothing at its end. What came before the connection broke is given first."""
        while not self._pieces and not self._is_whole and self._problem is None:
            await self._wait()
        # Whoever takes long over what they got is not the server's fault.
        self._deadline = self._loop.time() + self._between
        if not self._pieces:
            if self._problem and not self._is_whole:
                raise self._problem
            return b""
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._waiting = 0
        if self._is_paused:
            self._is_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return body

    async def finish(self, seconds: float) -> None:
        """Wait a moment for the body's end, so that the connection can be used again."""
        if self._is_whole and not self._pieces:
            return
        with suppress(OSError):
            async with asyncio.timeout(seconds):
                while await self.read():
                    pass

    def close(self) -> None:
        """Give the connection back where the body was read to its end; close it at once where it was not."""
        if self._timer is not None:
            self._timer.cancel()
        is_done = self._may_stay and not self._pieces and not self._transport.is_closing()
        # An answer to half a request is one, but the rest of that request is still on its way.
        if is_done and not self._transport.get_write_buffer_size():
            self._is_asked = False
            self._client.keep(self)
        else:
            self.abort()

    def abort(self) -> None:
        """Close it at once."""
        self._problem = self._problem or BrokenAnswer("closed on this side")
        self._client.drop(self)
        self._transport.abort()

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _look(self) -> None:
        """Look at the deadline: one timer for all reads, that most often finds it further on."""
        now = self._loop.time()
        if self._waiter is not None and not self._waiter.done() and self._deadline <= now:
            self._waiter.set_exception(TimeoutError())
            return
        # The first byte may have longer than the next one has.
        sooner = min(self._deadline, now + self._between)
        self._timer = self._loop.call_at(sooner if sooner > now else now + LOOK, self._look)

    def _break(self, problem: Exception) -> None:
        self._may_stay = False
        self._problem = problem
        self.abort()
        self._wake()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._client.add(self)

    def data_received(self, data: bytes) -> None:
        if not self._is_asked:
            # What comes before anybody asked answers nothing.
            self.abort()
            return
        self._has_begun = True
        had = self._waiting
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._break(BrokenAnswer(f"no HTTP: {type(error).__name__}"))
            return
        self._overhead = 0 if self._waiting > had else self._overhead + len(data)
        if self._overhead > MOST_OVERHEAD:
            self._break(BrokenAnswer(f"more than {MOST_OVERHEAD} bytes around the body"))
        elif self._waiting > MOST_WAITING and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.drop(self)
        if not self._is_asked or self._is_whole:
            return
        if not self._has_begun:
            self._problem = self._problem or ClosedUnanswered("closed before it answered")
        elif self.status and not self.is_framed and exc is None:
            self._is_whole = True
        else:
            self._problem = self._problem or BrokenAnswer("closed before the answer was whole")
        self._wake()

    def on_message_begin(self) -> None:
        """More than the answer came: what this is belongs to nobody."""
        if self._is_whole:
            raise BrokenAnswer("more than one answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or after the body a trailer, which says nothing that is asked here."""
        if not self.status:
            self._headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        """The head is whole; that of an answer before the answer says nothing."""
        status = self._parser.get_status_code()
        if status > LAST_INFORMATIONAL or status == SWITCHING:
            self.status = status
        else:
            self._headers.clear()

    def on_body(self, body: bytes) -> None:
        """More of the body."""
        self._pieces.append(body)
        self._waiting += len(body)

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self.status:
            self._is_whole = True
            self._may_stay = self._parser.should_keep_alive()


def _head(method: str, parts: SplitResult, headers: Mapping[str, str]) -> bytes:
    """The head of a request, up to the length of its body."""
    host = _ascii(parts.hostname or "")
    name = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port and parts.port != DEFAULT_PORTS[parts.scheme] else ""
    target = quote(f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}", safe=IN_TARGET)
    credentials = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()
    shown = {"Authorization": f"Basic {b64encode(credentials).decode()}"} if parts.username else {}
    fields = {"Host": name + port, **shown, **headers}
    lines = [f"{key}: {value}" for key, value in fields.items()]
    if any(map(ENDS_LINE.search, lines)):
        raise ValueError("a header has a line's end in it")
    return "\r\n".join((f"{method} {target} HTTP/1.1", *lines, "Content-Length: ")).encode("latin-1", "replace")


def _ascii(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError as error:
        raise OSError("no such host") from error
