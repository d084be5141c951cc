"""Settings, services and running sources for tests of external tools."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from recto.agents.external_tools import McpSettings, OpenApiSettings, SettingsPlace
from recto.app.file_services import make_services
from recto.config.file_settings import BUBBLEWRAP
from recto.config.run_settings import ExternalSettings
from recto.config.settings import ServerSettings
from recto.conversation.json import dump
from recto.conversation.messages import Text, ToolCall
from recto.files.parsing.child_process import confinement
from recto.testing.process import free_port
from recto.tools.call import call_tool
from recto.tools.client_schema import Schemas
from recto.tools.external.http_service import HttpService
from recto.tools.external.mcp_server import McpServer
from recto.tools.external.services import ExternalServices, ToolSource
from recto.tools.ports import ReportProgress, ToolResult, discard_progress
from recto.tools.registry import Registry
from tests.layers import ROOT
from tests.tools.runs import context
from tests.waiting import wait_for

SECRET = 's3cr3t/of"the server'
NEW, OLD = "tests.tools.external.mcp_example", Path(__file__).with_name("old_mcp_example.py")
# What is confined is told apart from what cannot be here: tests say which of the two they prove.
IS_CONFINED = bool(asyncio.run(confinement(BUBBLEWRAP)))
QUICK = ExternalSettings(start_seconds=20, wait_seconds=10, retry_seconds=1)


def services(secrets: Mapping[str, str] | None = None, settings: ExternalSettings = QUICK) -> ExternalServices:
    services = make_services(replace(ServerSettings(), external=settings), Schemas())
    return replace(services, environment={f"RECTO_SECRET_{name}": value for name, value in (secrets or {}).items()})


def started(folder: Path, *command: str, **more: object) -> McpSettings:
    """Return settings of a local server; the default one needs to read this repository."""
    options = {"readable": (str(ROOT),), "env": {"PYTHONPATH": str(ROOT)}, "sandbox": IS_CONFINED, **more}
    place = SettingsPlace(file=folder / "AGENT.md", line=2)
    return replace(McpSettings(name="files", place=place, command=command or (sys.executable, "-m", NEW)), **options)


@asynccontextmanager
async def keep_running(
    settings: McpSettings | OpenApiSettings, by: ExternalServices, *used_names: str
) -> AsyncGenerator[ToolSource]:
    """Run a source inside the context, after its first try."""
    names = frozenset(used_names)
    source = McpServer(settings, names, by) if isinstance(settings, McpSettings) else HttpService(settings, names, by)
    keeping = asyncio.create_task(source.run())
    try:
        await asyncio.wait_for(source.state.first_try.wait(), 30)
        yield source
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def call(
    source: ToolSource,
    name: str,
    arguments: Mapping[str, object] | None = None,
    report: ReportProgress = discard_progress,
) -> ToolResult:
    """Call a tool as a run does."""
    tool_call = ToolCall(id="c", name=name, arguments=dump(arguments or {}).decode())
    return await call_tool(Registry(source.state.tools), tool_call, replace(context(), report=report))


def words(result: ToolResult) -> str:
    return "\n".join([part.text for part in result.parts if isinstance(part, Text)])


def names(source: ToolSource) -> list[str]:
    return [tool.name for tool in source.state.tools]


@contextmanager
def listening(token: str = "", port: int = 0) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """Run the new server over HTTP as its own process."""
    port = port or free_port()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TOKEN": token}
    with subprocess.Popen([sys.executable, "-m", NEW, str(port)], env=environment, cwd=ROOT) as process:
        try:
            wait_for(lambda: listens(port), "the server to listen")
            yield f"http://127.0.0.1:{port}/mcp", process
        finally:
            process.kill()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def at(url: str, folder: Path, **more: object) -> McpSettings:
    place = SettingsPlace(file=folder / "AGENT.md", line=2)
    return replace(McpSettings(name="files", place=place, url=url, internal=True), **more)
