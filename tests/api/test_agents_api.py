"""The agents there are, as clients see them: what to say to each, what it takes, and what a client may answer for."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recto.agents.agent import CHAT, Agent
from recto.agents.file_input import FileInput
from recto.api import agents
from recto.conversation.json import Json
from recto.conversation.messages import ToolOffer
from recto.skills.skill import Scenario, Skill
from recto.tools.registry import Registry
from tests.api.local_api import local_api, named_tool

FORM = ToolOffer(name="collect", description="Asks.", parameters='{"type": "object", "properties": {"day": {}}}')


async def rows_of(folder: Path, *own_agents: Agent) -> list[Mapping[str, Json]]:
    async with local_api(folder, agents.ROUTES) as api:
        collect = replace(named_tool("collect", by_client=True), offer=FORM)
        hidden = replace(named_tool("hidden"), is_offered=False)
        tools = Registry([named_tool("draw"), named_tool("compute"), collect, hidden])
        api.change(by_name={agent.name: agent for agent in own_agents}, tools={"vibe": tools})
        return (await api.ask("GET", "/api/v1/agent/agents")).rows("agents")


async def test_C4_D1_P11_S5_S6_an_agent_is_told_with_all_that_a_client_shows_of_it(tmp_path: Path):
    files = FileInput(is_on=True, images=False, audio=True, endings=("gpx",), max_files=3, max_bytes=1000)
    plain = Skill(name="plain", description="Plain.", heading="Plain - x", identity="", folder=tmp_path)
    bazi = replace(plain, name="bazi", title="八字命理", scenarios=(Scenario(name="basic"),))
    agent = replace(CHAT, name="vibe", variant_of="chat", starters=("现在几点？",), file_input=files)
    agent = replace(agent, profile_schema='{"type": "object"}', skills={"plain": plain, "bazi": bazi})
    vibe, chat, none = await rows_of(tmp_path, agent, CHAT, replace(CHAT, name="none", file_input=FileInput()))
    form: Json = {
        "name": "collect",
        "description": "Asks.",
        "parameters": {"type": "object", "properties": {"day": {}}},
    }
    kinds = {"documents": True, "images": True, "audio": False, "video": False}
    file_input = {"images": False, "audio": True, "endings": ["gpx"], "maxFiles": 3, "maxBytes": 1000}
    usual: Json = {**kinds, "endings": [], "maxFiles": 10, "maxBytes": None}
    fields: dict[str, tuple[Json, Json]] = {
        "tools": (["collect", "compute", "draw"], []),
        "clientTools": (["collect"], []),
        "forms": ([form], []),
        "starters": (["现在几点？"], []),
        "variantOf": ("chat", None),
        "fileInput": ({**kinds, **file_input}, usual),
        "profileSchema": ({"type": "object"}, None),
    }
    assert {name: (vibe[name], chat[name]) for name in fields} == fields
    assert none["fileInput"] is None
    assert vibe["skills"] == [
        {"name": "plain", "title": "plain", "description": "Plain.", "scenarios": []},
        {"name": "bazi", "title": "八字命理", "description": "Plain.", "scenarios": ["basic"]},
    ]
