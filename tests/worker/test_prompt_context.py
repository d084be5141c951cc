"""S1, S6: what a run looks up of its user, counted as queries; and which tools a page offers."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy import Connection

from recto.agents.agent import Agent, Sampling
from recto.agents.folders import load_folder
from recto.config.settings import Limits
from recto.conversation.input.run_input import ContextItem, RunInput, RunOptions
from recto.conversation.json import Json
from recto.conversation.log import View
from recto.conversation.messages import DeveloperMessage, SystemMessage, ToolMessage, ToolOffer, UserMessage
from recto.engine.ports import Signal
from recto.errors import LeaseLost
from recto.models.choose import choose_model
from recto.store.database.database import Result, Transaction
from recto.store.database.opening import migrate
from recto.store.database.sqlite import SqliteDatabase
from recto.store.ports import StoredRun
from recto.store.statement import get_driver
from recto.store.store import Store
from recto.store.users.users import ProfileChange
from recto.testing.model_server import Answer, ModelServer
from recto.tools.load_tools import load_folder_tools, make_agent_tools
from recto.tools.registry import Registry
from recto.worker.context.prompt_context import build_prompt_context, choose_sampling, select_tools
from recto.worker.loop import work
from recto.worker.runtime import Checkpoint, Runtime
from tests.end_to_end.files import calling
from tests.end_to_end.skilled import use, write_guide
from tests.stored_runs import OWNER, WHO, now
from tests.support.client import ask
from tests.worker.plays import admission_of, make_runtime

LIMIT = 100_000
TABLES = ("profile_fields", "skill_data", "profiles")


class Counting(SqliteDatabase):
    """A database that records the profile tables it reads."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked: list[str] = []

    async def read(self, work: Transaction[Result], *, few: bool = False) -> Result:
        def traced(connection: Connection) -> Result:
            get_driver(connection).set_trace_callback(self._note)
            try:
                return work(connection)
            finally:
                get_driver(connection).set_trace_callback(None)

        return await super().read(traced, few=few)

    def _note(self, statement: str) -> None:
        self.asked += [name for name in TABLES if f"FROM {name}" in _one_line(statement)]


def _one_line(statement: str) -> str:
    return " ".join(statement.split())


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> tuple[Agent, Path]:
    folder = tmp_path_factory.mktemp("agents")
    write_guide(folder)
    return load_folder(folder, Limits())["guide"], folder / "guide"


@asynccontextmanager
async def a_guided_runtime(
    folder: Path, guide: tuple[Agent, Path], model: ModelServer
) -> AsyncGenerator[tuple[Runtime, Counting]]:
    agent, own = guide
    database = Counting(folder / "recto.db")
    store = Store(database)
    await database.write(migrate)
    change = ProfileChange(
        fields={"birth_info": {"date": "1990-05-15"}, "life_context": "busy"},
        skill_data={"chart": {"element": "木"}, "mend": {"parts": 3}},
    )
    await store.users.change_profile(OWNER, change, now(), LIMIT)
    runtime = make_runtime(
        store,
        model=choose_model("compatible:scripted", {"RECTO_MODEL_URL": model.url}),
        agents={agent.name: agent},
        registries={agent.name: Registry((*make_agent_tools(agent, {}), *load_folder_tools(own)))},
    )
    try:
        yield runtime, database
    finally:
        await runtime.models.default.aclose()
        await store.close()


async def turn(runtime: Runtime, words: str, props: Json = None, thread: str = "") -> str:
    """Run a turn. Return its thread."""
    run = await admit(runtime, words, props, thread)
    assert await work(runtime, run, Signal())
    return run.thread


async def admit(runtime: Runtime, words: str, props: Json = None, thread: str = "") -> StoredRun:
    body = ask(words, thread=thread) | {"forwardedProps": props or {}}
    admission = admission_of(body, "guide")
    return (await runtime.store.runs.admit(admission, WHO)).run


async def asked_in(folder: Path, guide: tuple[Agent, Path], *answers: Answer, props: Json = None) -> list[str]:
    with ModelServer([*answers, Answer(text="Well.")]) as model:
        async with a_guided_runtime(folder, guide, model) as (runtime, database):
            database.asked.clear()
            await turn(runtime, "帮我排盘", props)
            assert len(model.requests) == len(answers) + 1
            return database.asked


