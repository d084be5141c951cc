"""Listening: one uvicorn that stops in the order that loses nothing: runs, then their readers, then the rest."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import cast

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from recto.errors import RectoError

# Streams are ended before it begins, so what is left are answers being written.
CLOSING_SECONDS = 2
# What the system holds of an answer that is not on its way yet, beside what it needs to send.
UNSENT_BYTES = 131_072
LOGGER = logging.getLogger("recto.api")


class ListenConfig(uvicorn.Config):
    """How uvicorn is to serve, and for how long a client may read nothing of what it was sent."""

    stall_seconds: float


def configure(api: FastAPI, host: str, port: int, proxies: str = "", stall_seconds: float = 60.0) -> ListenConfig:
    """How to serve. Only `proxies`, addresses and networks by commas, may say whom a request came from."""
    config = ListenConfig(
        api,
        http=_Connection,
        host=host,
        port=port,
        # Its lines go where ours go, in the same form.
        log_config=None,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=CLOSING_SECONDS,
        server_header=False,
        date_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
    )
    config.stall_seconds = stall_seconds
    return config


def listen(api: FastAPI, config: ListenConfig, announce: Callable[[str], None]) -> None:
    """Serve until told to stop. `announce` is told the url once requests are answered, in a thread of its own."""
    # What keeps us from starting is told in one line; the way through the code there helps nobody.
    logging.getLogger("uvicorn.error").addFilter(_is_no_traceback)
    server = _Server(config, api, announce)
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
        where = f"{config.host}:{config.port}"
        raise OSError(f"The server could not start on {where}. The lines above say why; name another --port.")


def _is_no_traceback(record: logging.LogRecord) -> bool:
    return "Traceback" not in record.getMessage() and "Application startup failed" not in record.getMessage()


def _have_stopped(_signal: int, _frame: FrameType | None) -> None:
    """There is nothing left to stop."""


class _Connection(HttpToolsProtocol):
    """A connection that is ended once its client has taken nothing of what waits for it for some time.

    Its streams may be read on from where they were; a close would wait for that client for ever.
    """

    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        # Whatever the client has not taken is waited for before more is written.
        transport.set_write_buffer_limits(high=0)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _watch(self, waiting: int) -> None:
        seconds = cast("ListenConfig", self.config).stall_seconds
        self._stalled = self.loop.call_later(seconds, self._look_again, waiting)

    def _look_again(self, waiting: int) -> None:
        left = self.transport.get_write_buffer_size()
        if left < waiting:
            self._watch(left)
            return
        LOGGER.info("a client at %s took nothing for so long that its connection was ended", self.client)
        self.transport.abort()

    def _forget(self) -> None:
        if self._stalled:
            self._stalled.cancel()
            self._stalled = None


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, api: FastAPI, announce: Callable[[str], None]) -> None:
        super().__init__(config)
        self._api = api
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started and not self.should_exit:
            if hasattr(socket, "TCP_NOTSENT_LOWAT"):
                for one in (one for server in self.servers for one in server.sockets):
                    # All connections inherit it.
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
            threading.Thread(target=self._announce, args=(url,), daemon=True).start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._api.state.stop()
        await super().shutdown(sockets=sockets)
