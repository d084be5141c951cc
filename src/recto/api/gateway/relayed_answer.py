"""Responses of the gateway, relayed as they arrive."""

from __future__ import annotations

from contextlib import ExitStack, aclosing
from functools import partial

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from recto.api.access.sdk_refusals import sdk_refusal, sdk_stream_fault
from recto.api.gateway.passed_headers import headers_for_caller
from recto.api.runs.streams import OpenStreams, until_left, write
from recto.errors import ModelError
from recto.models.wire_protocol import ProviderSdk
from recto.worker.gateway.relayed_exchange import RelayedExchange

UNREACHABLE, TIMED_OUT = 502, 504


class OpenCalls(OpenStreams):
    """Limits of concurrent requests through the gateway, in total and per user or key."""

    of_user = "You have {most} requests under way through this gateway, which is the limit. Wait for one to end."
    of_server = "This gateway has {most} requests under way, which is the limit. Try again in a moment."


class RelayedAnswer(Response):
    """A response that sends a request to the provider and relays the result. `held` is released at the end."""

    def __init__(self, exchange: RelayedExchange, sdk: ProviderSdk, held: ExitStack) -> None:
        # Skips Response.__init__: status and headers are unknown until the provider responds.
        self.status_code, self.body, self.background, self.raw_headers = 200, b"", None, []
        self._exchange = exchange
        self._sdk: ProviderSdk = sdk
        self._held = held
        self._problem: ModelError | None = None
        self._is_sent = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Relay the request. A client that disconnects also cancels the request to the provider.

        The last chunk is sent after the exchange is stored and released, so that the client may send its next request
        at once.
        """
        try:
            with self._held:
                await self._relay_and_finish(scope, receive, send)
        finally:
            if self._is_sent:
                await write(send, {"type": "http.response.body", "body": b"", "more_body": False})

    async def _relay_and_finish(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Recorded as abandoned if anything ends it early.
        is_left = True
        try:
            is_left = not await until_left(receive, self._relay(scope, receive, send))
        except ModelError as error:
            is_left, self._problem = False, error
            raise
        finally:
            await self._exchange.finish(is_left=is_left, problem=self._problem)

    async def _relay(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = self._exchange
        try:
            await exchange.open()
        except ModelError as error:
            self._problem = error
            status = TIMED_OUT if isinstance(error.__cause__, TimeoutError) else UNREACHABLE
            await sdk_refusal(self._sdk, status, "upstream_failed", str(error))(scope, receive, send)
            return
        passed = headers_for_caller(exchange.headers)
        await write(send, {"type": "http.response.start", "status": exchange.status, "headers": passed})
        tell = partial(_told, self._sdk)
        async with aclosing(exchange.pieces(tell)) as pieces:
            async for piece in pieces:
                await write(send, {"type": "http.response.body", "body": piece, "more_body": True})
        self._is_sent = True


def _told(sdk: ProviderSdk, error: ModelError) -> bytes:
    return sdk_stream_fault(sdk, UNREACHABLE, "upstream_cut_off", str(error))
