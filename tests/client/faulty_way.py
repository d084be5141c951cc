"""A way to a server with faults: connections that are cut, or answered by somebody else."""

import re
import socket
import socketserver
import sys
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import TypeAlias, cast
from urllib.parse import urlsplit

CHUNK = 65_536
Fault: TypeAlias = int | bytes | threading.Event | None


def answer(status: int, *headers: str, body: str = "") -> bytes:
    """An answer of what stands before a server."""
    head = (f"HTTP/1.1 {status} Said", f"content-length: {len(body)}", "connection: close", *headers)
    return "\r\n".join((*head, "", body)).encode()


class Way(socketserver.ThreadingTCPServer):
    """Where it leads, and the faults that are left."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, url: str, faults: Iterable[Fault]) -> None:
        self.target, self.faults = urlsplit(url), iter(faults)
        super().__init__(("127.0.0.1", 0), Passing)


class Passing(socketserver.BaseRequestHandler):
    """One connection."""

    def handle(self) -> None:
        way = cast("Way", self.server)
        asked = self.asked()
        fault = next(way.faults, None)
        if isinstance(fault, bytes):
            self.request.sendall(fault)
            return
        if isinstance(fault, threading.Event):
            fault.wait()
        room = fault if isinstance(fault, int) else sys.maxsize
        with socket.create_connection((way.target.hostname or "", way.target.port or 0)) as server:
            server.sendall(asked)
            # What is asked has reached the server, even if nothing of the answer comes back.
            while piece := server.recv(min(CHUNK, max(room, 1))):
                self.request.sendall(piece[:room])
                room -= len(piece)
                if room <= 0:
                    return

    def asked(self) -> bytes:
        """A request, whole."""
        read = b""
        while b"\r\n\r\n" not in read:
            read += self.request.recv(CHUNK)
        head, _, body = read.partition(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
        while length and len(body) < int(length[1]):
            body += self.request.recv(CHUNK)
        return head + b"\r\n\r\n" + body


@contextmanager
def faulty_way(url: str, faults: Iterable[Fault]) -> Generator[str]:
    """The address of a way to a server. Each connection takes the next fault: so many bytes of the answer and no more,
    an answer in its place, what it waits for before it reaches the server, or none. Who comes after the last has none.
    """
    with Way(url, faults) as way:
        thread = threading.Thread(target=way.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{way.server_address[1]}"
        finally:
            way.shutdown()
            thread.join()
