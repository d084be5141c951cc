"""A proxy with faults: it cuts connections, or answers them itself."""

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


def make_response(status: int, *headers: str, body: str = "") -> bytes:
    """Return an HTTP response of a proxy."""
    head = (f"HTTP/1.1 {status} Said", f"content-length: {len(body)}", "connection: close", *headers)
    return "\r\n".join((*head, "", body)).encode()


class FaultyProxy(socketserver.ThreadingTCPServer):
    """The target and the next faults."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, url: str, faults: Iterable[Fault]) -> None:
        self.target, self.faults = urlsplit(url), iter(faults)
        super().__init__(("127.0.0.1", 0), ProxyHandler)


class ProxyHandler(socketserver.BaseRequestHandler):
    """One connection."""

    def handle(self) -> None:
        proxy = cast("FaultyProxy", self.server)
        request = self.read_request()
        fault = next(proxy.faults, None)
        if isinstance(fault, bytes):
            self.request.sendall(fault)
            return
        if isinstance(fault, threading.Event):
            fault.wait()
        room = fault if isinstance(fault, int) else sys.maxsize
        with socket.create_connection((proxy.target.hostname or "", proxy.target.port or 0)) as server:
            server.sendall(request)
            # The server has the request even if the client receives no response.
            while piece := server.recv(min(CHUNK, max(room, 1))):
                self.request.sendall(piece[:room])
                room -= len(piece)
                if room <= 0:
                    return

    def read_request(self) -> bytes:
        """Read a complete request."""
        read = b""
        while b"\r\n\r\n" not in read:
            read += self.request.recv(CHUNK)
        head, _, body = read.partition(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
        while length and len(body) < int(length[1]):
            body += self.request.recv(CHUNK)
        return head + b"\r\n\r\n" + body


@contextmanager
def run_faulty_proxy(url: str, faults: Iterable[Fault]) -> Generator[str]:
    """Start a proxy and return its URL. Each connection takes the next fault: a limit of response bytes, a response to
    send instead, an event to wait for, or None. Later connections have no fault.
    """
    with FaultyProxy(url, faults) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_address[1]}"
        finally:
            proxy.shutdown()
            thread.join()
