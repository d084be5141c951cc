"""Connector for URLs from users, models and documents (D7). It checks the address that a socket connects to."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from recto.config.file_settings import OutboundSettings
from recto.config.run_settings import Timeouts
from recto.errors import FileRefused, LimitReached, SettingsError
from recto.files.fetch.addresses import WebUrl, check_url, follow, is_public
from recto.files.fetch.web_names import web_name
from recto.http import client as http
from recto.http.client import Address, HttpClient, HttpConnection, Resolve
from recto.http.network import Network

LOGGER = logging.getLogger("recto.files")
# Request uncompressed responses: they have their stated length and cannot be decompression bombs.
HEADERS = {"User-Agent": "recto (fetches files its users name)", "Accept": "*/*", "Accept-Encoding": "identity"}
OK, REDIRECTS = 200, frozenset({301, 302, 303, 307, 308})
RETRY_SECONDS = 1.0
# Timeout of a web session, whose callers set their own deadlines.
DAY = 86_400.0
EVERYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))
UPLOAD = "download it yourself and upload it"


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A file being fetched: its final URL, its name, and the type that the server states."""

    url: str
    name: str
    mime_type: str | None
    pieces: AsyncIterator[bytes]


class Outbound:
    """A client that fetches files from the web. `allowance` lists networks allowed besides public addresses."""

    def __init__(
        self,
        settings: OutboundSettings | None = None,
        *,
        resolve: Resolve | None = None,
        allowance: Sequence[str] = (),
        network: Network | None = None,
    ) -> None:
        self.settings = settings or OutboundSettings()
        self._resolve = resolve or SystemResolver(self.settings.at_once)
        self._allowance = tuple([_parse_network(one) for one in allowance])
        self._network = network or Network()
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def fetch(
        self, url: str, *, hosts: Sequence[str], owner: str = "", most_bytes: int | None = None, own: str | None = None
    ) -> AsyncGenerator[Fetched]:
        """Fetch a file, readable while the context is open. Raise FileRefused with the reason if this fails.

        `hosts` are patterns of allowed hosts; `own` is this server's URL, which is always rejected.
        """
        first = check_url(url, hosts, own)
        guard = Guard(self._resolve, self._allowance)
        with self._limit_concurrency(owner, guard):
            exchange = _Exchange(guard, self._network, self.settings)
            following = self._follow(exchange, first, lambda location: check_url(location, hosts, own))
            async with following as (answer, last), aclosing(self._read(exchange, answer, last, most_bytes)) as pieces:
                yield _fetched_file(answer, first, last, pieces)

    def open_web(self, *, internal: bool) -> GuardedSession:
        """Open a session for hosts that an operator has named. Only `internal` hosts may have private addresses."""
        guard = Guard(self._resolve, EVERYWHERE if internal else self._allowance)
        return GuardedSession(guard, self._network, self.settings.connect_seconds)

    @contextmanager
    def _limit_concurrency(self, owner: str, guard: Guard) -> Generator[None]:
        """Limit concurrent fetches, in total and per user. A fetch counts until its last DNS lookup has ended."""
        is_user_limit = self._users[owner] >= self.settings.of_user
        if is_user_limit or self._users.total() >= self.settings.at_once:
            most = f"{self.settings.of_user} of one user" if is_user_limit else f"{self.settings.at_once}"
            text = f"No more files than {most} are fetched from other addresses at once, and so many are under way"
            raise LimitReached(f"{text}. Try again in a moment.", retry=RETRY_SECONDS)

        def release() -> None:
            self._users = self._users - Counter({owner: 1})

        self._users[owner] += 1
        try:
            yield
        finally:
            guard.when_done(release)

    @asynccontextmanager
    async def _follow(
        self, exchange: _Exchange, url: WebUrl, check: Callable[[str], WebUrl]
    ) -> AsyncGenerator[tuple[HttpConnection, WebUrl]]:
        """Follow redirects and yield the last response. Check each redirect like the first URL."""
        for _ in range(self.settings.redirects + 1):
            with closing(exchange.client(url)) as client:
                answer = await exchange.request(client, url)
                if answer.status not in REDIRECTS:
                    yield answer, url
                    return
            location = answer.header(b"location")
            if not location:
                text = f"{url.host} leads on to another url and does not say which; {UPLOAD}"
                raise FileRefused(text, code="redirects")
            try:
                url = check(follow(url, location).url)
            except FileRefused as error:
                raise FileRefused(f"{url.host} leads on to another url: {error}", code=error.code) from error
        text = f"it leads on from url to url more than {self.settings.redirects} times"
        raise FileRefused(f"{text}; give the url it ends at", code="redirects")

    async def _read(
        self, exchange: _Exchange, answer: HttpConnection, url: WebUrl, most_bytes: int | None
    ) -> AsyncGenerator[bytes]:
        most = min(self.settings.file_bytes, most_bytes or self.settings.file_bytes)
        length = answer.header(b"content-length")
        _check_size(int(length) if length.isdecimal() else 0, most)
        size = 0
        while piece := await exchange.read(answer, url):
            size += len(piece)
            _check_size(size, most)
            yield piece


class SystemResolver:
    """The system resolver in its own threads, so that a slow DNS server delays only callers of this resolver."""

    def __init__(self, threads: int) -> None:
        # Abandoned lookups occupy threads too, because a thread cannot be stopped.
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="recto-lookup")

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        """Return all addresses of a host in the system's order of preference."""
        look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        return await asyncio.get_running_loop().run_in_executor(self._pool, look_up)


class _ForbiddenAddress(OSError):
    """An address that is not public."""


