"""Calls side by side and in other programs' forms (X1): over real runs, and who may see what."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy import create_engine, update

from recto.conversation.json import Json, load_object
from recto.ids import new_id
from recto.store.schema import CALLS as CALL_TABLE
from recto.testing.model_server import Answer, Call
from tests.flow.in_process import STREAM, InProcess, in_process
from tests.support.client import RUNS, HttpReply

ANN, BOB = "ann-key-of-our-tests-here", "bob-key-of-our-tests-here"
KEYS = {"api_keys": f"ann:{ANN},bob:{BOB}"}
NOTE = Answer(calls=(Call(name="note", arguments='{"text": "x"}'),))


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[InProcess]:
    async with in_process(tmp_path, monkeypatch, operators="bob", **KEYS) as server:
        yield server


async def make(server: InProcess, words: str, *answers: Answer, thread: str = "", token: str = ANN) -> str:
    """A run that is over. Returns its task id."""
    server.answers.extend(answers)
    message = {"id": new_id(), "role": "user", "content": words}
    body = {"threadId": thread or new_id(), "runId": new_id(), "messages": [message]}
    reply = await server.send("POST", RUNS, body, token=token, headers=STREAM)
    assert reply.status == 200, reply.body
    return reply.headers["recto-task-id"]


async def ask(server: InProcess, path: str, token: str = ANN) -> Mapping[str, Json]:
    reply = await server.send("GET", f"{RUNS}/{path}", token=token)
    assert reply.status == 200, reply.body
    return reply.json


async def test_X1_calls_of_two_runs_are_compared_and_a_turn_that_closed_is_the_cause(server: InProcess):
    thread = new_id()
    first = await make(server, "one", thread=thread)
    second = await make(server, "two", thread=thread)
    response = await ask(server, f"{first}/calls/1/diff/1?run={second}")
    broken = cast("Mapping[str, Json]", response["prefixBreak"])
    assert broken["cause"] == "turn_closed"
    changed = [part for part in cast("list[Mapping[str, Json]]", response["parts"]) if part["change"] == "changed"]
    assert broken["source"] == cast("Mapping[str, Json]", changed[0]["before"])["source"]
    assert "content" in cast("list[str]", changed[0]["fields"])


async def test_P5_calls_of_somebody_else_are_compared_with_nothing(server: InProcess):
    mine, theirs = await make(server, "mine"), await make(server, "secret of bob", token=BOB)
    for path in (
        f"{theirs}/calls/1/diff/1",
        f"{mine}/calls/1/diff/1?run={theirs}",
        f"{theirs}/calls/1/diff/1?run={mine}",
        f"{theirs}/calls?as=har",
        f"{theirs}/calls/1?as=har",
        f"{theirs}/calls/1?as=curl",
    ):
        reply = await server.send("GET", f"{RUNS}/{path}", token=ANN)
        assert (reply.status, b"secret" in reply.body) == (404, False)


REJECTIONS = {
    404: ["calls/1/diff/9", "calls/9/diff/1", "calls/1/diff/1?run=nobody", "calls/1/diff/1?run=%00"],
    422: ["calls/1/diff/0", "calls/1/diff/x", "calls/1?as=xml", "calls?as=curl"],
}


async def test_X1_what_cannot_be_compared_or_written_is_refused(server: InProcess):
    run = await make(server, "hello")
    for status, paths in REJECTIONS.items():
        for path in paths:
            assert (await server.send("GET", f"{RUNS}/{run}/{path}", token=ANN)).status == status, path


async def test_X1_the_curl_command_sends_the_very_bytes_again_and_holds_no_key(server: InProcess, tmp_path: Path):
    run = await make(server, 'it\'s "quoted" $HOME `id` \\ 四\nEND_OF_PAGE\n', token=BOB)
    reply = await server.send("GET", f"{RUNS}/{run}/calls/1?as=curl", token=BOB)
    assert reply.headers["content-type"].startswith("text/plain")
    assert b"Authorization: Bearer $RECTO_MODEL_KEY" in reply.body
    await in_a_shell(reply.body, tmp_path, RECTO_MODEL_KEY="k-7")
    first, again = server.model.requests
    assert again.body == first.body
    assert again.headers["authorization"] == "Bearer k-7"


async def test_X1_who_is_no_operator_is_not_told_where_the_model_is(server: InProcess, tmp_path: Path):
    run = await make(server, "hello")
    texts = [
        (await server.send("GET", f"{RUNS}/{run}/{path}", token=ANN)).body
        for path in ("calls/1?as=curl", "calls/1?as=har", "calls?as=har")
    ]
    assert [server.model.url.encode() in text for text in texts] == [False] * 3
    assert b'"$RECTO_MODEL_URL"' in texts[0]
    assert b"https://model.invalid/chat/completions" in texts[1]
    await in_a_shell(texts[0], tmp_path, RECTO_MODEL_URL=server.model.url, RECTO_MODEL_KEY="")
    first, again = server.model.requests
    assert again.body == first.body


async def in_a_shell(script: bytes, folder: Path, **variables: str) -> None:
    file = folder / "call.sh"
    file.write_bytes(script)
    clean = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    shell = await asyncio.create_subprocess_exec(
        "sh", str(file), env={**clean, **variables}, stdout=asyncio.subprocess.DEVNULL
    )
    assert await asyncio.wait_for(shell.wait(), 20) == 0


async def test_X1_a_har_file_has_each_call_with_its_page_and_its_times(server: InProcess):
    run = await make(server, "note it", NOTE, Answer(text="Done."), token=BOB)
    reply = await server.send("GET", f"{RUNS}/{run}/calls?as=har", token=BOB)
    log = log_of(reply)
    assert (log["version"], cast("Mapping[str, Json]", log["creator"])["name"]) == ("1.2", "recto")
    entries = cast("list[Mapping[str, Mapping[str, Json]]]", log["entries"])
    assert [text_of(entry) for entry in entries] == [
        model_request.body.decode() for model_request in server.model.requests
    ]
    entry = entries[0]
    assert entry["request"]["url"] == f"{server.model.url}/chat/completions"
    assert (entry["request"]["method"], entry["response"]["status"], entry["_recto"]["verified"]) == ("POST", 200, True)
    timings = cast("Mapping[str, float]", entry["timings"])
    assert sum(timings.values()) == pytest.approx(cast("float", entry["time"]))
    alone = log_of(await server.send("GET", f"{RUNS}/{run}/calls/1?as=har", token=BOB))
    assert alone["entries"] == [entry]


def log_of(reply: HttpReply) -> Mapping[str, Json]:
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    return cast("Mapping[str, Json]", (load_object(reply.body) or {})["log"])


def text_of(entry: Mapping[str, Mapping[str, Json]]) -> Json:
    return cast("Mapping[str, Json]", entry["request"]["postData"])["text"]


async def test_X1_a_damaged_call_is_neither_compared_nor_sent_again_and_its_har_says_so(
    server: InProcess, tmp_path: Path
):
    run = await make(server, "hello")
    engine = create_engine(f"sqlite:///{tmp_path / 'data' / 'recto.db'}")
    with engine.begin() as connection:
        connection.execute(update(CALL_TABLE).values(digest="0" * 64))
    engine.dispose()
    for path in ("calls/1/diff/1", "calls/1?as=curl", "calls/1?raw=1"):
        reply = await server.send("GET", f"{RUNS}/{run}/{path}", token=ANN)
        assert (reply.status, "digest is damaged" in str(reply.json["detail"])) == (409, True)
    log = log_of(await server.send("GET", f"{RUNS}/{run}/calls?as=har", token=ANN))
    (entry,) = cast("list[Mapping[str, Mapping[str, Json]]]", log["entries"])
    assert (entry["_recto"]["verified"], entry["_recto"]["damaged"], text_of(entry)) == (False, ["digest"], "")
