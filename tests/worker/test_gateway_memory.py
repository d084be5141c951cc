"""Caches of the gateway: a request that continues a conversation is compared and parsed without the store."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from prometheus_client import CollectorRegistry

from recto.config.gateway_settings import GatewaySettings
from recto.config.run_settings import Timeouts
from recto.conversation.json import Json
from recto.ids import new_id
from recto.models.choose import PROVIDERS
from recto.models.prices import load_prices
from recto.models.upstream import make_upstream
from recto.page.body import Page, kept_part, segment
from recto.page.manifest import Manifest
from recto.page.prefix import AnsweredPage
from recto.page.text.tokens import TokenCount
from recto.store.database.database import Result, Transaction
from recto.store.database.opening import migrate
from recto.store.database.sqlite import SqliteDatabase
from recto.store.ports import CallEnded, RunEnding
from recto.store.store import Store
from recto.telemetry import Telemetry
from recto.worker.gateway.gateway_memory import PAGE_LIFE, PART_BYTES, AnsweredPages, GatewayMemory
from recto.worker.gateway.relay import Gateway, GatewayParts, RelayedRequest
from tests.api.relaying_server import reads

START = datetime(2026, 5, 14, 12, tzinfo=UTC)
OPENAI_MODEL = "openai:m"
MIB = 2**20


class CountedReads(SqliteDatabase):
    """A database that counts reads."""

    reads = 0

    async def read(self, work: Transaction[Result], *, few: bool = False) -> Result:
        self.reads += 1
        return await super().read(work, few=few)


@dataclass(kw_only=True)
class Relay:
    """A gateway without a provider, at a time that a test sets."""

    gateway: Gateway
    database: CountedReads
    now: datetime = START

    async def ask(self, messages: Sequence[Json], owner: str = "ann", **fields: Json) -> RelayedRequest:
        body = json.dumps({"model": "m", "messages": messages, **fields}).encode()
        upstream = make_upstream(PROVIDERS[0], {}, Timeouts())
        return await self.gateway.take(owner, upstream, body)

    async def answer(self, relayed: RelayedRequest) -> None:
        """Store that the request was answered, and keep its page."""
        self.gateway.keep_answered(relayed, OPENAI_MODEL)
        call = CallEnded(number=1, ended=self.now, usage=b"{}")
        await self.gateway.parts.store.end_relayed(relayed.run, call, RunEnding(outcome="done"))

    async def page_before(self, relayed: RelayedRequest) -> tuple[bytes, int]:
        """Return the body of the answered page before a request, and how many reads finding it took."""
        reads = self.database.reads
        page = await self.gateway.answered_before(relayed)
        assert page
        return page.body, self.database.reads - reads


@asynccontextmanager
async def a_relay(folder: Path, memory: int = MIB) -> AsyncGenerator[Relay]:
    database = CountedReads(folder / "recto.db")
    await database.write(migrate)
    parts = GatewayParts(
        store=Store(database),
        upstreams={},
        memory=GatewayMemory.within(memory),
        settings=GatewaySettings(),
        prices=load_prices(),
        telemetry=Telemetry(CollectorRegistry()),
        clock=lambda: relay.now,
        new_id=new_id,
        node="node",
    )
    relay = Relay(gateway=Gateway(parts), database=database)
    yield relay
    await parts.store.close()


async def two_requests(relay: Relay) -> tuple[RelayedRequest, RelayedRequest]:
    """Answer a request, then send one that continues its conversation."""
    messages = reads(2, 10)
    first = await relay.ask(messages[:-2])
    await relay.answer(first)
    return first, await relay.ask(messages)


# Answered pages


async def test_X3_the_answered_page_before_a_request_is_in_memory_and_the_same_as_in_the_store(tmp_path: Path):
    async with a_relay(tmp_path) as relay:
        first, second = await two_requests(relay)
        assert await relay.page_before(second) == (first.page.body, 0)
        body, reads = await relay.page_before(second)
        assert body == first.page.body
        assert reads > 0


async def test_X3_an_answered_page_that_cleaning_may_have_deleted_is_read_from_the_store(tmp_path: Path):
    async with a_relay(tmp_path) as relay:
        first, second = await two_requests(relay)
        relay.now += PAGE_LIFE
        body, reads = await relay.page_before(second)
        assert body == first.page.body
        assert reads > 0


async def test_X3_a_gateway_that_forgets_reads_the_answered_page_from_the_store(tmp_path: Path):
    async with a_relay(tmp_path) as relay:
        _, second = await two_requests(relay)
        relay.gateway.parts.memory.forget()
        assert (await relay.page_before(second))[1] > 0


def answered_page(run: str, size: int) -> AnsweredPage:
    """A page with one part."""
    part = kept_part("envelope", "request", "as it came", 1)
    manifest = Manifest(parts=(part,), sizes=[size], tokens=TokenCount(tokens=1, estimated=True))
    return AnsweredPage(run=run, number=1, page=Page(segments=(segment(b"x" * size),)), manifest=manifest, model="m")


def test_X3_answered_pages_have_a_limit_in_bytes_and_the_oldest_make_room():
    pages = AnsweredPages(3 * (1_000 + PART_BYTES))
    for run in ("r1", "r2", "r3"):
        pages.add(answered_page(run, 1_000), START)
    pages.add(answered_page("r3", 1_001), START)
    pages.add(answered_page("large", 4 * 1_000 + 4 * PART_BYTES), START)
    found = [run for run in ("r1", "r2", "r3", "large") if pages.pop(run, START)]
    assert found == ["r2", "r3"]


def test_X3_popped_pages_free_their_bytes():
    pages = AnsweredPages(1_000 + PART_BYTES)
    for number in range(5):
        pages.add(answered_page(f"r{number}", 1_000), START)
        assert pages.pop(f"r{number}", START + timedelta(minutes=1))
    pages.add(answered_page("last", 1_000), START)
    pages.clear()
    assert pages.pop("last", START) is None
