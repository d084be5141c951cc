"""Compaction on request over HTTP (R13, P17): a run that writes a summary and nothing else."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from recto.conversation.json import Json, dump
from recto.conversation.log import Compacted, view
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, failure
from tests.api.forms import FORM, file, form_of
from tests.flow.in_process import STREAM, InProcess, events_of, in_process, messages_of, types_of, without_progress
from tests.support.client import RUNS, HttpReply, ReceivedEvent, ask

pytestmark = pytest.mark.full

THREADS = "/api/v1/agent/threads"
LONG = "words " * 300
SETTINGS = "compact: {least: 1}\nlocale: en\nfile_input: {documents: true}"
SUMMARY = Answer(text="SUMMARY: words.")


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[InProcess]:
    # So that tries that fail are not waited for.
    async with in_process(tmp_path, monkeypatch, settings=SETTINGS, retry_seconds=0) as server:
        yield server


async def talk(server: InProcess, *words: str) -> str:
    thread = new_id()
    for one in words:
        await server.run(one, thread=thread)
    return thread


async def compact(server: InProcess, thread: str, *answers: Answer, **body: Json) -> Sequence[ReceivedEvent]:
    server.answers += answers
    reply = await server.send("POST", f"{THREADS}/{thread}/compact", {"protocolVersion": "1.0", **body}, headers=STREAM)
    assert reply.status == 200, reply.body
    return events_of(reply)


def rows(folder: Path) -> Sequence[Sequence[object]]:
    with closing(sqlite3.connect(folder / "data" / "recto.db")) as database:
        return database.execute("SELECT * FROM log ORDER BY thread, seq").fetchall()


async def test_R13_what_is_old_is_summarised_and_the_last_turn_stays(server: InProcess, tmp_path: Path):
    thread = await talk(server, LONG, LONG, "And now?")
    before = rows(tmp_path)
    events = await compact(server, thread, SUMMARY)
    assert types_of(without_progress(events)) == ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "RUN_FINISHED"]
    fields = {"label": "compact", "total": 1, "unit": "pieces"}
    end_row = {"status": "ended", "done": 1, **fields}
    assert [events[place].event["content"] for place in (2, -3)] == [
        {"status": "running", "done": 0, **fields},
        end_row,
    ]
    assert events[-1].event["outcome"] == {"type": "success"}
    assert "result" not in events[-1].event
    assert rows(tmp_path)[:-1] == before
    assert isinstance((await server.log(thread))[-1], Compacted)
    await server.run("Go on.", thread=thread)
    page = [str(message["content"]) for message in messages_of(server.pages[-1])]
    assert "SUMMARY: words." in page[1]
    assert [words.splitlines()[-1] for words in page[2:]] == ["And now?", "Well.", "Go on."]


async def test_P1_a_run_that_compacts_is_stored_before_it_is_answered_and_is_a_run_as_any(server: InProcess):
    thread = await talk(server, LONG, "And now?")
    server.answers.append(SUMMARY)
    reply = await server.send("POST", f"{THREADS}/{thread}/compact", {"runId": "tidy"})
    assert (reply.status, reply.json["threadId"], reply.json["runId"]) == (202, thread, "tidy")
    row = await wait_for_end(server, "tidy")
    assert (row["status"], row["outcome"], row["calls"]) == ("finished", "done", 1)
    calls = cast("list[Mapping[str, Json]]", (await server.send("GET", f"{RUNS}/tidy/calls")).json["calls"])
    assert [call["purpose"] for call in calls] == ["summary"]


async def wait_for_end(server: InProcess, run: str) -> Mapping[str, Json]:
    await server.send("GET", f"{RUNS}/{run}/events")
    return (await server.send("GET", f"{RUNS}/{run}")).json


async def test_P4_the_same_request_again_is_the_same_run(server: InProcess):
    thread = await talk(server, LONG, "And now?")
    first = await compact(server, thread, SUMMARY, runId="tidy")
    count_before = len(server.pages)
    assert await compact(server, thread, runId="tidy") == first
    assert len(server.pages) == count_before
    other = await server.send("POST", f"{THREADS}/{await talk(server, LONG)}/compact", {"runId": "tidy"})
    assert other.status == 409


@pytest.mark.parametrize("words", ["Hi", LONG])
async def test_R13_where_there_is_nothing_to_summarise_the_run_ends_well_and_says_so(server: InProcess, words: str):
    thread = await talk(server, words)
    before = await server.log(thread)
    events = await compact(server, thread)
    assert types_of(events) == ["RUN_STARTED", "RUN_FINISHED"]
    assert events[-1].event["result"] == {"finish": "nothing_to_compact"}
    assert await server.log(thread) == before


async def test_R13_three_tries_that_fail_change_nothing_and_the_run_says_so(server: InProcess):
    thread = await talk(server, LONG, "And now?")
    before = await server.log(thread)
    events = await compact(server, thread, *[failure(500) for _ in range(3)], runId="tidy")
    assert types_of(without_progress(events)) == ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "RUN_ERROR"]
    assert (events[-1].event["code"], events[-1].event["message"]) == (
        "compact_failed",
        "The model wrote no summary in up to 3 tries. Nothing is changed; try again later.",
    )
    assert await server.log(thread) == before
    row = (await server.send("GET", f"{RUNS}/tidy")).json
    assert (row["status"], row["calls"]) == ("failed", 3)
    await compact(server, thread, SUMMARY)
    assert isinstance((await server.log(thread))[-1], Compacted)


async def test_P8_R13_a_run_that_compacts_is_cancelled_as_any_and_changes_nothing(server: InProcess):
    thread, gate = await talk(server, LONG, "And now?"), Event()
    before = await server.log(thread)
    reading = asyncio.create_task(compact(server, thread, Answer(text="SUMMARY", hold=gate), runId="tidy"))
    model_request = await asyncio.to_thread(server.model.wait_requests, 3)
    assert await asyncio.to_thread(model_request[2].wait_held)
    await server.send("POST", f"{RUNS}/tidy/cancel")
    events = await reading
    gate.set()
    assert events[-1].event["outcome"] == {"type": "cancelled"}
    assert await server.log(thread) == before


async def test_R12_R13_a_rollback_past_a_summary_has_it_no_longer_and_an_undo_has_it_again(server: InProcess):
    thread = await talk(server, LONG, "And now?")
    await compact(server, thread, SUMMARY)
    await server.run("Go on.", thread=thread)
    users = [entry.id for entry in view(await server.log(thread)).messages if entry.role == "user"]
    await server.send("POST", f"{THREADS}/{thread}/rollback", {"messageId": users[1]})
    await server.run("Otherwise.", thread=thread)
    await server.send("POST", f"{THREADS}/{thread}/undo")
    await server.run("Go on again.", thread=thread)
    pages = [str(page) for page in server.pages[-3:]]
    assert [("SUMMARY" in page, "words words" in page) for page in pages] == [
        (True, False),
        (False, True),
        (True, False),
    ]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"runId": ""}, "runId exceeds length limit"),
        ({"runId": "x" * 129}, "runId exceeds length limit"),
        ({"runId": 7}, "body.runId: must be a string, is a number"),
        ([], "body: must be a JSON object"),
    ],
)
async def test_P2_R13_a_run_id_that_is_none_is_refused(server: InProcess, body: Json, detail: str):
    thread = await talk(server, "Hi")
    reply = await server.send("POST", f"{THREADS}/{thread}/compact", body)
    assert (reply.status, reply.json["detail"]) == (422, detail)
    assert len(server.pages) == 1


async def test_P11_a_call_that_waits_for_the_client_still_does(server: InProcess):
    thread = await talk(server, LONG, LONG)
    body = ask("Pick one.", thread=thread, tools=[{"name": "pick", "description": "", "parameters": {}}])
    server.answers.append(Answer(calls=(Call(name="pick"),)))
    await server.send("POST", RUNS, body, headers=STREAM)
    before = (await server.send("GET", f"{THREADS}/{thread}")).json["pendingCalls"]
    await compact(server, thread, SUMMARY)
    assert (await server.send("GET", f"{THREADS}/{thread}")).json["pendingCalls"] == before != []
    (call,) = cast("list[Mapping[str, Json]]", before)
    result: Json = {"id": "t1", "role": "tool", "toolCallId": call["id"], "content": "the red one"}
    messages = cast("list[Json]", body["messages"])
    answer: dict[str, Json] = {**body, "runId": new_id(), "messages": [*messages, result]}
    await server.send("POST", RUNS, answer, headers=STREAM)
    assert "the red one" in str(server.pages[-1])
    assert "Pick one." in str(server.pages[-1])


async def test_R13_the_open_task_and_file_ids_survive(server: InProcess):
    reply: HttpReply = await server.send(
        "POST", "/api/v1/agent/attachments", form_of(file("plan.txt", b"the plan")), headers={"content-type": FORM}
    )
    (row,) = cast("list[Mapping[str, Json]]", reply.json["attachments"])
    part: Json = {"type": "document", "source": {"type": "url", "value": row["url"], "mimeType": "text/plain"}}
    thread, body = new_id(), ask("")
    body |= {"threadId": thread, "messages": [{"id": "m1", "role": "user", "content": [part]}]}
    await server.send("POST", RUNS, body, headers=STREAM)
    await server.run(LONG, thread=thread)
    # A task that is not done: each note is a step, and the last one waits.
    words = dump({"text": LONG}).decode()
    notes = [Answer(calls=(Call(name="note", arguments=words, id=f"c{one}"),)) for one in range(4)]
    await server.run("Write all of it down.", *notes, failure(400, "no"), thread=thread)
    await compact(server, thread, SUMMARY)
    question = str(server.pages[-1])
    id = (await server.backend.store.files.list_refs(thread))[0].id
    assert f"[document {id}: plan.txt]" in question
    assert "Write all of it down." in question
    await server.run("Go on.", thread=thread)
    page = str(server.pages[-1])
    assert "SUMMARY" in page
    assert page.count("noted words") < 4
    assert {ref.id for ref in await server.backend.store.files.list_refs(thread)} == {id}
