"""Rollback and undo: one marker more; no row changes."""

import asyncio
from dataclasses import replace

import pytest

from recto.conversation.log import Entry, RolledBack, SkillChanged, Undone, view
from recto.conversation.messages import AssistantMessage, Text
from recto.errors import Conflict, NotFound
from recto.store.ports import RunChange, RunEnding
from recto.store.store import Store
from recto.store.threads.threads import MOST_IDS, ForkOptions, RollbackOptions
from tests.store.suite.samples import NODE, admission, at, begin, message_of

ANSWER = AssistantMessage(id="a1", parts=(Text(text="Well."),))
LOG: tuple[Entry, ...] = (
    message_of("m1", "One"),
    SkillChanged(id="s1", skill="bazi", scenario="work"),
    ANSWER,
    replace(message_of("m2", "Two"), client_id="mine"),
    replace(message_of("m3", "Three"), client_id="mine"),
    SkillChanged(id="s2", skill="tarot"),
)


def turning(id: str) -> RollbackOptions:
    return RollbackOptions(thread="thread-1", id=id, now=at(9))


class RollbackSuite:
    async def test_R12_a_rollback_appends_a_marker_that_hides_messages(self, store: Store):
        await write(store, *LOG)
        before = await store.log.read_after("thread-1")
        done = await store.threads.roll_back("ann", turning("b1"), to="m2")
        after = await store.log.read_after("thread-1")
        assert list(after) == [*before, RolledBack(id="b1", seq=7, time=at(9), to="m2")]
        assert [entry.id for entry in view(after).entries] == ["m1", "s1", "a1"]
        assert (done.message, done.thread.updated) == (before[3], at(9))
        assert await store.log.can_undo("thread-1")

    async def test_S4_the_skill_of_a_thread_follows_its_visible_entries(self, store: Store):
        await write(store, *LOG)
        rolled = await store.threads.roll_back("ann", turning("b1"), to="m2")
        assert (rolled.thread.skill, rolled.thread.scenario) == ("bazi", "work")
        rolled = await store.threads.roll_back("ann", turning("b2"), to="m1")
        assert (rolled.thread.skill, rolled.thread.scenario) == (None, None)
        undone = await store.threads.undo("ann", turning("n1"))
        assert (undone.thread.skill, undone.thread.scenario) == ("bazi", "work")
        undone = await store.threads.undo("ann", turning("n2"))
        assert (undone.thread.skill, undone.thread.scenario) == ("tarot", None)

    async def test_P3_a_client_id_means_its_newest_visible_message(self, store: Store):
        await write(store, *LOG)
        for id in ("m3", "m2"):
            assert (await store.threads.roll_back("ann", turning(f"back to {id}"), to="mine")).message.id == id
        with pytest.raises(NotFound):
            await store.threads.roll_back("ann", turning("b"), to="mine")

    @pytest.mark.parametrize("to", ["unknown", "a1", "s1", "", "m2"])
    async def test_R12_only_a_visible_user_message_can_be_rolled_back(self, store: Store, to: str):
        await write(store, *LOG, RolledBack(id="b0", to="m2"))
        before = await store.log.read_after("thread-1")
        with pytest.raises(NotFound, match="user message"):
            await store.threads.roll_back("ann", turning("b1"), to=to)
        assert await store.log.read_after("thread-1") == before

    async def test_R12_an_undo_returns_the_restored_messages(self, store: Store):
        await write(store, *LOG)
        await store.threads.roll_back("ann", turning("b1"), to="m3")
        await store.threads.roll_back("ann", turning("b2"), to="m1")
        first = await store.threads.undo("ann", turning("n1"))
        assert (first.count, first.messages, first.can_undo) == (3, ("m1", "a1", "m2"), True)
        second = await store.threads.undo("ann", turning("n2"))
        assert (second.count, second.messages, second.can_undo) == (1, ("m3",), False)
        assert [type(entry) for entry in (await store.log.read_after("thread-1"))[-2:]] == [Undone, Undone]
        with pytest.raises(Conflict, match="no rollback"):
            await store.threads.undo("ann", turning("n3"))

    async def test_R12_an_undo_hides_messages_after_the_rollback(self, store: Store):
        await write(store, *LOG)
        await store.threads.roll_back("ann", turning("b1"), to="m3")
        await write(store, message_of("m4", "Otherwise"), name="r2")
        undone = await store.threads.undo("ann", turning("n1"))
        assert (undone.count, undone.messages) == (1, ("m3",))
        results = [entry.id for entry in view(await store.log.read_after("thread-1")).messages]
        assert results == ["m1", "a1", "m2", "m3"]

    async def test_R12_an_undo_lists_a_limited_number_of_ids(self, store: Store):
        await write(store, *[message_of(f"m{place:04}") for place in range(MOST_IDS + 2)])
        await store.threads.roll_back("ann", turning("b1"), to="m0000")
        undone = await store.threads.undo("ann", turning("n1"))
        assert (undone.count, len(undone.messages), undone.messages[0]) == (MOST_IDS + 2, MOST_IDS, "m0000")

    @pytest.mark.parametrize("is_at_work", [True, False])
    async def test_R12_an_open_run_prevents_rollback_and_undo(self, store: Store, is_at_work: bool):
        await write(store, *LOG, RolledBack(id="b0", to="m3"))
        before = await store.log.read_after("thread-1")
        await store.runs.admit(admission("busy"))
        if is_at_work:
            await store.runs.claim(NODE, at(2), 1)
        does = "is active" if is_at_work else "is queued"
        words = f"Run 'busy' of this thread {does}. Wait for its end, or cancel it."
        with pytest.raises(Conflict) as error:
            await store.threads.roll_back("ann", turning("b1"), to="m1")
        assert str(error.value) == words
        with pytest.raises(Conflict) as error:
            await store.threads.undo("ann", turning("n1"))
        assert str(error.value) == words
        assert await store.log.read_after("thread-1") == before

    async def test_R12_one_of_two_concurrent_undos_succeeds(self, store: Store):
        # A rollback by a client is undone like any other; a fork has none.
        await write(store, *LOG, RolledBack(id="b0", to="m3", cause="client"))
        await store.threads.fork("ann", ForkOptions(thread="thread-1", id="fork", now=at(9)))
        assert [await store.log.can_undo(thread) for thread in ("thread-1", "fork")] == [True, False]
        both = await asyncio.gather(
            *[store.threads.undo("ann", turning(f"n{one}")) for one in range(2)], return_exceptions=True
        )
        assert sorted(type(one).__name__ for one in both) == ["Conflict", "RollbackUndone"]


async def write(store: Store, *entries: Entry, name: str = "r1") -> None:
    lease = await begin(store, name)
    await store.runs.record(lease, RunChange(entries=entries, ending=RunEnding(outcome="done")), at(1))
