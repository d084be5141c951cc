"""Runs asked for over HTTP, as fast as they are answered. One process, raw sockets; answers are read off the clock."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias, cast

Wire: TypeAlias = Literal["openai", "agui"]
# What Recto asks for; the others do not look.
TOKEN = "the-token-of-the-bench"
OK = b"HTTP/1.1 200"
# The last chunk. The line end before it closes the chunk before, so no text of an event looks like it.
END = b"\r\n0\r\n\r\n"
FIRST_TEXT: dict[Wire, bytes] = {"openai": b'"content":"w', "agui": b'"TEXT_MESSAGE_CONTENT"'}
# Beyond the time of a measurement: whoever is slower than this does not answer.
PATIENCE = 60.0
# Runs of one measurement, at most: all answers are kept until they are checked.
MOST = 10_000
QUESTION = "Say it."
COPY = "Something that was said before, in about as many words as people use for it. " * 4


class Unanswered(Exception):
    """A server did not answer as it should. The text says who and what came instead."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Who is asked, where, and how the answer is written."""

    name: str
    port: int
    path: str
    wire: Wire
    # Messages that stand before the question, as clients have them that send all they show.
    before: int = 0


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer as it came, and when: asked, first text, end."""

    asked_at: float
    first: float
    ended_at: float
    raw: bytes


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One measurement: runs a second, milliseconds, and what an answer weighs."""

    runs: int
    rate: float
    first: float
    end: float
    size: float
    events: float


def request(target: Target) -> bytes:
    """The bytes of one request; a run of Recto's and its peers' is of a thread of its own."""
    body = json.dumps(_chat() if target.wire == "openai" else _run()).encode()
    # Written once: the time that clients take for it is not the server's.
    body = body.replace(b'"messages": [', b'"messages": [' + _copies(target.before), 1)
    head = (
        f"POST {target.path} HTTP/1.1\r\nHost: 127.0.0.1:{target.port}\r\nAccept: text/event-stream\r\n"
        f"Authorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _chat() -> dict[str, object]:
    return {"model": "fake", "stream": True, "messages": [{"role": "user", "content": QUESTION}]}


@cache
def _copies(count: int) -> bytes:
    roles = ("user", "assistant")
    copies = [{"id": str(uuid.uuid4()), "role": roles[place % 2], "content": COPY} for place in range(count)]
    return b"".join(json.dumps(one).encode() + b", " for one in copies)


def _run() -> dict[str, object]:
    return {
        "threadId": str(uuid.uuid4()),
        "runId": str(uuid.uuid4()),
        "messages": [{"id": str(uuid.uuid4()), "role": "user", "content": QUESTION}],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": {},
    }


async def measure(target: Target, *, at_once: int, seconds: float, expected: str) -> Measured:
    """So many runs at once until the time is over, or there were enough. Every answer must hold the expected text."""
    connections = [await connect(target) for _ in range(at_once)]
    begin = time.perf_counter()
    async with asyncio.timeout(seconds + PATIENCE):
        tasks = [_ask_until(each, target, begin + seconds, MOST // at_once) for each in connections]
        done = await asyncio.gather(*tasks)
    replies = [reply for some in done for reply in some]
    took = max(reply.ended_at for reply in replies) - begin
    for connection in connections:
        connection.transport.abort()
    # The model's own answers are all the same bytes, so that reading each kind once reads them all.
    events = {raw: events_of(raw) for raw in {reply.raw for reply in replies}}
    _check(target, list(events.values()), expected)
    return Measured(
        runs=len(replies),
        rate=len(replies) / took,
        first=1000 * statistics.median(reply.first - reply.asked_at for reply in replies),
        end=1000 * statistics.median(reply.ended_at - reply.asked_at for reply in replies),
        size=statistics.mean(len(reply.raw) for reply in replies),
        events=statistics.mean(len(events[reply.raw]) for reply in replies),
    )


async def connect(target: Target) -> Connection:
    """A connection that stays open from one run to the next."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(target), "127.0.0.1", target.port)
    return connection


async def _ask_until(connection: Connection, target: Target, deadline: float, most: int) -> list[Reply]:
    replies = [await connection.ask(request(target))]
    while time.perf_counter() < deadline and len(replies) < most:
        replies.append(await connection.ask(request(target)))
    return replies


class Connection(asyncio.Protocol):
    """One connection, one run at a time."""

    transport: asyncio.Transport

    def __init__(self, target: Target) -> None:
        self._target = target
        self._first_text = FIRST_TEXT[target.wire]
        self._answer: asyncio.Future[Reply] | None = None
        self._buffer = bytearray()
        self._asked_at = self._first = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def ask(self, body: bytes) -> asyncio.Future[Reply]:
        """Send a request; the answer once it is whole."""
        self._answer = asyncio.get_running_loop().create_future()
        self._buffer = bytearray()
        self._first = 0.0
        self._asked_at = time.perf_counter()
        self.transport.write(body)
        return self._answer

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self._buffer += data
        if not self._first and self._first_text in self._buffer:
            self._first = now
        if self._buffer.endswith(END):
            reply = Reply(asked_at=self._asked_at, first=self._first or now, ended_at=now, raw=bytes(self._buffer))
            self._settle(reply)
        elif not self._buffer.startswith(OK[: len(self._buffer)]):
            self._settle(Unanswered(f"{self._target.name} answered {bytes(self._buffer[:300])!r}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle(
            Unanswered(f"{self._target.name} closed the connection ({exc}) after {bytes(self._buffer[-300:])!r}")
        )

    def _settle(self, outcome: Reply | Unanswered) -> None:
        if self._answer is None or self._answer.done():
            return
        if isinstance(outcome, Reply):
            self._answer.set_result(outcome)
        else:
            self._answer.set_exception(outcome)


def events_of(raw: bytes) -> list[bytes]:
    """The data of each event of an answer."""
    return [line[5:].strip() for line in _body(raw).splitlines() if line.startswith(b"data:")]


def _body(raw: bytes) -> bytes:
    """The body without its head and its chunk sizes."""
    rest = raw.partition(b"\r\n\r\n")[2]
    pieces = list[bytes]()
    place = 0
    while (end := rest.find(b"\r\n", place)) >= 0:
        size = int(rest[place:end], 16)
        pieces.append(rest[end + 2 : end + 2 + size])
        place = end + 4 + size
    return b"".join(pieces)


def _check(target: Target, answers: Sequence[Sequence[bytes]], expected: str) -> None:
    read = TEXT[target.wire]
    for events in answers:
        text = "".join(read(event) for event in events)
        # White space at the end of a reply says nothing, and may be left out.
        if text.rstrip() != expected.rstrip():
            last = events[-1][:300] if events else b"nothing"
            raise Unanswered(f"{target.name} said {len(text)} characters, not {len(expected)}; it ended with {last!r}")


def _chat_text(event: bytes) -> str:
    if event == b"[DONE]":
        return ""
    choices = json.loads(event)["choices"]
    return choices[0]["delta"].get("content") or "" if choices else ""


def agui_text(event: bytes) -> str:
    """The text that an AG-UI event adds."""
    event_row = json.loads(event)
    return event_row["delta"] if event_row["type"] == "TEXT_MESSAGE_CONTENT" else ""


TEXT: dict[Wire, Callable[[bytes], str]] = {"openai": _chat_text, "agui": agui_text}
