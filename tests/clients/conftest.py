"""What tests of real clients share: one server with a scripted model, and a Node program for each kind of client."""

from collections.abc import Generator
from pathlib import Path

import pytest

from recto.conversation.json import Json
from recto.testing.process import free_port
from tests.api.scripted_server import Scripted, scripted_server
from tests.clients.agents import AG_UI, VERSIONS, Client, ClientMaker
from tests.clients.browser import Page, PageMaker
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


@pytest.fixture(scope="package")
def origin() -> str:
    """Where the pages of the browser come from: not from the server, which has to let them."""
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory, origin: str) -> Generator[Scripted]:
    folder = tmp_path_factory.mktemp("clients")
    write_agent(folder / "agents" / "helper")
    settings = {"RECTO_AGENTS": str(folder / "agents"), "RECTO_AGENT": "helper", "RECTO_CORS_ORIGINS": origin}
    with scripted_server(folder / "data", settings) as server:
        yield server


def write_agent(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "AGENT.md").write_text("---\nfile_input: {images: true, documents: true}\n---\nYou help.\n", "utf-8")
    (folder / "tools.py").write_text(TOOLS, "utf-8")


@pytest.fixture
def server(shared: Scripted) -> Scripted:
    """The server, with nothing left to say from the test before."""
    shared.answers.clear()
    shared.go.clear()
    return shared


@pytest.fixture(scope="package")
def node() -> Generator[NodeProcess]:
    with NodeProcess("stock/http_agent.mjs") as program:
        yield program


@pytest.fixture(params=VERSIONS)
def make(request: pytest.FixtureRequest, node: NodeProcess, server: Scripted) -> ClientMaker:
    """Makes clients of each version in turn."""

    def make_client(**config: Json) -> Client:
        return Client(node, str(request.param), f"{server.url}{AG_UI}", **config)

    return make_client


@pytest.fixture(scope="package")
def browser(origin: str) -> Generator[NodeProcess]:
    with NodeProcess("browser.mjs") as program:
        program.ask("start", port=int(origin.rpartition(":")[2]))
        yield program


@pytest.fixture
def show(browser: NodeProcess, server: Scripted, origin: str) -> Generator[PageMaker]:
    """Opens pages; they are shut again. What they complain about is shown with a test that fails."""
    pages: list[Page] = []

    def make_client(page: str, **query: str) -> Page:
        pages.append(Page(browser, origin, page, server, **query))
        return pages[-1]

    yield make_client
    for page in pages:
        print("\n".join(page.console_lines()))
        page.shut()
