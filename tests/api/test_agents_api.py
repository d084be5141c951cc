"""The agents there are, as clients see them: every tool the model is offered, and which a client may answer for."""

from dataclasses import replace
from pathlib import Path

from recto.agents.agent import CHAT
from recto.api.ops import agents
from tests.api.local_api import local_api


async def test_P11_an_agent_is_told_with_all_its_tools_and_those_a_client_may_answer_for(tmp_path: Path):
    async with local_api(tmp_path, agents.ROUTES) as api:
        api.app.state.backend = replace(
            api.backend,
            agents={"vibe": replace(CHAT, name="vibe"), "bare": replace(CHAT, name="bare")},
            tool_names={"vibe": frozenset({"draw", "compute", "hidden"})},
            offered={"vibe": frozenset({"draw", "compute", "collect_birth_info"})},
        )
        vibe, bare = (await api.ask("GET", "/api/v1/agent/agents")).rows("agents")
    assert (vibe["tools"], vibe["clientTools"]) == (["collect_birth_info", "compute", "draw"], ["collect_birth_info"])
    assert (bare["tools"], bare["clientTools"]) == ([], [])
