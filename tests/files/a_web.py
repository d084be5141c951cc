"""Loopback web server that sends scripted bytes and counts its clients."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeAlias

from tests.waiting import settle, wait_until

# Writes an answer. The connection closes when it returns.
Answering: TypeAlias = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Web:
    """`answers` by path; `accepted` counts connections, `requests` has the head of each request."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self._address = address
        self._writers = set[asyncio.StreamWriter]()
        self.answers: dict[str, bytes | Answering] = {}
        self.accepted = 0
        self.requests = list[str]()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self._address, 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for writer in tuple(self._writers):
            writer.transport.abort()
        await wait_until(lambda: not self._writers, "the connections to end")
        await self._server.wait_closed()

    @property
    def paths(self) -> list[str]:
        return [request.split(" ")[1] for request in self.requests]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._writers.add(writer)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            await self._answer(head.split(" ")[1].partition("?")[0], reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self._writers.discard(writer)

    async def _answer(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answer = self.answers.get(path, http(b"nothing here", status="404 Not Found"))
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
            return
        answering = asyncio.ensure_future(answer(writer))
        # The client sends nothing more, so this ends when it disconnects.
        leaving = asyncio.ensure_future(reader.read())
        await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
        answering.cancel()
        leaving.cancel()
        await asyncio.gather(answering, leaving, return_exceptions=True)


def http(body: bytes = b"", *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {size}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def leading(location: str, *headers: str, status: str = "302 Found") -> bytes:
    return http(b"", f"Location: {location}", *headers, status=status)


def endless(head: bytes, piece: bytes, after_piece: Callable[[], None] = lambda: None) -> Answering:
    """Return an answer that repeats its bytes forever."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()
            after_piece()
            await settle()

    return answer


def stalling(head: bytes) -> Answering:
    """Return an answer that stops after its first bytes and keeps the connection open."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await asyncio.Event().wait()

    return answer
