"""HTTP transports: asyncio, or blocking over an event loop in a thread.

Coroutines written against `Transport` await nothing else. Over the blocking transport they never suspend, so
`run_blocking` runs them without an event loop of their own.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol, TypeVar, cast

from recto.config.run_settings import Timeouts
from recto.errors import ServerUnreachable
from recto.http.client import HttpClient, HttpConnection
from recto.http.network import Network

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
        """Send a request and return the response. Raise ServerUnreachable if none arrives."""
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


class LoopTransport:
    """asyncio transport: one connection per request. Blocking functions run in threads."""

    def __init__(self, url: str, silence: float) -> None:
        self._url = url
        self._network = Network.from_environment(os.environ)
        self._timeouts = Timeouts(connect=silence, first_byte=silence, between_bytes=silence)

    @asynccontextmanager
    async def send(self, request: ClientRequest) -> AsyncGenerator[ServerReply]:
        url = self._url + request.path
        headers = {"Accept-Encoding": "identity", "Connection": "close", **request.headers}
        with ExitStack() as stack:
            with _map_errors(self._url):
                client = stack.enter_context(closing(HttpClient(url, {}, network=self._network)))
                answer = await client.send(request.method, url, headers, request.body or b"", self._timeouts)
            stack.enter_context(closing(answer))
            yield _Reply(self._url, answer)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def call(self, function: Callable[..., object], *args: object, **values: object) -> object:
        if inspect.iscoroutinefunction(function):
            return await _await(function(*args, **values))
        return await asyncio.to_thread(function, *args, **values)


class _Reply:
    def __init__(self, url: str, answer: HttpConnection) -> None:
        self._url, self._answer = url, answer
        self.status = answer.status
        self.headers: Mapping[str, str] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in answer.headers.items()
        }

    async def read(self) -> bytes:
        with _map_errors(self._url):
            return await self._answer.read()


class BlockingTransport:
    """Blocking transport. Its requests run on the event loop of a thread that all blocking clients share."""

    def __init__(self, url: str, silence: float) -> None:
        self._transport = LoopTransport(url, silence)

    @asynccontextmanager
    async def send(self, request: ClientRequest) -> AsyncGenerator[ServerReply]:
        exchange = self._transport.send(request)
        reply = _wait(exchange.__aenter__())
        try:
            yield _BlockingReply(reply)
        finally:
            _wait(exchange.__aexit__(None, None, None))

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def call(self, function: Callable[..., object], *args: object, **values: object) -> object:
        """Call a function; run a coroutine in a new event loop."""
        answer = function(*args, **values)
        return asyncio.run(_await(answer)) if inspect.isawaitable(answer) else answer


class _BlockingReply:
    def __init__(self, reply: ServerReply) -> None:
        self._reply = reply
        self.status, self.headers = reply.status, reply.headers

    async def read(self) -> bytes:
        return _wait(self._reply.read())


def _wait(coroutine: Coroutine[object, None, Value]) -> Value:
    """Run a coroutine on the shared event loop and wait for its result. Ctrl-C cancels it."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _start_loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@cache
def _start_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="recto-client", daemon=True).start()
    return loop


# A forked process does not inherit the thread of the loop.
os.register_at_fork(after_in_child=_start_loop.cache_clear)


@contextmanager
def _map_errors(url: str) -> Generator[None]:
    """Raise ServerUnreachable for a lost connection."""
    try:
        yield
    except OSError as error:
        raise ServerUnreachable(url=url, problem=str(error) or type(error).__name__) from error


async def _await(answer: object) -> object:
    return await cast("Coroutine[object, object, object]", answer)
