"""Listening: one uvicorn that stops in the order that loses nothing: runs, then their readers, then the rest."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import FrameType

import uvicorn

from recto.api.connections import limited
from recto.api.router import Api
from recto.config.access_settings import ConnectionLimits
from recto.errors import RectoError

LOGGER = logging.getLogger("recto.connections")
# Streams are ended before it begins, so what is left are answers being written.
CLOSING_SECONDS = 2
# What the system holds of an answer that is not on its way yet, beside what it needs to send.
UNSENT_BYTES = 131_072
# Files that are not connections of clients: the database, models, uploads, children. Half of all, where there are few.
OTHER_FILES = 1_024
# Lines of uvicorn that anybody can have written as often as they like; we have our own of these things.
REPEATED = (
    *("Invalid HTTP request", "Unsupported upgrade request", "No supported WebSocket library"),
    "ASGI callable returned without completing response",
)


def configure(api: Api, host: str, port: int, limits: ConnectionLimits) -> uvicorn.Config:
    """How uvicorn is to serve. Only proxies that are named may say whom a request came from."""
    return uvicorn.Config(
        api,
        host=host,
        port=port,
        http=limited(limits),
        # Nobody here speaks it, and a connection that did would have no limits.
        ws="none",
        timeout_keep_alive=limits.keep_alive_seconds,
        # Its lines go where ours go, in the same form.
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=CLOSING_SECONDS,
        server_header=False,
        date_header=False,
        proxy_headers=bool(limits.proxies),
        forwarded_allow_ips=limits.proxies,
    )


def listen(
    api: Api,
    host: str,
    port: int,
    announce: Callable[[str], None],
    limits: ConnectionLimits | None = None,
    *,
    stop: threading.Event | None = None,
) -> None:
    """Serve until told to stop. `announce` is told the url once requests are answered, in a thread of its own.

    A program that has other things to do listens in a thread, and says when to `stop`: signals are its own.
    """
    config = configure(api, host, port, with_files_for(limits or ConnectionLimits()))
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    server = _Server(config, api, announce, stop)
    if stop is None:
        # Once it has stopped, uvicorn raises the signal that stopped it again: by then all is done, and done well.
        signal.signal(signal.SIGTERM, _have_stopped)
    # Where it cannot start, it has said why and would leave with a code of its own.
    with suppress(KeyboardInterrupt, SystemExit):
        server.run()
    failure: Exception | None = getattr(api.state, "failure", None)
    if isinstance(failure, (RectoError, OSError)):
        raise failure
    if failure:
        raise OSError(f"The server could not start: {type(failure).__name__}: {failure}") from failure
    if not server.started:
        raise OSError(f"The server could not start on {host}:{port}. The lines above say why; name another --port.")


def with_files_for(limits: ConnectionLimits) -> ConnectionLimits:
    """As many connections as this process may open files for: without one nobody could come in, nor any file be read.

    What the system allows and has not given us yet is taken.
    """
    try:
        import resource  # not on Windows, which has no such limit
    except ImportError:
        return limits
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + OTHER_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most == wanted:
        return limits
    room = most - min(OTHER_FILES, most // 2)
    LOGGER.warning("this process may open %d files, so there are %d connections at most", most, room)
    return replace(limits, connections=room)


def _is_news(record: logging.LogRecord) -> bool:
    """What keeps us from starting is told in one line; the way through the code there helps nobody."""
    line = record.getMessage()
    return not ("Traceback" in line or "Application startup failed" in line or line.startswith(REPEATED))


def _have_stopped(_signal: int, _frame: FrameType | None) -> None:
    """There is nothing left to stop."""


def _hold_little(listening: socket.socket) -> None:
    """All connections inherit it. Windows has no such limit."""
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)


class _Server(uvicorn.Server):
    def __init__(
        self, config: uvicorn.Config, api: Api, announce: Callable[[str], None], stop: threading.Event | None
    ) -> None:
        super().__init__(config)
        self._api = api
        self._announce = announce
        self._stop = stop

    async def on_tick(self, counter: int) -> bool:
        return (self._stop is not None and self._stop.is_set()) or await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started and not self.should_exit:
            for one in (one for server in self.servers for one in server.sockets):
                _hold_little(one)
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
            threading.Thread(target=self._announce, args=(url,), daemon=True).start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._api.state.stop()
        await super().shutdown(sockets=sockets)
