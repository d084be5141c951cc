"""Logs read lately: they are kept up to a bound, and only what came since is read again."""

import gc
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from recto.config.run_settings import LogCacheSettings
from recto.conversation.log import Entry
from recto.page.assemble import assemble
from recto.page.facts import Facts, Turn
from recto.page.text.tokens import Calibration
from recto.store.ports import Lease, RunChange
from recto.store.store import Store
from recto.worker.log_cache import CachedLog, LogCache, LogQuery
from tests.page.talk import asks, call, result, says, user
from tests.stored_runs import a_lease, a_store, now

# More entries than any thread here has: there may be newer ones.
MANY = 1_000


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    async with a_store(tmp_path) as store:
        yield store


def up_to(thread: str, last_seq: int = MANY) -> LogQuery:
    return LogQuery(thread=thread, last_seq=last_seq)


async def append(store: Store, lease: Lease, *entries: Entry) -> None:
    await store.runs.record(lease, RunChange(entries=entries), now())


async def threads(store: Store, count: int) -> list[Lease]:
    """Create threads with two entries each."""
    leases = [await a_lease(store) for _ in range(count)]
    for lease in leases:
        await append(store, lease, user("u1"), says("a1"))
    return leases


async def list_cached(cache: LogCache, leases: Sequence[Lease], cached_logs: Sequence[CachedLog]) -> list[bool]:
    """Return for each thread if it was in the cache: a cached log has the same entry objects."""
    logs = [await cache.read(up_to(lease.thread)) for lease in leases]
    return [bool(one.entries) and one.entries[0] is old.entries[0] for one, old in zip(logs, cached_logs, strict=True)]


async def read_all(cache: LogCache, leases: Sequence[Lease]) -> list[CachedLog]:
    """Read each log and put it into the cache."""
    logs = [await cache.read(up_to(lease.thread)) for lease in leases]
    for lease, log in zip(leases, logs, strict=True):
        cache.put(lease.thread, log)
    return logs


async def test_a_thread_nobody_knows_is_empty(store: Store):
    assert await LogCache(store).read(up_to("nothing")) == CachedLog()


async def test_only_entries_newer_than_those_here_are_read(store: Store):
    (lease,) = await threads(store, 1)
    cache = LogCache(store)
    (first,) = await read_all(cache, [lease])
    await append(store, lease, user("u2"), says("a2"))
    second = await cache.read(up_to(lease.thread))
    assert [entry.id for entry in second.entries] == ["u1", "a1", "u2", "a2"]
    assert [entry.seq for entry in second.entries] == [1, 2, 3, 4]
    assert all(old is new for old, new in zip(first.entries, second.entries, strict=False))


async def test_a_log_that_is_not_in_the_cache_is_read_whole(store: Store):
    (lease,) = await threads(store, 1)
    cache = LogCache(store)
    first, second = await cache.read(up_to(lease.thread)), await cache.read(up_to(lease.thread))
    assert first == second
    assert first.entries[0] is not second.entries[0]


async def test_what_the_provider_said_of_its_tokens_is_kept_with_the_log(store: Store):
    (lease,) = await threads(store, 1)
    cache, last = LogCache(store), Calibration(digest="d", own_count=10, reported_count=12)
    cache.put(lease.thread, CachedLog(entries=(await cache.read(up_to(lease.thread))).entries, calibration=last))
    assert (await cache.read(up_to(lease.thread))).calibration == last


@pytest.mark.parametrize("settings", [LogCacheSettings(threads=2), LogCacheSettings(entries=5)])
async def test_the_least_recently_used_thread_makes_room(store: Store, settings: LogCacheSettings):
    leases = await threads(store, 3)
    cache = LogCache(store, settings)
    logs = await read_all(cache, leases)
    assert await list_cached(cache, leases, logs) == [False, True, True]


async def test_putting_a_thread_back_makes_it_the_newest(store: Store):
    leases = await threads(store, 3)
    cache = LogCache(store, LogCacheSettings(threads=2))
    logs = await read_all(cache, leases[:2])
    cache.put(leases[0].thread, logs[0])
    logs += await read_all(cache, leases[2:])
    assert await list_cached(cache, leases, logs) == [True, False, True]


