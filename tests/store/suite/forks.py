"""Forks: a copy of the visible log, independent of its source."""

from collections.abc import Sequence

import pytest

from recto.conversation.log import Entry, RolledBack, SkillChanged, Undone, view
from recto.conversation.log import fork as fork_of
from recto.errors import Conflict, NotFound
from recto.store.ports import RunChange, RunEnding
from recto.store.store import Store
from recto.store.threads.threads import ForkOptions
from tests.store.suite.samples import at, begin, message_of
from tests.store.suite.stored_entries import every_kind_of_entry

LOG: tuple[Entry, ...] = (
    message_of("m1", "One"),
    SkillChanged(id="s1", skill="bazi", scenario="work"),
    message_of("m2", "Two"),
    SkillChanged(id="s2", skill="tarot"),
    message_of("m3", "Three"),
    RolledBack(id="b1", to="m3"),
    message_of("m4", "Four"),
    RolledBack(id="b2", to="m2"),
    Undone(id="u1"),
    message_of("m5", "Five"),
    RolledBack(id="b3", to="unknown"),
    message_of("m6", "Six"),
)


class ForkSuite:
    @pytest.mark.parametrize("before", [None, "m1", "m2", "m4", "m5", "m6"])
    async def test_a_fork_starts_with_the_visible_log(self, store: Store, before: str | None):
        await write(store, LOG)
        new = await store.threads.fork("ann", ForkOptions(thread="thread-1", id="fork", now=at(9), before=before))
        copied = await store.log.read_after("fork")
        expected = fork_of(await store.log.read_after("thread-1"), before=before)
        assert [(entry.id, entry.time) for entry in copied] == [(entry.id, entry.time) for entry in expected]
        assert [entry.seq for entry in copied] == list(range(1, len(expected) + 1))
        skill = view(expected).skill
        assert (new.skill, new.scenario) == ((skill.skill, skill.scenario) if skill else (None, None))
        assert (new.agent, new.title, new.created, new.updated) == ("vibe", "One", at(9), at(9))

    @pytest.mark.parametrize("before", ["unknown", "s1", "m3", ""])
    async def test_a_fork_before_no_visible_user_message_is_rejected(self, store: Store, before: str):
        await write(store, LOG)
        with pytest.raises(NotFound, match="user message"):
            await store.threads.fork("ann", ForkOptions(thread="thread-1", id="fork", now=at(9), before=before))
        with pytest.raises(NotFound):
            await store.threads.get("ann", "fork")

    async def test_a_fork_copies_every_kind_of_entry(self, store: Store):
        entries = [entry for entry in every_kind_of_entry() if not isinstance(entry, (RolledBack, Undone))]
        await write(store, entries)
        await store.threads.fork("ann", ForkOptions(thread="thread-1", id="fork", now=at(9)))
        assert list(await store.log.read_after("fork")) == list(await store.log.read_after("thread-1"))

    async def test_a_fork_and_its_source_are_independent(self, store: Store):
        await write(store, LOG)
        for id in ("fork", "second"):
            await store.threads.fork("ann", ForkOptions(thread="thread-1", id=id, now=at(9)))
        before = await store.log.read_after("fork")
        lease = await begin(store, "r2", "fork")
        await store.runs.record(lease, RunChange(entries=[message_of("new")], ending=RunEnding(outcome="done")), at(10))
        await store.threads.delete("ann", "thread-1")
        assert [entry.id for entry in await store.log.read_after("fork")] == [*[entry.id for entry in before], "new"]
        await store.threads.delete("ann", "fork")
        assert [entry.id for entry in await store.log.read_after("second")] == [entry.id for entry in before]

    async def test_a_fork_has_no_runs_and_can_have_its_own_title(self, store: Store):
        await write(store, LOG)
        await store.threads.fork("ann", ForkOptions(thread="thread-1", id="first", now=at(8)))
        assert await store.threads.set_title_if_automatic("first", "Better")
        new = await store.threads.fork("ann", ForkOptions(thread="thread-1", id="fork", now=at(9), title="Another way"))
        assert (new.title, new.active) == ("Another way", None)
        assert (await store.runs.list_page("ann", "fork", None, 9)).runs == ()
        # A title that the user set stays.
        await store.threads.fork("ann", ForkOptions(thread="fork", id="of the fork", now=at(9)))
        assert [await store.threads.set_title_if_automatic(id, "x") for id in ("fork", "of the fork")] == [False, False]

    async def test_a_fork_under_an_existing_id_is_rejected(self, store: Store):
        await write(store, LOG)
        with pytest.raises(Conflict, match="thread-1"):
            await store.threads.fork("ann", ForkOptions(thread="thread-1", id="thread-1", now=at(9)))
        assert len(await store.log.read_after("thread-1")) == len(LOG)


async def write(store: Store, entries: Sequence[Entry]) -> None:
    lease = await begin(store, "r1")
    await store.runs.record(lease, RunChange(entries=entries, ending=RunEnding(outcome="done")), at(1))
