"""Files at other servers' urls (D7): fetched before a run is admitted, and then files like any other."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from recto.agents.agent import CHAT
from recto.agents.file_input import FileInput
from recto.api.bodies import parse_run
from recto.api.runs.admit_files import StorableRequest, find_signed_files, store_files
from recto.api.runs.routes import ROUTES, RUNS
from recto.config.file_settings import OutboundSettings
from recto.conversation.input.input_rules import NOT_SIGNED
from recto.conversation.json import Json, dump
from recto.errors import InvalidRequest
from recto.files.fetch.outbound import Outbound
from recto.files.ports import Upload
from recto.ids import new_id
from tests.api.local_api import BASE, NOW, LocalApi, assert_problem, local_api
from tests.api.test_admit_files import PNG, RUN, THREAD, inline, names
from tests.files.a_web import Web, http, leading
from tests.files.resolver import TableResolver

HOSTS = {"files.example": [["127.0.0.1"]], "inside.example": [["10.0.0.1"]], "localhost": [["127.0.0.1"]]}
TEXT = "Content-Type: text/plain"


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with Web() as server:
        server.answers |= {"/a.txt": http(b"a", TEXT), "/b.txt": http(b"b", TEXT), "/dot.png": http(PNG)}
        yield server


@pytest.fixture
async def api(tmp_path: Path, web: Web) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, ROUTES) as server:
        agents = {"vibe": replace(CHAT, file_input=allowing(web))}
        server.change(outbound=lambda: outbound(OutboundSettings()), by_name=agents, admit=server.store.runs.admit)
        yield server


def outbound(settings: OutboundSettings) -> Outbound:
    return Outbound(settings, resolve=TableResolver(HOSTS), allowance=("127.0.0.0/8",))


def allowing(web: Web) -> FileInput:
    return FileInput(is_on=True, max_files=5, urls=(f"*:{web.port}",))


def at(web: Web, path: str, kind: str = "document", name: str | None = None) -> Json:
    source: Json = {"type": "url", "value": f"http://files.example:{web.port}{path}"}
    return {"type": kind, "source": source} | ({"metadata": {"filename": name}} if name else {})


def a_body(*parts: Json, run: str = RUN) -> bytes:
    message: Json = {"id": RUN, "role": "user", "content": list(parts)}
    return dump({"threadId": THREAD, "runId": run, "messages": [message]})


async def store_parts(api: LocalApi, allowed: FileInput, *parts: Json) -> StorableRequest:
    body = a_body(*parts)
    run_input = parse_run(body)
    signed_files = await find_signed_files(api.backend.files, "ann", run_input.input, allowed)
    return await store_files(api.backend, "ann", run_input, allowed, signed_files=signed_files)


async def reject_files(api: LocalApi, allowed: FileInput, *parts: Json) -> InvalidRequest:
    """Nothing is left of it but what was there before."""
    before = await names(api), dict(api.storage.blobs)
    with pytest.raises(InvalidRequest) as caught_error:
        await store_parts(api, allowed, *parts)
    assert (await names(api), api.storage.blobs) == before
    return caught_error.value


# What is taken


async def test_P10_a_file_from_another_server_becomes_an_attachment_like_any_other(api: LocalApi, web: Web):
    request = await store_parts(api, allowing(web), at(web, "/a.txt"))
    (id,) = request.new_ids
    one = request.attachments[id]
    assert (one.name, one.mime_type, one.size) == ("a.txt", "text/plain", 1)
    assert list(api.storage.blobs.values()) == [b"a"]
    assert b"files.example" not in request.body
    assert f"recto-attachment:{id}".encode() in request.body
    assert [ref.attachment for ref in request.refs("r")] == [id]


async def test_D7_pictures_are_taken_too_in_both_spellings(api: LocalApi, web: Web):
    url = f"http://files.example:{web.port}/dot.png"
    binary: Json = {"type": "binary", "mimeType": "image/png", "url": url}
    for part in (binary, at(web, "/dot.png", "image")):
        request = await store_parts(api, allowing(web), part)
        assert [one.kind for one in request.attachments.values()] == ["image"]


async def test_D7_the_same_url_twice_is_fetched_once_and_several_are_fetched_together(api: LocalApi, web: Web):
    files = [at(web, "/a.txt"), at(web, "/b.txt"), inline("c.txt", b"c"), at(web, "/a.txt")]
    request = await store_parts(api, allowing(web), *files)
    assert (sorted(web.paths), len(request.new_ids)) == (["/a.txt", "/b.txt"], 3)


@pytest.mark.parametrize("settings", [OutboundSettings(of_user=1), OutboundSettings(at_once=1)])
async def test_D7_more_files_than_may_be_fetched_at_once_take_turns(
    api: LocalApi, web: Web, settings: OutboundSettings
):
    api.change(outbound=lambda: outbound(settings))
    assert len((await store_parts(api, allowing(web), at(web, "/a.txt"), at(web, "/b.txt"))).new_ids) == 2


# What is not


@pytest.mark.parametrize("allowed", [FileInput(is_on=True), FileInput(is_on=False, urls=("*",))])
async def test_P2_an_agent_that_allows_no_other_urls_takes_signed_ones_only(
    api: LocalApi, web: Web, allowed: FileInput
):
    for part in (at(web, "/a.txt"), {"type": "binary", "mimeType": "image/png", "url": "https://files.example/a"}):
        assert str(await reject_files(api, allowed, part)) == NOT_SIGNED
    assert web.accepted == 0


async def test_P2_a_url_of_ours_that_is_not_valid_is_never_fetched(api: LocalApi, web: Web):
    text = Upload(owner="bob", name="b.txt", allowed=FileInput(is_on=True))
    theirs = await api.backend.files.attachments.receive(text, one_piece(b"bob's"))
    signer, later = api.backend.files.signer, NOW + timedelta(days=1)
    expired, foreign = signer.url(theirs.id, "b.txt", NOW), signer.url(theirs.id, "b.txt", later)
    for url in (expired, foreign, f"{foreign}x", f"{BASE}/a", "http://LOCALHOST./a", "https://localhost/a"):
        part: Json = {"type": "document", "source": {"type": "url", "value": url}}
        assert str(await reject_files(api, FileInput(is_on=True, urls=("*",)), part)) == NOT_SIGNED
    away = replace(allowing(web), urls=("*", f"*:{web.port}"))
    web.answers["/away"] = leading(f"{BASE}/healthz")
    assert "is this server" in str(await reject_files(api, away, at(web, "/away")))
    assert web.paths == ["/away"]


async def one_piece(piece: bytes) -> AsyncIterator[bytes]:
    yield piece


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("file:///etc/passwd", "no url of http or https"),
        ("https://files.example/", "no files are taken from files.example on port 443"),
        ("http://inside.example:{port}/", "is at an address that is not public"),
        ("http://files.example:{port}/none", "answered with status 404"),
    ],
)
async def test_D7_what_cannot_be_had_is_told_and_nothing_stays(api: LocalApi, web: Web, url: str, words: str):
    source: Json = {"type": "url", "value": url.format(port=web.port)}
    part: Json = {"type": "document", "source": source, "metadata": {"filename": "my.txt"}}
    error = await reject_files(api, allowing(web), inline("c.txt", b"c"), at(web, "/a.txt"), part)
    assert str(error).startswith("my.txt: ")
    assert words in str(error)
    assert error.where == "messages[0].content[2]"


async def test_D7_urls_are_read_before_anything_is_fetched_or_stored(api: LocalApi, web: Web):
    source: Json = {"type": "url", "value": "https://other.example/"}
    parts: list[Json] = [at(web, "/a.txt"), inline("c.txt", b"c"), {"type": "document", "source": source}]
    await reject_files(api, allowing(web), *parts)
    assert (web.accepted, api.storage.received) == (0, 0)


async def test_P9_too_many_files_are_refused_before_any_is_fetched(api: LocalApi, web: Web):
    error = await reject_files(api, allowing(web), *[at(web, f"/{place}") for place in range(6)])
    assert ("the message has 6 files" in str(error), web.accepted) == (True, 0)


async def test_P9_what_comes_is_held_to_what_the_agent_takes(api: LocalApi, web: Web):
    documents = replace(allowing(web), images=False, max_bytes=500)
    assert "accepts no images" in str(await reject_files(api, documents, at(web, "/dot.png")))
    web.answers["/large.txt"] = http(b"x" * 501, TEXT)
    assert "500 bytes, which is the most that is fetched" in str(
        await reject_files(api, documents, at(web, "/large.txt"))
    )


async def test_D7_a_picture_that_turns_out_to_be_none_is_refused(api: LocalApi, web: Web):
    web.answers["/login"] = http(b"<!doctype html>Please log in", "Content-Type: text/html")
    error = await reject_files(api, allowing(web), at(web, "/a.txt"), at(web, "/login", "image"))
    assert ("the request declares an image" in str(error), error.where) == (True, "messages[0].content[1]")


# Over the routes


async def test_P4_the_same_run_again_fetches_nothing_again(api: LocalApi, web: Web):
    body = a_body(at(web, "/a.txt"))
    first, again = await api.ask("POST", RUNS, body), await api.ask("POST", RUNS, body)
    assert (first.status, again.status, web.paths) == (202, 202, ["/a.txt"])
    assert first.json == again.json


async def test_P2_a_file_that_cannot_be_had_is_a_problem_of_its_own(api: LocalApi, web: Web):
    answer = await api.ask("POST", RUNS, a_body(at(web, "/none"), run=new_id()))
    assert_problem(answer, 422, "document: files.example answered with status 404")


async def test_P5_nothing_is_fetched_or_taken_in_for_somebody_else_s_thread(api: LocalApi, web: Web):
    assert (await api.ask("POST", RUNS, a_body({"type": "text", "text": "hello"}))).status == 202
    theirs = a_body(at(web, "/a.txt"), inline("c.txt", b"c"), run=new_id())
    answer = await api.ask("POST", RUNS, theirs.replace(THREAD.encode(), THREAD.upper().encode()), user="bob")
    assert_problem(answer, 404, f"There is no thread '{THREAD}'")
    assert (web.accepted, api.storage.received) == (0, 0)
    assert (await api.ask("POST", RUNS, theirs)).status == 202
    assert web.paths == ["/a.txt"]
