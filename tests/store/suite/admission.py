"""Admission: a run is stored once, with its input and its thread, or not at all."""

import asyncio
from dataclasses import replace

import pytest

from recto.errors import Conflict, NotFound
from recto.store.store import Store
from tests.store.suite.samples import START, admission, admit

TOGETHER = 20


class AdmissionSuite:
    async def test_an_admitted_run_is_queued_with_its_request(self, store: Store):
        new = admission("r1", input=b'{ "z": 1, "a": "\xe5\x9b\x9b" }')
        result = await store.runs.admit(new)
        run = result.run
        assert await store.runs.find("ann", new.id) == run
        assert (result.is_new, run.status, run.tier, run.can_compact) == (True, "queued", "free", True)
        columns = ("id", "name", "owner", "thread", "agent", "input", "response_id", "created")
        assert [getattr(run, name) for name in columns] == [getattr(new, name) for name in columns]
        assert run.thread_created == START
        empty = {"entered", "fence", "losses", "started", "ended", "cancel", "failures", "too_long", "calls"}
        empty |= {"last_event", "outcome", "last_seq", "error", "usage"}
        assert not {name for name in empty if getattr(run, name)}

    async def test_X1_a_preview_equals_the_later_row_and_stores_nothing(self, store: Store):
        await store.users.set_tier("ann", "pro", START)
        for new in (admission("r1"), replace(admission("r2"), agent=None, fallback="chat")):
            would = await store.runs.preview_admission(new)
            with pytest.raises(NotFound):
                await store.runs.find("ann", new.name)
            assert (await store.runs.admit(new)).run == would
            assert (would.tier, would.agent) == ("pro", "vibe")
        assert (
            await store.runs.preview_admission(replace(admission("r3", "new"), agent=None, fallback="chat"))
        ).agent == "chat"
        with pytest.raises(NotFound):
            await store.threads.get("ann", "new")

    async def test_concurrent_equal_requests_make_one_run(self, store: Store):
        results = await asyncio.gather(*(store.runs.admit(admission("r1")) for _ in range(TOGETHER)))
        assert len({one.run.id for one in results}) == 1
        assert [one.is_new for one in results].count(True) == 1

    async def test_the_order_of_keys_does_not_matter(self, store: Store):
        first = await store.runs.admit(admission("r1", input=b'{"a": {"x": 1, "y": [1, 2]}, "b": 2}'))
        again = await store.runs.admit(admission("r1", input=b'{"b":2,"a":{"y":[1,2],"x":1}}'))
        assert (again.run, again.is_new) == (first.run, False)

    @pytest.mark.parametrize("other", [b'{"n": 2}', b'{"n": true}', b'{"n": "1"}', b'{"n": 1, "m": null}', b"[1]"])
    async def test_another_request_under_the_same_name_is_rejected(self, store: Store, other: bytes):
        first = await store.runs.admit(admission("r1"))
        with pytest.raises(Conflict, match="'r1'"):
            await store.runs.admit(admission("r1", input=other))
        with pytest.raises(Conflict, match="is taken"):
            await store.runs.admit(replace(admission("r2", "thread-2"), id=first.run.id))
        assert await store.runs.find("ann", "r1") == first.run

    async def test_P5_another_users_thread_is_not_found_and_nothing_is_stored(self, store: Store):
        run = await admit(store, "r1", "thread-1", owner="ann")
        for ask in (store.runs.admit, store.runs.preview_admission):
            with pytest.raises(NotFound, match="'thread-1'"):
                await ask(admission("r2", "thread-1", owner="bob"))
        for id in (run.id, "r1", "r2"):
            with pytest.raises(NotFound, match=id):
                await store.runs.find("bob", id)

    async def test_concurrent_users_of_a_thread_id_do_not_share_the_thread(self, store: Store):
        owners = [f"owner-{number}" for number in range(TOGETHER)]
        admissions = (store.runs.admit(admission("r1", "thread-1", owner=owner)) for owner in owners)
        results = await asyncio.gather(*admissions, return_exceptions=True)
        refusals = [one for one in results if isinstance(one, NotFound)]
        assert len(refusals) == TOGETHER - 1
