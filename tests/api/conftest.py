"""The servers that modules of this folder share: one with a scripted model, and one gateway, in each test process."""

from collections.abc import Generator, Mapping
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from tests.api.relaying_server import Relaying, relaying_server
from tests.api.scripted_server import KEYS, Scripted, scripted_server
from tests.support.client import TOKEN, request
from tests.waiting import wait_for

NUMBERS = count()
USERS = [f"user-{number}" for number in range(200)]
SETTINGS = {
    "RECTO_API_KEYS": ",".join((KEYS, *(f"{user}:key-of-{user}-of-our-tests" for user in USERS))),
    "RECTO_RETRY_SECONDS": "0.01",
    "RECTO_EVENT_SECONDS": "0.0",
    "RECTO_HEARTBEAT_SECONDS": "0.1",
    "RECTO_SUGGESTION_PAUSE_SECONDS": "0",
    "RECTO_USER_SUGGESTIONS": "0",
    "RECTO_KEPT_FILES": "200",
    "RECTO_WORKSPACE_BYTES": "1000000",
}
CONFIRMING = '''
from pathlib import Path

from recto import ToolContext, tool

FOLDER = Path(__file__).parent


@tool
def note(text: str) -> str:
    """Write a line down."""
    with (FOLDER / "notes.txt").open("a") as notes:
        notes.write(text + "\\n")
    return f"noted {text}"


@tool
def count(context: ToolContext) -> str:
    """Count on."""
    context.state.put("/n", 11)
    return "counted"


@tool(confirm=True)
def send(text: str, to: str = "all") -> str:
    """Send a line to everybody."""
    note(f"sent {text} to {to}")
    return f"sent {text}"


@tool(confirm=True)
def card(title: str) -> dict[str, object]:
    """Show a card."""
    return {"title": title, "ui_hints": {"title": title}}
'''
WRITING = '''
from recto import ToolContext, tool


@tool(changes="files")
def put(path: str, text: str, context: ToolContext) -> str:
    """Write a file, or remove it where there is no text."""
    target = context.workspace.folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text) if text else target.unlink()
    return "done"


@tool
def look() -> str:
    """Change nothing."""
    return "nothing to see"
'''


def write_agents(folder: Path, project: Path) -> None:
    """Write the agents of the shared server."""
    agents: Mapping[str, tuple[str, str]] = {
        "careful": ("You are careful.\n", CONFIRMING),
        "strict": ("---\nconfirm: [note]\n---\n\nYou are strict.\n", CONFIRMING),
        "own": ("You write.\n", WRITING),
        "shared": (f"---\nworkspace: {project}\nmode: full\n---\nYou write.\n", WRITING),
        "prompted": ("---\ntool_calling: prompt\n---\n\nYou are careful.\n", ""),
        "trusting": ("---\nclient_system: true\n---\n\nYou are trusting.\n", ""),
    }
    for name, (text, tools) in agents.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "AGENT.md").write_text(text, encoding="utf-8")
        if tools:
            (folder / name / "tools.py").write_text(tools, encoding="utf-8")


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the shared server: its data, its agents, and the project of the agent `shared`."""
    return tmp_path_factory.mktemp("shared-server")


@pytest.fixture(scope="session")
def shared_server(shared_folder: Path) -> Generator[Scripted]:
    project = shared_folder / "project"
    project.mkdir()
    (project / "given.txt").write_text("given")
    write_agents(shared_folder / "agents", project)
    settings = {**SETTINGS, "RECTO_AGENTS": str(shared_folder / "agents")}
    with scripted_server(shared_folder / "data", settings) as server:
        yield server


@pytest.fixture
def server(shared_server: Scripted) -> Generator[Scripted]:
    """The shared server for a user who has nothing yet. When the test ends, so do its runs."""
    shared_server.answers.clear()
    user = USERS[next(NUMBERS) % len(USERS)]
    yield replace(shared_server, user=user, token=f"key-of-{user}-of-our-tests")
    shared_server.answers.clear()
    shared_server.go.set()
    wait_for(lambda: _is_idle(shared_server), "the end of all runs of the test")


def _is_idle(server: Scripted) -> bool:
    return b"recto_active_runs 0.0\n" in request(server.url, "GET", "/metrics", token=TOKEN).body


@pytest.fixture(scope="session")
def shared_gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[Relaying]:
    settings = {"RECTO_JWT_SECRET": "a-secret-that-signs-tokens-of-32-and-more"}
    with relaying_server(tmp_path_factory.mktemp("shared-gateway"), settings) as server:
        yield server


@pytest.fixture
def gateway(shared_gateway: Relaying) -> Relaying:
    """The shared gateway, with nothing left to say from the test before."""
    shared_gateway.answers.clear()
    shared_gateway.scripts.clear()
    return shared_gateway
