"""Requests with retries, run event streams that survive lost connections, and file uploads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Container, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from os import PathLike
from pathlib import Path
from typing import NoReturn, TypeAlias
from urllib.parse import urlencode, urljoin

from recto.client.server_address import ServerAddress
from recto.client.transports import ClientRequest, ServerReply, Transport
from recto.conversation.json import Json, Object, dump, load_object, objects
from recto.errors import ClientError, FileRefused, RequestRefused, ServerUnreachable, WireError
from recto.ids import new_id

API = "/api/v1/agent"
RUNS, THREADS, UPLOADS = f"{API}/runs", f"{API}/threads", f"{API}/attachments"
JSON, STREAM = "application/json", "text/event-stream"
BLANK = b"\n\n"
ENDS = ("RUN_FINISHED", "RUN_ERROR")
# Statuses worth a retry: an overloaded server, or a proxy in front of one that is starting.
RETRY_STATUSES = (429, 502, 503, 504)
REDIRECTS = range(HTTPStatus.MULTIPLE_CHOICES, HTTPStatus.BAD_REQUEST)
NOT_RECTO = "it is no answer of a Recto server. Name the server's address in RECTO_URL"
EARLY_END = "the stream ended before the run did"
# A path, or a name with its bytes.
FileToSend: TypeAlias = str | PathLike[str] | tuple[str, bytes]


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Timeouts and retries of a client, in seconds.

    A connection that stays silent for `silence` is lost; servers send heartbeats more often. The client retries up to
    `tries` times in a row, after pauses that double from `pause` to `longest_pause`. It fails if the server asks for a
    wait longer than `longest_wait`, or has never answered.
    """

    silence: float = 60.0
    tries: int = 20
    pause: float = 0.1
    longest_pause: float = 2.0
    longest_wait: float = 60.0


@dataclass(frozen=True, kw_only=True)
class ReceivedEvent:
    """A received event: its number and JSON text."""

    number: int
    body: bytes

    @property
    def event(self) -> Mapping[str, Json]:
        """Decoded JSON of the event."""
        return load_object(self.body) or {}


@dataclass(kw_only=True)
class RunCursor:
    """Read position in a run: the next request, the last event number and the failed attempts since."""

    id: str
    request: ClientRequest
    number: int = 0
    tries: int = 0
    is_over: bool = False
    headers: Mapping[str, str] = field(default_factory=lambda: {"accept": STREAM})

    def request_rest(self) -> None:
        """Resume from the last event instead of sending the run again."""
        after = {"last-event-id": str(self.number)} if self.number else {}
        path = f"{RUNS}/{self.id}/events?protocolVersion=1.0"
        self.request = ClientRequest(path=path, headers={**self.headers, **after})

    def record(self, received: ReceivedEvent) -> Object:
        """Record the next event and return it."""
        self.number, self.tries = received.number, 0
        event = received.event
        self.is_over = event.get("type") in ENDS
        self.request_rest()
        return event


