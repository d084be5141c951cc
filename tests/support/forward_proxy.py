"""A real forward proxy (pproxy: HTTP and SOCKS5) in a process of its own, for tests of outbound connections.

Hosts below `.test` resolve to this machine inside the proxy only. A request that reaches them went through the proxy.
"""

import subprocess
import sys
import threading
from typing import Self

from recto.testing.process import free_port
from tests.waiting import wait_for

# pproxy takes uvloop if it can import it, and then finds no event loop.
PROGRAM = """
import asyncio, socket, sys
sys.modules["uvloop"] = None
look_up = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **named: look_up(
    "127.0.0.1" if str(host).endswith(".test") else host, *rest, **named
)
asyncio.set_event_loop(asyncio.new_event_loop())
from pproxy.server import main
main(["-v", "-l", sys.argv[1]])
"""


class ForwardProxy:
    """`connections` are the lines that the proxy prints, one per connection."""

    def __init__(self, credentials: str = "") -> None:
        self.port = free_port()
        self.connections = list[str]()
        self._listen = f"http+socks5://127.0.0.1:{self.port}" + (f"#{credentials}" if credentials else "")

    def url(self, credentials: str = "", scheme: str = "http") -> str:
        return f"{scheme}://{credentials + '@' if credentials else ''}127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            (sys.executable, "-u", "-c", PROGRAM, self._listen), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        wait_for(lambda: any("Serving on" in line for line in self.connections), "the proxy")
        self.connections.clear()
        return self

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.connections.append(line.decode())

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout
        self._process.stdout.close()
