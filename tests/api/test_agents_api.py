"""The agents there are, as clients see them: what to say to each, what it takes, and what a client may answer for."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recto.agents.agent import CHAT, Agent
from recto.agents.file_input import FileInput
from recto.api.ops import agents
from recto.conversation.json import Json
from recto.conversation.messages import ToolOffer
from recto.skills.skill import Scenario, Skill
from tests.api.local_api import local_api

FORM = ToolOffer(name="collect", description="Asks.", parameters='{"type": "object", "properties": {"day": {}}}')


async def rows_of(folder: Path, *known: Agent) -> list[Mapping[str, Json]]:
    async with local_api(folder, agents.ROUTES) as api:
        api.app.state.backend = replace(
            api.backend,
            agents={agent.name: agent for agent in known},
            tool_names={"vibe": frozenset({"draw", "compute", "hidden"})},
            offered={"vibe": frozenset({"draw", "compute", "collect"})},
            forms={"vibe": (FORM,)},
        )
        return (await api.ask("GET", "/api/v1/agent/agents")).rows("agents")


async def test_P11_an_agent_is_told_with_all_its_tools_and_those_a_client_may_answer_for(tmp_path: Path):
    vibe, bare = await rows_of(tmp_path, replace(CHAT, name="vibe"), replace(CHAT, name="bare"))
    assert (vibe["tools"], vibe["clientTools"]) == (["collect", "compute", "draw"], ["collect"])
    form: Json = {
        "name": "collect",
        "description": "Asks.",
        "parameters": {"type": "object", "properties": {"day": {}}},
    }
    assert vibe["forms"] == [form]
    assert (bare["tools"], bare["clientTools"], bare["forms"]) == ([], [], [])


async def test_C4_an_agent_is_told_with_its_starters_and_the_one_it_is_in_another_language(tmp_path: Path):
    other = replace(CHAT, name="chat-zh", variant_of="chat", starters=("现在几点？",))
    first, second = await rows_of(tmp_path, CHAT, other)
    assert (first["starters"], first["variantOf"]) == ([], None)
    assert (second["starters"], second["variantOf"]) == (["现在几点？"], "chat")


async def test_D1_an_agent_is_told_with_the_files_it_takes(tmp_path: Path):
    none = replace(CHAT, name="none", file_input=FileInput())
    some = FileInput(is_on=True, images=False, audio=True, endings=("gpx",), max_files=3, max_bytes=1000)
    usual, off, on = await rows_of(tmp_path, CHAT, none, replace(CHAT, name="some", file_input=some))
    kinds = {"documents": True, "images": True, "audio": False, "video": False}
    assert usual["fileInput"] == {**kinds, "endings": [], "maxFiles": 10, "maxBytes": None}
    assert off["fileInput"] is None
    told = {"images": False, "audio": True, "endings": ["gpx"], "maxFiles": 3, "maxBytes": 1000}
    assert on["fileInput"] == {**kinds, **told}


async def test_S6_an_agent_is_told_with_the_schema_of_its_profile(tmp_path: Path):
    keeps = replace(CHAT, name="keeps", profile_schema='{"type": "object"}')
    first, second = await rows_of(tmp_path, CHAT, keeps)
    assert (first["profileSchema"], second["profileSchema"]) == (None, {"type": "object"})


async def test_S5_a_skill_is_told_with_its_title_else_its_name(tmp_path: Path):
    plain = Skill(name="plain", description="Plain.", heading="Plain - x", identity="", folder=tmp_path)
    bazi = replace(plain, name="bazi", title="八字命理", scenarios=(Scenario(name="basic"),))
    (row,) = await rows_of(tmp_path, replace(CHAT, skills={"plain": plain, "bazi": bazi}))
    assert row["skills"] == [
        {"name": "plain", "title": "plain", "description": "Plain.", "scenarios": []},
        {"name": "bazi", "title": "八字命理", "description": "Plain.", "scenarios": ["basic"]},
    ]
