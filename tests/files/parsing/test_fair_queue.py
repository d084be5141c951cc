"""The fair queue (D7): owners take turns, no owner gets all places, and the queue is bounded."""

import asyncio
import os

import pytest

from recto.config.file_settings import PoolSettings
from recto.errors import FileRefused
from recto.files.parsing.parser_pool import FairQueue
from tests.files.loop_clock import LoopClock
from tests.waiting import settle


class Row:
    """Waiting documents, and those that have had their turn."""

    def __init__(self, *, places: int, of_owner: int, waiting: int = 100) -> None:
        self.queue = FairQueue(places=places, of_owner=of_owner, waiting=waiting, slow_seconds=60)
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, *names: str) -> None:
        """Queue a document. The first letter of its name is its owner."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._read(name))
        await settle()

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
            await settle()

    async def _read(self, name: str) -> None:
        async with self.queue.turn(name[0]):
            self.begun.append(name)
            await self._ends[name].wait()


async def test_D7_owners_take_turns_and_each_ones_documents_keep_their_order():
    row = Row(places=1, of_owner=1)
    await row.come("a1", "a2", "a3", "b1", "b2", "c1")
    await row.end("a1", "b1", "c1", "a2", "b2", "a3")
    assert row.begun == ["a1", "b1", "c1", "a2", "b2", "a3"]


async def test_D7_slow_documents_of_two_owners_do_not_hold_up_a_third(monkeypatch: pytest.MonkeyPatch):
    clock, row = LoopClock(monkeypatch), Row(places=2, of_owner=1)

    async def pass_a_minute() -> None:
        clock.advance(60)
        await settle()

    await row.come("a1", "b1", "a2", "b2", "c1", "d1", "e1")
    assert row.begun == ["a1", "b1"]
    for _ in range(3):
        await pass_a_minute()
    # They use extra places, as many as there are ordinary ones.
    assert row.begun == ["a1", "b1", "c1", "d1"]
    await row.end("a1")
    assert row.begun == ["a1", "b1", "c1", "d1"]
    await pass_a_minute()
    assert row.begun[4:] == ["e1"]
    await row.end("b1", "c1", "d1", "e1", "a2", "b2")
    await asyncio.gather(*row.tasks.values())
    assert len(row.begun) == 7


async def test_D7_an_owner_has_no_more_places_than_allowed_and_holds_up_nobody():
    row = Row(places=3, of_owner=2)
    await row.come("a1", "a2", "a3", "a4", "b1")
    assert row.begun == ["a1", "a2", "b1"]
    await row.end("b1")
    assert row.begun == ["a1", "a2", "b1"]
    await row.end("a2")
    assert row.begun == ["a1", "a2", "b1", "a3"]
    await row.end("a1", "a3", "a4")


@pytest.mark.parametrize(
    ("settings", "places", "of_user"),
    [
        (PoolSettings(children=1), 1, 1),
        (PoolSettings(children=2), 2, 1),
        (PoolSettings(children=9), 9, 8),
        (PoolSettings(children=4, of_user=2), 4, 2),
    ],
)
def test_D7_an_owner_has_all_children_but_one_unless_told(settings: PoolSettings, places: int, of_user: int):
    assert (settings.places, settings.places_of_user) == (places, of_user)


@pytest.mark.parametrize(("processors", "places"), [(None, 2), (1, 2), (3, 3), (64, 4)])
def test_D7_by_itself_there_are_as_many_children_as_processors_from_two_to_four(
    monkeypatch: pytest.MonkeyPatch, processors: int | None, places: int
):
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    assert (PoolSettings().places, PoolSettings().places_of_user) == (places, places - 1)


async def test_D7_a_flood_of_one_owner_is_refused_to_that_owner_and_to_nobody_else():
    row = Row(places=1, of_owner=1, waiting=4)
    await row.come("a1", "a2", "a3", "a4", "a5", "a6")
    await row.come("b1", "c1")
    assert [name for name, task in row.tasks.items() if task.done()] == ["a4", "a5", "a6"]
    for name in ("a6", "a5", "a4"):
        with pytest.raises(FileRefused, match="too many documents are waiting") as error:
            await row.tasks[name]
        assert error.value.code == "busy"
    await row.end("a1", "b1", "c1", "a2", "a3")
    assert row.begun == ["a1", "b1", "c1", "a2", "a3"]
    await row.come("a7")
    assert row.begun[-1] == "a7"
    await row.end("a7")


async def test_D7_who_leaves_at_the_moment_of_their_turn_gives_it_back():
    row = Row(places=1, of_owner=1)
    async with row.queue.turn("b"):
        await row.come("a1")
    # The place belongs to a1 from here on, but its task has not run yet.
    row.tasks["a1"].cancel()
    await row.come("c1", "d1", "e1")
    # So does a document that leaves the queue earlier.
    row.tasks["d1"].cancel()
    await row.end("c1")
    assert (row.tasks["a1"].cancelled(), row.begun) == (True, ["c1", "e1"])
    await row.end("e1")


async def test_D7_who_waits_is_refused_when_the_server_is_stopped_and_who_comes_later():
    row = Row(places=1, of_owner=1)
    await row.come("a1", "b1")
    row.queue.close()
    await row.come("c1")
    for name in ("b1", "c1"):
        with pytest.raises(FileRefused, match="being stopped"):
            await row.tasks[name]
    await row.end("a1")
    assert row.tasks["a1"].done()
