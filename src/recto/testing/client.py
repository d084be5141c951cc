"""A plain client for tests: sends runs, reads events, comes back where it was when a connection is lost."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from urllib.parse import urlsplit

from recto.client.exchange import RUNS, SentEvent, event_in
from recto.conversation.events import ends_run
from recto.conversation.json import Json, dump, load_object
from recto.ids import new_id
from recto.testing.kept_streams import keep, kept_folder

# The local token of every server that ServerProcess starts. All requests here carry it, unless told otherwise.
TOKEN = "the-token-of-our-test-servers"  # noqa: S105 - it opens nothing but servers of tests
READ_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class HttpReply:
    """An answer to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Mapping[str, Json]:
        """The body as an object."""
        return load_object(self.body) or {}


def ask(words: str, *, thread: str = "", run: str = "", **rest: Json) -> dict[str, Json]:
    """A RunAgentInput with one user message."""
    message = {"id": new_id(), "role": "user", "content": words}
    ids = {"threadId": thread or new_id(), "runId": run or new_id()}
    return {**ids, "messages": [message], "protocolVersion": "1.0", **rest}


def request(
    url: str, method: str, path: str, body: object = None, *, token: str | None = TOKEN, **headers: str
) -> HttpReply:
    """One request, whole. Header names are written with `_` for `-`; without a token it comes as nobody."""
    connection = _connect(url)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else dump(body) if body is not None else None
        connection.request(method, path, data, {"content-type": "application/json"} | bearer(token) | named)
        answer = connection.getresponse()
        fields = {name.lower(): value for name, value in answer.getheaders()}
        return HttpReply(status=answer.status, headers=fields, body=answer.read())
    finally:
        connection.close()


def bearer(token: str | None) -> dict[str, str]:
    """The header that carries a credential; none for nobody."""
    return {} if token is None else {"authorization": f"Bearer {token}"}


def start(url: str, run_input: Mapping[str, Json], *, token: str | None = TOKEN) -> str:
    """Admit a run. Returns its task id."""
    reply = request(url, "POST", RUNS, run_input, token=token)
    if reply.status != http.HTTPStatus.ACCEPTED:
        raise RuntimeError(f"{reply.status}: {reply.body.decode()}")
    return str(reply.json["taskId"])


def run(url: str, run_input: Mapping[str, Json], *, token: str | None = TOKEN) -> list[SentEvent]:
    """Admit a run and read it to its end, over one connection."""
    connection = _connect(url)
    try:
        headers = {"content-type": "application/json", "accept": "text/event-stream"} | bearer(token)
        connection.request("POST", RUNS, dump(run_input), headers)
        until = time.monotonic() + READ_SECONDS
        return list(takewhile(lambda _: time.monotonic() < until, parse_events(connection.getresponse())))
    finally:
        connection.close()


def read_events(url: str, run: str, after: int = 0, *, token: str | None = TOKEN) -> Iterator[SentEvent]:
    """Events of a run behind a number, until the stream ends, whatever ends it."""
    connection = _connect(url)
    try:
        headers = ({"last-event-id": str(after)} if after else {}) | bearer(token)
        connection.request("GET", f"{RUNS}/{run}/events?protocolVersion=1.0", headers=headers)
        yield from parse_events(connection.getresponse())
    finally:
        connection.close()


def parse_events(lines: Iterator[bytes] | http.client.HTTPResponse) -> Iterator[SentEvent]:
    """Events from the lines of a stream. One without its blank line never came."""
    folder, read, block = kept_folder(), list[bytes](), list[bytes]()
    for line in lines:
        block.append(line)
        sent = event_in(b"".join(block)) if line == b"\n" else None
        if sent is not None:
            yield sent
            read += [sent.body] if folder else []
        block = [] if line == b"\n" else block
    if folder:
        keep(read, folder)


class Reader:
    """Reads a run to its end in a thread of its own, over as many connections as it takes."""

    def __init__(self, where: Callable[[], str], run: str, *, token: str | None = TOKEN) -> None:
        self._where = where
        self._run = run
        self._token = token
        self.connections = 0
        self.events: list[SentEvent] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def wait(self, seconds: float = READ_SECONDS) -> Sequence[SentEvent]:
        """All events, once the last has come."""
        self._thread.join(seconds)
        if not self.events or not ends_run(self.events[-1].body):
            raise RuntimeError(f"Run {self._run} did not end; it said: {self.events}")
        return self.events

    def wait_for(self, is_it: Callable[[SentEvent], bool], seconds: float = READ_SECONDS) -> SentEvent:
        """The first event that is the one looked for."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = next((event for event in list(self.events) if is_it(event)), None)
            if found:
                return found
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
