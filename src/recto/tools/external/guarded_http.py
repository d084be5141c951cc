"""HTTP transport for MCP clients that sends through the guarded connector and bounds answers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import httpx2
from yarl import URL

from recto.files.ports import WebSession

# Headers that this transport sets itself.
OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
REFUSED = "{host} answers with status {status}. Check the url, and the headers it wants"
# Other statuses are part of the protocol, such as an unknown session.
STATUSES = (401, 403, *range(500, 600))
NOT_PUBLIC = "{host} is at an address that is not public. If it is meant to be, say internal: true"


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests of an httpx client through a guarded session; answers have at most `most` bytes.

    `problem` describes the newest failure, if any.
    """

    def __init__(self, web: WebSession, most: int) -> None:
        self._web = web
        self._most = most
        self.problem = ""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request. Its response body is read as a stream."""
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in OWN_HEADERS]
        try:
            answer = await self._web.session.request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=headers,
                data=await request.aread() or None,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError) as error:
            self.problem = unreached(self._web, request.url.host, error)
            raise httpx2.ConnectError(self.problem, request=request) from error
        self.problem = REFUSED.format(host=request.url.host, status=answer.status) if answer.status in STATUSES else ""
        if answer.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            # A small compressed body could become very large.
            answer.close()
            raise httpx2.ReadError("the answer is compressed, which was not asked for", request=request)
        is_stream = answer.content_type == "text/event-stream"
        return httpx2.Response(
            status_code=answer.status,
            headers=[(name, value) for name, value in answer.headers.items()],
            stream=_Body(answer, None if is_stream else self._most),
            request=request,
        )

    async def aclose(self) -> None:
        """Close the session with its client."""
        await self._web.session.close()


class _Body(httpx2.AsyncByteStream):
    """A response body. Event streams have no size limit; their client bounds each event."""

    def __init__(self, answer: aiohttp.ClientResponse, most: int | None) -> None:
        self._answer = answer
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            while piece := await self._answer.content.readany():
                size += len(piece)
                if self._most is not None and size > self._most:
                    raise httpx2.ReadError(f"the answer has more than {self._most:,} bytes")
                yield piece
        except (aiohttp.ClientError, OSError) as error:
            raise httpx2.ReadError("the connection was lost") from error

    async def aclose(self) -> None:
        self._answer.close()


def unreached(web: WebSession, host: str, error: Exception) -> str:
    """Return why a host was not reached, without revealing more than its name."""
    if web.has_refused:
        return NOT_PUBLIC.format(host=host)
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"the certificate of {host} is not valid"
        case TimeoutError():
            return f"{host} did not answer in time"
        case _:
            return f"{host} cannot be reached"
