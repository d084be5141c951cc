"""The server's own HTTP protocol in the loop of the test, over pairs of sockets: the clock of the loop is its clock."""

import asyncio
import socket
from dataclasses import dataclass
from typing import Self

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from recto.api.connections import make_connection_class
from recto.config.access_settings import ConnectionLimits
from tests.waiting import settle


@dataclass(frozen=True)
class RawConnection:
    """The client's end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def rest(self) -> bytes:
        """Return all that comes until the server closes the connection."""
        pieces = list[bytes]()
        try:
            while piece := await self.reader.read(65_536):
                pieces.append(piece)
        except ConnectionError:
            pass
        return b"".join(pieces)

    async def is_served(self, request: bytes) -> bool:
        """Send a request, or the rest of one; return True if the answer begins well."""
        self.writer.write(request)
        return (await self.reader.readline()).startswith(b"HTTP/1.1 200")

    def stop_reading(self) -> None:
        """Leave in the socket whatever comes."""
        assert isinstance(self.writer.transport, asyncio.Transport)
        self.writer.transport.pause_reading()

    async def push(self, piece: bytes, times: int) -> int:
        """Send a piece again and again until the server closes; return how often it was taken."""
        for count in range(times):
            try:
                self.writer.write(piece)
                await self.writer.drain()
            except ConnectionError:
                return count
        return times


class RawServer:
    """An application behind the connections of a server with these limits."""

    def __init__(self, app: ASGIApp, limits: ConnectionLimits | None = None) -> None:
        limits = limits or ConnectionLimits()
        self._protocol = make_connection_class(limits)
        seconds = limits.keep_alive_seconds
        self._config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, timeout_keep_alive=seconds)
        self._state = ServerState()
        self._clients = list[RawConnection]()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for one in self._clients:
            one.writer.transport.abort()
        while self._state.connections or self._state.tasks:
            await settle(1)

    async def dial(self, source: str = "") -> RawConnection:
        """Connect: over a pair of sockets, which delays nothing, or from a loopback address."""
        ours, theirs = _loopback(source) if source else socket.socketpair()
        for one in (ours, theirs):
            one.setblocking(False)
        await asyncio.get_running_loop().connect_accepted_socket(self._connection, theirs)
        # The socket keeps everything that the test has not read.
        self._clients.append(RawConnection(*await asyncio.open_connection(sock=ours, limit=1_024)))
        return self._clients[-1]

    @property
    def open_connections(self) -> int:
        """How many connections are not closed."""
        return len(self._state.connections)

    @property
    def at_work(self) -> int:
        """How many requests have begun and not ended."""
        return len(self._state.tasks)

    def _connection(self) -> asyncio.Protocol:
        return self._protocol(config=self._config, server_state=self._state, app_state={})


def _loopback(source: str) -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ours = socket.create_connection(listening.getsockname(), source_address=(source, 0))
        return ours, listening.accept()[0]
