"""HTTP/1.1 client for one host: one write per request, streamed responses, reused connections.

It follows no redirects and decompresses nothing. Errors are OSErrors and never show the request.
"""

from __future__ import annotations

import asyncio
import re
import socket
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Self, TypeAlias, cast
from urllib.parse import SplitResult, quote, unquote, urlsplit

import httptools
from aiohappyeyeballs import start_connection  # pyright: ignore[reportUnknownVariableType] - addresses of any shape

from recto.config.run_settings import Timeouts
from recto.http.network import Network, Proxy
from recto.http.tunnel import ProxyRefused, open_socks_tunnel, open_tunnel, proxy_authorization

# Limit of bytes that do not extend the body: heads, interim responses, chunk extensions, trailers.
MAX_OVERHEAD = 64 * 1024
# Unread bytes at which reading from the socket pauses. Keep the limit above the usual lag of readers, because uvloop
# drops data that it has not decrypted yet when a server closes a paused connection.
MAX_UNREAD = 1024 * 1024
# Seconds until an idle connection is closed, and the most idle connections. The oldest one beyond that is closed.
IDLE_SECONDS, MAX_IDLE = 15.0, 100
# If a reused connection closes this soon after a request, it closed before the request arrived.
STALE_SECONDS = 1.0
# Lifetime of a looked-up address, and the head start of one address before the next is tried.
LOOKUP_SECONDS, NEXT_ADDRESS_SECONDS = 10.0, 0.25
# Seconds between checks of a deadline that passed while nobody was reading.
CHECK_SECONDS = 1.0
SWITCHING, LAST_INFORMATIONAL = 101, 199
# Characters that stay unquoted in a path and a query. `%` is one, because it begins quoted characters.
TARGET_CHARACTERS = "/?:@!$&'()*+,;=%~"
LINE_END = re.compile(r"[\r\n\0]")
DEFAULT_PORTS = {"http": 80, "https": 443}
WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})

# An address as the system's resolver returns it: family, kind, protocol, name and socket address.
Address: TypeAlias = tuple[int, int, int, str, tuple[object, ...]]
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[Address]]]


class BrokenAnswer(ConnectionError):
    """A response that is not HTTP, or whose connection broke before its end."""


class ClosedUnanswered(ConnectionError):
    """A connection that closed before the first byte of the response."""


class ConnectTimeout(TimeoutError):
    """No connection within the allowed time."""


async def _resolve_host(host: str, port: int) -> Sequence[Address]:
    return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


