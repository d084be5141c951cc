"""Work in a thread while the next is brought: in order, a little ahead, and left where nobody waits for it (P9)."""

import threading
from collections.abc import AsyncIterator

import pytest

from recto.errors import StorageDown
from recto.files.storage.thread_queue import AHEAD, ThreadQueue
from tests.waiting import wait_until

# More than the pool that all share ever has.
MANY = 50


@pytest.fixture
async def gate() -> AsyncIterator[threading.Event]:
    """What an act waits for; opened at the end, whatever became of the test."""
    made = threading.Event()
    yield made
    made.set()


async def test_P9_what_goes_wrong_is_told_to_whoever_brings_more_or_ends():
    with ThreadQueue() as queue:
        await queue.put(_fail)
        with pytest.raises(StorageDown, match="no room"):
            await queue.end()
    with ThreadQueue() as queue, pytest.raises(StorageDown, match="no room"):
        for _ in range(AHEAD + 1):
            await queue.put(_fail)


async def test_P9_who_leaves_waits_for_nothing_and_nothing_more_is_begun(gate: threading.Event):
    done = list[str]()

    def first() -> None:
        gate.wait()
        done.append("first")

    with pytest.raises(RuntimeError, match="the sender left"), ThreadQueue() as queue:
        await queue.put(first)
        await queue.put(lambda: done.append("second"))
        raise RuntimeError("the sender left")
    assert done == []
    gate.set()
    await wait_until(lambda: done == ["first"])


def _fail() -> None:
    raise StorageDown(problem="no room")
