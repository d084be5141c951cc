"""The one way out to urls that users, models or documents name (D7). Refuses every address that is not public.

What counts is the address a socket is about to be connected to, not the name it was found under.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from recto.config.file_settings import OutboundSettings
from recto.errors import FileRefused, LimitReached, SettingsError
from recto.files.fetch.addresses import WebUrl, check_url, follow, is_public
from recto.files.fetch.lookup import Lookup, SystemResolver
from recto.files.fetch.web_names import web_name

LOGGER = logging.getLogger("recto.files")
# Never compressed: what comes is as long as it is, and no bomb.
HEADERS = {"User-Agent": "recto (fetches files its users name)", "Accept": "*/*", "Accept-Encoding": "identity"}
HEADER_BYTES, HEADER_LINES = 8_190, 100
OK, REDIRECTS = 200, frozenset({301, 302, 303, 307, 308})
RETRY_SECONDS = 1.0
EVERYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))
UPLOAD = "download it yourself and upload it"
# Family, kind, protocol, name and address, as the system's resolver writes them.
SocketAddress: TypeAlias = tuple[int, int, int, str, tuple[object, ...]]


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A file on its way in: the url it came from in the end, its name and the type its server says it has."""

    url: str
    name: str
    mime_type: str | None
    pieces: AsyncIterator[bytes]


class Outbound:
    """Fetches files from the web. `allowance` are networks that may be reached beside the public ones."""

    def __init__(
        self,
        settings: OutboundSettings | None = None,
        *,
        resolver: AbstractResolver | None = None,
        allowance: Sequence[str] = (),
    ) -> None:
        self.settings = settings or OutboundSettings()
        self._resolver = resolver or SystemResolver(self.settings.at_once)
        self._allowance = tuple([_network(one) for one in allowance])
        self._users: Counter[str] = Counter()

    @asynccontextmanager
    async def fetch(
        self, url: str, *, hosts: Sequence[str], owner: str = "", most_bytes: int | None = None, own: str | None = None
    ) -> AsyncGenerator[Fetched]:
        """A file, to be read while the context lasts. Whatever keeps it from coming raises FileRefused.

        `hosts` are patterns of those that may be asked; `own` is this server's url, which never is.
        """
        first = check_url(url, hosts, own)
        deadline = asyncio.get_running_loop().time() + self.settings.seconds
        resolver = _PublicOnly(self._resolver, self._allowance)
        limit = aiohttp.ClientTimeout(
            total=None, connect=self.settings.connect_seconds, sock_read=self.settings.idle_seconds
        )
        with self._one_more(owner, resolver):
            async with self._session(resolver, timeout=limit, force_close=True) as session:
                journey = _Journey(session, resolver, deadline)
                reaching = self._reach(journey, first, lambda onward: check_url(onward, hosts, own))
                async with (
                    reaching as (answer, last),
                    aclosing(self._pieces(journey, answer, last, most_bytes)) as pieces,
                ):
                    yield _fetched(answer, first, last, pieces)

    def open_web(self, *, internal: bool) -> GuardedSession:
        """A session for the host that an operator has named, to be closed by who asks for it.

        It is held to public addresses too, unless the operator says that the host is an `internal` one.
        """
        resolver = _PublicOnly(self._resolver, EVERYWHERE if internal else self._allowance)
        timeout = aiohttp.ClientTimeout(total=None, connect=self.settings.connect_seconds)
        return GuardedSession(self._session(resolver, timeout=timeout, force_close=False), resolver)

    @contextmanager
    def _one_more(self, owner: str, resolver: _PublicOnly) -> Generator[None]:
        """A place among those at once. It is free again when no thread looks for a name on its behalf any more."""
        is_users = self._users[owner] >= self.settings.of_user
        if is_users or self._users.total() >= self.settings.at_once:
            most = f"{self.settings.of_user} of one user" if is_users else f"{self.settings.at_once}"
            text = f"No more files than {most} are fetched from other addresses at once, and so many are under way"
            raise LimitReached(f"{text}. Try again in a moment.", retry=RETRY_SECONDS)
        self._users[owner] += 1
        try:
            yield
        finally:
            resolver.lookup.when_quiet(lambda: self._one_less(owner))

    def _one_less(self, owner: str) -> None:
        self._users = self._users - Counter({owner: 1})

    def _session(
        self, resolver: _PublicOnly, *, timeout: aiohttp.ClientTimeout, force_close: bool
    ) -> aiohttp.ClientSession:
        """No cookie or answer of the DNS is left over for the next request; nor a connection, by `force_close`."""
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=resolver, use_dns_cache=False, force_close=force_close, socket_factory=resolver.open_socket
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=HEADERS,
            timeout=timeout,
            auto_decompress=False,
            trust_env=False,
            max_line_size=HEADER_BYTES,
            max_field_size=HEADER_BYTES,
            max_headers=HEADER_LINES,
        )

    @asynccontextmanager
    async def _reach(
        self, journey: _Journey, at: WebUrl, check: Callable[[str], WebUrl]
    ) -> AsyncGenerator[tuple[aiohttp.ClientResponse, WebUrl]]:
        """The answer at the end of all redirects; each is judged like the first url."""
        for _ in range(self.settings.redirects + 1):
            with closing(await journey.ask(at)) as answer:
                if answer.status not in REDIRECTS:
                    yield answer, at
                    return
            at = _onward(at, answer.headers.get("Location"), check)
        text = f"it leads on from url to url more than {self.settings.redirects} times"
        raise FileRefused(f"{text}; give the url it ends at", code="redirects")

    async def _pieces(
        self, journey: _Journey, answer: aiohttp.ClientResponse, target: WebUrl, most_bytes: int | None
    ) -> AsyncGenerator[bytes]:
        most = min(self.settings.file_bytes, most_bytes or self.settings.file_bytes)
        _check_size(answer.content_length or 0, most)
        size = 0
        while piece := await journey.read(answer, target):
            size += len(piece)
            _check_size(size, most)
            yield piece


