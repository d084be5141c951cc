"""The route that CopilotKit calls first: agents and features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from starlette.requests import Request
from typing_extensions import TypedDict

from recto.agents.agent import CHAT, Agent
from recto.api.backend import AgentCatalog, backend_of
from recto.api.parameters import in_path
from recto.api.route import Route
from recto.errors import NotFound

BASE = "/api/v1/copilotkit"
# Id of a chat's default agent.
DEFAULT = "default"
# The CopilotKit runtime version whose routes these are.
VERSION = "1.75.0"
ThreadName = Annotated[str, in_path("The thread's id, or the client's name of it.")]


class TransportShape(TypedDict):
    """Delivery of an agent's events."""

    streaming: bool
    resumable: bool


class CapabilitiesShape(TypedDict):
    """Capabilities of an agent."""

    transport: TransportShape


class KitAgentShape(TypedDict):
    """An agent in CopilotKit's form."""

    name: str
    description: str
    className: str
    capabilities: CapabilitiesShape


class EndpointsShape(TypedDict):
    """The supported thread routes."""

    list: bool
    inspect: bool
    mutations: bool
    realtimeMetadata: bool


class SingleRouteShape(TypedDict):
    """Features of the single endpoint beyond runs."""

    resourceOperations: bool
    threadEndpoints: EndpointsShape


class InfoShape(TypedDict):
    """Agents and features of the server."""

    version: str
    agents: Mapping[str, KitAgentShape]
    mode: Literal["sse"]
    threadEndpoints: EndpointsShape
    singleRoute: SingleRouteShape
    suggestions: bool
    audioFileTranscriptionEnabled: bool
    a2uiEnabled: bool
    openGenerativeUIEnabled: bool
    telemetryDisabled: bool


# Clients poll lists; changes are not pushed.
ENDPOINTS: EndpointsShape = {"list": True, "inspect": True, "mutations": True, "realtimeMetadata": False}


def find_kit_agent(agents: AgentCatalog, id: str) -> Agent:
    """Return an agent by its CopilotKit id."""
    if id == DEFAULT:
        return agents.by_name.get(agents.default, CHAT)
    if id not in agents.by_name:
        raise NotFound(what="agent", id=id)
    return agents.by_name[id]


async def get_copilotkit_info(request: Request) -> InfoShape:
    """Return the agents and features for CopilotKit's client. `default` is the default agent."""
    backend = backend_of(request)
    agents: dict[str, KitAgentShape] = {
        id: {
            "name": id,
            "description": find_kit_agent(backend.agents, id).description,
            "className": "RectoAgent",
            "capabilities": {"transport": {"streaming": True, "resumable": True}},
        }
        for id in (DEFAULT, *backend.agents.by_name)
    }
    return {
        "version": VERSION,
        "agents": agents,
        "mode": "sse",
        "threadEndpoints": ENDPOINTS,
        "singleRoute": {"resourceOperations": True, "threadEndpoints": ENDPOINTS},
        "suggestions": backend.runs.suggestions.is_on,
        "audioFileTranscriptionEnabled": False,
        "a2uiEnabled": False,
        "openGenerativeUIEnabled": False,
        "telemetryDisabled": True,
    }


ROUTES = (Route("GET", f"{BASE}/info", get_copilotkit_info, "copilotkit"),)
