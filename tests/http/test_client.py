"""The client of models over bare sockets: what HTTP allows, what servers do to a connection, and what is refused."""

import asyncio
import re
import select
import threading
from base64 import b64encode
from collections.abc import Callable, Coroutine
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Protocol, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recto.config.run_settings import Timeouts
from recto.errors import ModelCutOff, ModelError, ModelRefused, ModelUnreachable, PageTooLong
from recto.http.client import MAX_OVERHEAD, HttpClient
from recto.models.choose import PROVIDERS
from recto.models.deltas import join_deltas
from recto.models.endpoint import Endpoint, EndpointModel
from recto.models.ports import Delta, ReplyEnd, TextDelta
from recto.models.wire_protocol import WireProtocol
from recto.testing.model_server import Answer, Call, events, render
from tests.models.raw_server import RawServer, Script, Talk

# What servers run on, and what is there everywhere.
LOOPS = [name for name in ("asyncio", "uvloop") if find_spec(name)]
BODY = b'{"model":"m"}'
ANSWER_BYTES = render(Answer(text="a b", usage=None))
FIRST_EVENTS = b"".join(events(Answer(text="a b", usage=None))[:2])
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
FRAMED = HEAD + b"Content-Length: %d\r\n\r\n" % len(ANSWER_BYTES) + ANSWER_BYTES
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
EARLY = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Encoding: gzip\r\n\r\n"
PROTOCOLS = {one.protocol.wire: one.protocol for one in PROVIDERS}
LAST = b"0\r\n\r\n"
WHOLE = [TextDelta(text="a b"), ReplyEnd(finish="stop")]
ResultT = TypeVar("ResultT")


class Run(Protocol):
    def __call__(self, work: Coroutine[object, object, ResultT]) -> ResultT: ...


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    def on_this_loop(work: Coroutine[object, object, ResultT]) -> ResultT:
        with asyncio.Runner(loop_factory=import_module(request.param).new_event_loop) as runner:
            return runner.run(work)

    return on_this_loop


def chunk(data: bytes, extension: bytes = b"") -> bytes:
    return b"%x%b\r\n%b\r\n" % (len(data), extension, data)


def model_at(url: str, *, key: str = "", timeouts: Timeouts | None = None) -> EndpointModel:
    return EndpointModel("m", Endpoint(base_url=url, key=key, timeouts=timeouts or Timeouts()))


async def replies(model: EndpointModel, times: int = 1, body: bytes = BODY) -> list[list[Delta]]:
    """The replies to calls that follow one another, each joined."""
    try:
        return [list(join_deltas([delta async for delta in model.stream(body)])) for _ in range(times)]
    finally:
        await model.aclose()


def problem_of(run: Run, kind: type[ModelError], model: EndpointModel, times: int = 1) -> str:
    with pytest.raises(kind) as caught_error:
        run(replies(model, times))
    return str(caught_error.value)


def answers(*pieces: bytes, times: int = 1, stays: bool = False) -> Script:
    """Answer so many requests alike, then close the connection, or stay until the client does."""

    def play(talk: Talk) -> None:
        for _ in range(times):
            talk.answer(*pieces)
        if stays:
            talk.wait_gone()

    return play


def waits_until(has_gone: threading.Event, answer: bytes) -> Script:
    """Answer a request, then wait until the client has closed the connection."""

    def play(talk: Talk) -> None:
        talk.answer(answer)
        if talk.wait_gone():
            has_gone.set()

    return play


def reads_and_closes(talk: Talk) -> None:
    talk.request()


def reads_and_resets(talk: Talk) -> None:
    talk.request()
    talk.reset()


