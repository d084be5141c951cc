"""Step 11: a conversation that no longer fits gets a summary, as a marker; the log keeps everything."""

import asyncio
import threading
from pathlib import Path

import pytest

from recto.conversation.log import Compacted
from recto.ids import new_id
from recto.testing.client import RUNS, ask
from recto.testing.model_server import Answer, failure
from tests.flow.in_process import STREAM, events_of, in_process, types_of

LONG = "words " * 600


async def test_R13_a_long_conversation_goes_on_from_its_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    thread = new_id()
    async with in_process(tmp_path, monkeypatch, settings="window: 1000\ncompact: {least: 1}") as server:
        await server.run(LONG, Answer(text="One.", usage=None), thread=thread)
        await server.run(LONG, Answer(text="SUMMARY: words."), Answer(text="Two."), thread=thread)
        log = await server.log(thread)
        assert [type(entry) for entry in log].count(Compacted) == 1
        assert str(server.pages[-1]).count("SUMMARY: words.") == 1
        assert str(log).count(LONG.strip()) == 2


async def test_R13_readers_see_that_a_summary_is_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    thread = new_id()
    async with in_process(tmp_path, monkeypatch, settings="window: 1000\ncompact: {least: 1}") as server:
        await server.run(LONG, Answer(text="One.", usage=None), thread=thread)
        events = await server.run(LONG, Answer(text="SUMMARY: words."), Answer(text="Two."), thread=thread)
        assert types_of(events)[:4] == ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "TEXT_MESSAGE_START"]
        assert [one.event["stepName"] for one in events[1:3]] == ["compact", "compact"]


async def test_R13_a_summary_that_fails_is_over_for_readers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    thread = new_id()
    async with in_process(tmp_path, monkeypatch, settings="window: 1000\ncompact: {least: 1}") as server:
        await server.run(LONG, Answer(text="One.", usage=None), thread=thread)
        events = await server.run(LONG, failure(400, "no", code="bad"), Answer(text="Two."), thread=thread)
        assert types_of(events)[:4] == ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "TEXT_MESSAGE_START"]


async def test_R13_P8_a_run_cancelled_while_it_summarises_closes_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    thread, body, gate = new_id(), ask(LONG), threading.Event()
    async with in_process(tmp_path, monkeypatch, settings="window: 1000\ncompact: {least: 1}") as server:
        await server.run(LONG, Answer(text="One.", usage=None), thread=thread)
        server.answers.append(Answer(text="SUMMARY: words.", hold=gate))
        reading = asyncio.create_task(server.send("POST", RUNS, body | {"threadId": thread}, headers=STREAM))
        made = await asyncio.to_thread(server.model.wait_requests, 2)
        assert await asyncio.to_thread(made[1].wait_held)
        await server.send("POST", f"{RUNS}/{body['runId']}/cancel")
        events = events_of(await reading)
        gate.set()
        assert types_of(events) == ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED", "RUN_FINISHED"]
