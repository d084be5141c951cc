"""Requests until they are answered, and events of a run to its end, however often a connection is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Container, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import NoReturn
from urllib.parse import urljoin

from recto.client.server_address import ServerAddress
from recto.client.transports import ClientRequest, ServerReply, Transport
from recto.conversation.json import Json, Object, dump, load_object
from recto.errors import ClientError, RequestRefused, ServerUnreachable, WireError

API = "/api/v1/agent"
RUNS, THREADS, UPLOADS = f"{API}/runs", f"{API}/threads", f"{API}/attachments"
JSON, STREAM = "application/json", "text/event-stream"
BLANK = b"\n\n"
ENDS = ("RUN_FINISHED", "RUN_ERROR")
# Whoever answers so may take the same a little later: one with too much to do, or what stands before one that starts.
LATER = (429, 502, 503, 504)
REDIRECTS = range(HTTPStatus.MULTIPLE_CHOICES, HTTPStatus.BAD_REQUEST)
NO_RECTO = "it is no answer of a Recto server. Name the server's address in RECTO_URL"
EARLY = "the stream ended before the run did"


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a client waits, in seconds.

    `silence` is how long nothing may come over a connection, longer than a server is ever silent. A lost one is tried
    again `tries` times in a row, after pauses that double from `pause` up to `longest_pause`. A server that asks to
    wait for more than `longest_wait` is not waited for. One that never answered is tried once.
    """

    silence: float = 60.0
    tries: int = 20
    pause: float = 0.1
    longest_pause: float = 2.0
    longest_wait: float = 60.0


@dataclass(frozen=True, kw_only=True)
class SentEvent:
    """An event as it came: its number and its JSON text."""

    number: int
    body: bytes

    @property
    def event(self) -> Mapping[str, Json]:
        """What it says."""
        return load_object(self.body) or {}


@dataclass(kw_only=True)
class RunFollowed:
    """A run and how far it was read: what to ask for next, by which number it goes on, how often in vain."""

    id: str
    asking: ClientRequest
    number: int = 0
    tries: int = 0
    is_over: bool = False
    headers: Mapping[str, str] = field(default_factory=lambda: {"accept": STREAM})

    def is_known(self) -> None:
        """The server has it: from now on it is read, never sent again."""
        after = {"last-event-id": str(self.number)} if self.number else {}
        path = f"{RUNS}/{self.id}/events?protocolVersion=1.0"
        self.asking = ClientRequest(path=path, headers={**self.headers, **after})

    def heard(self, sent: SentEvent) -> Object:
        """The next event of it."""
        self.number, self.tries = sent.number, 0
        event = sent.event
        self.is_over = event.get("type") in ENDS
        self.is_known()
        return event


