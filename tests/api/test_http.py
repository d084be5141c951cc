"""HTTP as clients, proxies and tools expect it: ids in paths, methods, codings of bodies, what logs do not tell."""

import gzip
import socket
import zlib
from collections.abc import Callable, Generator, Mapping
from typing import cast
from urllib.parse import quote, urlsplit

import pytest

from recto.api.files.attachments import ATTACHMENTS
from recto.api.server import ROUTES
from recto.conversation.json import dump
from recto.testing.process import ServerProcess
from tests.api.forms import FORM, file, form_of
from tests.api.wrong_inputs import assert_problem, assert_refused
from tests.costs import open_sockets
from tests.support.client import RUNS, TOKEN, ask, read_events, request, start
from tests.waiting import wait_for

pytestmark = pytest.mark.full

THREADS, CHAT = "/api/v1/agent/threads", "/api/v1/chat"
TOO_LARGE = "RunAgentInput payload exceeds size limit"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[ServerProcess]:
    settings = {"RECTO_MODEL": "demo", "RECTO_AGENT": "chat"}
    with ServerProcess.serve(tmp_path_factory.mktemp("http"), settings) as server:
        yield server
        assert "Traceback" not in server.output


@pytest.fixture(scope="module")
def url(server: ServerProcess) -> str:
    return server.url


# Ids in paths


@pytest.mark.parametrize("name", ["a/b", "x/events", "a%2Fb", "100%", "what?a#b", "汉字 é", "..", "a+b;c=d&e"])
def test_P8_a_run_is_found_under_any_name_it_was_given(url: str, name: str):
    task, path = start(url, ask("What is 12*7?", run=name)), f"{RUNS}/{quote(name, safe='')}"
    assert list(read_events(url, quote(name, safe="")))[-1].event["runId"] == name
    response = request(url, "GET", path).json
    assert (response["taskId"], response["runId"]) == (task, name)
    assert request(url, "POST", f"{path}/cancel").json["taskId"] == task
    assert request(url, "GET", f"{path}/calls").status == 200


def test_every_answer_of_json_can_be_asked_for_its_headers_alone(url: str):
    task = start(url, ask("What is 12*7?"))
    list(read_events(url, task))
    for route in ROUTES:
        if route.method == "GET" and (route.answer or route.is_open):
            path = route.path.replace("{id}", task).replace("{n}", "1").replace("{name}", "x")
            whole, head = (request(url, method, path) for method in ("GET", "HEAD"))
            assert (head.status, head.body) == (whole.status, b"")
            assert head.headers["content-type"] == whole.headers["content-type"]
            assert head.headers["content-length"] == whole.headers["content-length"]


# Codings of bodies


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKED: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("GZIP", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", raw_deflate),
    ("identity", bytes),
]


@pytest.mark.parametrize(("coding", "pack"), PACKED)
def test_P1_a_body_may_come_packed(url: str, coding: str, pack: Callable[[bytes], bytes]):
    assert request(url, "POST", RUNS, pack(dump(ask("hi"))), content_encoding=coding).status == 202
    whole = dump(ask("hi")).ljust(262_144)
    assert request(url, "POST", RUNS, pack(whole), content_encoding=coding).status == 202
    assert_refused(request(url, "POST", RUNS, pack(whole + b" "), content_encoding=coding), 413, TOO_LARGE, "too_large")


def test_P2_a_body_that_is_packed_has_the_limit_of_one_that_is_not(url: str):
    bomb, padded = gzip.compress(b" " * 200_000_000), gzip.compress(dump(ask("hi"))) + b"\0" * 262_144
    for body in (bomb, padded):
        assert_refused(request(url, "POST", RUNS, body, content_encoding="gzip"), 413, TOO_LARGE, "too_large")


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "gzip, deflate", "nonsense"])
def test_P2_another_coding_is_told_which_are_taken(url: str, coding: str):
    reply = request(url, "POST", RUNS, gzip.compress(dump(ask("hi"))), content_encoding=coding)
    assert_problem(reply)
    assert (reply.status, reply.json["code"]) == (415, "wrong_media")
    assert reply.headers["accept-encoding"] == "gzip, deflate"


