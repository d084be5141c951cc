"""How requests go out: over blocking sockets, or on an event loop.

All that waits for something is here. What is written over a `Transport` is coroutines that await nothing else, so over
blocking sockets they never wait, and `finished` runs them without an event loop.
"""

from __future__ import annotations

import asyncio
import http.client
import inspect
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar, cast
from urllib.parse import urlsplit

from recto.errors import ServerUnreachable

if TYPE_CHECKING:
    import aiohttp

READ_BYTES = 65_536
Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class ClientRequest:
    """A request: its path behind the server's address, its headers by names in small letters."""

    method: str = "GET"
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class ServerReply(Protocol):
    """The head of an answer; its body is read from it, once. Header names are in small letters."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """Some of the body, as it comes; nothing at its end. Raises ServerUnreachable where the connection is lost."""
        ...


class Transport(Protocol):
    """What waits: for an answer, for time to pass, for a function of the program."""

    def send(self, request: ClientRequest) -> AbstractAsyncContextManager[ServerReply]:
        """The answer to a request. Raises ServerUnreachable where none comes."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        ...

    async def call(self, function: Callable[..., object], *args: object, **values: object) -> object:
        """What a function of the program returns or raises; it may be a coroutine function."""
        ...


def finished(coroutine: Coroutine[object, None, Value]) -> Value:
    """What a coroutine over blocking sockets returns or raises."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return cast("Value", ended.value)
    raise RuntimeError("it waits for something other than its transport")


def drained(values: AsyncGenerator[Value]) -> Iterator[Value]:
    """The values of a generator over blocking sockets. Whoever stops in the middle may go on later."""
    while True:
        try:
            value = finished(cast("Coroutine[object, None, Value]", anext(values)))
        except StopAsyncIteration:
            return
        yield value


class BlockingTransport:
    """Over the sockets of the standard library, one connection a request, in the thread of whoever calls."""

    def __init__(self, url: str, silence: float) -> None:
        self._url, self._silence = url, silence

    @asynccontextmanager
    async def send(self, request: ClientRequest) -> AsyncGenerator[ServerReply]:
        """As `Transport` has it."""
        parts = urlsplit(self._url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self._silence)
        try:
            with _losing(self._url, OSError, http.client.HTTPException):
                connection.request(request.method, parts.path + request.path, request.body, dict(request.headers))
                answer = connection.getresponse()
            # Where the server closes first, the socket is the answer's alone.
            with closing(answer):
                yield _BlockingReply(self._url, answer)
        finally:
            connection.close()

    async def sleep(self, seconds: float) -> None:
        """As `Transport` has it."""
        time.sleep(seconds)

    async def call(self, function: Callable[..., object], *args: object, **values: object) -> object:
        """As `Transport` has it. A coroutine gets an event loop of its own."""
        answer = function(*args, **values)
        return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer


class _BlockingReply:
    def __init__(self, url: str, answer: http.client.HTTPResponse) -> None:
        self._url, self._answer = url, answer
        self.status = answer.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in answer.getheaders()}

    async def read(self) -> bytes:
        with _losing(self._url, OSError, http.client.HTTPException):
            return self._answer.read1(READ_BYTES)


class LoopTransport:
    """On the event loop that runs, one connection a request. Functions that block have threads of their own."""

    def __init__(self, url: str, silence: float) -> None:
        self._url, self._silence = url, silence

    @asynccontextmanager
    async def send(self, request: ClientRequest) -> AsyncGenerator[ServerReply]:
        """As `Transport` has it."""
        import aiohttp  # here: programs that block need no event loop's library

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._silence, sock_read=self._silence)
        losses = (aiohttp.ClientError, OSError, TimeoutError)
        try:
            async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session:
                with _losing(self._url, *losses):
                    answer = await session.request(
                        request.method,
                        self._url + request.path,
                        data=request.body,
                        headers=request.headers,
                        allow_redirects=False,
                    )
                async with answer:
                    yield _LoopReply(self._url, answer, losses)
        finally:
            # The socket is closed in the loop's next round, and this may be its last.
            await asyncio.sleep(0)

    async def sleep(self, seconds: float) -> None:
        """As `Transport` has it."""
        await asyncio.sleep(seconds)

    async def call(self, function: Callable[..., object], *args: object, **values: object) -> object:
        """As `Transport` has it."""
        if inspect.iscoroutinefunction(function):
            return await _awaited(function(*args, **values))
        return await asyncio.to_thread(function, *args, **values)


class _LoopReply:
    def __init__(self, url: str, answer: aiohttp.ClientResponse, losses: tuple[type[Exception], ...]) -> None:
        self._url, self._answer, self._losses = url, answer, losses
        self.status = answer.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in answer.headers.items()}

    async def read(self) -> bytes:
        with _losing(self._url, *self._losses):
            return await self._answer.content.readany()


@contextmanager
def _losing(url: str, *losses: type[Exception]) -> Generator[None]:
    """The errors of a library that mean a lost connection, as ours."""
    try:
        yield
    except losses as error:
        raise ServerUnreachable(url=url, problem=str(error) or type(error).__name__) from error


async def _awaited(answer: object) -> object:
    return await cast("Coroutine[object, object, object]", answer)
