"""Fixtures for tests of the page: a server with a scripted model, one with the demo model, and a browser."""

from collections.abc import Generator
from typing import Unpack

import pytest

from recto.testing.process import ServerProcess
from tests.api.scripted_server import KEYS, Scripted, agent_server
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
    with agent_server(tmp_path_factory.mktemp("web"), AGENT, TOOLS) as server:
        yield server


@pytest.fixture
def server(shared: Scripted) -> Scripted:
    """Return the server with the scripted model, without answers of previous tests."""
    shared.answers.clear()
    shared.go.clear()
    return shared


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """Return the URL of a server with the demo model and the shipped agents."""
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
    """Return a function that opens the page. Failed tests show the browser console."""
    pages: list[WebPage] = []

    def open_one(url: str = server.url, **options: Unpack[PageOptions]) -> WebPage:
        pages.append(WebPage(browser, url, **options))
        return pages[-1]

    yield open_one
    for page in pages:
        print("\n".join(page.console_lines()))
        page.close()
