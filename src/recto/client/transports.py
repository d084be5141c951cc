"""HTTP transports: blocking sockets or asyncio.

Coroutines written against `Transport` await nothing else. Over blocking sockets they never suspend, so `finished` runs
them without an event loop.
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
    """A request. `path` is relative to the server URL; header names are lower case."""

    method: str = "GET"
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class ServerReply(Protocol):
    """Head of a response; its body can be read once. Header names are lower case."""

    status: int
    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """Return the next bytes of the body, empty at the end. Raise ServerUnreachable if the connection is lost."""
        ...


class Transport(Protocol):
    """All operations that wait."""

    def send(self, request: ClientRequest) -> AbstractAsyncContextManager[ServerReply]:
        """Send a request and return the response. Raise ServerUnreachable without one."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        ...

    async def call(self, function: Callable[..., object], *args: object, **values: object) -> object:
        """Call a function or coroutine function of the user and return its result."""
        ...


def run_blocking(coroutine: Coroutine[object, None, Value]) -> Value:
    """Run a coroutine that never suspends, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return cast("Value", stop.value)
    raise RuntimeError("it waits for something other than its transport")


def iterate_blocking(values: AsyncGenerator[Value]) -> Iterator[Value]:
    """Iterate over an async generator that never suspends. A caller may stop and continue later."""
    while True:
        try:
            value = run_blocking(cast("Coroutine[object, None, Value]", anext(values)))
        except StopAsyncIteration:
            return
        yield value


class BlockingTransport:
    """Blocking transport of the standard library: one connection per request, in the caller's thread."""

    def __init__(self, url: str, silence: float) -> None:
        self._url, self._silence = url, silence

    @asynccontextmanager
    async def send(self, request: ClientRequest) -> AsyncGenerator[ServerReply]:
        parts = urlsplit(self._url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self._silence)
        try:
            with _map_errors(self._url, OSError, http.client.HTTPException):
                connection.request(request.method, parts.path + request.path, request.body, dict(request.headers))
                answer = connection.getresponse()
            # If the server closes first, only the response owns the socket.
            with closing(answer):
                yield _BlockingReply(self._url, answer)
        finally:
            connection.close()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def call(self, function: Callable[..., object], *args: object, **values: object) -> object:
        """Call a function; run a coroutine in a new event loop."""
        answer = function(*args, **values)
        return asyncio.run(_await(answer)) if inspect.isawaitable(answer) else answer


class _BlockingReply:
    def __init__(self, url: str, answer: http.client.HTTPResponse) -> None:
        self._url, self._answer = url, answer
        self.status = answer.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in answer.getheaders()}

    async def read(self) -> bytes:
        with _map_errors(self._url, OSError, http.client.HTTPException):
            return self._answer.read1(READ_BYTES)


class LoopTransport:
    """asyncio transport: one connection per request. Blocking functions run in threads."""

    def __init__(self, url: str, silence: float) -> None:
        self._url, self._silence = url, silence

    @asynccontextmanager
    async def send(self, request: ClientRequest) -> AsyncGenerator[ServerReply]:
        import aiohttp  # here: programs that block need no event loop's library

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._silence, sock_read=self._silence)
        losses = (aiohttp.ClientError, OSError, TimeoutError)
        try:
            async with aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session:
                with _map_errors(self._url, *losses):
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
            # aiohttp closes the socket in the next iteration of the loop; this may be the last one.
            await asyncio.sleep(0)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def call(self, function: Callable[..., object], *args: object, **values: object) -> object:
        if inspect.iscoroutinefunction(function):
            return await _await(function(*args, **values))
        return await asyncio.to_thread(function, *args, **values)


class _LoopReply:
    def __init__(self, url: str, answer: aiohttp.ClientResponse, losses: tuple[type[Exception], ...]) -> None:
        self._url, self._answer, self._losses = url, answer, losses
        self.status = answer.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in answer.headers.items()}

    async def read(self) -> bytes:
        with _map_errors(self._url, *self._losses):
            return await self._answer.content.readany()


@contextmanager
def _map_errors(url: str, *losses: type[Exception]) -> Generator[None]:
    """Raise `losses`, the library's errors for a lost connection, as ServerUnreachable."""
    try:
        yield
    except losses as error:
        raise ServerUnreachable(url=url, problem=str(error) or type(error).__name__) from error


async def _await(answer: object) -> object:
    return await cast("Coroutine[object, object, object]", answer)
