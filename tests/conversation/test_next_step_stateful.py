"""X4, R13: ten thousand steps of a worker that often dies, against an interpreter that never reads the log."""

from collections import Counter
from random import Random

import pytest

from recto.conversation.next_step import Finished, RunTools, WaitForClient, next_step
from tests.conversation.walk import Walk

SEEDS = range(20)
STEPS = 500
RUNS_PER_THREAD = 20


def walks(seed: int) -> list[Walk]:
    """Threads of a few runs each, until `STEPS` steps were asked for. The walk itself compares each with the naive."""
    random = Random(seed)
    found_walks: list[Walk] = []
    while sum(len(walk.question) for walk in found_walks) < STEPS:
        walk = Walk(random)
        for _ in range(RUNS_PER_THREAD):
            walk.happen()
            walk.run()
        found_walks.append(walk)
    return found_walks


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in SEEDS[1:])])
def test_X4_a_worker_that_dies_anywhere_starts_nothing_twice_and_ends(seed: int):
    for walk in walks(seed):
        last = walk.question[-1]
        assert isinstance(last.step, Finished | WaitForClient)
        # Another worker, with nothing but what was stored by then, takes the same step.
        for question in walk.question:
            assert next_step(tuple(walk.log[: question.entries]), question.run) == question.step


@pytest.mark.full
def test_the_walk_comes_by_everything_that_can_happen():
    all_walks = [walk for seed in SEEDS for walk in walks(seed)]
    steps = [question.step for walk in all_walks for question in walk.question]
    assert len(steps) >= 10_000
    outcomes = Counter(step.outcome for step in steps if isinstance(step, Finished))
    assert set(outcomes) == {
        *("done", "cancelled", "too_many_steps", "length", "refused", "filtered", "too_long", "model_failed")
    }
    tools = [step for step in steps if isinstance(step, RunTools)]
    assert all(any(group) for group in zip(*((one.start, one.interrupted, one.cut_off) for one in tools), strict=True))
    entries = Counter(type(entry).__name__ for walk in all_walks for entry in walk.log)
    assert {"Undone", "RolledBack", "Compacted", "Interrupted", "ReplyEnded", "ToolStarted"} <= set(entries)
    assert {type(step).__name__ for step in steps} == {"CallModel", "RunTools", "Compact", "WaitForClient", "Finished"}
