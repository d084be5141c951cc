"""P3, P11: whose call it is stands in the log when it is made, whatever a later run cancels, brings or has."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from recto.agents.agent import CHAT
from recto.engine.hub import Hub
from recto.engine.ports import Signal
from recto.ids import new_id
from recto.models.choose import choose_model
from recto.page import AssistantMessage, Entry, Text, ToolMessage, ToolOffer
from recto.page.canonical import Json, dump
from recto.page.messages import texts_of
from recto.store.ports import Admission
from recto.store.store import Store
from recto.telemetry import Telemetry
from recto.testing.model_server import Answer, Call, ModelServer, Request
from recto.tools.ports import Tool, ToolContext, ToolResult
from recto.tools.registry import Registry
from recto.worker.loop import work
from recto.worker.shelf import Shelf
from recto.worker.workshop import Point, Workshop
from tests.stored_runs import OWNER, WHO, a_store, now

NAMES = ("act", "pick", "form")
# What each agent has: its own tools, and those a client may answer for.
AGENTS = {"doer": ("act", "form"), "bare": (), "picker": ("pick",), "former": ("pick", "form")}
POINTS: tuple[Point, ...] = ("entered", "call_begun", "delta", "replied", "tools_started", "tool_ended")


@dataclass(kw_only=True)
class Play:
    """A thread under changing agents. `acted` are the calls a tool of the server's acted for, by the tool's name."""

    shop: Workshop
    answers: list[Answer]
    thread: str = field(default_factory=new_id)
    acted: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    # Of each call, the agent it was made under and whether the client brought a tool of its name.
    made: dict[str, tuple[str, bool]] = field(default_factory=dict[str, tuple[str, bool]])

    async def run(
        self, agent: str, brings: Sequence[str] = (), results: Sequence[str] = (), *, stop_at: Point | None = None
    ) -> None:
        """A run that goes on with the one turn there is."""
        tools = [{"name": name, "description": name, "parameters": {"type": "object"}} for name in brings]
        told = [{"id": new_id(), "role": "tool", "toolCallId": id, "content": '{"from": "CLIENT"}'} for id in results]
        messages = [{"id": "m1", "role": "user", "content": "Go."}, *told]
        body: Json = {"threadId": self.thread, "runId": new_id(), "messages": messages, "tools": tools}
        admission = Admission(
            id=new_id(),
            name=new_id(),
            owner=OWNER,
            thread=self.thread,
            agent=agent,
            input=dump(body),
            response_id=new_id(),
            created=now(),
        )
        run, signal = (await self.shop.store.admit(admission, WHO)).run, Signal()

        def reached(point: Point) -> None:
            if point == stop_at:
                signal.cancelled.set()

        before = {call.id for call in calls_in(await self.log())}
        assert await work(replace(self.shop, reached=reached), run, signal)
        made = [call for call in calls_in(await self.log()) if call.id not in before]
        self.made |= {call.id: (agent, call.name in brings) for call in made}

    async def log(self) -> Sequence[Entry]:
        return await self.shop.store.log_after(self.thread)

    async def results(self) -> dict[str, str]:
        """What calls were answered, by their ids."""
        found = [entry for entry in await self.log() if isinstance(entry, ToolMessage)]
        return {entry.tool_call_id: "".join(texts_of(entry)) for entry in found}


def calls_in(log: Sequence[Entry]) -> list[Call]:
    replies = [entry for entry in log if isinstance(entry, AssistantMessage)]
    return [Call(id=call.id, name=call.name, arguments="{}") for reply in replies for call in reply.tool_calls]


@asynccontextmanager
async def a_play(folder: Path) -> AsyncGenerator[Callable[[], Play]]:
    """Plays on one store and one model."""
    answers = list[Answer]()

    def script(_made: Request) -> Answer:
        return answers.pop(0) if answers else Answer(text="Done.")

    with ModelServer(script) as server:
        async with a_store(folder) as store:
            model = choose_model("compatible:x", {"RECTO_MODEL_URL": server.url})
            shop = a_shop(store)

            def play() -> Play:
                answers.clear()
                made = Play(shop=replace(shop, model=model), answers=answers)
                registries = {name: Registry(tools_of(made, names)) for name, names in AGENTS.items()}
                made.shop = replace(made.shop, tools=registries)
                return made

            try:
                yield play
            finally:
                await model.aclose()


def a_shop(store: Store) -> Workshop:
    return Workshop(
        store=store,
        hub=Hub(store),
        model=choose_model("demo", {}),
        agents={name: replace(CHAT, name=name) for name in AGENTS},
        tools={},
        shelf=Shelf(store),
        telemetry=Telemetry(CollectorRegistry()),
        clock=now,
        chance=lambda: 0.0,
        new_id=new_id,
    )


def tools_of(play: Play, names: Sequence[str]) -> list[Tool]:
    def made(name: str) -> Tool:
        async def act(_arguments: str, context: ToolContext) -> ToolResult:
            play.acted.append((name, context.call))
            return ToolResult(parts=(Text(text="SERVER"),))

        offer = ToolOffer(name=name, description=name, parameters='{"type":"object"}')
        return Tool(offer=offer, act=act, by_client=name == "form")

    return [made(name) for name in names]


def calling(*calls: tuple[str, str]) -> Answer:
    return Answer(calls=tuple(Call(name=name, arguments="{}", id=id) for name, id in calls))


async def test_P3_a_client_cannot_answer_a_call_of_an_agents_tool_by_going_on_under_another_agent(tmp_path: Path):
    async with a_play(tmp_path) as play:
        made = play()
        made.answers[:] = [calling(("act", "c1"))]
        await made.run("doer", stop_at="replied")
        assert await made.results() == {}
        await made.run("bare", brings=["act"], results=["c1"])
        assert "CLIENT" not in (await made.results())["c1"]
        assert made.acted == []


async def test_P3_a_call_of_a_clients_tool_is_never_run_by_another_agents_tool_of_that_name(tmp_path: Path):
    async with a_play(tmp_path) as play:
        made = play()
        made.answers[:] = [calling(("pick", "c1"), ("form", "c2"))]
        await made.run("bare", brings=["pick", "form"])
        await made.run("former", results=["c1"])
        await made.run("former", results=["c2"])
        assert made.acted == []
        assert await made.results() == {"c1": '{"from": "CLIENT"}', "c2": '{"from": "CLIENT"}'}


async def test_P3_a_form_answers_through_the_agents_own_tool_and_only_where_it_was_asked(tmp_path: Path):
    async with a_play(tmp_path) as play:
        made = play()
        made.answers[:] = [calling(("form", "c1"))]
        await made.run("doer", brings=["form"])
        await made.run("former", results=["c1"])
        assert (made.acted, await made.results()) == ([("form", "c1")], {"c1": "SERVER"})
        unasked = play()
        unasked.answers[:] = [calling(("form", "c1"))]
        await unasked.run("doer", stop_at="replied")
        await unasked.run("doer", brings=["form"], results=["c1"])
        assert (unasked.acted, await unasked.results()) == ([("form", "c1")], {"c1": "SERVER"})


async def play_at_random(play: Play, random: Random) -> None:
    """Runs of one turn under any agents, each with calls of any tools, cancelled anywhere, results for anything."""
    numbers = count(1)
    for _ in range(random.randint(2, 6)):
        names = [random.sample(NAMES, random.randint(1, 3)) for _ in range(random.randint(0, 2))]
        play.answers[:] = [calling(*[(name, f"c{next(numbers)}") for name in some]) for some in names]
        agent = random.choice(list(AGENTS))
        # As admission has it: names of the agent's own tools are taken, but for forms.
        free = [name for name in NAMES if name == "form" or name not in AGENTS[agent]]
        brings = random.sample(free, random.randint(0, len(free)))
        known = list(play.made)
        results = random.sample(known, random.randint(0, len(known)))
        await play.run(agent, brings, results, stop_at=random.choice((None, *POINTS)))


async def assert_each_call_was_answered_by_its_own(play: Play) -> None:
    acted, results = dict[str, str](), await play.results()
    for name, id in play.acted:
        assert id not in acted, f"{id} was run twice"
        acted[id] = name
    for id, call in {call.id: call for call in calls_in(await play.log())}.items():
        agent, was_brought = play.made[id]
        is_form = call.name == "form" and "form" in AGENTS[agent]
        if was_brought and not is_form:
            assert id not in acted, f"{call} is the client's, and was run by the server"
        if not was_brought and call.name in AGENTS[agent]:
            assert "CLIENT" not in results.get(id, ""), f"{call} is the server's, and was answered by the client"


async def play_all(folder: Path, seeds: range) -> Counter[str]:
    seen = Counter[str]()
    async with a_play(folder) as play:
        for seed in seeds:
            made = play()
            await play_at_random(made, Random(seed))
            await assert_each_call_was_answered_by_its_own(made)
            seen.update(acted=len(made.acted), answered=str(await made.results()).count("CLIENT"))
    return seen


async def test_P3_whatever_is_cancelled_changed_and_sent_each_call_is_answered_by_whose_it_is(tmp_path: Path):
    assert min((await play_all(tmp_path, range(30))).values()) > 0


@pytest.mark.full
async def test_P3_the_same_over_many_stories(tmp_path: Path):
    assert min((await play_all(tmp_path, range(1_000, 1_400))).values()) > 50
