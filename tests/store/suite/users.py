"""Data of users: spending, savings, export, deletion, cleanup."""

import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

import pytest

from recto.config.run_settings import Bounds
from recto.errors import LimitReached, NotFound
from recto.page.savings import Saving
from recto.store.ports import CallEnd, Cancel, Lease, RunChange, RunEnding
from recto.store.runs.spending import DailySaving, DailySpending
from recto.store.store import Store
from recto.store.threads.cleanup import CleanupCounts, Retention
from recto.store.users.user_data import DeletedUser
from tests.store.suite.attachments import add, with_files
from tests.store.suite.calls import body_of, call, segment
from tests.store.suite.datasets import dataset
from tests.store.suite.samples import NODE, START, admission, admit, at, begin, events_of, message_of
from tests.store.suite.threads import end, list_threads

DAY = START.date()
LATER = START + timedelta(days=1)
PLENTY_OF_ROWS = 450
FOLD = Saving(kind="fold", name="X2", tokens=100, benefit=7, cost=2)
BROKEN = Saving(kind="break", name="fold_step", tokens=30, cost=2)


class UserSuite:
    async def test_spending_is_added_up_by_user_and_day(self, store: Store):
        lease = await begin(store, "r1")
        assert await store.users.read_spending("ann", DAY) == DailySpending(day="2026-03-01")
        usage = b'{"inputTokens": 100, "outputTokens": 20, "cachedInputTokens": 60}'
        for number, price in enumerate((None, 7, None, 5), start=1):
            await spend(store, lease, number, CallEnd(number=number, ended=at(number), usage=usage, price=price))
        total = DailySpending(day="2026-03-01", input=400, output=80, cached=240, calls=4, price=12)
        assert await store.users.read_spending("ann", DAY) == total
        await spend(store, lease, 5, CallEnd(number=5, ended=LATER, usage=b'{"outputTokens": 1}'))
        assert await store.users.read_spending("ann", LATER.date()) == DailySpending(
            day="2026-03-02", output=1, calls=1
        )
        assert (await store.users.read_spending("ann", DAY), await store.users.read_spending("bob", DAY)) == (
            total,
            DailySpending(day="2026-03-01"),
        )

    async def test_a_call_without_usage_or_lease_costs_nothing(self, store: Store):
        lease = await begin(store, "r1")
        await spend(store, lease, 1, CallEnd(number=1, ended=at(1), error="cut off", price=3))
        stale = replace(lease, fence=lease.fence - 1)
        with pytest.raises(Exception, match="no longer ours"):
            await spend(store, stale, 2, CallEnd(number=2, ended=at(1), usage=b'{"inputTokens": 1}'))
        assert await store.users.read_spending("ann", DAY) == DailySpending(day="2026-03-01")

    async def test_a_call_without_a_run_is_added_to_its_users_day(self, store: Store):
        call = CallEnd(number=0, ended=at(1), usage=b'{"inputTokens": 9, "outputTokens": 2}', price=4)
        for _ in range(2):
            await store.users.add_spending("ann", call)
        assert await store.users.read_spending("ann", DAY) == DailySpending(
            day="2026-03-01", input=18, output=4, calls=2, price=8
        )
        assert await store.users.read_spending("bob", DAY) == DailySpending(day="2026-03-01")

    async def test_a_call_in_progress_costs_its_counted_tokens_when_its_thread_is_deleted(self, store: Store):
        lease = await begin(store, "r1")
        end = CallEnd(number=1, ended=at(1), usage=b'{"inputTokens": 9}')
        await store.runs.record(
            lease, RunChange(call_start=call(1, "a", manifest=b'{"tokens": 50}'), call_end=end), at(1)
        )
        await store.runs.record(lease, RunChange(call_start=call(2, "ab", manifest=b'{"tokens": 300}')), at(2))
        await store.runs.record(lease, RunChange(call_start=call(3, "abc", manifest=b"[]")), at(3))
        await store.threads.delete("ann", "thread-1")
        assert await store.users.read_spending("ann", DAY) == DailySpending(day="2026-03-01", input=309, calls=3)

    async def test_R11_savings_are_added_up_by_day_agent_and_rule_and_breaks_by_cause(self, store: Store):
        lease = await begin(store, "r1")
        unpriced = replace(FOLD, name="R2", tokens=-1, benefit=None, cost=None)
        later = replace(FOLD, tokens=1)
        for number, (time, savings) in enumerate(
            [(at(1), (FOLD, BROKEN)), (at(2), (replace(FOLD, benefit=None, cost=None), unpriced)), (LATER, (later,))], 1
        ):
            usage = b'{"inputTokens": 9}'
            call = CallEnd(number=number, ended=time, usage=usage, savings=savings)
            await spend(store, lease, number, call)
        broken = DailySaving(agent="vibe", kind="break", name="fold_step", calls=1, tokens=30, saved=None, cost=2)
        read = DailySaving(agent="vibe", kind="fold", name="R2", calls=1, tokens=-1, saved=None, cost=None)
        fold = DailySaving(agent="vibe", kind="fold", name="X2", calls=2, tokens=200, saved=7, cost=2)
        assert await store.users.read_savings("ann", DAY, DAY) == [broken, read, fold]
        both = replace(fold, calls=3, tokens=201, saved=14, cost=4)
        assert await store.users.read_savings("ann", DAY, LATER.date(), "vibe") == [broken, read, both]
        assert (
            await store.users.read_savings("ann", DAY, DAY, "other")
            == await store.users.read_savings("bob", DAY, DAY)
            == []
        )
        lines = [json.loads(line) async for line in store.users.export("ann")]
        days = [line["savings"] for line in lines if line["type"] == "spending"]
        assert [[one["name"] for one in day] for day in days] == [["fold_step", "R2", "X2"], ["X2"]]
        await store.users.delete("ann", today=DAY)
        assert await store.users.read_savings("ann", DAY, LATER.date()) == []

    async def test_an_export_contains_all_data_of_a_user_and_nothing_else(self, store: Store):
        lease = await begin(store, "r1")
        many = [message_of(f"m{number}", "四") for number in range(PLENTY_OF_ROWS)]
        end = CallEnd(number=1, ended=at(1), usage=b'{"inputTokens": 9}')
        await store.runs.record(
            lease, RunChange(entries=many, call_start=call(1, "a"), call_end=end, usage=b'{"n":1}'), at(1)
        )
        await admit(store, "r2", "thread-2")
        await admit(store, "r3", "thread-3", owner="bob")
        lines = [json.loads(line) async for line in store.users.export("ann")]
        kinds = Counter(line["type"] for line in lines)
        assert kinds == Counter(entry=PLENTY_OF_ROWS, thread=2, run=2, spending=1, call=1)
        assert [line["seq"] for line in lines if line["type"] == "entry"] == list(range(1, PLENTY_OF_ROWS + 1))
        entry = next(line for line in lines if line["type"] == "entry")
        assert (entry["kind"], entry["body"]["parts"][0]["text"]) == ("user", "四")
        assert entry["time"] == "2026-03-01T12:00:00.123Z"
        run = next(line for line in lines if line["type"] == "run")
        assert (run["name"], run["input"], run["usage"], run["ended"]) == ("r1", {"n": 1}, {"n": 1}, None)
        assert [line async for line in store.users.export("nobody")] == []

    async def test_X1_an_export_contains_pages_of_calls(self, store: Store):
        lease = await begin(store, "r1")
        digest = sha256(segment("a").sha256 + segment("b").sha256).hexdigest()
        end = CallEnd(number=1, ended=at(2), usage=b'{"inputTokens": 9}', finish="stop")
        await store.runs.record(lease, RunChange(call_start=replace(call(1, "ab"), digest=digest), call_end=end), at(2))
        # Its digest does not match its page.
        await store.runs.record(lease, RunChange(call_start=call(2, "abc", shared=2)), at(3))
        lines = [json.loads(line) async for line in store.users.export("ann")]
        assert [line["type"] for line in lines] == ["spending", "thread", "run", "call", "call"]
        whole, damaged = lines[-2:]
        names = ("run", "number", "model", "digest", "usage", "finish", "started", "ended", "page")
        times = ("2026-03-01T12:00:01.123Z", "2026-03-01T12:00:02.123Z")
        page = body_of("ab").decode()
        assert [whole[name] for name in names] == [
            lease.run,
            1,
            "gpt-x",
            digest,
            {"inputTokens": 9},
            "stop",
            *times,
            page,
        ]
        assert (damaged["number"], damaged["ended"], damaged["page"]) == (2, None, None)

    async def test_todays_spending_survives_the_deletion_of_its_user(self, store: Store):
        lease = await begin(store, "r1")
        await spend(store, lease, 1, CallEnd(number=1, ended=at(1), usage=b'{"inputTokens": 9}'))
        await spend(store, lease, 2, CallEnd(number=2, ended=LATER, usage=b'{"inputTokens": 7}'))
        result = await store.users.delete("ann", today=LATER.date())
        assert (result.threads, result.days) == (1, 1)
        assert (
            (await store.users.read_spending("ann", DAY)).input,
            (await store.users.read_spending("ann", LATER.date())).input,
        ) == (0, 7)
        request = replace(admission("r2"), created=LATER, bounds=Bounds(user_tokens=7))
        with pytest.raises(LimitReached):
            await store.runs.admit(request)

    async def test_a_deletion_removes_all_data_of_a_user_and_nothing_else(self, store: Store):
        for number in range(24):
            await admit(store, f"r{number}", f"thread-{number}")
        lease = await begin_another(store, "at-work")
        await spend(store, lease, 1, CallEnd(number=1, ended=at(1), usage=b'{"inputTokens": 9}'))
        await admit(store, "r1", "thread-x", owner="bob")
        result = await store.users.delete("ann")
        assert (result.threads, len(result.stopped), result.days) == (25, 25, 1)
        assert [line async for line in store.users.export("ann")] == []
        assert await store.users.read_spending("ann", DAY) == DailySpending(day="2026-03-01")
        assert await list_threads(store, owner="bob") == ["thread-x"]
        assert await store.users.delete("ann") == DeletedUser(threads=0, stopped=(), profiles=0, days=0)

    async def test_P9_F10_an_export_contains_files_and_datasets(self, store: Store):
        mine = await add(store)
        await add(store, "bob")
        request = with_files(admission("r1"), mine)
        await store.runs.admit(request)
        await store.datasets.create(dataset("d1", "bob", "*"))
        await store.datasets.create(dataset("d2", "ann", owner="bob"))
        lines = [json.loads(line) async for line in store.users.export("ann")]
        assert [line["type"] for line in lines] == ["attachment", "dataset", "thread", "file", "run"]
        time = "2026-03-01T12:00:00.123Z"
        row = {"id": mine.id, "name": "a.pdf", "kind": "document", "mime_type": "application/pdf", "size": mine.size}
        assert lines[0] == {"type": "attachment", **row, "created": time}
        times = {"created": time, "updated": time}
        changed = {"id": "d1", "name": "Name of d1 四", "description": ""}
        assert lines[1] == {"type": "dataset", **changed, **times, "shared_with": ["*", "bob"]}
        body = {"name": "a.pdf", "kind": "document", "mimeType": None}
        changed = {"thread": "thread-1", "id": request.files[0].id, "attachment": mine.id}
        assert lines[3] == {"type": "file", **changed, "body": body, "created": time}

    async def test_P9_F10_a_deletion_removes_files_and_datasets(self, store: Store):
        older, same = await add(store), await add(store, content="b")
        his = await add(store, "bob", "b")
        await store.runs.admit(with_files(admission("r1"), older))
        for id, owner, users in (("d1", "ann", ("bob",)), ("d2", "bob", ("ann", "carl")), ("d3", "bob", ("*",))):
            await store.datasets.create(dataset(id, *users, owner=owner))
        result = await store.users.delete("ann")
        removed = DeletedUser(
            threads=1, stopped=result.stopped, profiles=0, days=0, attachments=2, datasets=1, shares=1
        )
        assert result == replace(removed, blobs=tuple(sorted([older.blob, same.blob])))
        assert await store.files.find_blobs([older.blob, same.blob, his.blob]) == frozenset({his.blob})
        assert (await store.files.total_bytes("ann"), await store.files.total_bytes("bob")) == (0, his.size)
        assert (await store.datasets.get("bob", "d2")).shared_with == ("carl",)
        assert await store.datasets.find_usable("bob", ["d1"]) == ()
        assert len(await store.datasets.find_usable("ann", ["d2", "d3"])) == 1

    async def test_F10_deleting_a_user_named_like_everybody_removes_no_shares(self, store: Store):
        await store.datasets.create(dataset("d1", "*"))
        assert (await store.users.delete("*")).shares == 0
        assert len(await store.datasets.find_usable("bob", ["d1"])) == 1

    async def test_cleanup_deletes_events_of_old_runs_and_keeps_the_log(self, store: Store):
        old = await end(store, "r1", "done")
        running = await begin(store, "r2", "thread-2")
        await store.runs.record(running, RunChange(events=(b"x",)), at(1))
        assert await store.threads.clean(Retention(events_before=at(1))) == CleanupCounts()
        assert await store.threads.clean(Retention(events_before=at(2))) == CleanupCounts(events=1)
        assert (await store.events.has_any(old), await store.events.has_any(running.run)) == (False, True)
        assert await events_of(store, running.run) == [(1, b"x")]
        run = await store.runs.find("ann", "r1")
        assert (run.last_event, len(await store.log.read_after("thread-1"))) == (1, 1)
        assert await store.threads.clean(Retention(events_before=LATER)) == CleanupCounts()

    async def test_cleanup_deletes_calls_and_their_unshared_segments(self, store: Store):
        first = await begin(store, "r1")
        await store.runs.record(first, RunChange(call_start=call(1, "abc"), ending=RunEnding(outcome="done")), at(1))
        second = await begin(store, "r2")
        await store.runs.record(second, RunChange(call_start=call(1, "bcd")), at(2))
        await store.runs.record(second, RunChange(call_start=call(2, "bcde", shared=3)), at(2))
        assert await store.threads.clean(Retention(calls_before=at(2))) == CleanupCounts()
        await store.runs.record(second, RunChange(ending=RunEnding(outcome="done")), at(3))
        assert await store.threads.clean(Retention(calls_before=at(2))) == CleanupCounts(calls=1, segments=1)
        assert [one.body for one in await store.calls.list_full(second.run)] == [body_of("bcd"), body_of("bcde")]
        assert await store.threads.clean(Retention(calls_before=at(4))) == CleanupCounts(calls=2, segments=4)
        assert (await store.runs.find("ann", "r2")).calls == 2

    async def test_cleanup_deletes_unused_threads_without_open_runs(self, store: Store):
        await end(store, "r1", "done", "old")
        await end(store, "r2", "done", "waited-for")
        await admit(store, "r3", "waited-for")
        lease = await begin_another(store, "new")
        await store.runs.record(lease, RunChange(entries=[message_of("m")], ending=RunEnding(outcome="done")), at(50))
        assert await store.threads.clean(Retention(threads_before=at(9))) == CleanupCounts(threads=1)
        assert sorted(await list_threads(store)) == ["new", "waited-for"]
        with pytest.raises(NotFound):
            await store.runs.find("ann", "r1")

    async def test_cleanup_continues_where_it_stopped(self, store: Store):
        for number in range(5):
            await end(store, f"r{number}", "done", f"thread-{number}")
        retention = Retention(events_before=LATER, calls_before=LATER, limit=2)
        results = [await store.threads.clean(retention) for _ in range(4)]
        assert [(one.events, one.calls) for one in results] == [(2, 2), (2, 2), (1, 1), (0, 0)]
        assert await store.threads.clean(Retention()) == CleanupCounts()
        assert await store.threads.clean(replace(retention, threads_before=LATER)) == CleanupCounts(threads=2)

    async def test_the_log_of_a_run_ends_with_its_last_entry(self, store: Store):
        for name in ("r1", "r2"):
            await end(store, name, "done")
        first, second = [await store.runs.find("ann", name) for name in ("r1", "r2")]
        assert [entry.id for entry in await store.log.read_of_run(first)] == ["m-r1"]
        assert [entry.id for entry in await store.log.read_of_run(second)] == ["m-r1", "m-r2"]
        silent = await store.runs.cancel(await admit(store, "r3"), Cancel(reason="user", now=at(3), events=()))
        lease = await begin(store, "r4")
        await store.runs.record(lease, RunChange(entries=[replace(message_of("late"), time=at(9))]), at(9))
        assert [entry.id for entry in await store.log.read_of_run(silent)] == ["m-r1", "m-r2"]


async def spend(store: Store, lease: Lease, number: int, end: CallEnd) -> None:
    await store.runs.record(lease, RunChange(call_start=call(number, "a"), call_end=end), at(number))


async def begin_another(store: Store, thread: str) -> Lease:
    result = await store.runs.admit(admission("at work", thread))
    runs = await store.runs.claim(NODE, at(0), 99)
    run = next(run for run in runs if run.id == result.run.id)
    return run.lease
