"""Long logs as the server has them: read from a store, of which little or much is shown, and who waits meanwhile."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from prometheus_client import CollectorRegistry

from recto.agents.agent import CHAT
from recto.conversation.json import dump
from recto.conversation.log import Entry, messages_of
from recto.engine.hub import Hub
from recto.engine.ports import Signal
from recto.ids import new_id
from recto.models.choose import choose_model
from recto.models.ports import Model
from recto.page.assemble import assemble
from recto.page.facts import Facts
from recto.page.text.tokens import OFFLINE, count_new, known_tokens
from recto.page.wire.base import Target
from recto.store.ports import Admission, Claimant, EntryCounts, RunChange, RunEnding, StoredRun
from recto.store.store import Store, open_store
from recto.telemetry import Telemetry
from recto.testing.model_server import Answer, ModelServer
from recto.worker.log_cache import LogCache, LogQuery
from recto.worker.loop import work
from recto.worker.runtime import ModelServices, Runtime, ToolServices

WHO = Claimant(node="bench", boot="bench", lease=timedelta(seconds=60))
AT_ONCE, BEAT = 500, 0.001


@dataclass(frozen=True, kw_only=True)
class ColdPage:
    """Seconds of one cold page: until its log was read, and until it was set; and how many entries were read."""

    read: float
    whole: float
    entries: int


def cold_pages(log: Sequence[Entry], target: Target, count: int) -> list[ColdPage]:
    """Pages of a stored log that nobody has in memory."""
    return asyncio.run(_cold_pages(log, target, count))


def standstills(log: Sequence[Entry], count: int) -> list[float]:
    """The longest that the loop stood still, in each of so many runs on a stored log that nobody has in memory."""
    return asyncio.run(_standstills(log, count))


async def _cold_pages(log: Sequence[Entry], target: Target, count: int) -> list[ColdPage]:
    with tempfile.TemporaryDirectory() as folder:
        store, thread = await _store(Path(folder), log)
        pages: list[ColdPage] = []
        for _ in range(count):
            gc.collect()
            begin = time.perf_counter()
            read = (await LogCache(store).read(LogQuery(thread=thread, last_seq=len(log)))).entries
            middle = time.perf_counter()
            result = assemble(Facts(log=read, target=target))
            pages.append(ColdPage(read=middle - begin, whole=time.perf_counter() - begin, entries=len(read)))
            del result, read
        await store.close()
    return pages


async def _standstills(log: Sequence[Entry], count: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder, ModelServer(lambda _request: Answer(text="Done.")) as server:
        store, thread = await _store(Path(folder), log)
        model = choose_model("compatible:bench", {"RECTO_MODEL_URL": server.url})
        seconds: list[float] = []
        for number in range(count):
            # Each time as if the process had just begun.
            runtime = _runtime(store, model)
            run = await admit_run(store, thread, f"Question {number}?")
            beating = asyncio.create_task(_longest_wait(stop := asyncio.Event()))
            await work(runtime, run, Signal())
            stop.set()
            seconds.append(await beating)
        await model.aclose()
        await store.close()
    return seconds


async def _longest_wait(stop: asyncio.Event) -> float:
    """By the clock, or less where the process did not even work as long: others keep the machine busy too."""
    longest = 0.0
    while not stop.is_set():
        begin, work_begin = time.perf_counter(), time.process_time()
        await asyncio.sleep(BEAT)
        longest = max(longest, min(time.perf_counter() - begin - BEAT, time.process_time() - work_begin))
    return longest


async def _store(folder: Path, log: Sequence[Entry]) -> tuple[Store, str]:
    store, thread = await open_store(f"sqlite:///{folder / 'recto.db'}"), new_id()
    run = await admit_run(store, thread, "")
    count_new(messages_of(log), OFFLINE)
    for at in range(0, len(log), AT_ONCE):
        entries = log[at : at + AT_ONCE]
        tokens = [known_tokens(entry, OFFLINE.name) for entry in entries]
        counts = EntryCounts(counter=OFFLINE.name, tokens=tokens)
        await store.runs.record(run.lease, RunChange(entries=entries, counts=counts), datetime.now(UTC))
    await store.runs.record(run.lease, RunChange(entered=True, ending=RunEnding(outcome="done")), datetime.now(UTC))
    return store, thread


async def admit_run(store: Store, thread: str, text: str) -> StoredRun:
    """A run of these words, claimed."""
    id = new_id()
    body = {"threadId": thread, "runId": id, "messages": [{"id": f"asked {id}", "role": "user", "content": text}]}
    admission = Admission(
        id=id,
        name=id,
        owner="bench",
        thread=thread,
        agent="chat",
        input=dump(body),
        response_id=new_id(),
        created=datetime.now(UTC),
    )
    return (await store.runs.admit(admission, WHO)).run


def _runtime(store: Store, model: Model) -> Runtime:
    return Runtime(
        store=store,
        hub=Hub(store.events),
        models=ModelServices(default=model, random=lambda: 0.0),
        agents={"chat": replace(CHAT, name="chat", window=10_000_000)},
        tools=ToolServices(registries={}),
        log_cache=LogCache(store),
        telemetry=Telemetry(CollectorRegistry()),
        clock=lambda: datetime.now(UTC),
        new_id=new_id,
    )
