"""A scripted model server on 127.0.0.1 for tests and benchmarks. It records every request.

It serves each provider's wire format under its own path; one script works for all of them. `python -m
recto.testing.model_server --port 9000 --tokens 50` answers every request with that many words.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeAlias, cast

from recto.conversation.json import Json, load_object
from recto.testing.answer_bytes import DEFAULT as DEFAULT_WIRE
from recto.testing.answer_bytes import FAKES, events, render, whole, wire_at, writes
from recto.testing.model_answers import Answer, Call, Flag, failure

__all__ = ["Answer", "Call", "Flag", "ModelServer", "Request", "events", "failure", "main", "render"]

DEFAULT = Answer(text="Nothing more is scripted.")
PATHS = " and ".join(fake.path for fake in FAKES.values())
NOT_FOUND = failure(404, f"there is only POST {PATHS} here", code="not_found")
CONTENT_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
# Poll interval of a gate, in seconds.
LOOK = 0.002
WAIT = 10.0


@dataclass(frozen=True, kw_only=True)
class Request:
    """A recorded request. Header names are lower case; `number` and `connection` count from 0."""

    number: int
    connection: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    held_event: threading.Event = field(default_factory=threading.Event, repr=False)
    left_event: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def page(self) -> Mapping[str, Json]:
        """The body as JSON, or empty if it is not a JSON object."""
        return load_object(self.body) or {}

    @property
    def disconnected(self) -> bool:
        """True if the client disconnected before the end of the answer."""
        return self.left_event.is_set()

    def wait_disconnected(self, timeout: float = WAIT) -> bool:
        """Wait until the client disconnects. Return False on timeout."""
        return self.left_event.wait(timeout)

    def wait_held(self, timeout: float = WAIT) -> bool:
        """Wait until the answer waits at its gate. Return False on timeout."""
        return self.held_event.wait(timeout)


Script: TypeAlias = Sequence[Answer] | Callable[[Request], Answer]


class ModelServer:
    """A server in its own thread, running while the context is entered. With `keep=False` it stores no requests."""

    def __init__(self, script: Script = (), *, port: int = 0, keep: bool = True) -> None:
        self._script = script
        self._port = port
        self._keep = keep
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._count = 0
        self._connected = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="model-server", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._problem: BaseException | None = None
        self.connections: set[_Connection] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._problem is not None:
            raise self._problem
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"{self.root}/v1"

    @property
    def root(self) -> str:
        """The base URL for Anthropic clients."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def requests(self) -> list[Request]:
        """All requests so far, in order of arrival."""
        with self._lock:
            return list(self._requests)

    def wait_requests(self, count: int, timeout: float = WAIT) -> list[Request]:
        """Wait until `count` requests have arrived. Return fewer on timeout."""
        pause = threading.Event()
        for _ in range(int(timeout / LOOK)):
            if len(self.requests) >= count:
                break
            pause.wait(LOOK)
        return self.requests

    def take(self, head: str, body: bytes, connection: _Connection) -> Request:
        """Record a request."""
        first, *lines = head.split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        with self._lock:
            request = Request(
                number=self._count, connection=connection.number, method=method, path=path, headers=headers, body=body
            )
            self._count += 1
            if self._keep:
                self._requests.append(request)
        return request

    def add_connection(self, connection: _Connection) -> int:
        """Register a connection and return its number."""
        self.connections.add(connection)
        self._connected += 1
        return self._connected - 1

    def answer(self, request: Request) -> Answer:
        """Return the scripted answer to a request."""
        if request.method != "POST" or wire_at(request.path) is None:
            return NOT_FOUND
        if not callable(self._script):
            return self._script[request.number] if request.number < len(self._script) else DEFAULT
        try:
            return self._script(request)
        except Exception as error:  # The client sees that the script failed; its test would otherwise wait forever.
            return failure(500, f"the script failed: {error!r}")

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:
            self._problem = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", self._port, backlog=1024)
        async with server:
            self._port = server.sockets[0].getsockname()[1]
            self._ready.set()
            await self._stop.wait()
            for connection in tuple(self.connections):
                connection.transport.abort()
            # Let the connections handle the abort.
            await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    """One connection, one answer at a time; further requests wait."""

    transport: asyncio.Transport
    number: int

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self._buffer = b""
        self._request: Request | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.number = self._server.add_connection(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the loop passes it
        self._server.connections.discard(self)
        if self._request is not None:
            self._request.left_event.set()
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def _next(self) -> None:
        """Answer the next complete request, unless an answer is in progress."""
        if self._request is not None or self.transport.is_closing():
            return
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = CONTENT_LENGTH.search(head)
        end = int(length[1]) if length else 0
        if len(rest) < end:
            return
        self._buffer = rest[end:]
        self._request = self._server.take(head.decode("latin-1"), rest[:end], self)
        answer = self._server.answer(self._request)
        if answer.hold or answer.hang or answer.delay or answer.fragment:
            self._task = asyncio.get_running_loop().create_task(self._play(self._request, answer))
        else:
            self.transport.write(whole(answer, wire_at(self._request.path) or DEFAULT_WIRE))
            self._finish(answer)

    async def _play(self, request: Request, answer: Answer) -> None:
        for number, piece in enumerate(writes(answer, wire_at(request.path) or DEFAULT_WIRE)):
            if answer.hang or (answer.hold and number == answer.hold_after):
                request.held_event.set()
                while answer.hang or not (answer.hold and answer.hold.is_set()):
                    await asyncio.sleep(LOOK)
            self.transport.write(piece)
            await asyncio.sleep(answer.delay)
        self._task = None
        self._finish(answer)

    def _finish(self, answer: Answer) -> None:
        self._request = None
        if answer.cut_at is not None or answer.framing == "close":
            self.transport.close()
        else:
            self._next()


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted. The first line of output is the URL."""
    parser = argparse.ArgumentParser(prog="python -m recto.testing.model_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=50)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds between tokens")
    options = parser.parse_args(arguments)
    answer = Answer(text="word " * options.tokens, delay=options.delay)
    with ModelServer(lambda _: answer, port=options.port, keep=False) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
