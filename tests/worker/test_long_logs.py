"""Runs on long logs: of what no page shows nothing is read, all that looks at the log stays right, nobody waits."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from sqlalchemy import func, select

from recto.agents.agent import CHAT
from recto.conversation.json import Json, Object, load_object
from recto.conversation.log import Compacted, Entry, RolledBack, StateChanged, messages_of
from recto.conversation.messages import AssistantMessage, Text, ToolCall, UnreadMessages, UserMessage
from recto.page.text.tokens import OFFLINE, tokens_of
from recto.store.database.sqlite import SqliteDatabase
from recto.store.schema import LOG
from recto.worker.log_cache import LogCache, LogQuery, is_unread
from tests.page.talk import asks, result, says, user
from tests.stored_runs import OWNER, write_log
from tests.waiting import settle
from tests.worker.plays import Play, a_play, calling

# The calls that the event loop may make before others have their turn: some ten milliseconds of work.
MOST_CALLS = 50_000


def turns(count: int, first: int = 0) -> list[Entry]:
    """Return turns of four messages each."""
    return [
        entry
        for n in range(first, first + count)
        for entry in (user(f"u{n}"), asks(f"a{n}", f"c{n}"), result(f"r{n}", f"c{n}"), says(f"s{n}", f"Answer {n}."))
    ]


@asynccontextmanager
async def a_long_play(folder: Path, entries: Sequence[Entry], history: int | None = 4) -> AsyncGenerator[Play]:
    async with a_play(folder) as play:
        session = play()
        agents = {"doer": replace(CHAT, name="doer", history=history, window=10_000_000)}
        session.runtime = replace(session.runtime, agents=agents)
        await write_log(session.runtime.store, session.thread, entries)
        yield session


async def reading(play: Play, history: int | None = 4) -> tuple[Entry, ...]:
    """Return the log that a run without cache reads."""
    query = LogQuery(thread=play.thread, last_seq=len(await play.log()), history=history)
    return (await LogCache(play.runtime.store).read(query)).entries


def said_in(play: Play, number: int = -1) -> list[Json]:
    """Return the texts of a request's messages."""
    messages = play.model.requests[number].page.get("messages")
    assert isinstance(messages, list)
    words = [message.get("content") for message in messages if isinstance(message, dict)]
    return [one.rpartition("</system-reminder>\n\n")[2] if isinstance(one, str) else one for one in words]


def parts_of(manifest: bytes) -> list[Object]:
    parts = (load_object(manifest) or {})["parts"]
    assert isinstance(parts, list)
    return [part for part in parts if isinstance(part, dict)]


async def test_S1_of_a_long_log_a_run_reads_what_its_window_shows_and_its_page_says_what_was_left_out(tmp_path: Path):
    async with a_long_play(tmp_path, turns(200)) as play:
        log = await reading(play)
        assert is_unread(log)
        assert len(log) < 20
        events = await play.run("doer")
        assert said_in(play)[-5:] == ["hi", None, "out", "Answer 199.", "Go."]
        assert events
        runs = await play.runtime.store.runs.list_page(OWNER, play.thread, None, 1)
        (call,) = await play.runtime.store.calls.list_full(runs.runs[0].id)
        gap = next(part for part in parts_of(call.manifest) if "count" in part)
        assert (gap["source"], gap["upto"], gap["count"]) == ("u0", "s198", 796)


async def test_R13_of_a_long_log_a_run_reads_what_its_summary_does_not_stand_for(tmp_path: Path):
    summary = Compacted(id="sum", upto="s197", summary="So far.")
    async with a_long_play(tmp_path, [*turns(200), summary], None) as play:
        log = await reading(play, None)
        assert [type(entry) for entry in log[:1]] == [UnreadMessages]
        assert [entry.id for entry in log[1:]] == [*[entry.id for entry in turns(2, 198)], "sum"]
        await play.run("doer")
        assert said_in(play)[-4:] == [None, "out", "Answer 199.", "Go."]


async def test_old_entries_are_counted_once_and_the_counts_are_kept(tmp_path: Path):
    async with a_long_play(tmp_path, turns(200)) as play:
        before = await count_rows(tmp_path)
        log = await reading(play)
        assert (before, await count_rows(tmp_path)) == (0, 792)
        assert isinstance(log[0], UnreadMessages)
        assert log[0].tokens == sum(tokens_of(message, OFFLINE) for message in messages_of(turns(198)))


async def test_what_a_run_writes_is_counted_when_it_is_written(tmp_path: Path):
    async with a_play(tmp_path) as a_thread:
        play = a_thread()
        play.answers.extend([calling(("act", "c1"))])
        await play.run("doer")
        log = [entry for entry in await play.log() if hasattr(entry, "role")]
        assert len(log) == 4
        assert await count_rows(tmp_path) == 4


