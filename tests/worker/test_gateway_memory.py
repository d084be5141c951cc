"""Caches of the gateway: a request that continues a conversation is compared and parsed without the store."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from recto.config.access_settings import GatewaySettings
from recto.config.run_settings import Timeouts
from recto.conversation.json import Json, dump
from recto.ids import new_id
from recto.models.choose import PROVIDERS
from recto.models.prices import load_prices
from recto.models.upstream import make_upstream
from recto.page.body import Page, build_plain_part, build_segment
from recto.page.manifest import Manifest
from recto.page.prefix import AnsweredPage
from recto.page.sent_request import SentRequest, count_shared, parse_request
from recto.page.text.tokens import TokenCount
from recto.store.database.database import Result, Transaction
from recto.store.database.opening import migrate
from recto.store.database.sqlite import SqliteDatabase
from recto.store.ports import CallEnd, RunEnding
from recto.store.store import Store
from recto.telemetry import Telemetry
from recto.worker.gateway.gateway_memory import (
    OWNER_REQUESTS,
    PAGE_LIFE,
    PART_BYTES,
    AnsweredPages,
    GatewayMemory,
    ParsedRequest,
    ParsedRequests,
)
from recto.worker.gateway.relay import Gateway, GatewayParts, RelayedRequest
from tests.api.relaying_server import reads, user

START = datetime(2026, 5, 14, 12, tzinfo=UTC)
OPENAI_MODEL = "openai:m"
MIB = 2**20


class CountedReads(SqliteDatabase):
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
        return await self.gateway.accept(owner, upstream, body)

    async def answer(self, stored_request: RelayedRequest) -> None:
        """Store the answer of a request, and keep its page."""
        self.gateway.keep_page(stored_request, OPENAI_MODEL)
        call = CallEnd(number=1, ended=self.now, usage=b"{}")
        await self.gateway.parts.store.relays.end(stored_request.run, call, RunEnding(outcome="done"))

    async def page_before(self, stored_request: RelayedRequest) -> tuple[bytes, int]:
        """Return the body of the answered page before a request, and how many reads finding it took."""
        reads = self.database.reads
        page = await self.gateway.find_page_before(stored_request)
        assert page
        return page.body, self.database.reads - reads


@asynccontextmanager
async def a_relay(folder: Path, memory: int = MIB) -> AsyncGenerator[Relay]:
    folder.mkdir(exist_ok=True)
    database = CountedReads(folder / "recto.db")
    await database.write(migrate)
    parts = GatewayParts(
        store=Store(database),
        upstreams={},
        memory=GatewayMemory.with_limit(memory),
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


@pytest.fixture
async def relay(tmp_path: Path) -> AsyncGenerator[Relay]:
    async with a_relay(tmp_path) as relay:
        yield relay


async def two_requests(relay: Relay) -> tuple[RelayedRequest, RelayedRequest]:
    """Answer a request, then send one that continues its conversation."""
    messages = reads(2, 10)
    first = await relay.ask(messages[:-2])
    await relay.answer(first)
    return first, await relay.ask(messages)


def newest(relay: Relay, owner: str = "ann") -> SentRequest:
    """Return the request of an owner that was parsed last."""
    return relay.gateway.parts.memory.requests.find(owner, "openai")[-1].request


async def test_X3_only_new_messages_of_a_conversation_are_parsed(relay: Relay, tmp_path: Path):
    messages = reads(4, 10)
    await relay.ask(messages[:-2])
    first = newest(relay)
    exchange = await relay.ask(messages, temperature=1)
    assert count_shared(newest(relay), first) == len(messages) - 2
    assert relay.gateway.parts.memory.requests.find("ann", "openai")[0].request is newest(relay)
    async with a_relay(tmp_path / "other", memory=0) as other:
        assert (await other.ask(messages, temperature=1)).page.body == exchange.page.body


async def test_X3_a_request_takes_nothing_from_another_owner_or_after_the_gateway_forgot(relay: Relay):
    messages = reads(2, 10)
    await relay.ask(messages)
    first = newest(relay)
    await relay.ask(messages, "bob")
    assert count_shared(newest(relay, "bob"), first) == 0
    relay.gateway.parts.memory.clear()
    await relay.ask(messages)
    assert count_shared(newest(relay), first) == 0


async def test_X3_a_message_that_cannot_be_read_is_refused_as_long_as_it_is_there(relay: Relay):
    messages: list[Json] = [*reads(2, 10), {"role": "wizard"}]
    for more in range(3):
        exchange = await relay.ask([*messages, *[user(f"{number}") for number in range(more)]])
        (part,) = exchange.manifest.parts
        assert "messages[5].role: 'wizard' is no role" in part.reason
    exchange = await relay.ask([*messages[:-1], user("Then mend it.")])
    assert len(exchange.manifest.parts) == len(messages) + 2


def a_parsed_request(words: str, size: int, predecessors: Sequence[ParsedRequest] = ()) -> ParsedRequest:
    """Return a request with one message per word."""
    body = dump({"messages": [user(word) for word in words.split()]})
    return ParsedRequest(parse_request(body, [one.request for one in predecessors]), (), (), size)


def add(requests: ParsedRequests, words: str, size: int = 1, owner: str = "ann") -> None:
    requests.add(owner, "openai", a_parsed_request(words, size, requests.find(owner, "openai")))


def texts(requests: ParsedRequests, owner: str = "ann") -> list[str]:
    stored_request = requests.find(owner, "openai")
    contents = [
        [str(item.value["content"]) for item in one.request.items if isinstance(item.value, dict)]
        for one in stored_request
    ]
    return [" ".join(words) for words in contents]


def test_X3_parsed_requests_of_all_owners_have_a_limit_in_bytes():
    requests = ParsedRequests(100)
    for owner, words in (("ann", "a"), ("bob", "b"), ("ann", "c")):
        add(requests, words, 30, owner)
    add(requests, "large", 51)
    assert (texts(requests), texts(requests, "bob")) == (["a", "c"], ["b"])
    add(requests, "d", 30)
    assert (texts(requests), texts(requests, "bob")) == (["a", "c", "d"], [])
    add(requests, "e", 30)
    assert texts(requests) == ["c", "d", "e"]


def test_X3_a_parsed_request_replaces_those_it_continues():
    requests = ParsedRequests(100)
    for words in ("system a b", "system x y", "system a B c d"):
        add(requests, words, 40)
    assert texts(requests) == ["system x y", "system a B c d"]


def test_X3_of_an_owner_so_many_parsed_requests_are_kept():
    requests = ParsedRequests(1_000)
    for number in range(OWNER_REQUESTS + 2):
        add(requests, str(number))
    assert texts(requests) == [str(number) for number in range(2, OWNER_REQUESTS + 2)]


async def test_X3_the_answered_page_before_a_request_is_in_memory_and_the_same_as_in_the_store(relay: Relay):
    first, second = await two_requests(relay)
    assert await relay.page_before(second) == (first.page.body, 0)
    body, reads = await relay.page_before(second)
    assert body == first.page.body
    assert reads > 0


@pytest.mark.parametrize("is_cleared", [False, True], ids=["may be cleaned", "forgotten"])
async def test_X3_an_answered_page_that_memory_no_longer_has_is_read_from_the_store(relay: Relay, is_cleared: bool):
    first, second = await two_requests(relay)
    if is_cleared:
        relay.gateway.parts.memory.clear()
    else:
        relay.now += PAGE_LIFE
    body, reads = await relay.page_before(second)
    assert body == first.page.body
    assert reads > 0


def answered_page(run: str, size: int) -> AnsweredPage:
    part = build_plain_part("envelope", "request", "as it came", 1)
    manifest = Manifest(parts=(part,), sizes=[size], tokens=TokenCount(tokens=1, estimated=True))
    return AnsweredPage(
        run=run, number=1, page=Page(segments=(build_segment(b"x" * size),)), manifest=manifest, model="m"
    )


def test_X3_answered_pages_have_a_limit_in_bytes_and_the_oldest_make_room():
    pages = AnsweredPages(3 * (1_000 + PART_BYTES))
    for run in ("r1", "r2", "r3"):
        pages.add(answered_page(run, 1_000), START)
    pages.add(answered_page("r3", 1_001), START)
    pages.add(answered_page("large", 4 * 1_000 + 4 * PART_BYTES), START)
    kept_runs = [run for run in ("r1", "r2", "r3", "large") if pages.pop(run, START)]
    assert kept_runs == ["r2", "r3"]


def test_X3_popped_pages_free_their_bytes():
    pages = AnsweredPages(1_000 + PART_BYTES)
    for number in range(5):
        pages.add(answered_page(f"r{number}", 1_000), START)
        assert pages.pop(f"r{number}", START + timedelta(minutes=1))
    pages.add(answered_page("last", 1_000), START)
    pages.clear()
    assert pages.pop("last", START) is None