GOOD: dict[str, tuple[bytes, ...]] = {
    "with a length": (FRAMED,),
    "in chunks": (CHUNKED + chunk(ANSWER_BYTES[:7]) + chunk(ANSWER_BYTES[7:]) + LAST,),
    "in chunks with extensions and trailers": (CHUNKED + chunk(ANSWER_BYTES, b";a=b") + b"0\r\nx-sum: 1\r\n\r\n",),
    "until the connection ends": (HEAD + b"\r\n" + ANSWER_BYTES,),
    "of HTTP/1.0": (FRAMED.replace(b"HTTP/1.1", b"HTTP/1.0"),),
    "of HTTP/1.0 until the connection ends": (HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + b"\r\n" + ANSWER_BYTES,),
    "after answers that are none": (EARLY, FRAMED),
    "with more behind it": (FRAMED + FRAMED,),
    "with names in capitals": (FRAMED.replace(b"Content-Type", b"CONTENT-TYPE").replace(b"Content-L", b"CONTENT-L"),),
    "without a reason": (FRAMED.replace(b" OK", b" "),),
}


@pytest.mark.parametrize("pieces", GOOD.values(), ids=GOOD)
def test_an_answer_is_read_however_HTTP_writes_it(run: Run, pieces: tuple[bytes, ...]):
    with RawServer(answers(*pieces)) as server:
        assert run(replies(model_at(server.url))) == [WHOLE]


calls = st.lists(st.builds(Call, name=st.just("look"), arguments=st.sampled_from(["{}", '{"a":"好"}'])), max_size=2)
answers_drawn = st.builds(Answer, text=st.text(st.characters(codec="utf-8"), max_size=20), calls=calls.map(tuple))


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
@settings(max_examples=15, deadline=None)
@given(answer=answers_drawn, chunks=st.lists(st.integers(0, 2000)), places=st.lists(st.integers(0, 4000)))
def test_any_fragmentation_of_an_answer_gives_the_same_deltas(
    protocol: WireProtocol, answer: Answer, chunks: list[int], places: list[int]
):
    body = render(answer, protocol.wire)
    chunked = CHUNKED + b"".join(map(chunk, filter(None, cut(body, chunks)))) + LAST
    at_once, apart = answers(CHUNKED + chunk(body) + LAST), answers(*cut(chunked, places))
    with RawServer(at_once, apart) as server:
        models = [EndpointModel("m", Endpoint(base_url=server.url, protocol=protocol)) for _ in range(2)]
        whole, pieced = [asyncio.run(replies(model)) for model in models]
    assert pieced == whole
    assert isinstance(whole[0][-1], ReplyEnd)


def cut(whole: bytes, places: list[int]) -> list[bytes]:
    borders = [0, *sorted(place % (len(whole) + 1) for place in places), len(whole)]
    return [whole[start:end] for start, end in pairwise(borders)]


def test_the_request_is_what_was_given_and_nothing_else(run: Run):
    with RawServer(answers(FRAMED)) as server:
        run(replies(model_at(server.url, key="sk-1")))
        (request,) = server.requests
    head, _, body = request.partition(b"\r\n\r\n")
    first, *fields = head.decode().split("\r\n")
    assert (first, body) == ("POST /v1/chat/completions HTTP/1.1", BODY)
    assert sorted(fields) == [
        "Accept-Encoding: identity",
        "Accept: text/event-stream",
        "Authorization: Bearer sk-1",
        f"Content-Length: {len(BODY)}",
        "Content-Type: application/json",
        f"Host: 127.0.0.1:{server.port}",
        "User-Agent: recto",
    ]


@pytest.mark.parametrize(("value", "encoding"), [("Zoë", "latin-1"), ("张三 é", "utf-8")])
def test_a_header_is_sent_as_Latin_1_or_else_as_UTF_8(run: Run, value: str, encoding: str):
    async def ask(url: str) -> None:
        client = HttpClient(url, {})
        (await client.send("GET", url, {"X-Name": value}, b"", Timeouts())).close()
        client.close()

    with RawServer(answers(FRAMED)) as server:
        run(ask(server.url))
        (request,) = server.requests
    assert f"X-Name: {value}".encode(encoding) in request.splitlines()


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("http://127.0.0.1:{port}", "POST /chat/completions HTTP/1.1"),
        ("http://127.0.0.1:{port}/a b/好?k=v w", "POST /a%20b/%E5%A5%BD?k=v%20w/chat/completions HTTP/1.1"),
        ("http://127.0.0.1:{port}/a%2Fb", "POST /a%2Fb/chat/completions HTTP/1.1"),
    ],
)
def test_an_address_goes_into_the_first_line_as_a_path_that_is_quoted_once(run: Run, url: str, line: str):
    with RawServer(answers(FRAMED)) as server:
        run(replies(model_at(url.format(port=server.port))))
        assert server.requests[0].decode().startswith(f"{line}\r\n")


