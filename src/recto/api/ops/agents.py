"""Routes of agents: which there are."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.agents.agent import Agent
from recto.api.backend import Backend, backend_of, json_answer
from recto.api.route import Route
from recto.skills.skill import Skill


class SkillShape(TypedDict):
    """A skill of an agent. A run names one in `forwardedProps.skill`."""

    name: str
    description: str
    scenarios: list[str]


class AgentShape(TypedDict):
    """An agent, as whoever may talk to it sees it. `clientTools` are those of its tools a client may answer for.

    `unavailable` names servers elsewhere whose tools it cannot use at present.
    """

    name: str
    description: str
    default: bool
    locale: str
    toolCalling: str
    tools: list[str]
    clientTools: list[str]
    unavailable: list[str]
    skills: list[SkillShape]
    voices: list[str]


class AgentsShape(TypedDict):
    """All agents."""

    agents: list[AgentShape]


EXAMPLE: AgentShape = {
    "name": "chat",
    "description": "A helpful assistant.",
    "default": True,
    "locale": "en",
    "toolCalling": "native",
    "tools": ["calculator", "collect_birth_info", "current_time"],
    "clientTools": ["collect_birth_info"],
    "unavailable": [],
    "skills": [
        {"name": "bazi", "description": "Reads the eight characters of a birth.", "scenarios": ["basic_reading"]}
    ],
    "voices": ["warm"],
}


async def get_agents(request: Request) -> Response:
    """The agents there are. A run names one in `forwardedProps.agent`; else its thread's answers, or the default."""
    backend = backend_of(request)
    answer: AgentsShape = {"agents": [_row(backend, agent) for agent in backend.agents.values()]}
    return json_answer(answer)


def _row(backend: Backend, agent: Agent) -> AgentShape:
    offered = backend.offered.get(agent.name, frozenset())
    return {
        "name": agent.name,
        "description": agent.description,
        "default": agent.name == backend.agent,
        "locale": agent.locale,
        "toolCalling": agent.tool_calling or "native",
        "tools": sorted(offered),
        "clientTools": sorted(offered - backend.tool_names.get(agent.name, frozenset())),
        "unavailable": list(backend.unavailable_tools(agent.name)),
        "skills": [_skill(skill) for skill in agent.skills.values()],
        "voices": list(agent.voices),
    }


def _skill(skill: Skill) -> SkillShape:
    scenarios = [scenario.name for scenario in skill.scenarios]
    return {"name": skill.name, "description": skill.description, "scenarios": scenarios}


ROUTES = (
    Route(
        method="GET",
        path="/api/v1/agent/agents",
        handler=get_agents,
        tag="agents",
        answer=AgentsShape,
        examples={"answer": {"agents": [EXAMPLE]}},
    ),
)
