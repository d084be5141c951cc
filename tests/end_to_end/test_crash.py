"""X4: a server killed at any point of a run loses nothing, doubles nothing, and starts no tool twice."""

import random
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from recto.conversation.events import ends_run
from recto.conversation.json import Json
from recto.conversation.log import Entry
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, Request
from recto.testing.process import NotStarted, ServerProcess
from tests.conversation.stock_client import Row, StockClient
from tests.end_to_end.harness import (
    BETWEEN,
    KILLED,
    Harness,
    a_note_then_an_answer,
    log_texts,
    story,
    stream_texts,
    try_to_start,
    without_clock,
)
from tests.support.client import Reader, ReceivedEvent, ask, read_events, request, start
from tests.waiting import wait_for

QUESTION = "Please make a note of the milk."
LOST_TEXT = (
    "note was started and then interrupted; whether it finished is not known. "
    "It was not started again. Look at what is there before you do."
)
NOTE = "noted milk"
# Where the server dies, how often that point is passed before, and what then became of the tool.
POINTS = [
    ("claimed", 1, NOTE),
    ("entered", 1, NOTE),
    ("call_begun", 1, NOTE),
    ("delta", 3, NOTE),
    ("replied", 1, NOTE),
    ("tools_started", 1, LOST_TEXT),
    ("tool_acted", 1, LOST_TEXT),
    ("tool_ended", 1, NOTE),
    ("delta", 10, NOTE),
    ("ending", 1, NOTE),
]


def expected_story(result: str) -> list[tuple[str, str]]:
    return [
        ("user", QUESTION),
        ("assistant", 'Let me write it down.|note|{"text": "milk"}'),
        ("tool_started", ""),
        ("tool", result),
        ("assistant", f"I have done it. ({result})"),
    ]


def assert_whole(harness: Harness, body: Mapping[str, Json], events: Sequence[ReceivedEvent]) -> Sequence[Entry]:
    """Check that the stream has no gap, can be read again, and equals the log."""
    assert [received.number for received in events] == list(range(1, len(events) + 1))
    assert list(read_events(harness.url, str(body["runId"]))) == list(events)
    assert [received.event["type"] for received in events].count("RUN_FINISHED") == 1
    log = harness.log(str(body["threadId"]))
    assert stream_texts(events) == log_texts(log)
    assert_shown(harness, body, events)
    return log


def assert_shown(harness: Harness, body: Mapping[str, Json], events: Sequence[ReceivedEvent]) -> None:
    """Check that a stock client shows the log and has no call to run."""
    client = StockClient(cast("list[Row]", body["messages"])).read([received.body for received in events])
    messages = request(harness.url, "GET", f"/api/v1/agent/threads/{body['threadId']}/messages").json["messages"]
    client_rows = [row for row in client.messages if row["role"] != "activity" and row.get("content") != ""]
    parts = ("id", "role", "content", "toolCalls")
    assert [[row.get(part) for part in parts] for row in client_rows] == [
        [row.get(part) for part in parts] for row in cast("list[Row]", messages)
    ]
    assert client.to_run == set()


def next_page(harness: Harness, thread: str) -> Json:
    """Return the page of the next turn."""
    body = ask("Thank you.", thread=thread)
    Reader(lambda: harness.url, start(harness.url, body) and str(body["runId"])).wait()
    return without_clock(harness.received[-1])


@pytest.fixture(scope="module")
def page_after_no_crash(tmp_path_factory: pytest.TempPathFactory) -> Json:
    with Harness(tmp_path_factory.mktemp("calm"), a_note_then_an_answer) as harness, harness.serve():
        body = ask(QUESTION)
        reader = Reader(lambda: harness.url, str(body["runId"]))
        start(harness.url, body)
        assert story(assert_whole(harness, body, reader.wait())) == expected_story(NOTE)
        return next_page(harness, str(body["threadId"]))


def replaced(page: Json, old: str, new: str) -> Json:
    match page:
        case str():
            return page.replace(old, new)
        case dict():
            return {key: replaced(value, old, new) for key, value in page.items()}
        case list():
            return [replaced(value, old, new) for value in page]
        case _:
            return page


