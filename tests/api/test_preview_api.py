"""Previews over HTTP (X1, P17, F11): the page that would be sent next, and that nothing is left of having looked."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy import create_engine, inspect, text

from recto.conversation.json import Json, load_object
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.api.forms import FORM, file, form_of
from tests.flow.in_process import InProcess, in_process
from tests.support.client import RUNS, HttpReply

THREADS, ATTACHMENTS = "/api/v1/agent/threads", "/api/v1/agent/attachments"
TIME = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+day")
NOTE = Answer(calls=(Call(name="note", arguments='{"text": "x"}'),))
PICK: Json = {"name": "pick", "description": "Pick one.", "parameters": {"type": "object"}}
PICKED = Answer(calls=(Call(name="pick"),))


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[InProcess]:
    async with in_process(tmp_path, monkeypatch) as server:
        yield server


def says(words: Json, id: str = "") -> Json:
    return {"id": id or new_id(), "role": "user", "content": words}


async def look(server: InProcess, thread: str, body: object = None, *, raw: bool = False) -> HttpReply:
    reply = await server.send("POST", f"{THREADS}/{thread}/preview{'?raw=1' if raw else ''}", body or {})
    assert reply.status == 200, reply.body
    return reply


async def send_it(server: InProcess, thread: str, body: Mapping[str, Json]) -> bytes:
    """Start a run of this input, to its end. Returns the page it sent first."""
    before = len(server.model.requests)
    whole = {**body, "threadId": thread, "runId": new_id()}
    reply = await server.send("POST", RUNS, whole, headers={"accept": "text/event-stream"})
    assert reply.status == 200, reply.body
    return server.model.requests[before].body


def timeless(page: bytes) -> bytes:
    return TIME.sub(b"(time)", page)


def everything(folder: Path) -> Mapping[str, object]:
    """All rows of all tables."""
    engine = create_engine(f"sqlite:///{folder / 'data' / 'recto.db'}")
    with engine.connect() as connection:
        names = inspect(engine).get_table_names()
        rows = {name: connection.execute(text(f'SELECT * FROM "{name}"')).all() for name in names}
    engine.dispose()
    return rows


async def test_X1_a_preview_is_byte_for_byte_what_is_sent_then_but_for_the_time(server: InProcess, tmp_path: Path):
    thread = new_id()
    context: Json = [{"description": "where", "value": "at home"}]
    for words, answers in (("hello", (NOTE, Answer(text="Noted."))), ("and?", ()), ("more", ())):
        body: dict[str, Json] = {"messages": [says(words)], "tools": [PICK], "context": context}
        before = everything(tmp_path)
        preview = (await look(server, thread, {**body, "threadId": thread, "runId": "run-1"}, raw=True)).body
        assert everything(tmp_path) == before
        calls = len(server.model.requests)
        server.answers.extend(answers)
        page_body = await send_it(server, thread, body)
        assert len(server.model.requests) == calls + max(1, len(answers))
        assert TIME.search(page_body)
        assert timeless(preview) == timeless(page_body)


def page_of(preview: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """The messages of the page that is shown."""
    return cast("list[Mapping[str, Json]]", cast("Mapping[str, Json]", preview["page"])["messages"])


async def test_X1_a_preview_has_its_manifest_and_says_what_a_run_would_do_first(server: InProcess):
    thread = new_id()
    preview = (await look(server, thread, {"messages": [says("hello")]})).json
    assert (preview["threadId"], preview["agent"], preview["model"]) == (thread, "helper", "compatible:scripted")
    assert (preview["next"], preview["notes"]) == ("call_model", [])
    raw = (await look(server, thread, {"messages": [says("hello")]}, raw=True)).body
    manifest = cast("Mapping[str, Json]", preview["manifest"])
    spans = [cast("list[int]", part["span"]) for part in cast("list[Mapping[str, Json]]", manifest["parts"])]
    assert (spans[0][0], spans[-1][1], preview["bytes"]) == (0, len(raw), len(raw))
    assert preview["page"] == {**(load_object(raw) or {}), "messages": page_of(preview)}
    assert (await server.send("GET", f"{THREADS}/{thread}")).status == 404


async def test_X1_a_thread_as_it_stands_needs_no_words(server: InProcess):
    thread = new_id()
    await server.run("hello", Answer(text="One."), thread=thread)
    for body in ({}, {"messages": list[Json]()}):
        preview = (await look(server, thread, body)).json
        assert [message["role"] for message in page_of(preview)][:3] == ["system", "user", "assistant"]
        assert preview["next"] == "finished"
        assert "a run would end" in str(preview["notes"])


async def test_P11_a_preview_of_a_thread_that_waits_says_so_and_a_result_is_in_the_page(server: InProcess):
    thread, words = new_id(), says("pick one", "m1")
    server.answers.append(PICKED)
    await send_it(server, thread, {"messages": [words], "tools": [PICK]})
    waiting = (await look(server, thread, {"tools": [PICK]})).json
    assert waiting["next"] == "wait_for_client"
    result = await result_of(server, thread, "the red one")
    body: dict[str, Json] = {"messages": [words, result], "tools": [PICK]}
    preview = (await look(server, thread, body, raw=True)).body
    assert b"the red one" in preview
    assert preview == await send_it(server, thread, body)


async def result_of(server: InProcess, thread: str, words: str) -> Json:
    """Return a client's result of the call that waits."""
    pending = (await server.send("GET", f"{THREADS}/{thread}")).json["pendingCalls"]
    (call,) = cast("list[Mapping[str, Json]]", pending)
    return {"id": "t1", "role": "tool", "toolCallId": call["id"], "content": words}


