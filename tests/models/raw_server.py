"""A server on plain sockets that misuses connections in ways no library does."""

from __future__ import annotations

import re
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from typing import Self, TypeAlias

LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
WAIT = 10.0


class Talk:
    """Server side of one connection. A mistake of the client raises an error and ends the connection."""

    def __init__(self, plain: socket.socket, server: RawServer) -> None:
        self.socket = plain
        self._server = server
        self._rest = b""

    def request(self) -> bytes:
        """Return the next request as received; empty if the client is gone."""
        got = self._rest
        while not _is_whole(got):
            more = self.socket.recv(65536)
            if not more:
                return b""
            got += more
        self._rest = b""
        self._server.requests.append(got)
        return got

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.socket.sendall(piece)

    def answer(self, *pieces: bytes) -> None:
        """Wait for a request and answer it."""
        if self.request():
            self.send(*pieces)

    def reset(self) -> None:
        """Reset the connection, as a crashed machine does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def wait_gone(self) -> bool:
        """Wait until the client has closed it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


Script: TypeAlias = Callable[[Talk], None]


def _is_whole(got: bytes) -> bool:
    head, result, body = got.partition(b"\r\n\r\n")
    length = LENGTH.search(head)
    return bool(result) and len(body) >= (int(length[1]) if length else 0)


class RawServer:
    """Server that plays one script for each connection, in order. `requests` contains those of all connections."""

    def __init__(self, *scripts: Script, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._scripts = scripts
        self._tls = tls
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._listener.settimeout(WAIT)
        self._threads: list[threading.Thread] = []
        self.requests: list[bytes] = []
        self.connections = 0
        self.port: int = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        # Wake the thread that waits for a connection.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(WAIT)

    def _start(self, act: Callable[[], None]) -> None:
        thread = threading.Thread(target=act, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        for script in self._scripts:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            plain.settimeout(WAIT)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._start(lambda script=script, plain=plain: self._play(script, plain))

    def _play(self, script: Script, plain: socket.socket) -> None:
        try:
            talking = self._tls.wrap_socket(plain, server_side=True) if self._tls else plain
            with talking:
                script(Talk(talking, self))
        except OSError:
            plain.close()
