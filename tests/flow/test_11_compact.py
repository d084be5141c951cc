"""Step 11: a conversation that no longer fits gets a summary, as a marker; the log keeps everything."""

import asyncio
import re
import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from recto.conversation.log import Compacted
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, Request, failure
from tests.flow.in_process import STREAM, InProcess, events_of, in_process, messages_of, types_of, without_progress
from tests.support.client import RUNS, ask

LONG = "words " * 600
TIGHT = "window: 1000\ncompact: {least: 1}"
# What readers are told of a run that has a summary written first.
WRITING = ["RUN_STARTED", "STEP_STARTED", "STEP_FINISHED"]


@pytest.fixture
async def tight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[InProcess]:
    """Return a server whose pages are full after one long message."""
    async with in_process(tmp_path, monkeypatch, settings=TIGHT) as server:
        yield server


async def test_R13_a_long_conversation_goes_on_from_its_summary_and_readers_see_that_it_is_written(tight: InProcess):
    thread = new_id()
    await tight.run(LONG, Answer(text="One.", usage=None), thread=thread)
    events = await tight.run(LONG, Answer(text="SUMMARY: words."), Answer(text="Two."), thread=thread)
    log = await tight.log(thread)
    assert [type(entry) for entry in log].count(Compacted) == 1
    assert str(tight.pages[-1]).count("SUMMARY: words.") == 1
    assert str(log).count(LONG.strip()) == 2
    assert types_of(without_progress(events))[:4] == [*WRITING, "TEXT_MESSAGE_START"]
    assert [one.event["stepName"] for one in without_progress(events)[1:3]] == ["compact", "compact"]
    results = [one.event["content"] for one in events if one.event["type"] == "ACTIVITY_SNAPSHOT"]
    of_all = {"label": "compact", "total": 1, "unit": "pieces"}
    assert [results[0], results[-1]] == [
        {"status": "running", "done": 0, **of_all},
        {"status": "ended", "done": 1, **of_all},
    ]


def keeps_what_is_asked(model_request: Request) -> Answer:
    """Summarize only what the instructions name."""
    question, *_, contents = [str(message["content"]) for message in messages_of(model_request.page)]
    if not question.startswith("You summarise"):
        return Answer(text="Well.", usage=None)
    expected = {
        "the user: name, place, preferences": r"I am \w+ from \w+\.",
        "the task that is still open, in the user's words": r"Please \w+ .*?\.",
        "paths, identifiers": r"src/\w+\.py",
        "errors met": r"\w+Error",
    }
    so_far, _, talk = contents.rpartition("The conversation:\n")
    read = talk + (so_far if "Keep all of the summary so far that still holds." in question else "")
    match = [match for words, pattern in expected.items() if words in question for match in re.findall(pattern, read)]
    return Answer(text=f"NOTED {' '.join(dict.fromkeys(match))}", usage=None)


async def test_R13_name_city_and_task_survive_and_the_last_turns_are_as_they_were_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    thread, talk = new_id(), "about the weather " * 60
    first = f"I am Ann from Lyon. Please plan my trip to Bern. src/trip.py has a KeyError. We talk {talk}"
    async with in_process(tmp_path, monkeypatch, settings="window: 1500\ncompact: {least: 1}") as server:
        server.scripts.append(keeps_what_is_asked)
        messages = [first, *[f"Turn {n}, {talk}".strip() for n in range(12)], "Who am I, and what do I want?"]
        for words in messages:
            await server.run(words, thread=thread)
        summaries = [entry.summary for entry in await server.log(thread) if isinstance(entry, Compacted)]
        assert len(summaries) > 1
        assert set(summaries) == {"NOTED I am Ann from Lyon. Please plan my trip to Bern. src/trip.py KeyError"}
        _, summary, *turns = [str(message["content"]) for message in messages_of(server.pages[-1])]
        assert f"<summary>\n{summaries[-1]}\n</summary>" in summary
        words_spoken = [words for one in messages for words in (one, "Well.")][:-1]
        assert len(turns) >= 3
        assert [words.rpartition("</system-reminder>\n\n")[2] for words in turns] == words_spoken[-len(turns) :]


@pytest.mark.parametrize(
    ("locale", "words", "begins"),
    [
        ("en", "我住在里昂，喜欢喝茶。" * 200, "你在为一段对话写摘要"),
        ("zh", LONG, "You summarise a conversation"),
        ("zh", "1 2 3 " * 600, "你在为一段对话写摘要"),
    ],
)
async def test_R13_a_summary_is_asked_for_in_the_language_the_user_writes_in_else_the_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locale: str, words: str, begins: str
):
    thread = new_id()
    async with in_process(tmp_path, monkeypatch, settings=f"locale: {locale}\n{TIGHT}") as server:
        await server.run(words, Answer(text="One.", usage=None), thread=thread)
        await server.run(words, Answer(text="SUMMARY"), Answer(text="Two."), thread=thread)
        assert str(messages_of(server.pages[1])[0]["content"]).startswith(begins)


async def test_R13_a_page_that_stays_full_is_not_summarised_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    calls = [Call(name="note", arguments='{"text": "milk"}', id=f"c{one}") for one in range(12)]
    notes = [Answer(calls=(call,), usage=None) for call in calls]
    # What stands before the conversation is more than a full page already.
    settings = "window: 200\ncompact: {least: 1, again: 1}"

    def script(model_request: Request) -> Answer:
        words = str(messages_of(model_request.page)[0]["content"])
        return Answer(text="SUMMARY") if words.startswith("You summarise") or not notes else notes.pop(0)

    thread = new_id()
    async with in_process(tmp_path, monkeypatch, settings=settings) as server:
        server.scripts.append(script)
        await server.run("Write it down.", thread=thread)
        summaries = [entry for entry in await server.log(thread) if isinstance(entry, Compacted)]
        assert 1 <= len(summaries) <= 4
        assert notes == []


async def test_R13_P8_a_summary_that_fails_or_is_cancelled_is_over_for_readers_too(tight: InProcess):
    thread, body, gate = new_id(), ask(LONG), threading.Event()
    await tight.run(LONG, Answer(text="One.", usage=None), thread=thread)
    events = await tight.run(LONG, failure(400, "no", code="bad"), Answer(text="Two."), thread=thread)
    assert types_of(without_progress(events))[:4] == [*WRITING, "TEXT_MESSAGE_START"]
    thread = new_id()
    await tight.run(LONG, Answer(text="One.", usage=None), thread=thread)
    before = len(tight.model.requests)
    tight.answers.append(Answer(text="SUMMARY: words.", hold=gate))
    reading = asyncio.create_task(tight.send("POST", RUNS, body | {"threadId": thread}, headers=STREAM))
    model_request = await asyncio.to_thread(tight.model.wait_requests, before + 1)
    assert await asyncio.to_thread(model_request[before].wait_held)
    await tight.send("POST", f"{RUNS}/{body['runId']}/cancel")
    events = events_of(await reading)
    gate.set()
    assert types_of(without_progress(events)) == [*WRITING, "RUN_FINISHED"]