class HttpClient:
    """A client for the host of a URL. Callers limit the number of concurrent requests.

    `post` sends to that URL with its headers; `send` sends any request to the host. With `resolve`, the client connects
    only to addresses that this function returns, also through a proxy.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        network: Network | None = None,
        resolve: Resolve | None = None,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or DEFAULT_PORTS[parts.scheme]
        self._network = network or Network()
        self._is_secure = parts.scheme == "https"
        self._proxy = self._network.proxy_for(parts)
        self._is_guarded = resolve is not None
        self._addresses = _Addresses(resolve or _resolve_host)
        self._proxy_addresses = _Addresses(_resolve_host)
        self._post_head = _head("POST", parts, {"User-Agent": "recto", **headers}, self._forwarding_proxy)
        self._idle_seconds = idle_seconds
        self._open: set[HttpConnection] = set()
        # The closing time of each idle connection, the most recently used last.
        self._idle: dict[HttpConnection, float] = {}
        self._cleaner: asyncio.TimerHandle | None = None

    @property
    def _forwarding_proxy(self) -> Proxy | None:
        """Return the proxy if it forwards requests. Through any other proxy, the client opens a tunnel to the host."""
        is_forwarding = self._proxy and not (self._is_secure or self._is_guarded or self._proxy.is_socks)
        return self._proxy if is_forwarding else None

    async def post(self, body: bytes, timeouts: Timeouts) -> HttpConnection:
        """Send a body and return the connection once the head of the response is read. The caller closes the
        connection.
        """
        return await self._request(self._post_head, b"%d\r\n\r\n" % len(body), body, timeouts)

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        timeouts: Timeouts,
        *,
        may_repeat: bool = True,
    ) -> HttpConnection:
        """Send any request to this host, like `post`. Raise ValueError for a header that contains a line end.

        A request that may not be repeated gets a new connection, because a reused one might close before the request
        arrives.
        """
        head = _head(method, urlsplit(url), headers, self._forwarding_proxy, has_body=bool(body))
        length = b"%d" % len(body) if body or method not in WITHOUT_BODY else b""
        return await self._request(head, length + b"\r\n\r\n", body, timeouts, may_repeat=may_repeat)

    async def _request(
        self, head: bytes, head_end: bytes, body: bytes, timeouts: Timeouts, *, may_repeat: bool = True
    ) -> HttpConnection:
        loop = asyncio.get_running_loop()
        request = (head + head_end, body)
        if self._idle and may_repeat:
            connection, _ = self._idle.popitem()
            start = loop.time()
            try:
                return await connection.request(request, start + timeouts.first_byte, timeouts.between_bytes)
            except ClosedUnanswered:
                # After an early close, send the request again: the server did not receive it. After a later close, it
                # may have.
                if loop.time() - start > STALE_SECONDS:
                    raise
        connection = await self._connect(loop, timeouts.connect)
        return await connection.request(request, loop.time() + timeouts.first_byte, timeouts.between_bytes)

    def close(self) -> None:
        """Close every connection, also those in use."""
        for connection in tuple(self._open):
            connection.abort()
        if self._cleaner is not None:
            self._cleaner.cancel()
            self._cleaner = None

    def add(self, connection: HttpConnection) -> None:
        """Register an open connection."""
        self._open.add(connection)

    def keep(self, connection: HttpConnection) -> None:
        """Keep a connection for the next request."""
        loop = asyncio.get_running_loop()
        self._idle[connection] = loop.time() + self._idle_seconds
        if len(self._idle) > MAX_IDLE:
            next(iter(self._idle)).abort()
        if self._cleaner is None:
            self._cleaner = loop.call_later(self._idle_seconds, self._clean, loop)

    def drop(self, connection: HttpConnection) -> None:
        """Forget a closed connection."""
        self._open.discard(connection)
        self._idle.pop(connection, None)

    def _clean(self, loop: asyncio.AbstractEventLoop) -> None:
        for connection in [one for one, until in self._idle.items() if until <= loop.time()]:
            connection.abort()
        until = next(iter(self._idle.values()), None)
        self._cleaner = None if until is None else loop.call_at(until, self._clean, loop)

    async def _connect(self, loop: asyncio.AbstractEventLoop, seconds: float) -> HttpConnection:
        try:
            async with asyncio.timeout(seconds):
                sock = await self._open_socket()
                try:
                    _, connection = await loop.create_connection(
                        lambda: HttpConnection(self),
                        sock=sock,
                        ssl=self._network.tls if self._is_secure else None,
                        server_hostname=self._host if self._is_secure else None,
                    )
                except BaseException:
                    sock.close()
                    raise
        except TimeoutError as error:
            raise ConnectTimeout(f"no connection within {seconds:g} s") from error
        return connection

    async def _open_socket(self) -> socket.socket:
        """Connect to the host, or to the proxy and through it to the host."""
        if self._proxy is None:
            return await _connect_any(await self._addresses.find(self._host, self._port))
        host = self._host
        if self._is_guarded:
            # Pass the proxy a checked address, because it might resolve the name to another one.
            host = str((await self._addresses.find(self._host, self._port))[0][4][0])
        if self._proxy.is_socks:
            return await open_socks_tunnel(self._proxy, host, self._port)
        try:
            sock = await _connect_any(await self._proxy_addresses.find(self._proxy.host, self._proxy.port))
        except OSError as error:
            raise ProxyRefused(self._proxy, f"cannot be reached ({type(error).__name__})") from error
        if self._forwarding_proxy:
            return sock
        try:
            return await open_tunnel(sock, self._proxy, host, self._port)
        except BaseException:
            sock.close()
            raise


class _Addresses:
    """Addresses of a host, looked up once for requests that start together."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._addresses: Sequence[Address] = ()
        self._valid_until = 0.0
        self._lock = asyncio.Lock()

    async def find(self, host: str, port: int) -> Sequence[Address]:
        loop = asyncio.get_running_loop()
        async with self._lock:
            if not self._addresses or self._valid_until < loop.time():
                self._addresses = await self._resolve(host, port)
                self._valid_until = loop.time() + LOOKUP_SECONDS
            return self._addresses


async def _connect_any(addresses: Sequence[Address]) -> socket.socket:
    # The event loop's own method tries one address after the other, each until the system's timeout.
    return await start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS, interleave=1)