def test_a_name_and_a_password_in_an_address_are_shown_unless_there_is_a_key(run: Run):
    with RawServer(answers(FRAMED), answers(FRAMED)) as server:
        url = server.url.replace("://", "://us%40er:p%3Aw@")
        run(replies(model_at(url)))
        run(replies(model_at(url, key="sk-1")))
        headers_sent = [re.findall(rb"Authorization: (.*)\r\n", request) for request in server.requests]
    assert headers_sent == [[b"Basic " + b64encode(b"us@er:p:w")], [b"Bearer sk-1"]]


def test_a_key_that_would_end_its_line_is_never_sent(run: Run):
    with RawServer() as server, pytest.raises(ValueError, match="line end") as caught_error:
        run(replies(model_at(server.url, key="sk-1\r\nX: y")))
    assert "sk-1" not in str(caught_error.value)


def test_an_address_of_the_newer_kind_stands_in_brackets(run: Run):
    with RawServer(answers(FRAMED), host="::1") as server:
        assert run(replies(model_at(f"http://[::1]:{server.port}/v1"))) == [WHOLE]
        assert f"\r\nHost: [::1]:{server.port}\r\n".encode() in server.requests[0]


def test_of_a_name_with_several_addresses_one_that_answers_is_enough(run: Run):
    with RawServer(answers(FRAMED)) as server:
        assert run(replies(model_at(f"http://localhost:{server.port}/v1"))) == [WHOLE]


def test_a_name_that_cannot_be_one_is_unreachable(run: Run):
    assert "cannot be reached" in problem_of(run, ModelUnreachable, model_at(f"http://{'a' * 64}.example/v1"))


KEPT_CASES: dict[str, bytes] = {
    "with a length": FRAMED,
    "in chunks": CHUNKED + chunk(ANSWER_BYTES) + LAST,
    "of HTTP/1.0 that says so": FRAMED.replace(b"HTTP/1.1", b"HTTP/1.0").replace(
        b"Content-L", b"Connection: keep-alive\r\nContent-L"
    ),
}
NOT_KEPT: dict[str, bytes] = {
    "that says so": FRAMED.replace(b"Content-L", b"Connection: close\r\nContent-L"),
    "of HTTP/1.0": FRAMED.replace(b"HTTP/1.1", b"HTTP/1.0"),
    "with more behind it": FRAMED + b"HTTP/1.1 200 OK\r\n",
}


@pytest.mark.parametrize("answer", KEPT_CASES.values(), ids=KEPT_CASES)
def test_a_connection_is_used_again_after_an_answer(run: Run, answer: bytes):
    with RawServer(answers(answer, times=2)) as server:
        assert run(replies(model_at(server.url), 2)) == [WHOLE, WHOLE]


@pytest.mark.parametrize("answer", NOT_KEPT.values(), ids=NOT_KEPT)
def test_a_connection_is_not_used_again_after_an_answer(run: Run, answer: bytes):
    with RawServer(*[answers(answer, stays=True)] * 2) as server:
        assert run(replies(model_at(server.url), 2)) == [WHOLE, WHOLE]
        assert len(server.requests) == server.connections == 2


def test_a_connection_whose_answer_ends_a_moment_after_its_last_word_is_used_again(run: Run):
    is_read = threading.Event()

    def play(talk: Talk) -> None:
        talk.answer(CHUNKED + chunk(ANSWER_BYTES))
        is_read.wait(60)
        talk.send(LAST)
        talk.answer(FRAMED)

    async def twice(url: str) -> list[bytes]:
        client, chunks = HttpClient(url, {}), list[bytes]()
        for _ in range(2):
            answer = await client.post(BODY, Timeouts())
            chunks.append(await answer.read())
            is_read.set()
            await answer.finish(60)
            answer.close()
        client.close()
        return chunks

    with RawServer(play) as server:
        assert run(twice(server.url)) == [ANSWER_BYTES, ANSWER_BYTES]


