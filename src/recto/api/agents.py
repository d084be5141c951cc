"""The route that lists the agents."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from typing_extensions import TypedDict

from recto.api.backend import backend_of
from recto.api.route import Route
from recto.conversation.json import load_object


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


async def get_agents(request: Request) -> AgentsShape:
    """List the agents. A run selects one in `forwardedProps.agent`, else its thread's agent or the default answers."""
    agents, rows = backend_of(request).agents, list[AgentShape]()
    for agent in agents.by_name.values():
        tools, files = agents.tools_of(agent.name), agent.file_input
        names = {offer.name for offer in tools.offers(tools)}
        skills: list[SkillShape] = [
            {
                "name": skill.name,
                "title": skill.title or skill.name,
                "description": skill.description,
                "scenarios": [scenario.name for scenario in skill.scenarios],
            }
            for skill in agent.skills.values()
        ]
        file_input: FileInputShape = {
            "documents": files.documents,
            "images": files.images,
            "audio": files.audio,
            "video": files.video,
            "endings": list(files.endings),
            "maxFiles": files.max_files,
            "maxBytes": files.max_bytes,
        }
        row: AgentShape = {
            "name": agent.name,
            "description": agent.description,
            "starters": list(agent.starters),
            "variantOf": agent.variant_of,
            "default": agent.name == agents.default,
            "locale": agent.locale,
            "toolCalling": agent.tool_calling or "native",
            "tools": sorted(names),
            "clientTools": sorted(names - tools.own_names()),
            "forms": [
                {"name": form.name, "description": form.description, "parameters": load_object(form.parameters) or {}}
                for form in tools.forms()
            ],
            "unavailable": list(agents.unavailable(agent.name)),
            "skills": skills,
            "voices": list(agent.voices),
            "fileInput": file_input if files.is_on else None,
            "profileSchema": load_object(agent.profile_schema) if agent.profile_schema else None,
        }
        rows.append(row)
    return {"agents": rows}


ROUTES = (Route("GET", "/api/v1/agent/agents", get_agents, "agents"),)
