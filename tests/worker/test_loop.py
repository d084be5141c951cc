"""A run at work on a store that fails: whatever write fails, the run goes on later, whole, and nothing is doubled."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from recto.agents.agent import CHAT
from recto.conversation.input.run_input import RunInput
from recto.conversation.log import Entry
from recto.conversation.messages import Text, UserMessage
from recto.engine.ports import Signal
from recto.errors import StoreDown
from recto.ids import new_id
from recto.models.demo.demo_model import DemoModel
from recto.models.ports import Delta, TextDelta
from recto.page.prompt.summarise import SummarySettings
from recto.page.steps.compact import CompactSettings
from recto.store.database.opening import migrate
from recto.store.ports import StoredRun
from recto.store.store import Store
from recto.tools.load_tools import make_built_in_tools
from recto.tools.registry import Registry
from recto.worker.loop import work
from recto.worker.runtime import Checkpoint, Runtime
from tests.end_to_end.harness import story
from tests.files.loop_clock import LoopClock
from tests.stored_runs import OWNER, WHO, now
from tests.support.client import ask
from tests.worker.gated_database import Gated
from tests.worker.plays import admission_of, make_runtime

QUESTION = "What is 12 * 7?"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncGenerator[Gated]:
    database = Gated(tmp_path / "recto.db")
    await database.write(migrate)
    yield database
    await database.close()


@pytest.fixture
def runtime(database: Gated) -> Runtime:
    registries = {"chat": Registry(make_built_in_tools())}
    return make_runtime(Store(database), model=DemoModel(), agents={"chat": CHAT}, registries=registries)


async def admit(runtime: Runtime, words: str, *, agent: str = "chat", thread: str = "") -> StoredRun:
    admission = admission_of(ask(words, thread=thread), agent)
    return (await runtime.store.runs.admit(admission, WHO)).run


async def work_to_the_end(runtime: Runtime, run: StoredRun) -> int:
    """Claim and work until the run has ended. Return the number of attempts."""
    for times in range(1, 10):
        try:
            if await work(runtime, run, Signal()):
                return times
        except StoreDown:
            pass
        (run,) = await runtime.store.runs.claim(WHO, now() + timedelta(hours=1), 1)
    raise AssertionError("it never ended")


async def collect_events(runtime: Runtime, run: StoredRun) -> Sequence[bytes]:
    return [event.body for event in await runtime.store.events.list_after(run.id, 0, 1_000)]


def said_in(log: Sequence[Entry]) -> list[tuple[str, str]]:
    return [one for one in story(log) if one[0] != "tool_started"]


@pytest.mark.parametrize("fail_at", range(1, 9))
async def test_X4_a_store_that_fails_at_any_write_loses_nothing_of_a_run(
    runtime: Runtime, database: Gated, fail_at: int
):
    run = await admit(runtime, QUESTION)
    database.fail_at = database.writes + fail_at
    assert await work_to_the_end(runtime, run) == (2 if database.writes >= database.fail_at else 1)
    log = said_in(await runtime.store.log.read_after(run.thread))
    assert [kind for kind, _ in log] == ["user", "assistant", "tool", "assistant"]
    assert log[0] == ("user", QUESTION)
    ends = [body for body in await collect_events(runtime, run) if b"RUN_FINISHED" in body]
    assert len(ends) == 1


@pytest.mark.parametrize("fail_at", range(1, 6))
async def test_a_question_is_not_lost_when_its_first_page_is_full_and_the_store_fails(
    runtime: Runtime, database: Gated, fail_at: int
):
    small = replace(CHAT, compact=CompactSettings(least=1), summary=SummarySettings(locale="en"))
    tight = replace(runtime, agents={"chat": small}, models=replace(runtime.models, default=_Tight()))
    first = await admit(tight, "Tell me much. " * 50)
    await work_to_the_end(tight, first)
    run = await admit(tight, QUESTION, thread=first.thread)
    database.fail_at = database.writes + fail_at
    await work_to_the_end(tight, run)
    assert "compacted" in [kind for kind, _ in story(await runtime.store.log.read_after(run.thread))]
    asked_texts = [text for kind, text in said_in(await runtime.store.log.read_after(run.thread)) if kind == "user"]
    assert asked_texts[-1] == QUESTION


async def test_a_run_goes_by_what_was_parsed_at_its_admission_or_else_by_what_is_stored(runtime: Runtime):
    handed_on = RunInput(thread="t", run="r", messages=(a_question("Handed on."),))
    for run_input, words in ((handed_on, "Handed on."), (None, QUESTION)):
        run = await admit(runtime, QUESTION)
        assert await work(runtime, run, Signal(), run_input)
        assert said_in(await runtime.store.log.read_after(run.thread))[0] == ("user", words)


def a_question(words: str) -> UserMessage:
    return UserMessage(id=new_id(), parts=(Text(text=words),))


class _Tight(DemoModel):
    """A model with a small window, which the second page fills."""

    def __init__(self) -> None:
        super().__init__()
        self.window = 250


class _Endless(DemoModel):
    """A model that streams some words and then hangs."""

    async def stream(self, body: bytes) -> AsyncGenerator[Delta, None]:
        yield TextDelta(text="one two three")
        await asyncio.Event().wait()


async def test_a_deadline_ends_a_run_and_keeps_what_was_said(runtime: Runtime, monkeypatch: pytest.MonkeyPatch):
    clock, ahead = LoopClock(monkeypatch), timedelta()

    def pass_time(checkpoint: Checkpoint) -> None:
        nonlocal ahead
        if checkpoint == "delta":
            ahead += timedelta(seconds=CHAT.limits.seconds)
            clock.advance(CHAT.limits.seconds)

    run = await admit(runtime, QUESTION)
    models = replace(runtime.models, default=_Endless())
    late = replace(runtime, models=models, checkpoint=pass_time, clock=lambda: now() + ahead)
    assert await work(late, run, Signal())
    assert b'"code":"deadline"' in (await collect_events(runtime, run))[-1]
    log = story(await runtime.store.log.read_after(run.thread))
    assert log == [("user", QUESTION), ("assistant", "one two three"), ("interrupted", "")]


async def test_a_run_of_an_agent_that_is_gone_is_given_up_and_keeps_what_it_was_asked(runtime: Runtime):
    run = await admit(runtime, QUESTION, agent="gone")
    assert await work(runtime, run, Signal())
    assert said_in(await runtime.store.log.read_after(run.thread)) == [("user", QUESTION)]
    events = await collect_events(runtime, run)
    assert b"RUN_STARTED" in events[0]
    assert b'"code":"internal"' in events[-1]
    assert b"gone" in events[-1]


async def test_a_run_that_brought_many_workers_down_is_given_up(runtime: Runtime):
    run = await admit(runtime, QUESTION)
    for hours in range(1, CHAT.limits.claims + 1):
        (run,) = await runtime.store.runs.claim(WHO, now() + timedelta(hours=hours), 1)
    assert run.losses == CHAT.limits.claims
    assert await work(runtime, run, Signal())
    assert b"20 workers stopped" in (await collect_events(runtime, run))[-1]


async def test_handing_a_run_back_does_not_count_as_a_loss(runtime: Runtime):
    run = await admit(runtime, QUESTION)
    leaving = Signal()
    leaving.leaving.set()
    assert not await work(runtime, run, leaving)
    await runtime.store.runs.release((run.lease,), now())
    (again,) = await runtime.store.runs.claim(WHO, now(), 1)
    assert (again.fence, again.losses) == (2, 0)


async def test_X4_a_run_ends_though_what_it_was_asked_cannot_be_stored(runtime: Runtime, database: Gated):
    run = await admit(runtime, "a word no index can hold")
    database.refused = b"UserMessage"
    assert await work(runtime, run, Signal())
    database.refused = b""
    stored_run = await runtime.store.runs.find(OWNER, run.id)
    assert (stored_run.status, stored_run.outcome) == ("ended", "internal")
    assert b"RUN_ERROR" in (await collect_events(runtime, run))[-1]