class _Forbidden(OSError):
    """An address that is not public. An OSError, for that is what those who connect expect."""


class _PublicOnly(AbstractResolver):
    """What every connection passes: names are found, and sockets opened, for public addresses only."""

    def __init__(self, resolver: AbstractResolver, allowance: Sequence[IPv4Network | IPv6Network]) -> None:
        self.lookup = Lookup(resolver)
        self._allowance = allowance
        self.has_refused = False

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """What a name stands for. If one of it is not public, the name is not trusted with the others."""
        found = await self.lookup.find(host, port, family)
        if not found:
            raise OSError("the name stands for nothing")
        for one in found:
            self._check(one["host"], host)
        return found

    async def close(self) -> None:
        """Nothing is kept open; what was given is its giver's to close."""

    def open_socket(self, place: SocketAddress) -> socket.socket:
        """A socket that will be connected to this place next."""
        family, kind, protocol, _, address = place
        self._check(str(address[0]), str(address[0]))
        return socket.socket(family=family, type=kind, proto=protocol)

    def _check(self, address: str, host: str) -> None:
        if is_public(address) or self._is_allowed(address):
            return
        self.has_refused = True
        LOGGER.warning("%s is at %s, which is no public address; it was not asked for a file.", host, address)
        raise _Forbidden("no public address")

    def _is_allowed(self, address: str) -> bool:
        try:
            return any(ip_address(address) in network for network in self._allowance)
        except ValueError:
            return False


class GuardedSession:
    """A session whose every socket is checked. `has_refused`: an address that it was to connect to is not public."""

    def __init__(self, session: aiohttp.ClientSession, resolver: _PublicOnly) -> None:
        self.session = session
        self._resolver = resolver

    @property
    def has_refused(self) -> bool:
        """Whether some address was refused."""
        return self._resolver.has_refused


class _Journey:
    """One fetch over all its redirects: it ends in time, and its failures are put in words that give nothing away."""

    def __init__(self, session: aiohttp.ClientSession, resolver: _PublicOnly, deadline: float) -> None:
        self._session = session
        self._resolver = resolver
        self._deadline = deadline

    async def ask(self, target: WebUrl) -> aiohttp.ClientResponse:
        with self._in_our_words(target):
            async with asyncio.timeout_at(self._deadline):
                return await self._session.get(URL(target.url, encoded=True), allow_redirects=False)

    async def read(self, answer: aiohttp.ClientResponse, target: WebUrl) -> bytes:
        """The next bytes; none at the end."""
        with self._in_our_words(target):
            async with asyncio.timeout_at(self._deadline):
                return await answer.content.readany()

    @contextmanager
    def _in_our_words(self, target: WebUrl) -> Generator[None]:
        try:
            yield
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self._refusal(target.host, error) from error

    def _refusal(self, host: str, error: Exception) -> FileRefused:
        if self._resolver.has_refused:
            text = f"{host} is at an address that is not public, and only public ones are asked; {UPLOAD}"
            return FileRefused(text, code="private_address")
        match error:
            case aiohttp.ClientConnectorCertificateError():
                return FileRefused(f"the certificate of {host} is not valid; {UPLOAD}", code="unreachable")
            case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
                return FileRefused(f"{host} cannot be reached; check the url, or {UPLOAD}", code="unreachable")
            case TimeoutError():
                return FileRefused(f"{host} took too long to send it; {UPLOAD}", code="too_slow")
            case _:
                return FileRefused(f"{host} broke off, or sent what is no answer; {UPLOAD}", code="unreachable")


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        allowed = "it has networks such as 10.0.0.0/8 or fd00::/8, by commas"
        raise SettingsError(name="fetch_networks", value=text, allowed=allowed) from error


def _onward(at: WebUrl, location: str | None, check: Callable[[str], WebUrl]) -> WebUrl:
    if not location:
        raise FileRefused(f"{at.host} leads on to another url and does not say which; {UPLOAD}", code="redirects")
    try:
        return check(follow(at, location).url)
    except FileRefused as error:
        raise FileRefused(f"{at.host} leads on to another url: {error}", code=error.code) from error


def _fetched(answer: aiohttp.ClientResponse, first: WebUrl, last: WebUrl, pieces: AsyncIterator[bytes]) -> Fetched:
    if answer.status != OK:
        text = f"{last.host} answered with status {answer.status} where a file was to be"
        raise FileRefused(f"{text}; check that the url can be opened by anybody", code="bad_status")
    if (encoding := answer.headers.get("Content-Encoding", "identity").strip().lower()) not in ("", "identity"):
        text = f"{last.host} sent it compressed ({encoding[:20]}), which was not asked for"
        raise FileRefused(f"{text}; {UPLOAD}", code="compressed")
    declared = answer.headers.get("Content-Type")
    name = web_name(answer.headers.get("Content-Disposition"), [first.url, last.url], declared)
    return Fetched(url=last.url, name=name, mime_type=declared, pieces=pieces)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise FileRefused(f"it has more than {most:,} bytes, which is the most that is fetched", code="too_large")
