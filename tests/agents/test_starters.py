"""C5: what agents offer to say in an empty thread; of those that are shipped the demo model makes something."""

from functools import cache
from pathlib import Path

import pytest

from recto.agents.agent import Agent
from recto.agents.folders import LoadedAgents, load_agents, load_folder
from recto.config.settings import Limits
from recto.conversation.json import Json, dump, load
from recto.conversation.messages import ToolOffer
from recto.models.demo.demo_model import reply_to

SHIPPED = ["chat", "coder", "coder-zh", "docs", "vibe", "vibe-en"]
FILE = (
    "<system-reminder>\n<file>\n<id>r-0</id>\n<name>a.txt</name>\n<type>document</type>\n</file>\n</system-reminder>\n"
)


def load_starters(folder: Path, starters: str) -> LoadedAgents:
    (folder / "it").mkdir(exist_ok=True)
    (folder / "it/AGENT.md").write_text(f"---\nstarters: {starters}\n---\nYou are it.", encoding="utf-8")
    return load_folder(folder, Limits())


@cache
def shipped() -> LoadedAgents:
    return load_agents(None, Limits())


def test_C5_starters_are_kept_in_their_order(tmp_path: Path):
    assert load_starters(tmp_path, "[' What is 12 * 7? ', 现在几点？]")["it"].starters == (
        "What is 12 * 7?",
        "现在几点？",
    )
    (tmp_path / "it/AGENT.md").write_text("You are it.", encoding="utf-8")
    assert load_folder(tmp_path, Limits())["it"].starters == ()


@pytest.mark.parametrize(
    ("starters", "problem"),
    [
        ("Hello", 'starters is "Hello"; it is a list, such as [a, b].'),
        ('[a, "b\\nc"]', 'starters.1 is "b\\nc"; it is one line of 1 to 200 characters.'),
        (f"[{'x' * 201}]", f'starters.0 is "{"x" * 99} ...; it is one line of 1 to 200 characters.'),
        ("[a, b, c, d, e, f, g]", 'starters is ["a","b","c","d","e","f","g"]; it has at most 6.'),
        ("[a, b, a]", 'starters.2 is "a"; it is in the list twice.'),
    ],
)
def test_C5_starters_that_are_none_are_refused_with_their_line(tmp_path: Path, starters: str, problem: str):
    (fault,) = load_starters(tmp_path, starters).broken["it"]
    assert (fault.line, fault.text) == (2, problem)


@pytest.mark.parametrize("name", SHIPPED)
def test_C4_each_shipped_agent_has_three_starters_in_its_language(name: str):
    agent = shipped()[name]
    assert len(agent.starters) == 3
    assert {words.isascii() for words in agent.starters} == {agent.locale == "en"}


@pytest.mark.parametrize("name", SHIPPED)
def test_C4_the_demo_model_uses_a_tool_for_each_starter(name: str):
    agent = shipped()[name]
    for words in agent.starters:
        assert reply_to(page_of(agent, words)).calls, words


def page_of(agent: Agent, words: str) -> bytes:
    """A page that asks these words, with a file where the agent is there for files."""
    tool_offers = [ToolOffer(name=name, description="", parameters="{}") for name in agent.tools]
    offers = [*tool_offers, *([agent.use_skill["select"]] if agent.skills else [])]
    message: Json = {"role": "user", "content": (FILE if agent.name == "docs" else "") + words}
    return dump({"messages": [message], "tools": [tool_row(offer) for offer in offers]})


def tool_row(offer: ToolOffer) -> Json:
    function: Json = {"name": offer.name, "description": offer.description, "parameters": load(offer.parameters)}
    return {"type": "function", "function": function}