def test_P9_a_form_is_not_unpacked(url: str):
    form = gzip.compress(form_of(file("a.txt", b"hi")))
    reply = request(url, "POST", ATTACHMENTS, form, content_type=FORM, content_encoding="gzip")
    assert (reply.status, reply.headers["accept-encoding"]) == (415, "identity")


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", b"{}"),
        ("deflate", b"{}"),
        ("gzip", gzip.compress(dump(ask("hi")))[:-9]),
        ("gzip", gzip.compress(dump(ask("hi"))) + b"more"),
    ],
)
def test_P2_what_cannot_be_unpacked_is_refused(url: str, coding: str, body: bytes):
    reply = request(url, "POST", RUNS, body, content_encoding=coding)
    assert_problem(reply)
    assert reply.status == 422
    assert coding in str(reply.json["detail"])


def test_an_answer_is_packed_for_who_asks(url: str):
    plain, packed = (request(url, "GET", "/openapi.json", accept_encoding=coding) for coding in ("identity", "gzip"))
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 4
    for reply in (plain, packed):
        assert "accept-encoding" in reply.headers["vary"].lower()
    for refusing in ("identity", "gzip;q=0", "br, gzip; q=0.0"):
        assert "content-encoding" not in request(url, "GET", "/openapi.json", accept_encoding=refusing).headers


def test_short_answers_streams_and_files_are_not_packed(url: str):
    form = form_of(file("notes.txt", b"buy milk\n" * 1_000))
    upload_row = request(url, "POST", ATTACHMENTS, form, content_type=FORM).json
    (entry,) = cast("list[Mapping[str, str]]", upload_row["attachments"])
    task = start(url, ask("What is 12*7?"))
    signed_url = urlsplit(entry["url"])
    for path in ("/version", f"{RUNS}/{task}/events", f"{signed_url.path}?{signed_url.query}"):
        reply = request(url, "GET", path, accept_encoding="gzip")
        assert (reply.status, "content-encoding" in reply.headers) == (200, False)


# What logs keep to themselves


def test_P10_a_live_signature_reaches_no_log_however_it_is_written(server: ServerProcess):
    form = form_of(file("notes.txt", b"buy milk"))
    upload_row = request(server.url, "POST", ATTACHMENTS, form, content_type=FORM).json
    (entry,) = cast("list[Mapping[str, str]]", upload_row["attachments"])
    url = urlsplit(entry["url"])
    secret = entry["url"].rpartition("=")[2].rpartition(".")[2]
    query = quote(url.query, safe="")
    for path in (
        f"{url.path}%3F{url.query}",
        f"{url.path}%3f{query}",
        f"{url.path}%253F{quote(query, safe='')}",
        f"{RUNS}/{quote(entry['url'], safe='')}",
        f"/nowhere/{url.path}%3F{url.query}",
        f"{THREADS}/x?{url.query}",
        f"{url.path}x?{url.query}",
    ):
        reply = request(server.url, "GET", path)
        assert reply.status == 404, path
        assert request(server.url, "GET", path, token="wrong-token-of-nobody").status in (401, 404)
    assert "no_file" in server.output
    assert secret not in server.output


def test_a_client_that_leaves_in_the_middle_writes_no_traceback(server: ServerProcess):
    address, before, count = urlsplit(server.url), len(server.output.splitlines()), open_sockets(server.pid)
    head = f"HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\ncontent-type: application/json\r\n"
    task = start(server.url, ask("What is 12*7?"))
    halves = [
        *[f"POST {path} {head}content-length: 99\r\n\r\n{{" for path in (RUNS, CHAT, f"{THREADS}/x/fork", ATTACHMENTS)],
        f"PATCH /api/v1/profile {head}content-length: 99\r\n\r\n{{",
        f"GET {RUNS}/{task}/events {head}\r\n",
        f"GET /openapi.json {head}\r\n",
        f"POST {RUNS} {head}",
    ]
    for half in halves:
        with socket.create_connection((address.hostname or "", address.port or 0)) as leaving:
            leaving.sendall(half.encode())
    wait_for(lambda: open_sockets(server.pid) <= count, "the end of all connections")
    assert request(server.url, "GET", "/readyz").status == 200
    problem = server.output.splitlines()[before:]
    assert len(problem) <= len(halves)
    assert not [line for line in problem if "Traceback" in line]