def test_a_connection_whose_answer_never_ends_is_given_up_after_its_last_word(run: Run):
    with RawServer(*[answers(CHUNKED + chunk(ANSWER_BYTES), stays=True)] * 2) as server:
        assert run(replies(model_at(server.url), 2)) == [WHOLE, WHOLE]


def test_a_connection_on_which_something_comes_unasked_is_not_used(run: Run):
    is_read, is_gone = threading.Event(), threading.Event()

    def play(talk: Talk) -> None:
        talk.answer(FRAMED)
        is_read.wait(60)
        talk.send(FRAMED)
        if talk.wait_gone():
            is_gone.set()

    async def twice(model: EndpointModel) -> list[list[Delta]]:
        first = [delta async for delta in model.stream(BODY)]
        is_read.set()
        assert await asyncio.to_thread(is_gone.wait, 60)
        return [list(join_deltas(first)), *await replies(model)]

    with RawServer(play, answers(FRAMED)) as server:
        assert run(twice(model_at(server.url))) == [WHOLE, WHOLE]
        assert len(server.requests) == 2


def answers_once_then(act: Script) -> Script:
    def play(talk: Talk) -> None:
        talk.answer(FRAMED)
        act(talk)

    return play


@pytest.mark.parametrize("act", [reads_and_closes, reads_and_resets])
def test_a_call_on_a_used_connection_that_is_closed_unanswered_is_made_once_more_on_a_new_one(run: Run, act: Script):
    with RawServer(answers_once_then(act), answers(FRAMED)) as server:
        assert run(replies(model_at(server.url), 2)) == [WHOLE, WHOLE]
        assert (len(server.requests), server.connections) == (3, 2)


def test_a_call_is_not_made_a_third_time(run: Run):
    with RawServer(answers_once_then(reads_and_closes), reads_and_closes, answers(FRAMED)) as server:
        assert "cannot be reached" in problem_of(run, ModelUnreachable, model_at(server.url), 2)
        assert (len(server.requests), server.connections) == (3, 2)


def test_a_call_on_a_new_connection_that_is_closed_unanswered_is_not_made_again(run: Run):
    with RawServer(reads_and_closes, answers(FRAMED)) as server:
        assert "cannot be reached" in problem_of(run, ModelUnreachable, model_at(server.url))
        assert len(server.requests) == 1


def test_a_call_whose_answer_has_begun_is_not_made_again(run: Run):
    with RawServer(answers_once_then(answers(b"HTTP/1.1 2")), answers(FRAMED)) as server:
        assert "cannot be reached" in problem_of(run, ModelUnreachable, model_at(server.url), 2)
        assert len(server.requests) == 2


ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "lines of its head": (HEAD, b"X-A: b\r\n"),
    "line of its head": (HEAD + b"X-A: ", b"bbbbbbbb"),
    "answers before it": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "extension of a chunk": (CHUNKED + b"5;a=", b"bbbbbbbb"),
    "trailers": (CHUNKED + b"0\r\n", b"X-A: b\r\n"),
}


@pytest.mark.parametrize(("begin", "more"), ENDLESS.values(), ids=ENDLESS)
def test_an_answer_with_endless(run: Run, begin: bytes, more: bytes):
    request_sizes: list[int] = []

    def play(talk: Talk) -> None:
        talk.answer(begin)
        try:
            for size in range(0, 64 * MAX_OVERHEAD, 8000):
                talk.send(more * (8000 // len(more)))
                request_sizes.append(size)
        except OSError:
            return

    with RawServer(play) as server:
        assert problem_of(run, ModelError, model_at(server.url))
    assert request_sizes[-1] < 64 * MAX_OVERHEAD - 16000


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
    ],
)
def test_what_is_no_HTTP_is_unreachable_and_nothing_of_it_is_told(run: Run, answer: bytes):
    with RawServer(answers(answer)) as server:
        problem = problem_of(run, ModelUnreachable, model_at(server.url, key="sk-1"))
    assert problem.endswith("127.0.0.1 cannot be reached (BrokenAnswer). Check the base url.")


