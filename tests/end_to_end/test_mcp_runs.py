"""Runs with tools of an MCP server."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import cast

import pytest

from recto.conversation.json import Json, dump
from recto.testing.model_server import Answer, Call
from tests.flow.in_process import STREAM, InProcess, events_of, in_process
from tests.support.client import RUNS, ReceivedEvent, ask
from tests.tools.external.external_sources import OLD
from tests.waiting import DEADLINE_SECONDS, settle

HELLO = Call(name="old__hello", id="c1")


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Return the file with the last message that the server left unanswered."""
    return tmp_path / "mark"


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: Path) -> AsyncIterator[InProcess]:
    settings = dump({"old": {"command": [sys.executable, str(OLD), str(mark)], "sandbox": False}}).decode()
    async with in_process(tmp_path, monkeypatch, settings=f"mcp: {settings}") as server:
        await wait_until_offered(server, "old__hello")
        yield server


async def wait_until_offered(server: InProcess, tool: str) -> None:
    async def is_there() -> bool:
        agents = (await server.send("GET", "/api/v1/agent/agents")).json["agents"]
        return any(tool in cast("list[str]", one["tools"]) for one in cast("list[Mapping[str, Json]]", agents))

    async with asyncio.timeout(DEADLINE_SECONDS):
        while not await is_there():
            await settle()


def results(events: Sequence[ReceivedEvent]) -> list[Json]:
    return [one.event["content"] for one in events if one.event["type"] == "TOOL_CALL_RESULT"]


async def test_a_tool_that_a_server_has_from_now_on_is_in_the_next_page_of_the_run(server: InProcess):
    go, more = Event(), Call(name="old__more", id="c3")
    server.answers += [
        Answer(calls=(HELLO,)),
        Answer(calls=(Call(name="note", arguments='{"text": "x"}', id="c2"),), hold=go),
        Answer(calls=(more,)),
    ]
    reading = asyncio.create_task(server.send("POST", RUNS, ask("Say more."), headers=STREAM))
    await wait_until_offered(server, "old__more")
    go.set()
    assert results(events_of(await reading)) == ["hello", "noted x", "more"]
    offers = ["old__more" in dump(page["tools"]).decode() for page in server.pages]
    assert (offers[0], offers[2]) == (False, True)