async def test_S6_without_a_skill_nothing_of_the_user_is_read(tmp_path: Path, guide: tuple[Agent, Path]):
    assert await asked_in(tmp_path, guide, calling("hello")) == []


async def test_S6_a_skill_is_one_query_for_its_fields_and_one_for_its_own_data(
    tmp_path: Path, guide: tuple[Agent, Path]
):
    turn = await asked_in(tmp_path, guide, use("chart"), calling("look", id="c2"))
    assert turn == ["profile_fields", "skill_data"]


@pytest.mark.parametrize(("skill", "expected"), [("mend", []), ("notes", ["profile_fields"])])
async def test_S6_what_a_skill_does_not_declare_is_not_asked_for(
    tmp_path: Path, guide: tuple[Agent, Path], skill: str, expected: Sequence[str]
):
    assert await asked_in(tmp_path, guide, props={"skill": skill}) == expected


async def test_S6_the_next_turn_in_the_skill_asks_once_more(tmp_path: Path, guide: tuple[Agent, Path]):
    with ModelServer([use("chart"), Answer(text="Well."), Answer(text="Well.")]) as model:
        async with a_guided_runtime(tmp_path, guide, model) as (runtime, database):
            thread = await turn(runtime, "帮我排盘")
            database.asked.clear()
            await turn(runtime, "继续", thread=thread)
            assert database.asked == ["profile_fields", "skill_data"]


async def test_S2_all_of_history_is_legal(tmp_path: Path, guide: tuple[Agent, Path]):
    agent, own = guide
    everything = replace(agent, select=replace(agent.select, history=None))
    answers = [Answer(text=f"答{number}") for number in range(9)]
    with ModelServer(answers) as model:
        async with a_guided_runtime(tmp_path, (everything, own), model) as (runtime, _):
            thread = await turn(runtime, "第0句")
            for number in range(1, 9):
                await turn(runtime, f"第{number}句", thread=thread)
            messages = cast("Sequence[Json]", model.requests[-1].page["messages"])
            assert len(messages) == 1 + 2 * 8 + 1


def registry(guide: tuple[Agent, Path]) -> Registry:
    agent, own = guide
    return Registry((*make_agent_tools(agent, {}), *load_folder_tools(own)))


def test_S3_tools_of_a_skill_are_for_it_alone_and_the_one_that_chooses_is_for_all(guide: tuple[Agent, Path]):
    agent, _ = guide
    tools = registry(guide)
    assert select_tools(agent, None, tools) == {"use_skill", "hello"}
    assert select_tools(agent, agent.skills["mend"], tools) >= {"use_skill", "read_skill_file", "hello"}
    # Whatever a skill of somebody else's names.
    greedy = replace(agent.skills["mend"], tools=("use_skill", "read_skill_file", "hello"))
    other = replace(agent, skills={**agent.skills, "mend": greedy})
    assert select_tools(other, None, tools) == {"use_skill"}
    assert select_tools(other, agent.skills["notes"], tools) == {"use_skill"}
    assert select_tools(other, greedy, tools) == {"use_skill", "read_skill_file", "hello"}


def test_S1_which_prompt_and_which_tools_a_call_gets_is_said_once(guide: tuple[Agent, Path]):
    agent, tools = guide[0], registry(guide)
    lean, mending = build_prompt_context(agent, tools), build_prompt_context(agent, tools, skill=agent.skills["mend"])
    assert (lean.history, lean.budget, lean.prompt.why) == (5, 2_000, "phase select: no skill is active")
    assert [tool.name for tool in lean.tools] == ["use_skill", "hello"]
    assert (mending.history, mending.budget, mending.prompt.why) == (10, 8_000, "phase execute: skill mend")
    assert [tool.name for tool in mending.tools][:1] == ["use_skill"]
    # Leaving a skill is for who has one.
    assert [("core" in one.tools[0].parameters) for one in (lean, mending)] == [False, True]
    plain = build_prompt_context(replace(agent, skills={}, history=3, budget=4), tools)
    assert (plain.history, plain.budget, plain.prompt.why) == (3, 4, "")
    assert "use_skill" not in [tool.name for tool in plain.tools]


