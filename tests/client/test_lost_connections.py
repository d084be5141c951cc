"""Connections are lost in a stream, before any answer, with the server: a client misses and repeats nothing."""

import re
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
from tests.client.faulty_way import Fault, answer, faulty_way
from tests.client.talking import SOON, Kind, Talking, answer_of, events_of
from tests.support.client import TOKEN, read_events, request
from tests.support.crash_server import ANY

# More than the head of an answer and any one event: each connection brings at least one.
SOME, FEW = 1_200, 150
BUSY = answer(503, "retry-after: 0", "content-type: application/problem+json", body='{"detail": "Too many runs."}')


def with_a_call() -> tuple[Answer, ...]:
    call = Call(name="calculator", arguments='{"expression": "12 * 7"}')
    return Answer(text="Let me see.", calls=(call,)), Answer(text="one two three four five six seven", delay=0.005)


@pytest.mark.parametrize("most", [SOME, SOME + 7])
def test_P7_a_stream_that_is_cut_again_and_again_is_read_without_gap_or_repeat(served: Talking, kind: Kind, most: int):
    before = served.will(*with_a_call())
    with faulty_way(served.server.url, repeat(most)) as url:
        turn = served.client(kind, url=url).chat("Count.")
        heard = events_of(turn)
    assert heard == [sent.event for sent in read_events(served.server.url, turn.run)]
    assert (turn.text, len(served.pages(before))) == ("one two three four five six seven", 2)


@pytest.mark.parametrize("faults", [[0], [0, 0, 1], [FEW, FEW], [BUSY], [BUSY, 0, answer(502)]])
def test_P4_an_answer_that_never_came_is_asked_for_again_and_it_stays_one_run(
    served: Talking, kind: Kind, faults: list[int | bytes]
):
    before = served.will(Answer(text="Once."))
    with faulty_way(served.server.url, [None, *faults]) as url:
        client = served.client(kind, url=url)
        # Whoever has reached the server before waits for it.
        with pytest.raises(RequestRefused, match="404"):
            answer_of(client.resume())
        assert answer_of(client.chat("Say it once.")) == "Once."
    runs = request(served.server.url, "GET", f"/api/v1/agent/threads/{client.thread}/runs").json["runs"]
    assert (len(served.pages(before)), len(list(runs if isinstance(runs, list) else ()))) == (1, 1)


def test_a_server_that_is_not_there_is_told_without_a_second_try(kind: Kind, served: Talking):
    url, patient = f"http://127.0.0.1:{free_port()}", Patience(pause=3_600, longest_pause=3_600)
    with pytest.raises(ServerUnreachable) as caught:
        answer_of(served.client(kind, url=url, patience=patient).chat("Hello?"))
    assert re.fullmatch(
        rf"No server answers at {re.escape(url)} \(.*\)\. Start one with `recto serve`, or name another in RECTO_URL\.",
        str(caught.value),
    )


def test_a_server_that_does_not_come_back_is_given_up(served: Talking, kind: Kind):
    served.will(Answer(text="one two three"))
    impatient = Patience(silence=5, tries=2, pause=0.01, longest_pause=0.01)
    with (
        faulty_way(served.server.url, chain([SOME], repeat(0))) as url,
        pytest.raises(ServerUnreachable),
    ):
        answer_of(served.client(kind, url=url, patience=impatient).chat("Count."))


def test_a_server_that_is_silent_for_too_long_is_a_lost_connection(served: Talking, kind: Kind):
    served.go.clear()
    served.will(Answer(text="one two three", hold=served.go, hold_after=4))
    patience = Patience(silence=0.2, tries=100, pause=0.01, longest_pause=0.01)

    def connections() -> Generator[Fault]:
        yield None
        # The first was given up for its silence.
        served.go.set()

    with faulty_way(served.server.url, connections()) as url:
        assert answer_of(served.client(kind, url=url, patience=patience).chat("Count.")) == "one two three"