async def count_rows(folder: Path) -> int:
    """Count the entries with a token count."""
    database = SqliteDatabase(folder / "recto.db")
    try:
        query = select(func.count()).where(LOG.c.counter == OFFLINE.name, LOG.c.tokens > 0)
        return await database.read(lambda connection: connection.execute(query).scalar_one())
    finally:
        await database.close()


async def test_P3_a_message_whose_id_was_taken_long_ago_is_a_new_turn_under_another_id(tmp_path: Path):
    async with a_long_play(tmp_path, [user("m1", "long ago"), *turns(200)]) as play:
        await play.run("doer")
        newest = [entry for entry in await play.log() if isinstance(entry, UserMessage)][-1]
        assert (newest.client_id, newest.parts) == ("m1", (Text(text="Go."),))
        assert newest.id != "m1"


async def test_a_call_gets_another_id_where_one_of_long_ago_has_its_own(tmp_path: Path):
    async with a_long_play(tmp_path, turns(200)) as play:
        play.answers.extend([calling(("act", "c7")), calling(("act", "fresh"))])
        await play.run("doer")
        calls = [
            call
            for entry in (await play.log())[800:]
            if isinstance(entry, AssistantMessage)
            for call in entry.parts
            if isinstance(call, ToolCall)
        ]
        assert [(call.id == "c7", call.provider_id) for call in calls] == [(False, "c7"), (False, "")]
        assert calls[1].id == "fresh"


async def test_R12_a_rollback_to_what_was_not_read_has_the_log_read_again(tmp_path: Path):
    async with a_long_play(tmp_path, turns(200)) as play:
        await play.run("doer")
        await write_log(play.runtime.store, play.thread, [RolledBack(id="back", to="u3")])
        await play.run("doer")
        assert said_in(play)[-5:] == ["hi", None, "out", "Answer 2.", "Go."]


async def test_P1_the_state_of_long_ago_is_still_that_of_the_thread(tmp_path: Path):
    states = [StateChanged(id=f"state{place}", value=f'{{"a":{place}}}') for place in range(3)]
    long_ago = [*turns(20), *states, *turns(200)[80:]]
    async with a_long_play(tmp_path, long_ago) as play:
        log = await reading(play)
        assert [entry.value for entry in log if isinstance(entry, StateChanged)] == ['{"a":2}']
        assert is_unread(log)
        events = await play.run("doer")
        assert {"type": "STATE_SNAPSHOT", "snapshot": {"a": 2}} in events


async def test_an_agent_that_shows_more_than_was_read_has_the_log_read_again(tmp_path: Path):
    async with a_long_play(tmp_path, turns(200)) as play:
        await play.run("doer")
        agents = {"doer": replace(CHAT, name="doer", history=None)}
        play.runtime = replace(play.runtime, agents=agents)
        await play.run("doer")
        assert len(said_in(play)) > 800


async def test_R13_a_summary_of_a_log_that_was_not_read_whole_is_made_of_all_of_it(tmp_path: Path):
    async with a_long_play(tmp_path, turns(200)) as play:
        agent = play.runtime.agents["doer"]
        tight = replace(agent, window=60, compact=replace(agent.compact, at=0.1, least=1))
        play.runtime = replace(play.runtime, agents={"doer": tight})
        await play.run("doer")
        marker = [entry for entry in await play.log() if isinstance(entry, Compacted)][-1]
        assert marker.upto == "s199"
        assert "Answer 0." in str(said_in(play, 0))


async def test_a_cold_page_of_a_long_log_keeps_nobody_waiting(tmp_path: Path):
    messages = [says(f"s{n}", f"Answer {n} has as many words as this. " * 20) for n in range(820)]
    log = [entry for n, one in enumerate(messages) for entry in (user(f"u{n}"), one)]
    async with a_long_play(tmp_path, log, None) as play:
        turns = list[int]()
        with counted_calls() as count:
            counting = asyncio.create_task(count_turns(turns, count))
            await play.run("doer")
            counting.cancel()
        assert len(said_in(play)) > len(log)
        assert max(turns) <= MOST_CALLS


@contextmanager
def counted_calls() -> Generator[Callable[[], int]]:
    """Count the function calls of the event loop's thread."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        yield lambda: calls
    finally:
        sys.setprofile(None)


async def count_turns(turns: list[int], count: Callable[[], int]) -> None:
    """Add the number of calls of each turn of the event loop."""
    while True:
        before = count()
        await settle(1)
        turns.append(count() - before)
