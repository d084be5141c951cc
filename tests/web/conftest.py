"""What tests of the page share: a server with a scripted model, one with the demo model, and a browser."""

from collections.abc import Generator
from pathlib import Path
from typing import Unpack

import pytest

from recto.testing.process import ServerProcess
from tests.api.scripted_server import KEYS, Scripted, scripted_server
from tests.clients.node import NodeProcess
from tests.web.page import PageOpener, PageOptions, WebPage

TOOLS = '''
from recto import ToolContext, tool


@tool
def weather(city: str) -> dict[str, object]:
    """What the weather is like."""
    hints = {"title": f"Weather in {city}", "badge": {"label": "sunny", "status": "success"}, "body": "22 degrees"}
    return {"city": city, "degrees": 22, "ui_hints": hints}


@tool(confirm=True)
def send(text: str, loud: bool = False) -> str:
    """Send a line to everybody."""
    return f"Sent: {text}{'!' if loud else ''}"


@tool
def show(nodes: list[dict[str, object]]) -> dict[str, object]:
    """Show a tree of nodes as a card."""
    return {"shown": len(nodes), "ui_hints": {"type": "stack", "appearance": "card", "children": nodes}}


@tool
def lookup(path: str) -> str:
    """Read a file of this test."""
    return f"{path}: " + "line of text. " * 40
'''
AGENT = """\
---
description: Helps with this and that.
file_input: {images: true, documents: true}
starters: ["What is the weather in Bonn?", "Tell me a story.", "What can you do?"]
fold:
  reads: {keep: 1, tools: [lookup]}
---
You help.
"""


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scripted]:
    folder = tmp_path_factory.mktemp("web")
    write_agent(folder / "agents" / "helper")
    settings = {"RECTO_AGENTS": str(folder / "agents"), "RECTO_AGENT": "helper"}
    with scripted_server(folder / "data", settings) as server:
        yield server


def write_agent(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "AGENT.md").write_text(AGENT, "utf-8")
    (folder / "tools.py").write_text(TOOLS, "utf-8")


@pytest.fixture
def server(shared: Scripted) -> Scripted:
    """The server whose model says what a test gives it to say; nothing is left from the test before."""
    shared.answers.clear()
    shared.go.clear()
    return shared


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The address of a server with the demo model and the agents that are shipped."""
    settings = {"RECTO_MODEL": "demo", "RECTO_API_KEYS": KEYS}
    with ServerProcess.serve(tmp_path_factory.mktemp("demo"), settings) as running:
        yield running.url


@pytest.fixture(scope="package")
def browser() -> Generator[NodeProcess]:
    with NodeProcess("web_page.mjs") as program:
        program.ask("start")
        yield program


@pytest.fixture
def open_page(browser: NodeProcess, server: Scripted) -> Generator[PageOpener]:
    """Opens the page; it is shut again. What it complains about is shown with a test that fails."""
    opened: list[WebPage] = []

    def made(url: str = server.url, **options: Unpack[PageOptions]) -> WebPage:
        opened.append(WebPage(browser, url, **options))
        return opened[-1]

    yield made
    for page in opened:
        print("\n".join(page.said()))
        page.shut()
