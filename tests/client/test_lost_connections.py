"""Lost connections: clients miss and repeat no event."""

import re
import subprocess
import sys
from collections.abc import Generator, Mapping
from io import BytesIO
from itertools import chain, repeat
from pathlib import Path

import pytest

from recto.client import Client, Patience, RequestRefused, ServerUnreachable
from recto.client.exchange import parse_events
from recto.errors import WireError
from recto.testing.model_server import Answer, Call, ModelServer
from recto.testing.process import ServerProcess, free_port
from tests.client.faulty_proxy import Fault, make_response, run_faulty_proxy
from tests.client.scripted_server import SOON, Kind, ScriptedServer, answer_of, events_of
from tests.support.client import TOKEN, read_events, request
from tests.support.crash_server import ANY

# More than the response head and one event: each connection delivers at least one.
SOME, FEW = 1_200, 150
BUSY = make_response(
    503, "retry-after: 0", "content-type: application/problem+json", body='{"detail": "Too many runs."}'
)


def with_a_call() -> tuple[Answer, ...]:
    call = Call(name="calculator", arguments='{"expression": "12 * 7"}')
    return Answer(text="Let me see.", calls=(call,)), Answer(text="one two three four five six seven", delay=0.005)


@pytest.mark.parametrize("most", [SOME, SOME + 7])
def test_P7_a_repeatedly_cut_stream_has_no_gap_and_no_repeat(served: ScriptedServer, kind: Kind, most: int):
    before = served.will(*with_a_call())
    with run_faulty_proxy(served.server.url, repeat(most)) as url:
        turn = served.client(kind, url=url).chat("Count.")
        events = events_of(turn)
    assert events == [event.event for event in read_events(served.server.url, turn.run)]
    assert (turn.text, len(served.pages(before))) == ("one two three four five six seven", 2)


@pytest.mark.parametrize("faults", [[0], [0, 0, 1], [FEW, FEW], [BUSY], [BUSY, 0, make_response(502)]])
def test_P4_a_repeated_request_starts_one_run(served: ScriptedServer, kind: Kind, faults: list[int | bytes]):
    before = served.will(Answer(text="Once."))
    with run_faulty_proxy(served.server.url, [None, *faults]) as url:
        client = served.client(kind, url=url)
        # A client that has reached the server before retries.
        with pytest.raises(RequestRefused, match="404"):
            answer_of(client.resume())
        assert answer_of(client.chat("Say it once.")) == "Once."
    runs = request(served.server.url, "GET", f"/api/v1/agent/threads/{client.thread}/runs").json["runs"]
    assert (len(served.pages(before)), len(list(runs if isinstance(runs, list) else ()))) == (1, 1)


def test_a_missing_server_fails_without_a_retry(kind: Kind, served: ScriptedServer):
    url, patient = f"http://127.0.0.1:{free_port()}", Patience(pause=3_600, longest_pause=3_600)
    with pytest.raises(ServerUnreachable) as error:
        answer_of(served.client(kind, url=url, patience=patient).chat("Hello?"))
    assert re.fullmatch(
        rf"No server answers at {re.escape(url)} \(.*\)\. Start one with `recto serve`, or name another in RECTO_URL\.",
        str(error.value),
    )