@pytest.mark.full
async def test_P9_files_go_by_their_urls_and_only_their_ids_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with in_process(tmp_path, monkeypatch, settings="file_input: {documents: true, mode: always}") as server:
        form = form_of(file("a.txt", b"words of the file"))
        reply = await server.send("POST", ATTACHMENTS, form, headers={"content-type": FORM})
        (row,) = cast("list[Mapping[str, Json]]", reply.json["attachments"])
        thread = new_id()
        part: Json = {"type": "document", "source": {"type": "url", "value": row["url"], "mimeType": "text/plain"}}
        body: dict[str, Json] = {"messages": [says([{"type": "text", "text": "read"}, part])]}
        # Its text is read and kept, as after any upload.
        preview = (await look(server, thread, body, raw=True)).body
        before = everything(tmp_path)
        preview = (await look(server, thread, body, raw=True)).body
        assert everything(tmp_path) == before
        page_body = await send_it(server, thread, body)
        assert b"words of the file" in preview
        assert nameless(preview) == nameless(page_body)
        again: dict[str, Json] = {"messages": [says("and again")]}
        preview = (await look(server, thread, again, raw=True)).body
        assert timeless(preview) == timeless(await send_it(server, thread, again))


def nameless(page: bytes) -> bytes:
    return re.sub(rb"<id>[0-9a-f-]{36}-0</id>", b"(id)", timeless(page))


REJECTIONS: tuple[tuple[Json, int, str], ...] = (
    ({"messages": [says("a"), says("b")]}, 422, "exactly one user message"),
    ({"threadId": new_id(), "messages": []}, 422, "differs from the thread in the path"),
    ({"forwardedProps": {"agent": "nobody"}}, 422, "there is no agent"),
    ({"tools": [{"name": "note", "description": "", "parameters": {}}]}, 422, "tool of the agent"),
    ([], 422, "must be a JSON object"),
    ({"messages": [says("x" * 262_144)]}, 413, "exceeds size limit"),
)


async def test_P2_a_preview_is_held_to_the_rules_of_a_run(server: InProcess):
    for body, status, words in REJECTIONS:
        reply = await server.send("POST", f"{THREADS}/{new_id()}/preview", body)
        assert (reply.status, words in str(reply.json["detail"])) == (status, True), reply.body
    reply = await server.send("POST", f"{THREADS}/mine/preview", {})
    assert (reply.status, reply.json["detail"]) == (422, "threadId must be a valid UUID")


async def test_X1_a_file_that_would_have_to_be_stored_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with in_process(tmp_path, monkeypatch, settings="file_input: {documents: true, images: true}") as server:
        inline: Json = {"type": "image", "source": {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png"}}
        before = everything(tmp_path)
        reply = await server.send("POST", f"{THREADS}/{new_id()}/preview", {"messages": [says([inline])]})
        assert (reply.status, "Upload this file first" in str(reply.json["detail"])) == (422, True)
        assert everything(tmp_path) == before


@pytest.mark.full
async def test_P11_a_form_that_is_answered_does_not_act_in_a_preview(server: InProcess, tmp_path: Path):
    thread, words = new_id(), says("帮我算个八字", "m1")
    form: Json = {"name": "collect_birth_info", "description": "A form.", "parameters": {"type": "object"}}
    props: Json = {"agent": "vibe", "skill": "bazi"}
    server.answers.append(Answer(calls=(Call(name="collect_birth_info"),)))
    await send_it(server, thread, {"messages": [words], "tools": [form], "forwardedProps": props})
    result = await result_of(server, thread, '{"date": "1990-05-15", "time": "14:30", "place": "北京"}')
    before = everything(tmp_path)
    preview = (await look(server, thread, {"messages": [words, result], "tools": [form]})).json
    assert everything(tmp_path) == before
    assert "The tool collect_birth_info would act on the client's answer first" in str(preview["notes"])
    assert "1990-05-15" in str(preview["page"])


@pytest.mark.full
async def test_S4_a_skill_that_is_asked_for_is_in_the_preview_and_not_in_the_thread(server: InProcess):
    thread = new_id()
    props: Json = {"agent": "vibe", "skill": "bazi", "timezone": "Asia/Shanghai"}
    for body in ({"messages": [says("帮我算个八字")], "forwardedProps": props}, {"messages": [says("继续")]}):
        for _ in range(2):
            preview = (await look(server, thread, body)).json
            assert cast("Mapping[str, Json]", preview["manifest"])["skill"] == "bazi"
        raw = (await look(server, thread, body, raw=True)).body
        assert timeless(raw) == timeless(await send_it(server, thread, body))


async def test_P6_a_preview_beside_a_run_at_work_says_that_it_may_be_another_page(server: InProcess):
    thread = new_id()
    server.answers.append(Answer(hang=True))
    body = {"threadId": thread, "runId": "r1", "messages": [says("hold on")]}
    assert (await server.send("POST", RUNS, body)).status == 202
    await asyncio.to_thread(server.model.wait_requests, 1)
    preview = (await look(server, thread, {"messages": [says("and?")]})).json
    assert "A run of this thread is active" in str(preview["notes"])
    assert (await server.send("POST", f"{RUNS}/r1/cancel")).status == 200


async def test_R13_a_preview_of_a_page_without_room_says_that_a_summary_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    thread = new_id()
    async with in_process(tmp_path, monkeypatch, settings="window: 4000") as server:
        await server.run("word " * 1_500, Answer(text="One.", usage=None), thread=thread)
        preview = (await look(server, thread, {"messages": [says("word " * 1_900)]})).json
        assert preview["next"] == "compact"
        assert "a run would summarise old messages first" in str(preview["notes"])