def test_P11_a_tool_of_the_client_stands_for_the_agent_s_of_its_name(guide: tuple[Agent, Path]):
    client_tools = tuple(ToolOffer(name=name, description="Theirs.", parameters="{}") for name in ("hello", "mine"))
    run_input = RunInput(thread="t", run="r", tools=client_tools)
    context = build_prompt_context(guide[0], registry(guide), run_input)
    assert [tool.name for tool in context.tools] == ["use_skill", "hello", "mine"]
    assert context.tools[1:] == client_tools


def test_P3_what_a_client_says_as_system_is_context_unless_the_agent_takes_it_into_its_prompt(
    guide: tuple[Agent, Path],
):
    agent, page = guide[0], ContextItem(description="Page", value="/home")
    instructions = (SystemMessage(id="s", text="Rhyme."), DeveloperMessage(id="d", text="Be brief."))
    run_input = RunInput(thread="t", run="r", messages=instructions, context=(page,))
    context = build_prompt_context(agent, registry(guide), run_input)
    announced = [ContextItem(description="instructions of the client", value=one.text) for one in instructions]
    assert (context.items, context.prompt.identity) == ((page, *announced), agent.prompt.identity)
    trusting = build_prompt_context(replace(agent, client_system=True), registry(guide), run_input)
    identity = f"{agent.prompt.identity}\n\nRhyme.\n\nBe brief."
    assert (trusting.items, trusting.prompt.identity) == ((page,), identity)


def test_S11_a_voice_that_is_asked_for_changes_the_tone_alone(guide: tuple[Agent, Path]):
    agent, tools = guide[0], registry(guide)
    direct = RunInput(thread="t", run="r", options=RunOptions(voice_mode="direct"))
    context, usual = build_prompt_context(agent, tools, direct), build_prompt_context(agent, tools)
    assert context.prompt.tone == "直接。"
    assert replace(context, prompt=replace(context.prompt, tone=usual.prompt.tone)) == usual


@pytest.mark.parametrize(
    ("choice", "has_acted", "expected"),
    [
        ("compute_chart", False, "auto"),
        ("hello", False, "hello"),
        ("hello", True, "auto"),
        ("required", False, "required"),
        ("none", True, "none"),
        (None, False, None),
    ],
)
def test_C4_a_tool_is_asked_for_only_where_it_is_offered(
    guide: tuple[Agent, Path], choice: str | None, has_acted: bool, expected: str | None
):
    agent, _ = guide
    messages = (
        UserMessage(id="u", parts=()),
        *((ToolMessage(id="t", tool_call_id="c", parts=()),) if has_acted else ()),
    )
    offers = registry(guide).offers(["hello"])
    asking = replace(agent, sampling=Sampling(tool_choice=choice))
    assert choose_sampling(asking, View(entries=messages), offers).tool_choice == expected


async def test_S3_X4_a_reply_taken_over_after_it_took_up_another_skill_has_the_tools_it_was_asked_with(
    tmp_path: Path, guide: tuple[Agent, Path]
):
    both = Answer(calls=(*use("notes", id="c1").calls, *calling("compute_chart", "c2").calls))
    with ModelServer([both, Answer(text="Well.")]) as model:
        async with a_guided_runtime(tmp_path, guide, model) as (runtime, _):
            losing_runtime = replace(runtime, checkpoint=_lose_lease_after_tool())
            run = await admit(losing_runtime, "帮我排盘", {"skill": "chart"})
            with pytest.raises(LeaseLost):
                await work(losing_runtime, run, Signal())
            (again,) = await runtime.store.runs.claim(WHO, now() + timedelta(hours=1), 1)
            assert await work(runtime, again, Signal())
            messages = cast("Sequence[dict[str, Json]]", model.requests[1].page["messages"])
            assert '"element":"木"' in str([one["content"] for one in messages if one["role"] == "tool"])


def _lose_lease_after_tool() -> Callable[[Checkpoint], None]:
    def lose_lease(checkpoint: Checkpoint) -> None:
        if checkpoint == "tool_ended":
            raise LeaseLost(run="this", fence=1)

    return lose_lease