async def test_D7_texts_and_quotes_of_all_threads_together_have_a_bound_in_bytes(store: Store):
    leases = await threads(store, 3)
    await append(store, leases[1], user("u2", "long " * 20_000))
    cache = LogCache(store, LogCacheSettings(bytes=249_000))
    logs = await read_all(cache, leases)
    assert await list_cached(cache, leases, logs) == [True, True, True]
    cache.put(leases[2].thread, replace(logs[2], quote="long " * 4_000))
    assert await list_cached(cache, leases, logs) == [False, True, True]
    cache.put(leases[2].thread, replace(logs[2], quote="long " * 25_000))
    assert await list_cached(cache, leases, logs) == [False, False, False]
    for _ in range(3):
        logs = await read_all(cache, leases)
    assert await list_cached(cache, leases, logs) == [True, True, True]


async def test_a_log_that_is_put_back_longer_counts_once(store: Store):
    leases = await threads(store, 2)
    cache = LogCache(store, LogCacheSettings(entries=6))
    for _ in range(10):
        logs = await read_all(cache, leases)
    await append(store, leases[1], user("u2"), says("a2"))
    logs = await read_all(cache, leases)
    assert await list_cached(cache, leases, logs) == [True, True]


async def test_a_log_larger_than_the_whole_cache_is_not_kept(store: Store):
    leases = await threads(store, 1)
    cache = LogCache(store, LogCacheSettings(entries=1))
    logs = await read_all(cache, leases)
    assert await list_cached(cache, leases, logs) == [False]
    assert len((await cache.read(up_to(leases[0].thread))).entries) == 2


async def test_a_log_that_is_here_to_its_end_is_not_asked_for(store: Store):
    (lease,) = await threads(store, 1)
    cache = LogCache(store)
    (log,) = await read_all(cache, [lease])
    await append(store, lease, user("u2"))
    assert (await cache.read(up_to(lease.thread, 2))).entries == log.entries
    assert len((await cache.read(up_to(lease.thread, 3))).entries) == 3


async def test_threads_that_another_process_deleted_are_dropped(store: Store):
    leases = await threads(store, 3)
    cache = LogCache(store)
    cached_logs = await read_all(cache, leases)
    assert await cache.drop_deleted() == 0
    await store.threads.delete("ann", leases[1].thread)
    assert await cache.drop_deleted() == 1
    assert await list_cached(cache, leases, cached_logs) == [True, False, True]


def a_chat(number: int) -> tuple[Entry, ...]:
    return user(f"u{number}", f"How is it today, for the {number}th time?"), says(
        f"a{number}", f"{number} is fine. " * 5
    )


def in_chinese(number: int) -> tuple[Entry, ...]:
    return user(f"u{number}", f"今天天气怎么样? {number}" * 4), says(
        f"a{number}", f"今天天气很好,适合出去走走 {number}。" * 20
    )


def at_work(number: int) -> tuple[Entry, ...]:
    listing = "\n".join(f"{line}→    total_{number} += prices[{line}].amount * rates[{number}]" for line in range(40))
    caller = asks(f"a{number}", call(f"c{number}", "filesystem-read"))
    return (
        user(f"u{number}", f"What does {number} do?"),
        caller,
        result(f"r{number}", f"c{number}", f"📄 a.py\n{listing}"),
    )


@pytest.mark.full
@pytest.mark.parametrize("turn", [a_chat, in_chinese, at_work])
async def test_what_a_log_is_said_to_weigh_is_what_it_takes_with_what_its_pages_remember(
    store: Store, turn: Callable[[int], tuple[Entry, ...]]
):
    lease = await a_lease(store)
    await append(store, lease, *[entry for number in range(150) for entry in turn(number)])
    assemble(Facts(log=await store.log.read_after(lease.thread), turn=Turn()))
    gc.collect()
    tracemalloc.start()
    cache = LogCache(store)
    log = await cache.read(up_to(lease.thread))
    assemble(Facts(log=log.entries, turn=Turn()))
    cache.put(lease.thread, log)
    del log
    gc.collect()
    memory = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert memory / 1.3 < cache.bytes < memory * 1.3