class Exchange:
    """Requests and event streams of one server."""

    def __init__(self, transport: Transport, server: ServerAddress, patience: Patience) -> None:
        self.transport = transport
        self._server = server
        self._patience = patience
        self._has_answered = False

    async def ask(self, request: ClientRequest, retry_statuses: Container[int] = RETRY_STATUSES) -> Object:
        """Send a request and return the JSON object of the answer. Retries may send the request twice.

        Rejections with a status in `retry_statuses` are retried.
        """
        tries = 0
        while True:
            try:
                async with self._reply(request, retry_statuses) as reply:
                    return load_object(await _read_all(reply)) or _reject_answer(request)
            except (ServerUnreachable, RequestRefused) as error:
                await self._wait(error, tries)
                tries += 1

    def start(self, run_input: Mapping[str, Json]) -> AsyncGenerator[Object]:
        """Start a run and yield its events. Two requests with the same runId start one run."""
        headers = {"content-type": JSON, "accept": STREAM}
        request = ClientRequest(method="POST", path=RUNS, body=dump(run_input), headers=headers)
        return self.follow(RunCursor(id=str(run_input["runId"]), request=request))

    async def follow(self, run: RunCursor) -> AsyncGenerator[Object]:
        """Yield each event of a run once, in order."""
        while not run.is_over:
            try:
                async with self._reply(run.request) as reply:
                    run.request_rest()
                    async for received in parse_events(reply):
                        yield run.record(received)
                if not run.is_over:
                    raise ServerUnreachable(url=self._server.url, problem=EARLY_END)
            except (ServerUnreachable, RequestRefused) as error:
                if not run.is_over:
                    await self._wait(error, run.tries)
                    run.tries += 1

    async def upload(self, files: Sequence[FileToSend], agent: str | None) -> list[Object]:
        """Upload files (P9) and return their message parts. Raise FileRefused if the server rejects one."""
        boundary, parts = new_id(), list[bytes]()
        for file in files:
            name, data = file if isinstance(file, tuple) else (Path(file).name, Path(file).read_bytes())
            # Escape quotes and line breaks as browsers do.
            file_name = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
            head = f'--{boundary}\r\ncontent-disposition: form-data; name="file"; filename="{file_name}"\r\n\r\n'
            parts += [head.encode(), data, b"\r\n"]
        body = b"".join([*parts, f"--{boundary}--\r\n".encode()])
        query = f"?{urlencode({'agent': agent})}" if agent else ""
        headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
        answer = await self.ask(ClientRequest(method="POST", path=UPLOADS + query, body=body, headers=headers))
        rows = [row for _, row in objects(answer.get("attachments"), "attachments")]
        if rejected := [row for row in rows if "url" not in row]:
            why = "; ".join(f"{row.get('name')}: {row.get('error')}" for row in rejected)
            raise FileRefused(why, code=str(rejected[0].get("code")))
        return [{"type": row["type"], "source": {"type": "url", "value": row["url"]}} for row in rows]

    @asynccontextmanager
    async def _reply(
        self, request: ClientRequest, retry_statuses: Container[int] = RETRY_STATUSES
    ) -> AsyncGenerator[ServerReply]:
        token = self._server.token
        auth = {"authorization": f"Bearer {token}"} if token else {}
        headers = {"accept-encoding": "identity", **auth, **request.headers}
        async with self.transport.send(replace(request, headers=headers)) as reply:
            self._has_answered = True
            if location := reply.headers.get("location") if reply.status in REDIRECTS else None:
                to = urljoin(self._server.url, location)
                use = to.removesuffix(request.path) if to.endswith(request.path) else "the address of the server itself"
                raise RequestRefused(
                    status=reply.status, detail=f"the server redirects to {to}. Name {use} in RECTO_URL"
                )
            if reply.status >= HTTPStatus.MULTIPLE_CHOICES:
                problem = load_object(await _read_all(reply)) or {}
                # Proxies answer with their own statuses and texts.
                detail = str(problem.get("detail") or "the answer gives no reason")
                retry_after = reply.headers.get("retry-after", "")
                seconds = float(retry_after) if retry_after.isdigit() else 0.0
                raise RequestRefused(
                    status=reply.status, detail=detail, retry_after=seconds if reply.status in retry_statuses else None
                )
            if headers.get("accept") == STREAM and not reply.headers.get("content-type", "").startswith(STREAM):
                _reject_answer(request)
            yield reply

    async def _wait(self, error: ClientError, tries: int) -> None:
        """Wait before the next attempt; raise `error` if a retry is pointless."""
        patience = self._patience
        delay = error.retry_after if isinstance(error, RequestRefused) else 0.0
        if tries >= patience.tries or not self._has_answered or delay is None or delay > patience.longest_wait:
            raise error
        await self.transport.sleep(delay or min(patience.pause * 2**tries, patience.longest_pause))


async def parse_events(reply: ServerReply) -> AsyncGenerator[ReceivedEvent]:
    """Yield the complete events of a stream; an event ends with a blank line."""
    rest = bytearray()
    while piece := await reply.read():
        # Search only the new bytes: a large event arrives in many pieces.
        start = max(len(rest) - 1, 0)
        rest += piece
        end = rest.rfind(BLANK, start)
        if end < 0:
            continue
        blocks = bytes(rest[:end])
        del rest[: end + len(BLANK)]
        for received in map(parse_event, blocks.split(BLANK)):
            if received is not None:
                yield received


def parse_event(block: bytes) -> ReceivedEvent | None:
    """Return the event of a block of lines; None for comments, which are heartbeats."""
    fields = {name: value for name, _, value in [line.partition(b": ") for line in block.split(b"\n")]}
    return ReceivedEvent(number=int(fields.get(b"id", b"0")), body=fields[b"data"]) if b"data" in fields else None


async def _read_all(reply: ServerReply) -> bytes:
    pieces: list[bytes] = []
    while piece := await reply.read():
        pieces.append(piece)
    return b"".join(pieces)


def _reject_answer(request: ClientRequest) -> NoReturn:
    raise WireError(where=f"{request.method} {request.path}", problem=NOT_RECTO)
