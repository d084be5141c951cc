"""X4, R13: ten thousand steps of a worker that often dies, against an interpreter that never reads the log."""

from collections import Counter
from copy import deepcopy
from random import Random

import pytest

from recto.conversation.log import ToolStarted, view
from recto.conversation.messages import AssistantMessage, ToolCall, ToolMessage
from recto.conversation.next_step import Finished, RunTools, Step, WaitForClient, next_step
from tests.conversation.naive_turns import CLIENT, REPEATABLE
from tests.conversation.walk import ROW, Walk

SEEDS = range(20)
STEPS = 500
RUNS_PER_THREAD = 20


def walks(seed: int) -> list[Walk]:
    """Threads of a few runs each, until `STEPS` steps were asked for. The walk itself compares each with the naive."""
    random = Random(seed)
    found: list[Walk] = []
    while sum(len(walk.asked) for walk in found) < STEPS:
        walk = Walk(random)
        for _ in range(RUNS_PER_THREAD):
            walk.happen()
            assert_settled(walk, walk.run())
        found.append(walk)
    return found


def assert_settled(walk: Walk, end: Step) -> None:
    """When a run is over each call of its turn has one result, or is the client's, or the run was ended early."""
    seen = view(walk.log)
    turn = seen.messages[seen.turn_start :]
    results = Counter[tuple[str, str]]()
    reply = ""
    for message in turn:
        reply = message.id if isinstance(message, AssistantMessage) else reply
        results.update([(reply, message.tool_call_id)] if isinstance(message, ToolMessage) else [])
    asked = {(message.id, one.id): one for message in turn for one in calls_of(message)}
    assert set(results) <= set(asked)
    assert set(results.values()) <= {1}
    open_calls = {key: one for key, one in asked.items() if not results[key]}
    match end:
        case WaitForClient():
            assert {one.name for one in open_calls.values()} == {CLIENT}
            assert end.calls == tuple(open_calls.values())
        case Finished(outcome="cancelled" | "refused" | "filtered"):
            assert {message for message, _ in open_calls} <= {walk.naive.reply.id if asked else ""}
        case _:
            assert open_calls == {}


def calls_of(message: object) -> tuple[ToolCall, ...]:
    return message.tool_calls if isinstance(message, AssistantMessage) else ()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in SEEDS[1:])])
def test_X4_a_worker_that_dies_anywhere_starts_nothing_twice_and_ends(seed: int):
    found = walks(seed)
    assert sum(len(walk.asked) for walk in found) >= STEPS
    for walk in found:
        assert_nothing_started_twice(walk)
        assert_same_from_the_log(walk)
        assert_no_prefix_starts_again(walk)


def assert_nothing_started_twice(walk: Walk) -> None:
    """By the whole log, hidden entries too."""
    names = {(entry.id, one.id): one.name for entry in walk.log for one in calls_of(entry)}
    starts = Counter((entry.message, entry.call) for entry in walk.log if isinstance(entry, ToolStarted))
    assert {names[key] for key, count in starts.items() if count > 1} <= {REPEATABLE}
    assert CLIENT not in {names[key] for key in starts}


def assert_same_from_the_log(walk: Walk) -> None:
    """Another worker, with nothing but a copy of what was stored by then, takes the same step."""
    stored = deepcopy(walk.log)
    for asked in walk.asked:
        assert next_step(stored[: asked.entries], asked.run) == asked.step


def assert_no_prefix_starts_again(walk: Walk) -> None:
    """Wherever the log ends, also between two entries of one step."""
    started: set[tuple[str, str]] = set()
    for end, entry in enumerate(walk.log, start=1):
        if isinstance(entry, ToolStarted):
            started.add((entry.message, entry.call))
        step = next_step(walk.log[:end], ROW)
        reply = next((one.id for one in reversed(view(walk.log[:end]).messages) if calls_of(one)), "")
        begun = [one for one in step.start if (reply, one.id) in started] if isinstance(step, RunTools) else []
        assert {one.name for one in begun} <= {REPEATABLE}


@pytest.mark.full
def test_the_walk_comes_by_everything_that_can_happen():
    found = [walk for seed in SEEDS for walk in walks(seed)]
    steps = [asked.step for walk in found for asked in walk.asked]
    assert len(steps) >= 10_000
    outcomes = Counter(step.outcome for step in steps if isinstance(step, Finished))
    assert set(outcomes) == {
        *("done", "cancelled", "too_many_steps", "length", "refused", "filtered", "too_long", "model_failed")
    }
    tools = [step for step in steps if isinstance(step, RunTools)]
    assert all(any(group) for group in zip(*((one.start, one.interrupted, one.cut_off) for one in tools), strict=True))
    entries = Counter(type(entry).__name__ for walk in found for entry in walk.log)
    assert {"Undone", "RolledBack", "Compacted", "Interrupted", "ReplyEnded", "ToolStarted"} <= set(entries)
    assert {type(step).__name__ for step in steps} == {"CallModel", "RunTools", "Compact", "WaitForClient", "Finished"}
