"""The uvicorn server. At shutdown it first stops runs, then event streams, then connections."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import uvicorn

from recto.api.connections import make_connection_class
from recto.api.router import Api
from recto.config.access_settings import ConnectionLimits
from recto.errors import RectoError

LOGGER = logging.getLogger("recto.connections")
# Time for responses in progress at shutdown. Event streams have ended by then.
CLOSING_SECONDS = 2
# Maximum bytes of a response in the socket buffer, besides those in flight.
UNSENT_BYTES = 131_072
# Open files to reserve for the database, models, uploads and child processes: at most half of the system's limit.
OTHER_FILES = 1_024
# Beginnings of uvicorn log lines to drop: any client can trigger them without limit, and Recto logs the events.
NOISE = (
    *("Invalid HTTP request", "Unsupported upgrade request", "No supported WebSocket library"),
    "ASGI callable returned without completing response",
)


def configure(api: Api, host: str, port: int, limits: ConnectionLimits) -> uvicorn.Config:
    """Return the uvicorn configuration. Only the configured proxies may set the client address."""
    return uvicorn.Config(
        api,
        host=host,
        port=port,
        http=make_connection_class(limits),
        # WebSocket connections would bypass the limits.
        ws="none",
        timeout_keep_alive=limits.keep_alive_seconds,
        # Use Recto's logging.
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
    """Serve until stopped. Calls `announce` with the url, in a new thread, once the server accepts requests.

    With `stop`, serve until the event is set, and leave signals to the caller.
    """
    config = configure(api, host, port, fit_open_files(limits or ConnectionLimits()))
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    server = _Server(config, api, announce, stop)
    if stop is None:
        # Ignore SIGTERM after the shutdown, because uvicorn raises the signal again.
        signal.signal(signal.SIGTERM, lambda _signal, _frame: None)
    # Suppress uvicorn's exit with its own code. It has logged the reason.
    with suppress(KeyboardInterrupt, SystemExit):
        server.run()
    failure: Exception | None = getattr(api.state, "failure", None)
    if isinstance(failure, (RectoError, OSError)):
        raise failure
    if failure:
        raise OSError(f"The server could not start: {type(failure).__name__}: {failure}") from failure
    if not server.started:
        raise OSError(
            f"The server could not start on {host}:{port}. See the log lines above, or choose another --port."
        )


def fit_open_files(limits: ConnectionLimits) -> ConnectionLimits:
    """Return the limits, with at most as many connections as this process may open files for them.

    Raises the process's soft limit as far as the system allows.
    """
    try:
        import resource  # not on Windows, which has no such limit
    except ImportError:
        return limits
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = limits.connections + OTHER_FILES
    most = descriptors if hard == resource.RLIM_INFINITY else min(descriptors, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most == descriptors:
        return limits
    room = most - min(OTHER_FILES, most // 2)
    LOGGER.warning("this process may open %d files, so the server accepts at most %d connections", most, room)
    return replace(limits, connections=room)


def _is_news(record: logging.LogRecord) -> bool:
    """Return False for NOISE, and for tracebacks of startup failures, which are reported in one line."""
    line = record.getMessage()
    return not ("Traceback" in line or "Application startup failed" in line or line.startswith(NOISE))


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
                # Limit unsent bytes. All connections inherit this option, which Windows lacks.
                if hasattr(socket, "TCP_NOTSENT_LOWAT"):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
            threading.Thread(target=self._announce, args=(url,), daemon=True).start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._api.state.stop()
        await super().shutdown(sockets=sockets)