class Exchange:
    """What a client and a server say to each other."""

    def __init__(self, transport: Transport, server: ServerAddress, patience: Patience) -> None:
        self.transport = transport
        self._server = server
        self._patience = patience
        self._has_answered = False

    async def ask(self, request: ClientRequest, later: Container[int] = LATER) -> Object:
        """The answer to a request, an object. A request that is sent twice must do no harm.

        `later` are the statuses of refusals after which it may be taken.
        """
        tries = 0
        while True:
            try:
                async with self._reply(request, later) as reply:
                    return load_object(await _whole(reply)) or _no_recto(request)
            except (ServerUnreachable, RequestRefused) as error:
                await self._wait(error, tries)
                tries += 1

    def start(self, run_input: Mapping[str, Json]) -> AsyncGenerator[Object]:
        """Start a run, and its events to the last. Sent twice under one runId it is still one run."""
        headers = {"content-type": JSON, "accept": STREAM}
        request = ClientRequest(method="POST", path=RUNS, body=dump(run_input), headers=headers)
        return self.follow(RunFollowed(id=str(run_input["runId"]), asking=request))

    async def follow(self, run: RunFollowed) -> AsyncGenerator[Object]:
        """Each event of a run once, in order, to the last."""
        while not run.is_over:
            async with aclosing(self._stretch(run)) as events:
                async for event in events:
                    yield event

    async def _stretch(self, run: RunFollowed) -> AsyncGenerator[Object]:
        """What comes over one connection, however it ends."""
        try:
            async with self._reply(run.asking) as reply:
                run.is_known()
                async for sent in events_in(reply):
                    yield run.heard(sent)
            if not run.is_over:
                raise ServerUnreachable(url=self._server.url, problem=EARLY)
        except (ServerUnreachable, RequestRefused) as error:
            if not run.is_over:
                await self._wait(error, run.tries)
                run.tries += 1

    @asynccontextmanager
    async def _reply(self, request: ClientRequest, later: Container[int] = LATER) -> AsyncGenerator[ServerReply]:
        token = self._server.token
        known = {"authorization": f"Bearer {token}"} if token else {}
        headers = {"accept-encoding": "identity", **known, **request.headers}
        async with self.transport.send(replace(request, headers=headers)) as reply:
            self._has_answered = True
            if location := reply.headers.get("location") if reply.status in REDIRECTS else None:
                raise _redirect(reply.status, urljoin(self._server.url, location), request)
            if reply.status >= HTTPStatus.MULTIPLE_CHOICES:
                raise _refusal(reply, await _whole(reply), later)
            if headers.get("accept") == STREAM and not reply.headers.get("content-type", "").startswith(STREAM):
                _no_recto(request)
            yield reply

    async def _wait(self, error: ClientError, tries: int) -> None:
        """Wait until it may be tried again; where that is of no use, raise what went wrong."""
        patience = self._patience
        asked = error.retry_after if isinstance(error, RequestRefused) else 0.0
        if tries >= patience.tries or not self._has_answered or asked is None or asked > patience.longest_wait:
            raise error
        await self.transport.sleep(asked or min(patience.pause * 2**tries, patience.longest_pause))


async def events_in(reply: ServerReply) -> AsyncGenerator[SentEvent]:
    """The events of a stream. One without the blank line behind it did not come whole."""
    rest = bytearray()
    while piece := await reply.read():
        # What came before is not looked at again: a large event comes in many pieces.
        looked_at = max(len(rest) - 1, 0)
        rest += piece
        end = rest.rfind(BLANK, looked_at)
        if end < 0:
            continue
        whole = bytes(rest[:end])
        del rest[: end + len(BLANK)]
        for sent in map(event_in, whole.split(BLANK)):
            if sent is not None:
                yield sent


def event_in(block: bytes) -> SentEvent | None:
    """The event of the lines up to a blank one; comments are heartbeats."""
    fields = {name: value for name, _, value in [line.partition(b": ") for line in block.split(b"\n")]}
    return SentEvent(number=int(fields.get(b"id", b"0")), body=fields[b"data"]) if b"data" in fields else None


async def _whole(reply: ServerReply) -> bytes:
    pieces: list[bytes] = []
    while piece := await reply.read():
        pieces.append(piece)
    return b"".join(pieces)


def _refusal(reply: ServerReply, body: bytes, later: Container[int]) -> RequestRefused:
    problem = load_object(body) or {}
    # What stands before a server has statuses and words of its own.
    detail = str(problem.get("detail") or "the answer gives no reason")
    given = reply.headers.get("retry-after", "")
    seconds = float(given) if given.isdigit() else 0.0
    return RequestRefused(status=reply.status, detail=detail, retry_after=seconds if reply.status in later else None)


def _redirect(status: int, to: str, request: ClientRequest) -> RequestRefused:
    use = to.removesuffix(request.path) if to.endswith(request.path) else "the address of the server itself"
    return RequestRefused(status=status, detail=f"the server redirects to {to}. Name {use} in RECTO_URL")


def _no_recto(request: ClientRequest) -> NoReturn:
    raise WireError(where=f"{request.method} {request.path}", problem=NO_RECTO)