@pytest.mark.parametrize("size", [b"-1", b"zz", b"1" * 20])
def test_a_chunk_of_a_size_that_is_none_breaks_the_reply_off(run: Run, size: bytes):
    with RawServer(answers(CHUNKED + chunk(ANSWER_BYTES[:20]) + size + b"\r\nx\r\n")) as server:
        assert "broke before the reply was whole" in problem_of(run, ModelCutOff, model_at(server.url))


@pytest.mark.parametrize("end", [Talk.reset, Talk.wait_gone])
def test_a_connection_that_breaks_within_a_reply_is_told(run: Run, end: Callable[[Talk], object]):
    def play(talk: Talk) -> None:
        talk.answer(CHUNKED + chunk(ANSWER_BYTES[:20]))
        if end is Talk.reset:
            talk.reset()

    with RawServer(play) as server:
        assert "broke before the reply was whole" in problem_of(run, ModelCutOff, model_at(server.url))


def test_a_server_that_switches_to_something_else_is_refused(run: Run):
    answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nrest"
    with RawServer(answers(answer)) as server:
        assert "101" in problem_of(run, ModelRefused, model_at(server.url))


def test_an_answer_to_half_a_page_is_one_and_its_connection_is_not_used_again(run: Run):
    is_refused = threading.Event()

    def play(talk: Talk) -> None:
        talk.socket.recv(1000)
        talk.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        is_refused.wait(60)

    async def twice(model: EndpointModel) -> list[list[Delta]]:
        with pytest.raises(PageTooLong):
            await replies(model, body=b"x" * 20_000_000)
        is_refused.set()
        return await replies(model)

    with RawServer(play, answers(FRAMED)) as server:
        assert run(twice(model_at(server.url))) == [WHOLE]


def test_a_reader_that_does_not_keep_up_holds_the_server_up_and_gets_all_when_it_comes_back(run: Run):
    # Beside the bytes that wait to be read, the two ends of a connection hold some megabytes.
    pieces = [
        CHUNKED + chunk(FIRST_EVENTS),
        *[chunk(b": " + b"x" * 65_000 + b"\n")] * 400,
        chunk(ANSWER_BYTES[len(FIRST_EVENTS) :]) + LAST,
    ]
    is_held = threading.Event()

    def play(talk: Talk) -> None:
        talk.request()
        rest = memoryview(b"".join(pieces))
        while rest:
            if select.select((), [talk.socket], (), 0.3)[1]:
                rest = rest[talk.socket.send(rest[:65_000]) :]
            else:
                is_held.set()

    async def slowly(model: EndpointModel) -> list[Delta]:
        stream = model.stream(BODY)
        first = await anext(stream)
        assert await asyncio.to_thread(is_held.wait, 60), "the server sent 26 MB that nobody read"
        rest = [delta async for delta in stream]
        await model.aclose()
        return list(join_deltas([first, *rest]))

    with RawServer(play) as server:
        assert run(slowly(model_at(server.url))) == WHOLE


def test_closing_the_model_closes_what_is_idle_and_what_is_under_way(run: Run):
    events_gone = [threading.Event(), threading.Event()]

    async def open_two(model: EndpointModel) -> None:
        held_stream, short = model.stream(BODY), model.stream(BODY)
        assert isinstance(await anext(held_stream), TextDelta)
        assert [delta async for delta in short]
        await model.aclose()
        with pytest.raises(ModelCutOff):
            await anext(held_stream)

    with RawServer(
        waits_until(events_gone[0], CHUNKED + chunk(FIRST_EVENTS)), waits_until(events_gone[1], FRAMED)
    ) as server:
        run(open_two(model_at(server.url)))
        assert all(event.wait(5) for event in events_gone)