class Guard:
    """Sequential lookups. They reject a host if any of its addresses is neither public nor in `allowance`."""

    def __init__(self, resolve: Resolve, allowance: Sequence[IPv4Network | IPv6Network]) -> None:
        self.has_refused = False
        self._resolve = resolve
        self._allowance = allowance
        self._lookup: asyncio.Task[Sequence[Address]] | None = None

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """Return the checked addresses of a host. Cancelling the caller does not cancel the lookup."""

        async def look_up() -> Sequence[Address]:
            return await self._resolve(host, port)

        self._lookup = asyncio.create_task(look_up())
        await asyncio.wait([self._lookup])
        addresses = self._lookup.result()
        if not addresses:
            raise OSError("the host has no address")
        for *_, (address, *_) in addresses:
            try:
                is_allowed = any(ip_address(str(address)) in network for network in self._allowance)
            except ValueError:
                is_allowed = False
            if not is_allowed and not is_public(str(address)):
                self.has_refused = True
                LOGGER.warning("%s has the address %s, which is not public; not connected.", host, address)
                raise _ForbiddenAddress("not a public address")
        return addresses

    def when_done(self, act: Callable[[], None]) -> None:
        """Call a function when no lookup is in progress."""

        def finish(task: asyncio.Task[Sequence[Address]]) -> None:
            # Retrieve the error, because asyncio would otherwise log it.
            if not task.cancelled():
                task.exception()
            act()

        if self._lookup is None or self._lookup.done():
            act()
        else:
            self._lookup.add_done_callback(finish)


class GuardedSession:
    """HTTP to hosts that an operator has named, with checked addresses. Only GET requests may be repeated."""

    def __init__(self, guard: Guard, network: Network, connect_seconds: float) -> None:
        self._guard = guard
        self._network = network
        self._timeouts = Timeouts(connect=connect_seconds, first_byte=DAY, between_bytes=DAY)
        self._clients = dict[tuple[str, str], HttpClient]()

    @property
    def has_refused(self) -> bool:
        """Return True if an address was rejected because it is not public."""
        return self._guard.has_refused

    async def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> HttpConnection:
        """Send a request and return the head of the response, which the caller closes.

        Raise OSError if none arrives.
        """
        parts = urlsplit(url)
        client = self._clients.get((parts.scheme, parts.netloc))
        if client is None:
            client = HttpClient(url, {}, network=self._network, resolve=self._guard.resolve)
            self._clients[parts.scheme, parts.netloc] = client
        names = {name.lower() for name in headers}
        defaults = {name: value for name, value in HEADERS.items() if name.lower() not in names}
        return await client.send(method, url, {**defaults, **headers}, body, self._timeouts, may_repeat=method == "GET")

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()


class _Exchange:
    """The requests of one fetch, with a common deadline. Its errors reveal nothing about the network."""

    def __init__(self, guard: Guard, network: Network, settings: OutboundSettings) -> None:
        self._guard = guard
        self._network = network
        self._deadline = asyncio.get_running_loop().time() + settings.seconds
        self._timeouts = Timeouts(
            connect=settings.connect_seconds, first_byte=settings.idle_seconds, between_bytes=settings.idle_seconds
        )

    def client(self, url: WebUrl) -> HttpClient:
        return HttpClient(url.url, {}, network=self._network, resolve=self._guard.resolve)

    async def request(self, client: HttpClient, url: WebUrl) -> HttpConnection:
        with self._map_errors(url):
            async with asyncio.timeout_at(self._deadline):
                return await client.send("GET", url.url, {**HEADERS, "Connection": "close"}, b"", self._timeouts)

    async def read(self, answer: HttpConnection, url: WebUrl) -> bytes:
        """Return the next bytes, empty at the end."""
        with self._map_errors(url):
            async with asyncio.timeout_at(self._deadline):
                return await answer.read()

    @contextmanager
    def _map_errors(self, url: WebUrl) -> Generator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            host, code = url.host, "unreachable"
            if self._guard.has_refused:
                code, text = (
                    "private_address",
                    f"{host} is at an address that is not public, and only public ones are asked",
                )
            elif isinstance(error, ssl.SSLCertVerificationError):
                text = f"the certificate of {host} is not valid"
            elif isinstance(error, http.BrokenAnswer | http.ClosedUnanswered | ValueError):
                text = f"{host} broke off, or sent what is no answer"
            elif isinstance(error, TimeoutError) and not isinstance(error, http.ConnectTimeout):
                code, text = "too_slow", f"{host} took too long to send it"
            else:
                raise FileRefused(f"{host} cannot be reached; check the url, or {UPLOAD}", code=code) from error
            raise FileRefused(f"{text}; {UPLOAD}", code=code) from error


def _parse_network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        allowed = "it has networks such as 10.0.0.0/8 or fd00::/8, by commas"
        raise SettingsError(name="fetch_networks", value=text, allowed=allowed) from error


def _fetched_file(answer: HttpConnection, first: WebUrl, last: WebUrl, pieces: AsyncIterator[bytes]) -> Fetched:
    if answer.status != OK:
        text = f"{last.host} answered with status {answer.status} where a file was to be"
        raise FileRefused(f"{text}; check that the url can be opened by anybody", code="bad_status")
    if (encoding := answer.header(b"content-encoding").strip().lower()) not in ("", "identity"):
        text = f"{last.host} sent it compressed ({encoding[:20]}), which was not asked for"
        raise FileRefused(f"{text}; {UPLOAD}", code="compressed")
    mime_type = answer.header(b"content-type") or None
    name = web_name(answer.header(b"content-disposition") or None, [first.url, last.url], mime_type)
    return Fetched(url=last.url, name=name, mime_type=mime_type, pieces=pieces)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise FileRefused(f"it has more than {most:,} bytes, which is the most that is fetched", code="too_large")
