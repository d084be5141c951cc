"""The check of a storage: shared by concurrent callers, with a short time limit (C3)."""

import asyncio

import pytest

from recto.errors import StorageDown
from recto.files.storage.storage_health import HOLDS_SECONDS, StorageHealth
from tests.waiting import settle


class FakeStorage:
    """A storage with a manual clock. `problem` makes its check fail."""

    def __init__(self) -> None:
        self.asked = 0
        self.problem: str | None = None
        self.now = 0.0
        self.answers = asyncio.Event()
        self.answers.set()

    async def probe(self) -> None:
        self.asked += 1
        await self.answers.wait()
        if self.problem:
            raise StorageDown(problem=self.problem)

    def health(self, wait: float = 10.0) -> StorageHealth:
        return StorageHealth(self.probe, wait=wait, clock=lambda: self.now)


async def test_C3_a_storage_in_order_is_not_asked_again_for_some_seconds():
    storage = FakeStorage()
    health = storage.health()
    for now in (0, HOLDS_SECONDS / 2, HOLDS_SECONDS - 0.1):
        storage.now = now
        await health.check()
    assert storage.asked == 1
    storage.now = HOLDS_SECONDS
    storage.problem = "unplugged"
    # A failing storage is checked each time, so that its recovery is noticed at once.
    for _ in range(2):
        with pytest.raises(StorageDown, match="unplugged"):
            await health.check()
    storage.problem = None
    await health.check()
    assert storage.asked == 4


async def test_C3_many_who_want_to_know_at_once_ask_once_and_hear_the_same():
    storage = FakeStorage()
    health = storage.health()
    storage.problem = "unplugged"
    storage.answers.clear()
    asking = [asyncio.create_task(health.check()) for _ in range(20)]
    await settle()
    storage.answers.set()
    results = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(one) for one in results] == [StorageDown] * 20
    assert storage.asked == 1


async def test_C3_one_that_does_not_answer_is_down_and_is_not_asked_a_second_time_meanwhile():
    storage = FakeStorage()
    health = storage.health(wait=0.01)
    storage.answers.clear()
    for _ in range(3):
        with pytest.raises(StorageDown, match="did not answer within"):
            await health.check()
    assert storage.asked == 1
    storage.answers.set()
    await settle()
    await health.check()
