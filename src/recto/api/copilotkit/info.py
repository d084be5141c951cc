"""The first route that CopilotKit calls: agents and features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.agents.agent import CHAT, Agent
from recto.api.backend import Backend, backend_of, json_answer
from recto.api.parameters import in_path
from recto.api.route import Route
from recto.errors import NotFound

BASE = "/api/v1/copilotkit"
# Id of a chat's default agent.
DEFAULT = "default"
# The CopilotKit runtime version whose routes these are.
VERSION = "1.75.0"
ThreadName = Annotated[str, in_path("The thread, by its id or by what the client calls it.")]


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


def kit_agent(backend: Backend, id: str) -> Agent:
    """Return an agent by its CopilotKit id."""
    if id == DEFAULT:
        return backend.agents.get(backend.agent, CHAT)
    if id not in backend.agents:
        raise NotFound(what="agent", id=id)
    return backend.agents[id]


async def get_copilotkit_info(request: Request) -> Response:
    """Return the agents and features for CopilotKit's client. `default` is the default agent."""
    return json_answer(_info(backend_of(request)))


def _info(backend: Backend) -> InfoShape:
    return {
        "version": VERSION,
        "agents": {id: _row(id, kit_agent(backend, id)) for id in (DEFAULT, *backend.agents)},
        "mode": "sse",
        "threadEndpoints": ENDPOINTS,
        "singleRoute": {"resourceOperations": True, "threadEndpoints": ENDPOINTS},
        "suggestions": backend.suggestions.is_on,
        "audioFileTranscriptionEnabled": False,
        "a2uiEnabled": False,
        "openGenerativeUIEnabled": False,
        "telemetryDisabled": True,
    }


def _row(id: str, agent: Agent) -> KitAgentShape:
    return {
        "name": id,
        "description": agent.description,
        "className": "RectoAgent",
        "capabilities": {"transport": {"streaming": True, "resumable": True}},
    }


EXAMPLE: InfoShape = {
    "version": VERSION,
    "agents": {DEFAULT: _row(DEFAULT, CHAT)},
    "mode": "sse",
    "threadEndpoints": ENDPOINTS,
    "singleRoute": {"resourceOperations": True, "threadEndpoints": ENDPOINTS},
    "suggestions": True,
    "audioFileTranscriptionEnabled": False,
    "a2uiEnabled": False,
    "openGenerativeUIEnabled": False,
    "telemetryDisabled": True,
}
ROUTES = (
    Route(
        method="GET",
        path=f"{BASE}/info",
        handler=get_copilotkit_info,
        tag="copilotkit",
        answer=InfoShape,
        examples={"answer": EXAMPLE},
    ),
)
