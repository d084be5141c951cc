"""The answer of a provider to a request that was relayed: passed back as it comes, until the client is gone."""

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
    """Requests that are being relayed: so many at once in all and of one user or key."""

    of_user = "You have {most} requests under way through this gateway, which is the limit. Wait for one to end."
    of_server = "This gateway has {most} requests under way, which is the limit. Try again in a moment."


class RelayedAnswer(Response):
    """Sends a request on and its answer back. `held` is given up at the end."""

    def __init__(self, exchange: RelayedExchange, sdk: ProviderSdk, held: ExitStack) -> None:
        # Not the way of all responses: what it is, is known when the provider has answered.
        self.status_code, self.body, self.background, self.raw_headers = 200, b"", None, []
        self._exchange = exchange
        self._sdk: ProviderSdk = sdk
        self._held = held
        self._problem: ModelError | None = None
        self._is_sent = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Relay it. A client that leaves ends the request to the provider too.

        Who has heard the end of it may ask again at once: by then it is written down, and counts no more.
        """
        try:
            with self._held:
                await self._relay_and_finish(scope, receive, send)
        finally:
            if self._is_sent:
                await write(send, {"type": "http.response.body", "body": b"", "more_body": False})

    async def _relay_and_finish(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Whatever ends it early: it is over, and written down as such.
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
