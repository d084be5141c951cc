"""Files of messages over HTTP: names that uploads have, urls that are signed now, and files that are refused."""

from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import cast
from zipfile import ZipFile

import pytest

from recto.conversation.input.input_rules import NOT_SIGNED
from recto.conversation.json import Json, dump, load
from recto.ids import new_id
from recto.testing.model_server import Answer, Call
from tests.api.forms import FORM, Field, file, form_of
from tests.documents.content import HERE
from tests.files.heads import PNG
from tests.flow.in_process import STREAM, InProcess, events_of, in_process
from tests.support.client import RUNS, HttpReply, ask

ATTACHMENTS, THREADS = "/api/v1/agent/attachments", "/api/v1/agent/threads"
MACROS = "application/vnd.ms-excel.sheet.macroEnabled.12"
PICK: Json = {"name": "pick", "description": "Pick one.", "parameters": {"type": "object"}}
Row = Mapping[str, Json]


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[InProcess]:
    async with in_process(tmp_path, monkeypatch, settings="file_input: true", built_in="read_files") as server:
        yield server


def rows(value: Json) -> list[Row]:
    return list(cast("list[Row]", value))


async def upload(server: InProcess, *files: Field) -> list[Row]:
    reply = await server.send("POST", ATTACHMENTS, form_of(*files), headers={"content-type": FORM})
    assert reply.status == 200, reply.body
    return rows(reply.json["attachments"])


def part(row: Row) -> Json:
    return {"type": row["type"], "source": {"type": "url", "value": row["url"]}}


async def say(server: InProcess, thread: str, *parts: Json, tools: Json = ()) -> HttpReply:
    body = ask("", thread=thread, tools=tools)
    messages: Json = [{"id": new_id(), "role": "user", "content": list(parts)}]
    return await server.send("POST", RUNS, body | {"messages": messages}, headers=STREAM)


async def fetch(server: InProcess, url: Json) -> HttpReply:
    _, host, path = str(url).partition("/api/v1/")
    return await server.send("GET", f"{host}{path}", token=None)


async def read(server: InProcess, *uploaded: Row) -> list[str]:
    """Return the answers of read_files for uploads, in their order."""
    thread = new_id()
    assert (await say(server, thread, *map(part, uploaded))).status == 200
    ids = [ref.id for ref in await server.backend.store.files.list_refs(thread)]
    call = Call(name="read_files", arguments=dump({"ids": ids}).decode(), id="c1")
    events = await server.run("Read.", Answer(calls=(call,)), thread=thread)
    (text,) = [str(one.event["content"]) for one in events if one.event["type"] == "TOOL_CALL_RESULT"]
    return [str(row["content"]) for row in rows(load(text))]


async def test_P17_a_thread_that_began_with_a_file_and_no_words_has_its_name(server: InProcess):
    thread, (notes,) = new_id(), await upload(server, file("notes.txt", b"Buy milk."))
    await say(server, thread, part(notes))
    assert (await server.send("GET", f"{THREADS}/{thread}")).json["title"] == "notes.txt"


@pytest.mark.full
async def test_D6_a_workbook_with_macros_is_read_as_any_workbook(server: InProcess):
    plain, macro_book = (HERE / "book.xlsx").read_bytes(), BytesIO()
    old_type, new_type = b"openxmlformats-officedocument.spreadsheetml.sheet.main", b"ms-excel.sheet.macroEnabled.main"
    with ZipFile(BytesIO(plain)) as old, ZipFile(macro_book, "w") as new:
        for one in old.infolist():
            new.writestr(one.filename, old.read(one).replace(old_type, new_type))
        new.writestr("xl/vbaProject.bin", b"Attribute VB_Name" + bytes(100))
    uploaded = await upload(
        server, file("book.xlsm", macro_book.getvalue(), MACROS), file("book.xlsx", plain), file("x.xlsm", b"x")
    )
    assert uploaded[2]["code"] == "mismatch"
    macros, without = await read(server, *uploaded[:2])
    assert macros == without
    assert "[sheet 1: " in macros


async def test_P10_P13_history_and_snapshots_have_urls_that_are_signed_now(server: InProcess):
    thread, (photo,) = new_id(), await upload(server, file("photo.png", PNG))
    await say(server, thread, part(photo))
    (ref,) = await server.backend.store.files.list_refs(thread)
    server.answers.append(Answer(calls=(Call(name="pick", arguments=dump({"file": ref.id}).decode()),)))
    await say(server, thread, {"type": "text", "text": "Ask."}, tools=[PICK])
    day = (await server.send("GET", f"/api/v1/agent/history?threadId={thread}")).json
    (file_row,) = rows(rows(day["messages"])[0]["files"])
    newest = (await server.send("GET", f"{THREADS}/{thread}/runs")).json
    run = rows(newest["runs"])[0]["taskId"]
    join_events = await server.send("GET", f"{RUNS}/{run}/events?join=true&protocolVersion=1.0", headers=STREAM)
    (snapshot,) = [one.event for one in events_of(join_events) if one.event["type"] == "MESSAGES_SNAPSHOT"]
    user, *_, reply = rows(snapshot["messages"])
    source = cast("Row", rows(user["content"])[-1]["source"])
    function = cast("Mapping[str, str]", rows(reply["toolCalls"])[0]["function"])
    urls = [file_row["url"], source["value"], cast("Row", load(function["arguments"]))["file"]]
    assert [(await fetch(server, url)).body for url in urls] == [PNG] * 3


def inline(name: str, data: bytes | str) -> Json:
    value = data if isinstance(data, str) else b64encode(data).decode()
    source: Json = {"type": "data", "value": value, "mimeType": "text/plain"}
    return {"type": "document", "source": source, "metadata": {"filename": name}}


PROVIDERS: Json = {"type": "document", "source": {"type": "file", "value": "file-123", "provider": "openai"}}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (PROVIDERS, NOT_SIGNED),
        (inline("a.txt", "no base 64!!"), "a.txt: its data is no base64"),
        (inline("a.txt", b""), "a.txt: it is empty"),
        (inline("a.txt", PNG), "a.txt: its name ends in .txt, but its bytes are"),
        (inline("a.png", b"text"), "a.png: its name ends in .png, but its bytes are text"),
    ],
)
async def test_P2_a_file_that_may_not_be_named_or_is_not_what_it_says_is_refused_and_nothing_is_left(
    server: InProcess, bad: Json, why: str
):
    thread = new_id()
    reply = await say(server, thread, inline("good.txt", b"This one is good."), bad)
    assert (reply.status, str(reply.json["detail"])[: len(why)]) == (422, why)
    assert (await server.send("GET", ATTACHMENTS)).json["attachments"] == []
    assert (await server.send("GET", f"{THREADS}/{thread}")).status == 404
