"""Functions in their own threads."""

import asyncio
import contextvars
import threading

import pytest

from recto.tools.daemon_thread import run_in_thread
from tests.waiting import settle, wait_until

WORD = contextvars.ContextVar("WORD", default="none")


async def test_what_the_function_returns_or_raises_comes_back_from_a_daemon_named_after_the_work():
    def fail() -> None:
        raise KeyError("k")

    thread = await run_in_thread(threading.current_thread, name="look")
    assert (thread.daemon, thread.name) == (True, "look")
    with pytest.raises(KeyError):
        await run_in_thread(fail, name="fail")


async def test_the_thread_sees_the_context_of_the_caller_and_cannot_change_it():
    WORD.set("mine")

    def change() -> str:
        before = WORD.get()
        WORD.set("theirs")
        return before

    assert await run_in_thread(change, name="change") == "mine"
    assert WORD.get() == "mine"


async def test_stuck_functions_hold_up_nobody_else():
    gate = threading.Event()
    stuck = [asyncio.ensure_future(run_in_thread(gate.wait, name="stuck")) for _ in range(100)]
    async with asyncio.timeout(5):
        assert await run_in_thread(lambda: "free", name="free") == "free"
        assert await asyncio.to_thread(lambda: "free") == "free"
    gate.set()
    assert all(await asyncio.gather(*stuck))


@pytest.mark.parametrize("closed", [False, True], ids=["the caller has gone", "the loop is closed"])
@pytest.mark.parametrize("fails", [False, True], ids=["answers", "fails"])
def test_what_comes_when_nobody_waits_is_dropped_without_a_word(
    fails: bool, closed: bool, caplog: pytest.LogCaptureFixture
):
    gate, threads = threading.Event(), list[threading.Thread]()

    def wait() -> None:
        threads.append(threading.current_thread())
        gate.wait()
        if fails:
            raise ValueError("late")

    async def leave() -> None:
        waiting = asyncio.create_task(run_in_thread(wait, name="wait"))
        await wait_until(lambda: threads)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if not closed:
            gate.set()
            await wait_until(lambda: not threads[0].is_alive())
            await settle()

    asyncio.run(leave())
    gate.set()
    for thread in threads:
        thread.join(5)
    assert (len(threads), caplog.records) == (1, [])