REFUSALS = [
    (answer(429, "retry-after: 86400", body='{"detail": "That was all for today."}'), "429: That was all for", 86_400),
    (answer(520, body="<h1>Oh no</h1>"), "520: the answer gives no reason", None),
]


@pytest.mark.parametrize(("said", "told", "seconds"), REFUSALS)
def test_a_wait_of_very_long_and_a_refusal_of_what_stands_before_the_server_are_told(
    served: Talking, kind: Kind, said: bytes, *, told: str, seconds: int | None
):
    with (
        faulty_way(served.server.url, [said]) as url,
        pytest.raises(RequestRefused, match=told) as caught,
    ):
        answer_of(served.client(kind, url=url).chat("Hello?"))
    assert caught.value.retry_after == seconds


@pytest.mark.parametrize(
    ("to", "told"),
    [
        ("https://a.example/recto{path}", r"https://a\.example/recto/api/\S+\. Name https://a\.example/recto in"),
        ("/recto{path}", r"(http://127\.0\.0\.1:\d+/recto)/api/\S+\. Name \1 in"),
        ("https://a.example/login", r"https://a\.example/login\. Name the address of the server itself in"),
    ],
)
def test_nobody_is_followed_who_redirects_but_where_to_is_told(served: Talking, kind: Kind, to: str, told: str):
    paths = ("/api/v1/agent/runs", "/api/v1/agent/threads/x")
    said = [answer(308, f"location: {to.format(path=path)}") for path in paths]
    before = served.will()
    with faulty_way(served.server.url, said) as url:
        client = served.client(kind, url=url, thread="x")
        for turn in (client.chat("Hello?"), client.resume()):
            with pytest.raises(RequestRefused, match=f"308: the server redirects to {told} RECTO_URL") as caught:
                answer_of(turn)
            assert caught.value.retry_after is None
    assert served.pages(before) == []


@pytest.mark.parametrize("said", [answer(200, body="<h1>It works!</h1>"), answer(200, "content-type: text/html")])
def test_an_answer_that_is_none_of_a_recto_server_is_told(served: Talking, kind: Kind, said: bytes):
    with faulty_way(served.server.url, [said, said]) as url:
        client = served.client(kind, url=url)
        for turn in (client.chat("Hello?"), client.resume()):
            with pytest.raises(WireError, match="it is no answer of a Recto server"):
                answer_of(turn)


@pytest.mark.full
async def test_a_very_large_event_that_comes_in_small_pieces_is_read():
    class Pieces:
        def __init__(self, sent: bytes) -> None:
            self.status = 200
            self.headers: Mapping[str, str] = {}
            self._sent = BytesIO(sent)

        async def read(self) -> bytes:
            return self._sent.read(1_024)

    large = b"x" * 2**24
    heard = [
        sent async for sent in parse_events(Pieces(b"id: 1\ndata: %b\n\n: beat\n\nid: 2\ndata: {}\n\ndata" % large))
    ]
    assert [(sent.number, sent.body) for sent in heard] == [(1, large), (2, b"{}")]


@pytest.mark.full
def test_X4_a_turn_goes_on_when_its_server_is_killed_and_started_again(tmp_path: Path):
    port, (first, second) = free_port(), with_a_call()
    answers = [first, second, second]
    with ModelServer(lambda _: answers.pop(0)) as model:
        settings = {"RECTO_MODEL": "compatible:x", "RECTO_MODEL_URL": model.url, "RECTO_AGENT": "chat"}
        crashing = ["tests.support.crash_server", ANY, "6", str(port), str(tmp_path)]
        turn = Client(url=f"http://127.0.0.1:{port}", token=TOKEN, patience=SOON).chat("Count.")
        with ServerProcess(crashing, settings) as server:
            events = turn.events()
            heard = [next(events)]
            server.wait()
        with ServerProcess(["recto", "serve", "--port", str(port), "--data", str(tmp_path)], settings) as again:
            heard += events
            assert heard == [sent.event for sent in read_events(again.url, turn.run)]
    assert turn.text == "one two three four five six seven"