def test_a_blocking_client_works_in_a_forked_process(served: ScriptedServer):
    script = """
import os, signal, sys
from recto.client import Client, RequestRefused

def ask():
    try:
        list(Client(url=sys.argv[1], token=sys.argv[2]).resume())
    except RequestRefused as error:
        assert error.status == 404
    else:
        raise AssertionError("the thread does not exist")

ask()
signal.alarm(30)
child = os.fork()
ask()
if not child:
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-c", script, served.server.url, TOKEN]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("url", ["http://a..b:1", f"http://{'a' * 70}.example"])
def test_an_impossible_host_name_is_unreachable(kind: Kind, served: ScriptedServer, url: str):
    with pytest.raises(ServerUnreachable):
        answer_of(served.client(kind, url=url).chat("Hello?"))


def test_retries_end_if_a_server_does_not_return(served: ScriptedServer, kind: Kind):
    served.will(Answer(text="one two three"))
    impatient = Patience(silence=5, tries=2, pause=0.01, longest_pause=0.01)
    with run_faulty_proxy(served.server.url, chain([SOME], repeat(0))) as url, pytest.raises(ServerUnreachable):
        answer_of(served.client(kind, url=url, patience=impatient).chat("Count."))


def test_a_silent_server_counts_as_a_lost_connection(served: ScriptedServer, kind: Kind):
    served.go.clear()
    served.will(Answer(text="one two three", hold=served.go, hold_after=4))
    patience = Patience(silence=0.2, tries=100, pause=0.01, longest_pause=0.01)

    def connections() -> Generator[Fault]:
        yield None
        # The client closed the first connection because of its silence.
        served.go.set()

    with run_faulty_proxy(served.server.url, connections()) as url:
        assert answer_of(served.client(kind, url=url, patience=patience).chat("Count.")) == "one two three"


REFUSALS = [
    (
        make_response(429, "retry-after: 86400", body='{"detail": "That was all for today."}'),
        "429: That was all for",
        86_400,
    ),
    (make_response(520, body="<h1>Oh no</h1>"), "520: the answer gives no reason", None),
]


@pytest.mark.parametrize(("reply", "problem", "seconds"), REFUSALS)
def test_long_waits_and_rejections_of_proxies_are_raised(
    served: ScriptedServer, kind: Kind, reply: bytes, *, problem: str, seconds: int | None
):
    with run_faulty_proxy(served.server.url, [reply]) as url, pytest.raises(RequestRefused, match=problem) as error:
        answer_of(served.client(kind, url=url).chat("Hello?"))
    assert error.value.retry_after == seconds


@pytest.mark.parametrize(
    ("to", "advice"),
    [
        ("https://a.example/recto{path}", r"https://a\.example/recto/api/\S+\. Name https://a\.example/recto in"),
        ("/recto{path}", r"(http://127\.0\.0\.1:\d+/recto)/api/\S+\. Name \1 in"),
        ("https://a.example/login", r"https://a\.example/login\. Name the address of the server itself in"),
    ],
)
def test_a_redirect_is_not_followed_and_its_target_is_named(served: ScriptedServer, kind: Kind, to: str, advice: str):
    paths = ("/api/v1/agent/runs", "/api/v1/agent/threads/x")
    replies = [make_response(308, f"location: {to.format(path=path)}") for path in paths]
    before = served.will()
    with run_faulty_proxy(served.server.url, replies) as url:
        client = served.client(kind, url=url, thread="x")
        for turn in (client.chat("Hello?"), client.resume()):
            with pytest.raises(RequestRefused, match=f"308: the server redirects to {advice} RECTO_URL") as error:
                answer_of(turn)
            assert error.value.retry_after is None
    assert served.pages(before) == []


@pytest.mark.parametrize(
    "reply", [make_response(200, body="<h1>It works!</h1>"), make_response(200, "content-type: text/html")]
)
def test_an_answer_of_another_server_is_rejected(served: ScriptedServer, kind: Kind, reply: bytes):
    with run_faulty_proxy(served.server.url, [reply, reply]) as url:
        client = served.client(kind, url=url)
        for turn in (client.chat("Hello?"), client.resume()):
            with pytest.raises(WireError, match="it is no answer of a Recto server"):
                answer_of(turn)


@pytest.mark.full
async def test_a_large_event_in_small_pieces_is_parsed():
    class Pieces:
        def __init__(self, data: bytes) -> None:
            self.status = 200
            self.headers: Mapping[str, str] = {}
            self._sent = BytesIO(data)

        async def read(self) -> bytes:
            return self._sent.read(1_024)

    large = b"x" * 2**24
    events = [
        event async for event in parse_events(Pieces(b"id: 1\ndata: %b\n\n: beat\n\nid: 2\ndata: {}\n\ndata" % large))
    ]
    assert [(event.number, event.body) for event in events] == [(1, large), (2, b"{}")]


@pytest.mark.full
def test_X4_a_turn_continues_after_its_server_is_killed_and_restarted(tmp_path: Path):
    port, (first, second) = free_port(), with_a_call()
    answers = [first, second, second]
    with ModelServer(lambda _: answers.pop(0)) as model:
        settings = {"RECTO_MODEL": "compatible:x", "RECTO_MODEL_URL": model.url, "RECTO_AGENT": "chat"}
        crashing = ["tests.support.crash_server", ANY, "6", str(port), str(tmp_path)]
        turn = Client(url=f"http://127.0.0.1:{port}", token=TOKEN, patience=SOON).chat("Count.")
        with ServerProcess(crashing, settings) as server:
            events = turn.events()
            all_events = [next(events)]
            server.wait()
        with ServerProcess(["recto", "serve", "--port", str(port), "--data", str(tmp_path)], settings) as again:
            all_events += events
            assert all_events == [event.event for event in read_events(again.url, turn.run)]
    assert turn.text == "one two three four five six seven"
