"""Rollback and undo over HTTP (R12, P17): what is seen changes, what is stored does not."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer
from tests.api.forms import FORM, file, form_of
from tests.flow.in_process import STREAM, InProcess, in_process, messages_of
from tests.support.client import RUNS, HttpReply, ask

THREADS = "/api/v1/agent/threads"


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[InProcess]:
    settings = "file_input: {documents: true}"
    async with in_process(tmp_path, monkeypatch, settings=settings) as server:
        yield server


async def say(server: InProcess, thread: str, words: Json, id: str = "", **rest: Json) -> HttpReply:
    body = {**ask("", thread=thread), **rest}
    body["messages"] = [{"id": id or new_id(), "role": "user", "content": words}]
    return await server.send("POST", RUNS, body, headers=STREAM)


async def post(server: InProcess, thread: str, what: str, body: Json = None) -> HttpReply:
    return await server.send("POST", f"{THREADS}/{thread}/{what}", body)


async def ids(server: InProcess, thread: str) -> list[Json]:
    messages = (await server.send("GET", f"{THREADS}/{thread}/messages")).json["messages"]
    return [row["id"] for row in cast("list[Mapping[str, Json]]", messages)]


async def test_R12_a_rollback_answers_with_the_words_to_edit_and_they_are_gone_from_view(server: InProcess):
    thread = new_id()
    await say(server, thread, "One", "m1")
    await say(server, thread, "Two", "m2")
    before = await ids(server, thread)
    reply = await post(server, thread, "rollback", {"messageId": "m2"})
    expected_row: dict[str, Json] = {
        "threadId": thread,
        "messageId": "m2",
        "content": "Two",
        "files": [],
        "canUndo": True,
    }
    assert (reply.status, reply.json) == (200, {**expected_row, "changedFiles": None, "skill": None, "scenario": None})
    assert await ids(server, thread) == before[:2]
    assert (await server.send("GET", f"{THREADS}/{thread}")).json["canUndo"] is True
    await say(server, thread, "Two, but better", "m3")
    page = [str(message["content"]) for message in messages_of(server.pages[-1])]
    assert [words.splitlines()[-1] for words in page[1:]] == ["One", "Well.", "Two, but better"]


async def test_R12_files_come_back_with_urls_that_are_good(server: InProcess):
    form = form_of(file("a.txt", b"words of the file"))
    reply = await server.send("POST", "/api/v1/agent/attachments", form, headers={"content-type": FORM})
    (row,) = cast("list[Mapping[str, Json]]", reply.json["attachments"])
    thread = new_id()
    part: Json = {"type": "document", "source": {"type": "url", "value": row["url"], "mimeType": "text/plain"}}
    await say(server, thread, [{"type": "text", "text": "Read this"}, part], "m1")
    rolled = (await post(server, thread, "rollback", {"messageId": "m1"})).json
    (file_row,) = cast("list[Mapping[str, Json]]", rolled["files"])
    assert (rolled["content"], file_row["id"], file_row["name"]) == ("Read this", row["id"], "a.txt")
    path = str(file_row["url"]).partition("//")[2].partition("/")[2]
    assert (await server.send("GET", f"/{path}", token=None)).body == b"words of the file"
    again: Json = {"type": "document", "source": {"type": "url", "value": file_row["url"], "mimeType": "text/plain"}}
    assert (await say(server, thread, [{"type": "text", "text": "Read it"}, again])).status == 200


REJECTIONS: list[tuple[str, Json, int, str]] = [
    ("rollback", {"messageId": "\0"}, 404, "There is no user message '\\x00'."),
    ("rollback", {"messageId": ""}, 422, "messageId: is missing. Name the id of the user message to roll back to"),
    ("rollback", {"messageId": 7}, 422, "body.messageId: must be a string, is a number"),
    ("rollback", [], 422, "body: must be a JSON object"),
    ("undo", None, 409, "This thread has no rollback to undo."),
]


async def test_P17_R12_a_rollback_to_no_message_in_view_and_an_undo_of_none_are_refused(server: InProcess):
    thread = new_id()
    await say(server, thread, "One", "m1")
    for what, body, status, detail in REJECTIONS:
        reply = await post(server, thread, what, body)
        assert (reply.status, reply.json["detail"]) == (status, detail)
    for what in ("rollback", "undo", "compact"):
        assert (await post(server, new_id(), what, {"messageId": "m1"})).status == 404


async def test_R12_while_a_run_is_at_work_nothing_is_turned_back_or_compacted(server: InProcess):
    thread = new_id()
    await say(server, thread, "One", "m1")
    server.answers.append(Answer(hang=True))
    assert (await server.send("POST", RUNS, ask("Two", thread=thread, run="slow"))).status == 202
    await asyncio.to_thread(server.model.wait_requests, 2)
    for what in ("rollback", "undo", "compact"):
        reply = await post(server, thread, what, {"messageId": "m1"})
        words = "Run 'slow' of this thread is active. Wait for its end, or cancel it."
        assert (reply.status, reply.json["detail"]) == (409, words)
    await server.send("POST", f"{RUNS}/slow/cancel")
    await server.send("GET", f"{RUNS}/slow/events")
    assert (await post(server, thread, "rollback", {"messageId": "m1"})).status == 200