@pytest.mark.full
@pytest.mark.parametrize(("point", "times", "result"), POINTS)
def test_X4_a_server_killed_at_a_point_of_a_run_goes_on_from_the_last_stored_step(
    point: str, times: int, result: str, tmp_path: Path, page_after_no_crash: Json
):
    with Harness(tmp_path, a_note_then_an_answer) as harness:
        body = ask(QUESTION)
        reader = harness.killed(body, point, times)
        with harness.serve():
            # Asking again makes no second run, and is what a client does that got no answer.
            start(harness.url, body)
            log = assert_whole(harness, body, reader.wait())
            assert story(log) == expected_story(result)
            assert harness.notes == ([] if point == "tools_started" else ["milk"])
            page = next_page(harness, str(body["threadId"]))
            assert page == replaced(page_after_no_crash, NOTE, result)


@pytest.mark.full
def test_X4_a_server_killed_right_after_admission_has_the_run(tmp_path: Path):
    with Harness(tmp_path, a_note_then_an_answer) as harness:
        body = ask(QUESTION)
        with harness.serve(runs=0) as server:
            reader = Reader(lambda: harness.url, str(body["runId"]))
            start(harness.url, body)
            server.kill()
        with harness.serve():
            assert story(assert_whole(harness, body, reader.wait())) == expected_story(NOTE)
    assert harness.notes == ["milk"]


def two_notes_and_a_look(request: Request) -> Answer:
    """Reply twice with calls, once with two at a time, then answer."""
    messages = request.page.get("messages")
    assert isinstance(messages, list)
    replies = sum(1 for message in messages if isinstance(message, dict) and message["role"] == "assistant")
    match replies:
        case 0:
            one, two = Call(name="note", arguments='{"text":"one"}', id="a"), Call(name="look", id="b")
            return Answer(text="Two things at once.", calls=(one, two), delay=BETWEEN)
        case 1:
            again = Call(name="note", arguments='{"text":"two"}', id="c")
            return Answer(reasoning="Hm.", calls=(again,), delay=BETWEEN)
        case _:
            return Answer(text="All of it is done now, and nothing was done twice.", delay=BETWEEN)


def dies_at_a_point(harness: Harness, body: Mapping[str, Json], reader: Reader, chance: random.Random) -> bool:
    """Return True if the server reached its point and died."""
    try:
        with harness.crash("any", chance.randint(1, 22)) as server:
            try_to_start(harness.url, body)
            wait_for(lambda: has_died(server) or has_ended(reader))
            return has_died(server)
    except NotStarted as early:
        # It took up the run its predecessor left, and died of that before it had said where it listens.
        return early.code == KILLED


def has_died(server: ServerProcess) -> bool:
    with suppress(subprocess.TimeoutExpired):
        return server.wait(0) == KILLED
    return False


def has_ended(reader: Reader) -> bool:
    return bool(reader.events) and ends_run(reader.events[-1].body)


def is_killed_after_some_events(
    harness: Harness, body: Mapping[str, Json], reader: Reader, chance: random.Random
) -> bool:
    """Kill a server after a random number of events."""
    event_count = chance.randint(0, 25)
    with harness.serve() as server:
        try_to_start(harness.url, body)
        wait_for(lambda: len(reader.events) >= event_count or has_ended(reader))
        server.kill()
        return server.wait() == KILLED


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
def test_X4_a_server_killed_at_random_loses_and_doubles_nothing(seed: int, tmp_path: Path):
    die = is_killed_after_some_events if seed % 2 else dies_at_a_point
    chance = random.Random(seed)
    with Harness(tmp_path, two_notes_and_a_look) as harness:
        body = ask("Do it all.", run=new_id())
        reader = Reader(lambda: harness.url, str(body["runId"]))
        # Once the run has ended, a server is no longer brought down by it.
        _ = die(harness, body, reader, chance) and die(harness, body, reader, chance)
        with harness.serve():
            try_to_start(harness.url, body)
            log = assert_whole(harness, body, reader.wait())
        assert story(log)[-1] == ("assistant", "All of it is done now, and nothing was done twice.")
        assert all(harness.notes.count(line) <= 1 for line in ("one", "two"))
        result_count = [kind for kind, _ in story(log)].count("tool")
        assert result_count == 3
