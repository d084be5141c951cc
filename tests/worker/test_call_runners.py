"""P3: whose call it is stands in the log when it is made, whatever a later run cancels, brings or has."""

from collections import Counter
from itertools import count
from pathlib import Path
from random import Random

import pytest

from recto.worker.runtime import Checkpoint
from tests.worker.plays import AGENTS, Play, a_play, calling, calls_in

NAMES = ("act", "pick", "form")
POINTS: tuple[Checkpoint, ...] = ("entered", "call_begun", "delta", "replied", "tools_started", "tool_ended")


async def test_P3_a_client_cannot_answer_a_call_of_an_agents_tool_by_going_on_under_another_agent(tmp_path: Path):
    async with a_play(tmp_path) as play:
        session = play()
        session.answers[:] = [calling(("act", "c1"))]
        await session.run("doer", stop_at="replied")
        assert await session.results() == {}
        await session.run("bare", brings=["act"], results=["c1"])
        assert "CLIENT" not in (await session.results())["c1"]
        assert session.acted == []


async def test_P3_a_call_of_a_clients_tool_is_never_run_by_another_agents_tool_of_that_name(tmp_path: Path):
    async with a_play(tmp_path) as play:
        session = play()
        session.answers[:] = [calling(("pick", "c1"), ("form", "c2"))]
        await session.run("bare", brings=["pick", "form"])
        await session.run("former", results=["c1"])
        await session.run("former", results=["c2"])
        assert session.acted == []
        assert await session.results() == {"c1": '{"from": "CLIENT"}', "c2": '{"from": "CLIENT"}'}


async def test_P3_a_form_answers_through_the_agents_own_tool_and_only_where_it_was_asked(tmp_path: Path):
    async with a_play(tmp_path) as play:
        session = play()
        session.answers[:] = [calling(("form", "c1"))]
        await session.run("doer", brings=["form"])
        await session.run("former", results=["c1"])
        assert (session.acted, await session.results()) == ([("form", "c1")], {"c1": "SERVER"})
        direct = play()
        direct.answers[:] = [calling(("form", "c1"))]
        await direct.run("doer", stop_at="replied")
        await direct.run("doer", brings=["form"], results=["c1"])
        assert (direct.acted, await direct.results()) == ([("form", "c1")], {"c1": "SERVER"})


async def play_at_random(play: Play, random: Random) -> None:
    """Run random agents with random calls, results and cancellations in one turn."""
    numbers = count(1)
    for _ in range(random.randint(2, 6)):
        names = [random.sample(NAMES, random.randint(1, 3)) for _ in range(random.randint(0, 2))]
        play.answers[:] = [calling(*[(name, f"c{next(numbers)}") for name in some]) for some in names]
        agent = random.choice(list(AGENTS))
        # As admission has it: names of the agent's own tools are taken, but for forms.
        free = [name for name in NAMES if name == "form" or name not in AGENTS[agent]]
        brings = random.sample(free, random.randint(0, len(free)))
        call_ids = list(play.tool_calls)
        results = random.sample(call_ids, random.randint(0, len(call_ids)))
        await play.run(agent, brings, results, stop_at=random.choice((None, *POINTS)))


async def assert_each_call_was_answered_by_its_own(play: Play) -> None:
    acted, results = dict[str, str](), await play.results()
    for name, id in play.acted:
        assert id not in acted, f"{id} was run twice"
        acted[id] = name
    for id, call in {call.id: call for call in calls_in(await play.log())}.items():
        agent, was_brought = play.tool_calls[id]
        is_form = call.name == "form" and "form" in AGENTS[agent]
        if was_brought and not is_form:
            assert id not in acted, f"{call} is the client's, and was run by the server"
        if not was_brought and call.name in AGENTS[agent]:
            assert "CLIENT" not in results.get(id, ""), f"{call} is the server's, and was answered by the client"


async def play_all(folder: Path, seeds: range) -> Counter[str]:
    counts = Counter[str]()
    async with a_play(folder) as play:
        for seed in seeds:
            session = play()
            await play_at_random(session, Random(seed))
            await assert_each_call_was_answered_by_its_own(session)
            counts.update(acted=len(session.acted), answered=str(await session.results()).count("CLIENT"))
    return counts


async def test_P3_whatever_is_cancelled_changed_and_sent_each_call_is_answered_by_whose_it_is(tmp_path: Path):
    assert min((await play_all(tmp_path, range(30))).values()) > 0


@pytest.mark.full
async def test_P3_the_same_over_many_stories(tmp_path: Path):
    assert min((await play_all(tmp_path, range(1_000, 1_400))).values()) > 50
