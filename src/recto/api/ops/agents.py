"""Routes of agents."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.agents.agent import Agent
from recto.agents.file_input import FileInput
from recto.api.backend import Backend, backend_of, json_answer
from recto.api.route import Route
from recto.conversation.json import load_object
from recto.conversation.messages import ToolOffer
from recto.skills.skill import Skill


class SkillShape(TypedDict):
    """A skill of an agent. A run selects it by name in `forwardedProps.skill`; `title` is its display name."""

    name: str
    title: str
    description: str
    scenarios: list[str]


class FormShape(TypedDict):
    """A tool that a client may answer with an object that follows `parameters`, a JSON Schema."""

    name: str
    description: str
    parameters: Mapping[str, object]


class FileInputShape(TypedDict):
    """File types an agent accepts. `endings` lists further document types; `maxBytes` null means the server's limit."""

    documents: bool
    images: bool
    audio: bool
    video: bool
    endings: list[str]
    maxFiles: int
    maxBytes: int | None


class AgentShape(TypedDict):
    """An agent as its users see it. `starters` are suggested first messages.

    `variantOf` names the agent of which it is a translation. `clientTools` lists the tools a client may answer, `forms`
    their parameters. `unavailable` lists unreachable external tool servers. `fileInput` is null if the agent accepts no
    files, `profileSchema` if it keeps no profile.
    """

    name: str
    description: str
    starters: list[str]
    variantOf: str | None
    default: bool
    locale: str
    toolCalling: str
    tools: list[str]
    clientTools: list[str]
    forms: list[FormShape]
    unavailable: list[str]
    skills: list[SkillShape]
    voices: list[str]
    fileInput: FileInputShape | None
    profileSchema: Mapping[str, object] | None


class AgentsShape(TypedDict):
    """All agents."""

    agents: list[AgentShape]


EXAMPLE: AgentShape = {
    "name": "chat",
    "description": "A helpful assistant.",
    "starters": ["What is 12 * 7?"],
    "variantOf": None,
    "default": True,
    "locale": "en",
    "toolCalling": "native",
    "tools": ["calculator", "collect_birth_info", "current_time"],
    "clientTools": ["collect_birth_info"],
    "forms": [
        {
            "name": "collect_birth_info",
            "description": "Save what the user said of their birth.",
            "parameters": {"type": "object", "properties": {"date": {"type": "string"}}},
        }
    ],
    "unavailable": [],
    "skills": [
        {
            "name": "bazi",
            "title": "Bazi",
            "description": "Reads the eight characters of a birth.",
            "scenarios": ["basic_reading"],
        }
    ],
    "voices": ["warm"],
    "fileInput": {
        "documents": True,
        "images": True,
        "audio": False,
        "video": False,
        "endings": [],
        "maxFiles": 10,
        "maxBytes": None,
    },
    "profileSchema": {"type": "object", "properties": {"birth_info": {"type": "object"}}},
}


async def get_agents(request: Request) -> Response:
    """List the agents. A run selects one in `forwardedProps.agent`, else its thread's agent or the default answers."""
    backend = backend_of(request)
    answer: AgentsShape = {"agents": [_row(backend, agent) for agent in backend.agents.values()]}
    return json_answer(answer)


def _row(backend: Backend, agent: Agent) -> AgentShape:
    offered = backend.offered.get(agent.name, frozenset())
    return {
        "name": agent.name,
        "description": agent.description,
        "starters": list(agent.starters),
        "variantOf": agent.variant_of,
        "default": agent.name == backend.agent,
        "locale": agent.locale,
        "toolCalling": agent.tool_calling or "native",
        "tools": sorted(offered),
        "clientTools": sorted(offered - backend.tool_names.get(agent.name, frozenset())),
        "forms": [_form(offer) for offer in backend.forms.get(agent.name, ())],
        "unavailable": list(backend.unavailable_tools(agent.name)),
        "skills": [_skill(skill) for skill in agent.skills.values()],
        "voices": list(agent.voices),
        "fileInput": _file_input(agent.file_input) if agent.file_input.is_on else None,
        "profileSchema": load_object(agent.profile_schema) if agent.profile_schema else None,
    }


def _form(offer: ToolOffer) -> FormShape:
    return {"name": offer.name, "description": offer.description, "parameters": load_object(offer.parameters) or {}}


def _skill(skill: Skill) -> SkillShape:
    return {
        "name": skill.name,
        "title": skill.title or skill.name,
        "description": skill.description,
        "scenarios": [scenario.name for scenario in skill.scenarios],
    }


def _file_input(taken: FileInput) -> FileInputShape:
    return {
        "documents": taken.documents,
        "images": taken.images,
        "audio": taken.audio,
        "video": taken.video,
        "endings": list(taken.endings),
        "maxFiles": taken.max_files,
        "maxBytes": taken.max_bytes,
    }


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
