"""The janitor: cleans until nothing is left, rests, begins again; a failure ends a round, never the janitor."""

import asyncio
import logging
from collections.abc import Callable, Iterator

import pytest

from recto.engine.dispatch import PAUSE_SECONDS, run_cleanup
from recto.errors import StorageDown, StoreDown
from tests.api.virtual_time import run_virtually
from tests.waiting import wait_until


async def clean_with(answers: Iterator[int | Exception], done: Callable[[], bool]) -> None:
    """Keep clean until `done`; each answer is what one round of cleaning finds, or raises."""

    async def clean() -> int:
        answer = next(answers, 0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    task = asyncio.create_task(run_cleanup({"rows": clean}, 0.001))
    await wait_until(lambda: task.done() or done(), "the rounds of cleaning")
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_P7_it_cleans_until_nothing_is_left_and_says_how_much_that_was(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "recto.engine")
    await clean_with(iter([3, 2, 0, 0, 4, 0]), lambda: len(caplog.records) == 2)
    assert [record.getMessage() for record in caplog.records] == [
        "cleaned up 5 rows that were to be kept no longer",
        "cleaned up 4 rows that were to be kept no longer",
    ]


def test_P7_it_breathes_between_rounds_so_that_nobody_waits():
    start: list[float] = []

    async def clean() -> int:
        start.append(asyncio.get_running_loop().time())
        if len(start) == 3:
            raise asyncio.CancelledError
        return 1

    with pytest.raises(asyncio.CancelledError):
        run_virtually(run_cleanup({"rows": clean}, 3_600))
    assert start == [0, pytest.approx(PAUSE_SECONDS), pytest.approx(2 * PAUSE_SECONDS)]


@pytest.mark.parametrize(
    "error",
    [StoreDown(problem="the disk is full"), StorageDown(problem="unplugged"), ValueError("nobody foresaw this")],
)
async def test_P7_a_failure_is_logged_and_the_next_round_comes(caplog: pytest.LogCaptureFixture, error: Exception):
    caplog.set_level(logging.INFO, "recto.engine")
    await clean_with(iter([error, 1, 0]), lambda: len(caplog.records) == 2)
    failed, cleaned = caplog.records
    assert (failed.levelname, failed.getMessage()) == ("WARNING", f"could not clean up rows: {error}")
    # Only what nobody foresaw needs the way through the code.
    assert bool(failed.exc_info) == isinstance(error, ValueError)
    assert cleaned.getMessage() == "cleaned up 1 rows that were to be kept no longer"


async def test_P7_a_part_that_always_fails_keeps_no_other_from_its_turn(caplog: pytest.LogCaptureFixture):
    done = asyncio.Event()

    async def fail() -> int:
        raise StoreDown(problem="the disk is full")

    async def last() -> int:
        done.set()
        return 0

    task = asyncio.create_task(run_cleanup({"rows": fail, "files": fail, "workspaces": last}, 3_600))
    await wait_until(done.is_set)
    task.cancel()
    logged = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert logged == ["could not clean up rows", "could not clean up files"]
