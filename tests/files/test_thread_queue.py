"""P9: a thread works while its caller prepares the next, and a caller that leaves does not wait."""

import threading
from collections.abc import AsyncIterator

import pytest

from recto.errors import StorageDown
from recto.files.storage.thread_queue import ThreadQueue
from tests.waiting import wait_until


@pytest.fixture
async def gate() -> AsyncIterator[threading.Event]:
    """Yield an event that a function waits for, and set it at the end of the test."""
    event = threading.Event()
    yield event
    event.set()


async def test_P9_put_and_end_raise_the_error_of_a_function():
    with ThreadQueue() as queue:
        await queue.put(_fail)
        with pytest.raises(StorageDown, match="no room"):
            await queue.end()
    with ThreadQueue() as queue, pytest.raises(StorageDown, match="no room"):
        await queue.put(_fail)
        await queue.put(_fail)


async def test_P9_a_caller_that_leaves_does_not_wait_for_the_running_function(gate: threading.Event):
    done = list[str]()

    def work() -> None:
        gate.wait()
        done.append("work")

    with pytest.raises(RuntimeError, match="the sender left"), ThreadQueue() as queue:
        await queue.put(work)
        raise RuntimeError("the sender left")
    assert done == []
    gate.set()
    await wait_until(lambda: done == ["work"])


def _fail() -> None:
    raise StorageDown(problem="no room")
