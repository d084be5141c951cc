"""Responses that the gateway relays as they arrive, and the headers that it forwards. Values stay byte for byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from recto.api.problems import sdk_problem
from recto.api.runs.streams import OpenStreams, run_until_disconnect, write
from recto.conversation.json import dump
from recto.errors import ModelError
from recto.models.wire_protocol import ProviderSdk
from recto.worker.gateway.relayed_exchange import RelayedExchange

UNREACHABLE, TIMED_OUT = 502, 504
CONNECTION = "connection"
# Headers of one connection.
HOP_BY_HOP = frozenset(
    {
        *(CONNECTION, "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "content-length", "upgrade", "http2-settings"),
    }
)
# Credentials, encodings and proxy headers are not for the provider.
NOT_TO_PROVIDERS = HOP_BY_HOP | frozenset(
    {
        *("authorization", "x-api-key", "api-key", "cookie", "host", "expect", "accept-encoding", "content-encoding"),
        *("origin", "referer", "forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "fastly-client-ip"),
    }
)
PROXIES_AND_BROWSERS = ("x-forwarded-", "x-original-", "cf-", "sec-")
# Set by this server, or unsafe for pages from another one.
NOT_TO_CALLERS = HOP_BY_HOP | {"date", "server", "set-cookie", "alt-svc", "strict-transport-security"}
FOR_BROWSERS = "access-control-"


class OpenCalls(OpenStreams):
    """Limits of concurrent requests through the gateway, in total and per user or key."""

    of_user = "You have {most} open requests through this gateway, which is the limit. Wait for one to end."
    of_server = "This gateway has {most} open requests, which is the limit. Try again in a moment."


class RelayedResponse(Response):
    """A response that sends a request to the provider and relays the result. `stack` is closed at the end."""

    def __init__(self, exchange: RelayedExchange, sdk: ProviderSdk, stack: ExitStack) -> None:
        # Skips Response.__init__: status and headers are unknown until the provider responds.
        self.status_code, self.body, self.background, self.raw_headers = 200, b"", None, []
        self._exchange = exchange
        self._sdk: ProviderSdk = sdk
        self._stack = stack
        self._problem: ModelError | None = None
        self._is_sent = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Relay the request. A client that disconnects also cancels the request to the provider.

        The last chunk is sent after the exchange is stored and released, so that the client may send its next request
        at once.
        """
        try:
            with self._stack:
                # Recorded as abandoned if anything ends it early.
                is_left = True
                try:
                    is_left = not await run_until_disconnect(receive, self._relay(scope, receive, send))
                except ModelError as error:
                    is_left, self._problem = False, error
                    raise
                finally:
                    await self._exchange.finish(is_left=is_left, problem=self._problem)
        finally:
            if self._is_sent:
                await write(send, {"type": "http.response.body", "body": b"", "more_body": False})

    async def _relay(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = self._exchange
        try:
            await exchange.open()
        except ModelError as error:
            self._problem = error
            status = TIMED_OUT if isinstance(error.__cause__, TimeoutError) else UNREACHABLE
            await sdk_problem(self._sdk, status, "upstream_failed", str(error))(scope, receive, send)
            return
        headers = headers_for_caller(exchange.headers)
        await write(send, {"type": "http.response.start", "status": exchange.status, "headers": headers})
        async with aclosing(exchange.pieces(self._error_event)) as pieces:
            async for piece in pieces:
                await write(send, {"type": "http.response.body", "body": piece, "more_body": True})
        self._is_sent = True

    def _error_event(self, error: ModelError) -> bytes:
        """Return the error as the last event of a stream."""
        return self._sdk.fault_event % dump(self._sdk.error(UNREACHABLE, "upstream_cut_off", str(error)))


def headers_for_provider(headers: Sequence[tuple[str, str]], credential: str | None) -> dict[str, str]:
    """Return the headers to forward, without those that contain this server's credential."""
    fields = {name.lower(): value for name, value in headers}
    excluded = NOT_TO_PROVIDERS | _connection_headers(
        ",".join([value for name, value in headers if name.lower() == CONNECTION])
    )
    return {
        name: value
        for name, value in fields.items()
        if not (name in excluded or name.startswith(PROXIES_AND_BROWSERS) or (credential and credential in value))
    }


def headers_for_caller(headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """Return the response headers to send back."""
    excluded = NOT_TO_CALLERS | _connection_headers(headers.get(CONNECTION.encode(), b"").decode("latin-1"))
    rows = [(name.decode("latin-1"), name, value) for name, value in headers.items()]
    return [(name, value) for text, name, value in rows if text not in excluded and not text.startswith(FOR_BROWSERS)]


def _connection_headers(connection: str) -> frozenset[str]:
    """Return the headers that the Connection header names."""
    return frozenset(name.strip().lower() for name in connection.split(","))
