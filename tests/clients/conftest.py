"""Fixtures for tests of real clients: a server with a scripted model, and the AG-UI clients in Node."""

from collections.abc import Generator

import pytest

from recto.conversation.json import Json
from recto.testing.process import free_port
from tests.api.scripted_server import Scripted, agent_server
from tests.clients.agents import AG_UI, VERSIONS, Client, ClientMaker
from tests.clients.node import NodeProcess

TOOLS = '''
from recto import ToolContext, tool


@tool
def weather(city: str) -> str:
    """What the weather is like."""
    return f"Sunny in {city}."


@tool
def plan(stop: str, context: ToolContext) -> str:
    """Add a stop to the trip that the user sees."""
    stops = context.state.get("/stops") or []
    context.state.put("/stops", [*stops, stop])
    return f"{stop} is stop {len(stops) + 1}."


@tool(confirm=True)
def send(text: str) -> str:
    """Send a line to everybody."""
    return f"Sent: {text}"
'''
AGENT = "---\nfile_input: {images: true, documents: true}\n---\nYou help.\n"


@pytest.fixture(scope="package")
def origin() -> str:
    """Return the origin of the chat pages, which the server must allow."""
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory, origin: str) -> Generator[Scripted]:
    with agent_server(tmp_path_factory.mktemp("clients"), AGENT, TOOLS, cors_origins=origin) as server:
        yield server


@pytest.fixture
def server(shared: Scripted) -> Scripted:
    """Return the server without answers of previous tests."""
    shared.answers.clear()
    shared.go.clear()
    return shared


@pytest.fixture(scope="package")
def node() -> Generator[NodeProcess]:
    with NodeProcess("stock/http_agent.mjs") as program:
        yield program


@pytest.fixture(params=VERSIONS)
def make(request: pytest.FixtureRequest, node: NodeProcess, server: Scripted) -> ClientMaker:
    def make_client(**config: Json) -> Client:
        return Client(node, str(request.param), f"{server.url}{AG_UI}", **config)

    return make_client
