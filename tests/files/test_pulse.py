"""Whether a storage can be used: asked once for all who want to know, and never waited for for long (C3)."""

import asyncio

import pytest

from recto.errors import StorageDown
from recto.files.storage.storage_health import HOLDS_SECONDS, StorageHealth


class Patient:
    """A storage with a clock that is set by hand. `problem` is what is wrong with it."""

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

    def pulse(self, wait: float = 10.0) -> StorageHealth:
        return StorageHealth(self.probe, wait=wait, clock=lambda: self.now)


async def test_C3_a_storage_in_order_is_not_asked_again_for_some_seconds():
    patient = Patient()
    pulse = patient.pulse()
    for now in (0, HOLDS_SECONDS / 2, HOLDS_SECONDS - 0.1):
        patient.now = now
        await pulse.feel()
    assert patient.asked == 1
    patient.now = HOLDS_SECONDS
    patient.problem = "unplugged"
    with pytest.raises(StorageDown, match="unplugged"):
        await pulse.feel()


async def test_C3_one_that_is_down_is_asked_each_time_so_that_it_is_known_at_once_when_it_is_up():
    patient = Patient()
    pulse = patient.pulse()
    patient.problem = "unplugged"
    for _ in range(2):
        with pytest.raises(StorageDown, match="unplugged"):
            await pulse.feel()
    patient.problem = None
    await pulse.feel()
    assert patient.asked == 3


async def test_C3_many_who_want_to_know_at_once_ask_once_and_hear_the_same():
    patient = Patient()
    pulse = patient.pulse()
    patient.problem = "unplugged"
    patient.answers.clear()
    asking = [asyncio.create_task(pulse.feel()) for _ in range(20)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    patient.answers.set()
    heard = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(one) for one in heard] == [StorageDown] * 20
    assert patient.asked == 1


async def test_C3_one_that_does_not_answer_is_down_and_is_not_asked_a_second_time_meanwhile():
    patient = Patient()
    pulse = patient.pulse(wait=0.01)
    patient.answers.clear()
    for _ in range(3):
        with pytest.raises(StorageDown, match="did not answer within"):
            await pulse.feel()
    assert patient.asked == 1
    patient.answers.set()
    await asyncio.sleep(0)
    await pulse.feel()