class HttpConnection(asyncio.Protocol):
    """A connection and the response on it, one at a time."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport = cast("asyncio.Transport", None)
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pieces: list[bytes] = []
        self._problem: Exception | None = None
        self._is_busy = self._is_paused = False

    async def request(self, request: Sequence[bytes], deadline: float, between: float) -> Self:
        """Send a request and wait for the head of its response. `between` limits silence after the first byte."""
        self.status = 0
        self._headers: dict[bytes, bytes] = {}
        self._has_started = self._is_complete = self._is_reusable = False
        self._unread = self._overhead = 0
        self._is_busy = True
        self._deadline, self._between = deadline, between
        self._timer = self._loop.call_at(min(deadline, self._loop.time() + between), self._check_deadline)
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
        """Return a response header by its lower-case name, empty if missing."""
        return self._headers.get(name, b"").decode("latin-1")

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        """Return the response headers by lower-case name."""
        return self._headers

    @property
    def is_framed(self) -> bool:
        """Return True if the headers define the end of the body. Otherwise the body ends with the connection."""
        return b"content-length" in self._headers or self.header(b"transfer-encoding").lower() == "chunked"

    async def read(self) -> bytes:
        """Return the next bytes of the body, empty at its end. Return the received bytes before raising for a broken
        connection.
        """
        while not self._pieces and not self._is_complete and self._problem is None:
            await self._wait()
        # Restart the deadline, because a slow reader is not the server's fault.
        self._deadline = self._loop.time() + self._between
        if not self._pieces:
            if self._problem and not self._is_complete:
                raise self._problem
            return b""
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._unread = 0
        if self._is_paused:
            self._is_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return body

    async def finish(self, seconds: float) -> None:
        """Wait for the end of the body, so that the connection can be reused."""
        if self._is_complete and not self._pieces:
            return
        with suppress(OSError):
            async with asyncio.timeout(seconds):
                while await self.read():
                    pass

    def close(self) -> None:
        """Keep the connection if the body was read to its end, else close it."""
        if self._timer is not None:
            self._timer.cancel()
        is_reusable = self._is_reusable and not self._pieces and not self._transport.is_closing()
        # Close the connection if part of the request is still unsent, because a server may answer early.
        if is_reusable and not self._transport.get_write_buffer_size():
            self._is_busy = False
            self._client.keep(self)
        else:
            self.abort()

    def abort(self) -> None:
        """Close the connection at once."""
        self._problem = self._problem or BrokenAnswer("closed by the client")
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

    def _check_deadline(self) -> None:
        """Check the deadline. One timer serves all reads, because the deadline usually moves before the timer fires."""
        now = self._loop.time()
        if self._waiter is not None and not self._waiter.done() and self._deadline <= now:
            self._waiter.set_exception(TimeoutError())
            return
        # Check again after `between` at the latest, because the first byte may take longer than the next one.
        next_check = min(self._deadline, now + self._between)
        self._timer = self._loop.call_at(next_check if next_check > now else now + CHECK_SECONDS, self._check_deadline)

    def _break(self, problem: Exception) -> None:
        self._is_reusable = False
        self._problem = problem
        self.abort()
        self._wake()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._client.add(self)

    def data_received(self, data: bytes) -> None:
        if not self._is_busy:
            # Close the connection if data arrives without a request.
            self.abort()
            return
        self._has_started = True
        unread = self._unread
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._break(BrokenAnswer(f"not HTTP: {type(error).__name__}"))
            return
        self._overhead = 0 if self._unread > unread else self._overhead + len(data)
        if self._overhead > MAX_OVERHEAD:
            self._break(BrokenAnswer(f"more than {MAX_OVERHEAD} bytes around the body"))
        elif self._unread > MAX_UNREAD and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.drop(self)
        if not self._is_busy or self._is_complete:
            return
        if not self._has_started:
            self._problem = self._problem or ClosedUnanswered("closed before the response")
        elif self.status and not self.is_framed and exc is None:
            self._is_complete = True
        else:
            self._problem = self._problem or BrokenAnswer("closed before the end of the response")
        self._wake()

    def on_message_begin(self) -> None:
        """Reject a second response to the same request."""
        if self._is_complete:
            raise BrokenAnswer("more than one response")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header. Trailers after the body are ignored."""
        if not self.status:
            self._headers.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        """Store the status. The head of an interim response is dropped."""
        status = self._parser.get_status_code()
        if status > LAST_INFORMATIONAL or status == SWITCHING:
            self.status = status
        else:
            self._headers.clear()

    def on_body(self, body: bytes) -> None:
        """Store bytes of the body."""
        self._pieces.append(body)
        self._unread += len(body)

    def on_message_complete(self) -> None:
        """Mark the response as complete."""
        if self.status:
            self._is_complete = True
            self._is_reusable = self._parser.should_keep_alive()


def _head(
    method: str, url: SplitResult, headers: Mapping[str, str], proxy: Proxy | None, *, has_body: bool = True
) -> bytes:
    """Return the head of a request up to the value of Content-Length. A forwarding proxy needs the whole URL."""
    host = _to_ascii(url.hostname or "")
    name = f"[{host}]" if ":" in host else host
    port = f":{url.port}" if url.port and url.port != DEFAULT_PORTS[url.scheme] else ""
    target = quote(f"{url.path or '/'}{'?' if url.query else ''}{url.query}", safe=TARGET_CHARACTERS)
    credentials = f"{unquote(url.username or '')}:{unquote(url.password or '')}".encode()
    own_headers = {"Authorization": f"Basic {b64encode(credentials).decode()}"} if url.username else {}
    if proxy is not None:
        target, own_headers = f"{url.scheme}://{name}{port}{target}", {**own_headers, **proxy_authorization(proxy)}
    fields = {"Host": name + port, **own_headers, **headers}
    lines = [f"{key}: {value}" for key, value in fields.items()]
    if any(map(LINE_END.search, lines)):
        raise ValueError("a header contains a line end")
    length = ["Content-Length: "] if has_body or method not in WITHOUT_BODY else []
    head = "\r\n".join((f"{method} {target} HTTP/1.1", *lines, *length))
    try:
        # Headers that are relayed were decoded as Latin-1.
        return head.encode("latin-1")
    except UnicodeEncodeError:
        return head.encode()


def _to_ascii(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError as error:
        raise OSError("no such host") from error
