"""S1, S10: the shipped agent in both languages: its pages keep their budgets, whatever is known of a user."""

from functools import cache

import pytest

from recto.agents.agent import Agent
from recto.agents.agent_folder import Toolbox, lint
from recto.agents.folders import SHIPPED, load_agents, load_folder
from recto.config.settings import Limits
from recto.conversation.json import Json
from recto.page.prompt.system_prompt import render, system_prompt
from recto.page.text.tokens import OFFLINE
from recto.skills.known_data import KnownData
from recto.skills.skill import Skill
from recto.tools.load_tools import load_folder_tools, make_agent_tools, make_built_in_tools
from recto.tools.registry import Registry
from recto.worker.context.prompt_context import PromptContext, build_prompt_context
from tests.agents.vibe import BIRTH, KeptInMemory, at_work, call

NAMES = ("vibe", "vibe-en")
SKILLS = ("bazi", "career", "lifecoach", "tarot", "zodiac")
CONTEXT: dict[str, Json] = {
    "stage": "转行中，做了八年后端",
    "industry": "互联网",
    "goal": "半年内换到能长期做下去的方向。" * 20,
    "concerns": ["迷茫", "转行", "裁员", "收入下降", "家人不理解"],
    "notes": "最近睡得不好，周末会去爬山。" * 40,
}
FACTS: list[Json] = [f"第{number}件已经知道的事：喜欢安静，不喜欢临时改变计划。" for number in range(20)]


@pytest.fixture(scope="module")
def agents() -> dict[str, Agent]:
    return {name: load_agents(None, Limits())[name] for name in NAMES}


@pytest.fixture(scope="module")
def tools() -> Registry:
    return Registry(load_folder_tools(SHIPPED / "vibe"))


@cache
def user_of(locale: str) -> KeptInMemory:
    """Somebody who has used all of it for a while: what the tools themselves have kept."""
    user = KeptInMemory(profile={"birth_info": BIRTH})
    call("compute_bazi", user, {"true_solar_time": True}, at_work(user, locale))
    call("compute_zodiac", user, {}, at_work(user, locale))
    for number in range(12):
        call(
            "draw_tarot", user, {"spread": "celtic_cross", "question": "？" * 100}, at_work(user, locale, f"c{number}")
        )
    call("save_life_context", user, CONTEXT, at_work(user, locale))
    call("save_facts", user, {"facts": FACTS}, at_work(user, locale))
    notes: Json = {"strengths": ["写作"] * 5, "plan": "先做两个小项目。" * 60, "next_steps": ["约谈三个人"] * 5}
    call("save_career_notes", user, notes, at_work(user, locale))
    return user


def everything(skill: Skill, locale: str) -> KnownData:
    """What the skill declares, of a user of whom all is known."""
    user = user_of(locale)
    field_names = {path.split(".")[0] for path in skill.fields}
    return KnownData(
        profile={name: value for name, value in user.profile.items() if name in field_names},
        skill_data={skill.name: user.data[skill.name]} if skill.has_data else {},
        scenario=skill.default_scenario,
    )


def staged(agent: Agent, skill: Skill | None, tools: Registry, user_data: KnownData | None = None) -> PromptContext:
    have = Registry((*make_agent_tools(agent, {}), *tools.values()))
    return build_prompt_context(agent, have, skill=skill, data=user_data or KnownData())


def test_S10_both_agents_load_with_nothing_to_say_against_them():
    built_in = Registry(make_built_in_tools())
    box = Toolbox(built_in=built_in, of_folder=lambda folder: Registry(load_folder_tools(folder)))
    loaded_agents = load_folder(SHIPPED, Limits(), box)
    linted = [one for name in NAMES for one in lint(loaded_agents[name], loaded_agents.folders[name], box)]
    assert [str(one) for one in (*loaded_agents.problems, *loaded_agents.warnings, *linted)] == []
    assert [tuple(loaded_agents[name].skills) for name in NAMES] == [SKILLS, SKILLS]
    assert [loaded_agents[name].locale for name in NAMES] == ["zh", "en"]


@pytest.mark.parametrize("name", NAMES)
def test_S1_the_page_to_choose_on_has_2000_tokens_at_most_with_its_directory(
    agents: dict[str, Agent], tools: Registry, name: str
):
    agent = agents[name]
    stage, offer = staged(agent, None, tools), agent.use_skill["select"]
    prompt, directory = OFFLINE.count((render(stage.prompt, agent.locale), offer.description + offer.parameters))
    assert offer.note == ""
    assert prompt + directory <= 2_000
    assert (stage.history, stage.budget) == (5, 2_000)
    # Nothing of the user, no cases, no procedure, and no tool but the one that chooses.
    assert (stage.prompt.data, stage.prompt.cases, stage.prompt.sop) == ((), (), "")
    assert [one.name for one in stage.tools] == ["use_skill"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("skill", SKILLS)
def test_S1_an_experts_prompt_has_8000_tokens_at_most_with_everything_known(
    agents: dict[str, Agent], tools: Registry, name: str, skill: str
):
    agent = agents[name]
    expert_skill = agent.skills[skill]
    stage = staged(agent, expert_skill, tools, everything(expert_skill, agent.locale))
    problem = system_prompt(stage.prompt, agent.locale, stage.budget, OFFLINE)
    (tokens,) = OFFLINE.count((problem.text,))
    assert tokens <= 8_000
    # Without anything taken out of it: the budget is no means to get there.
    assert (problem.changes, problem.over) == ((), None)
    assert tokens <= 6_000
    assert stage.prompt.sop
    assert stage.prompt.data
    assert stage.prompt.cases or skill == "lifecoach" or name == "vibe-en"


@pytest.mark.parametrize("name", NAMES)
def test_S5_every_tool_a_skill_names_is_there_and_every_tool_is_some_skills(
    agents: dict[str, Agent], tools: Registry, name: str
):
    tool_names = {tool for skill in agents[name].skills.values() for tool in skill.tools}
    assert tool_names == set(tools)
