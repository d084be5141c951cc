"""HTTP transport for MCP clients that sends through the guarded connector and bounds responses."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2

from recto.files.ports import WebSession
from recto.http.client import HttpConnection
from recto.tools.external.services import describe_failure

# Headers that this transport sets itself.
OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
REJECTION = "{host} answers with status {status}. Check the url, and the headers it wants"
# Statuses that count as problems. Other statuses are part of the protocol, such as that for an unknown session.
STATUSES = (401, 403, *range(500, 600))


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A guarded transport for an httpx client. A response has at most `most` bytes. `problem` is the last failure."""

    def __init__(self, web: WebSession, most: int) -> None:
        self._web = web
        self._most = most
        self.problem = ""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request. Its response body is read as a stream."""
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in OWN_HEADERS]
        try:
            answer = await self._web.request(request.method, str(request.url), dict(headers), await request.aread())
        except OSError as error:
            self.problem = describe_failure(self._web, request.url.host, error)
            raise httpx2.ConnectError(self.problem, request=request) from error
        self.problem = (
            REJECTION.format(host=request.url.host, status=answer.status) if answer.status in STATUSES else ""
        )
        if answer.header(b"content-encoding").strip().lower() not in ("", "identity"):
            # Reject compressed bodies, because a small one could become very large.
            answer.close()
            raise httpx2.ReadError("the answer is compressed, which was not asked for", request=request)
        is_stream = answer.header(b"content-type").partition(";")[0].strip().lower() == "text/event-stream"
        return httpx2.Response(
            status_code=answer.status,
            headers=list(answer.headers.items()),
            stream=_Body(answer, None if is_stream else self._most),
            request=request,
        )

    async def aclose(self) -> None:
        """Close the session with its client."""
        self._web.close()


class _Body(httpx2.AsyncByteStream):
    """A response body. Event streams have no size limit; their client bounds each event."""

    def __init__(self, answer: HttpConnection, most: int | None) -> None:
        self._answer = answer
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            while piece := await self._answer.read():
                size += len(piece)
                if self._most is not None and size > self._most:
                    raise httpx2.ReadError(f"the answer has more than {self._most:,} bytes")
                yield piece
        except OSError as error:
            raise httpx2.ReadError("the connection was lost") from error

    async def aclose(self) -> None:
        self._answer.close()
