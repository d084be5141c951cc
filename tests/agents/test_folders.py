"""C4, C5: a folder is an agent: AGENT.md says who it is, tools.py what it can do."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from recto.agents.agent import CHAT
from recto.agents.agent_settings import FileInputTable
from recto.agents.agent_warnings import NO_PERSONA
from recto.agents.file_input import OFF, FileInput
from recto.agents.folders import RESERVED, load_agents
from recto.config.settings import Limits
from recto.conversation.json import Json
from recto.errors import SettingsError
from recto.page.fold.fold_settings import CostSettings, placeholder_in
from recto.testing.model_server import Answer, Call, ModelServer, Request
from recto.testing.process import ServerProcess
from recto.tools.load_tools import make_built_in_tools
from tests.support.client import ask, read_events, start

LIMITS = Limits(steps=3)
SHIPPED_NAMES = ["chat", "coder", "coder-zh", "docs", "vibe", "vibe-en"]
PERSONA = "You are a gardener.\n\n# Rules\n\nWater in the morning. 早上浇水。"
TOOLS = '''
from recto import tool


@tool
def water(plant: str, litres: float = 1.5) -> str:
    """Water a plant."""
    return f"{plant} has had {litres} litres"


def not_a_tool(plant: str) -> str:
    return plant
'''


def an_agent(folder: Path, name: str, *, persona: str | None = None, tools: str | None = None) -> None:
    (folder / name).mkdir(parents=True)
    if persona is not None:
        (folder / name / "AGENT.md").write_text(persona, encoding="utf-8")
    if tools is not None:
        (folder / name / "tools.py").write_text(tools, encoding="utf-8")


# Values


def test_X3_no_agent_has_the_name_that_threads_of_the_gateway_have(tmp_path: Path):
    an_agent(tmp_path, "gateway", persona=PERSONA)
    agents = load_agents(tmp_path, LIMITS)
    assert list(agents) == SHIPPED_NAMES
    assert [problem.text for problem in agents.problems] == [RESERVED]


def test_C4_without_a_folder_there_are_the_shipped_agents():
    agents = load_agents(None, LIMITS)
    assert list(agents) == SHIPPED_NAMES
    chat = agents["chat"]
    assert (agents.folders["chat"] / "AGENT.md").is_file()
    assert [agents[name].file_input for name in ("chat", "docs")] == [FileInput(is_on=True)] * 2
    assert chat == replace(CHAT, limits=LIMITS, description=chat.description, starters=chat.starters)
    assert all(agent.description for agent in agents.values())
    assert (agents.problems, agents.warnings) == ((), ())


@pytest.mark.parametrize("name", ["coder", "coder-zh"])
def test_R15_R9_the_coder_has_its_tools_folds_searches_too_and_may_take_hundreds_of_steps(name: str):
    coder = load_agents(None, LIMITS)[name]
    assert coder.tools[:7] == (
        *("filesystem-read", "filesystem-edit", "filesystem-create", "ace-text_search"),
        *("terminal-execute", "terminal-jobs", "recall"),
    )
    assert {*coder.tools} <= {tool.name for tool in make_built_in_tools()}
    assert [rule.name for rule in coder.fold.rules] == ["reads", "terminal", "search"]
    assert coder.limits.steps >= 300
    assert coder.file_input.takes_documents
    assert all(tool in coder.prompt.identity for tool in coder.tools[:5])


def test_X2_of_the_shipped_agents_the_coder_folds_by_cost_in_its_language_and_the_others_do_not():
    agents = load_agents(None, LIMITS)
    by_cost = {name: agent.fold.cost for name, agent in agents.items() if agent.fold.cost}
    assert by_cost == {
        "coder": CostSettings(placeholder=placeholder_in("en", has_recall=True)),
        "coder-zh": CostSettings(placeholder=placeholder_in("zh", has_recall=True)),
    }


def test_D1_the_agent_for_documents_shows_every_setting_of_files_and_has_the_tools_for_them():
    loaded_agents = load_agents(None, LIMITS)
    docs, text = loaded_agents["docs"], (loaded_agents.folders["docs"] / "AGENT.md").read_text(encoding="utf-8")
    keys = set(re.findall(r"^  (?:# )?([a-z_]+):", text, flags=re.MULTILINE))
    assert keys == set(FileInputTable.model_fields)
    assert re.search(r"^datasets: \[\]$", text, flags=re.MULTILINE)
    assert docs.tools == ("read_files", "sandbox_fetch_user_file", "current_time", "calculator")
    assert {*docs.tools} <= {tool.name for tool in make_built_in_tools()}
    assert "read_files" in docs.prompt.identity


def test_C4_each_folder_is_an_agent_by_its_name_with_the_persona_of_its_file(tmp_path: Path):
    an_agent(tmp_path, "gardener", persona=f"\n{PERSONA}\n\n")
    an_agent(tmp_path, "baker", persona="You bake.")
    agents = load_agents(tmp_path, LIMITS)
    assert list(agents) == [*SHIPPED_NAMES, "baker", "gardener"]
    assert agents.folders["baker"] == tmp_path / "baker"
    assert agents["gardener"].name == "gardener"
    assert agents["gardener"].prompt.identity == PERSONA
    assert agents["gardener"].tools == CHAT.tools
    assert (agents["gardener"].file_input, agents["gardener"].datasets) == (OFF, ())
    assert [agents[name].limits for name in ("baker", "gardener")] == [LIMITS, LIMITS]


def test_C4_a_folder_without_a_persona_has_the_built_in_one_and_a_warning(tmp_path: Path):
    an_agent(tmp_path, "plain", tools="")
    an_agent(tmp_path, "blank", persona=" \n")
    an_agent(tmp_path, "settings", persona="---\nlocale: zh\n---\n")
    loaded_agents = load_agents(tmp_path, LIMITS)
    assert (
        loaded_agents["plain"].prompt
        == loaded_agents["blank"].prompt
        == loaded_agents["settings"].prompt
        == CHAT.prompt
    )
    assert [str(warning).removeprefix(f"{tmp_path}/") for warning in loaded_agents.warnings] == [
        f"blank/AGENT.md:1: {NO_PERSONA}",
        f"plain: there is no AGENT.md in it: {NO_PERSONA}",
        f"settings/AGENT.md:3: {NO_PERSONA}",
    ]


def test_C4_a_folder_with_nothing_of_an_agent_or_no_name_for_one_is_reported_and_others_load(tmp_path: Path):
    an_agent(tmp_path, "my gardener", persona="x")
    an_agent(tmp_path, "nothing")
    an_agent(tmp_path, "baker", persona="You bake.")
    loaded_agents = load_agents(tmp_path, LIMITS)
    assert list(loaded_agents) == [*SHIPPED_NAMES, "baker"]
    assert list(loaded_agents.broken) == ["my gardener", "nothing"]
    name, nothing = map(str, loaded_agents.problems)
    assert name.endswith("all ASCII, and does not begin with _. Rename the folder.")
    assert nothing == (
        f"{tmp_path / 'nothing'}: there is neither AGENT.md nor tools.py in it. "
        "Write one, or begin its name with _ to leave it out."
    )


@pytest.mark.parametrize(
    ("name", "is_broken", "left_out"),
    [
        ("chat", False, set[str]()),
        ("chat", True, {"chat"}),
        # In its other languages too; but one that is another language itself stands alone.
        ("vibe", False, {"vibe-en"}),
        ("vibe-en", False, set[str]()),
        ("vibe-en", True, {"vibe-en"}),
    ],
)
def test_C4_S9_a_folder_named_as_a_shipped_agent_takes_its_place(
    tmp_path: Path, name: str, is_broken: bool, left_out: set[str]
):
    an_agent(tmp_path, name, persona="---\nlocale: fr\n---\n" if is_broken else "You are mine.")
    loaded_agents = load_agents(tmp_path, LIMITS)
    assert list(loaded_agents) == list(loaded_agents.folders) == [one for one in SHIPPED_NAMES if one not in left_out]
    assert list(loaded_agents.broken) == ([name] if is_broken else [])
    assert is_broken or loaded_agents[name].prompt.identity == "You are mine."


def test_C4_files_and_hidden_folders_are_no_agents(tmp_path: Path):
    (tmp_path / "README.md").write_text("x")
    for name in (".git", "__pycache__", "_drafts"):
        an_agent(tmp_path, name, persona="x")
    assert list(load_agents(tmp_path, LIMITS)) == SHIPPED_NAMES


def test_C4_a_folder_that_cannot_be_read_says_so(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"^Setting agents is '.*nowhere'; it cannot be read .* Name a folder"):
        load_agents(tmp_path / "nowhere", LIMITS)


def test_C4_a_file_that_cannot_be_read_is_reported(tmp_path: Path):
    (tmp_path / "gardener" / "AGENT.md").mkdir(parents=True)
    (problem,) = load_agents(tmp_path, LIMITS).problems
    assert re.fullmatch(r".*/gardener/AGENT\.md: it cannot be read \(.+\)\. Fix or remove it\.", str(problem))


# A run of such an agent


def water_then_answer(model_request: Request) -> Answer:
    last = cast("list[Mapping[str, Json]]", model_request.page["messages"])[-1]
    if last["role"] == "tool":
        return Answer(text=f"Done: {last['content']}")
    return Answer(calls=(Call(name="water", arguments='{"plant": "the fern"}', id="c1"),))


def garden(folder: Path, model: ModelServer, tools: str = TOOLS) -> ServerProcess:
    an_agent(folder / "agents", "gardener", persona=PERSONA, tools=tools)
    settings = {"RECTO_MODEL": "compatible:x", "RECTO_MODEL_URL": model.url, "RECTO_AGENT": "gardener"}
    return ServerProcess.serve(folder / "data", settings, "--agents", str(folder / "agents"))


@pytest.mark.full
def test_C5_tools_of_a_folder_are_offered_and_called_in_a_run_with_its_persona_and_broken_agents_are_told_of(
    tmp_path: Path,
):
    an_agent(tmp_path / "agents", "baker", persona="---\ntools: [hammer]\n---\nYou bake.")
    an_agent(tmp_path / "agents", "broken", tools="nonsense")
    with ModelServer(water_then_answer) as model, garden(tmp_path, model) as server:
        events = list(read_events(server.url, start(server.url, ask("Water the fern, please."))))
        first, second = model.requests
        words = server.output
    assert "baker/AGENT.md:2: tools.0 is " in words
    assert "broken/tools.py:1: it cannot be imported: NameError" in words
    system = cast("list[Mapping[str, Json]]", first.page["messages"])[0]
    assert system["role"] == "system"
    assert str(system["content"]).startswith(PERSONA)
    assert [tool["name"] for tool in offered_tools(first)] == ["current_time", "calculator", "water"]
    assert offered_tools(first)[-1]["description"] == "Water a plant."
    assert offered_tools(second) == offered_tools(first)
    results = [received.event["content"] for received in events if received.event["type"] == "TOOL_CALL_RESULT"]
    assert results == ["the fern has had 1.5 litres"]
    deltas = [str(received.event["delta"]) for received in events if received.event["type"] == "TEXT_MESSAGE_CONTENT"]
    assert "".join(deltas) == "Done: the fern has had 1.5 litres"
    assert events[-1].event["outcome"] == {"type": "success"}


@pytest.mark.full
def test_C5_a_tools_file_that_is_broken_stops_the_start_and_names_its_line(tmp_path: Path):
    with (
        ModelServer() as model,
        pytest.raises(RuntimeError, match=r"tools\.py:3.*cannot be imported: NameError"),
        garden(tmp_path, model, "# a gardener\n\nnonsense\n"),
    ):
        pytest.fail("it started")
    assert model.requests == []


def offered_tools(model_request: Request) -> list[Mapping[str, Json]]:
    tools = cast("list[Mapping[str, Mapping[str, Json]]]", model_request.page["tools"])
    return [tool["function"] for tool in tools]
