"""Listening: one uvicorn that stops in the order that loses nothing: runs, then their readers, then the rest."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import uvicorn
from fastapi import FastAPI

from recto.errors import RectoError

# Streams are ended before it begins, so what is left are answers being written.
CLOSING_SECONDS = 2


def configure(api: FastAPI, host: str, port: int, proxies: str) -> uvicorn.Config:
    """How uvicorn is to serve. Only `proxies`, addresses and networks by commas, may say whom a request came from."""
    return uvicorn.Config(
        api,
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


def listen(api: FastAPI, host: str, port: int, announce: Callable[[str], None], proxies: str = "") -> None:
    """Serve until told to stop. `announce` is told the url once requests are answered, in a thread of its own."""
    config = configure(api, host, port, proxies)
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
        raise OSError(f"The server could not start on {host}:{port}. The lines above say why; name another --port.")


def _is_no_traceback(record: logging.LogRecord) -> bool:
    return "Traceback" not in record.getMessage() and "Application startup failed" not in record.getMessage()


def _have_stopped(_signal: int, _frame: FrameType | None) -> None:
    """There is nothing left to stop."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, api: FastAPI, announce: Callable[[str], None]) -> None:
        super().__init__(config)
        self._api = api
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started and not self.should_exit:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
            threading.Thread(target=self._announce, args=(url,), daemon=True).start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._api.state.stop()
        await super().shutdown(sockets=sockets)
