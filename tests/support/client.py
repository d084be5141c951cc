"""A plain HTTP client for tests: starts runs, reads events, resumes after a lost connection."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from urllib.parse import urlsplit

from recto.client.exchange import RUNS, ReceivedEvent, parse_event
from recto.conversation.events import ends_run
from recto.conversation.json import Json, dump, load_object
from recto.ids import new_id
from recto.testing.process import TOKEN
from tests.support.stream_recorder import keep, kept_folder

READ_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class HttpReply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Mapping[str, Json]:
        return load_object(self.body) or {}


def ask(words: str, *, thread: str = "", run: str = "", **rest: Json) -> dict[str, Json]:
    """Return a RunAgentInput with one user message."""
    message = {"id": new_id(), "role": "user", "content": words}
    ids = {"threadId": thread or new_id(), "runId": run or new_id()}
    return {**ids, "messages": [message], "protocolVersion": "1.0", **rest}


def request(
    url: str, method: str, path: str, body: object = None, *, token: str | None = TOKEN, **headers: str
) -> HttpReply:
    """Send one request. Write header names with `_` for `-`. Without a token the request is anonymous."""
    connection = _connect(url)
    try:
        header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else dump(body) if body is not None else None
        connection.request(method, path, data, {"content-type": "application/json"} | bearer(token) | header_fields)
        answer = connection.getresponse()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return HttpReply(status=answer.status, headers=fields, body=answer.read())
    finally:
        connection.close()


def bearer(token: str | None) -> dict[str, str]:
    """Return the Authorization header, or none without a token."""
    return {} if token is None else {"authorization": f"Bearer {token}"}


def start(url: str, run_input: Mapping[str, Json], *, token: str | None = TOKEN) -> str:
    reply = request(url, "POST", RUNS, run_input, token=token)
    if reply.status != http.HTTPStatus.ACCEPTED:
        raise RuntimeError(f"{reply.status}: {reply.body.decode()}")
    return str(reply.json["taskId"])


def run(url: str, run_input: Mapping[str, Json], *, token: str | None = TOKEN) -> list[ReceivedEvent]:
    """Start a run and read it to its end on one connection."""
    connection = _connect(url)
    try:
        headers = {"content-type": "application/json", "accept": "text/event-stream"} | bearer(token)
        connection.request("POST", RUNS, dump(run_input), headers)
        until = time.monotonic() + READ_SECONDS
        return list(takewhile(lambda _: time.monotonic() < until, parse_events(connection.getresponse())))
    finally:
        connection.close()


def read_events(url: str, run: str, after: int = 0, *, token: str | None = TOKEN) -> Iterator[ReceivedEvent]:
    """Yield the events of a run after a number, until the stream ends for any reason."""
    connection = _connect(url)
    try:
        headers = ({"last-event-id": str(after)} if after else {}) | bearer(token)
        connection.request("GET", f"{RUNS}/{run}/events?protocolVersion=1.0", headers=headers)
        yield from parse_events(connection.getresponse())
    finally:
        connection.close()


def parse_events(lines: Iterator[bytes] | http.client.HTTPResponse) -> Iterator[ReceivedEvent]:
    """Yield the events of a stream. An event without its blank line is incomplete and dropped."""
    folder, read, block = kept_folder(), list[bytes](), list[bytes]()
    for line in lines:
        block.append(line)
        received = parse_event(b"".join(block)) if line == b"\n" else None
        if received is not None:
            yield received
            read += [received.body] if folder else []
        block = [] if line == b"\n" else block
    if folder:
        keep(read, folder)


class Reader:
    """A thread that reads a run to its end, over as many connections as necessary."""

    def __init__(self, where: Callable[[], str], run: str, *, token: str | None = TOKEN) -> None:
        self._where = where
        self._run = run
        self._token = token
        self.connections = 0
        self.events: list[ReceivedEvent] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait(self, seconds: float = READ_SECONDS) -> Sequence[ReceivedEvent]:
        """Return all events once the run has ended."""
        self._thread.join(seconds)
        if not self.events or not ends_run(self.events[-1].body):
            raise RuntimeError(f"Run {self._run} did not end; it said: {self.events}")
        return self.events

    def wait_for(self, is_it: Callable[[ReceivedEvent], bool], seconds: float = READ_SECONDS) -> ReceivedEvent:
        """Return the first event that matches."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            event_found = next((event for event in list(self.events) if is_it(event)), None)
            if event_found:
                return event_found
            time.sleep(0.005)
        raise RuntimeError(f"Run {self._run} never said it; it said: {self.events}")

    def _read(self) -> None:
        until = time.monotonic() + 2 * READ_SECONDS
        while time.monotonic() < until and not (self.events and ends_run(self.events[-1].body)):
            self.connections += 1
            try:
                after = self.events[-1].number if self.events else 0
                for event in read_events(self._where(), self._run, after, token=self._token):
                    self.events.append(event)
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.02)


def _connect(url: str) -> http.client.HTTPConnection:
    address = urlsplit(url)
    return http.client.HTTPConnection(address.hostname or "", address.port, timeout=READ_SECONDS)
