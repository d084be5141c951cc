"""Helpers for both clients, and a server with a scripted model."""

import asyncio
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias, cast

from recto.client import AsyncChatTurn, AsyncClient, ChatTurn, Client, Patience
from recto.conversation.json import Json
from recto.testing.model_server import Answer, ModelServer, Request
from recto.testing.process import ServerProcess
from tests.support.client import TOKEN

Kind: TypeAlias = Literal["blocking", "loop"]
KINDS: tuple[Kind, ...] = ("blocking", "loop")
TURNS = ChatTurn | AsyncChatTurn
# As small as the server has them.
PAGE_BYTES = 65_536
SOON = Patience(silence=10, tries=50, pause=0.01, longest_pause=0.05)
AGENT = """---
tools: [calculator]
---

You are a careful helper.
"""
TOOLS = '''
from recto import tool


@tool(confirm=True)
def send(to: str, text: str = "") -> str:
    """Send a letter."""
    return f"sent {text!r} to {to}"
'''


@dataclass(frozen=True, kw_only=True)
class ScriptedServer:
    """A server, its model and the next answers of the model."""

    server: ServerProcess
    model: ModelServer
    go: threading.Event
    answers: list[Answer] = field(default_factory=list[Answer])

    def client(self, kind: Kind, **settings: object) -> Client | AsyncClient:
        """Return a client of a kind."""
        arguments = {"url": self.server.url, "token": TOKEN, "patience": SOON, **settings}
        make = Client if kind == "blocking" else AsyncClient
        return make(**arguments)  # pyright: ignore[reportArgumentType] - what a test gives is what a client has

    def will(self, *answers: Answer) -> int:
        """Set the next answers of the model; return the number of requests so far."""
        self.answers[:] = answers
        return len(self.model.requests)

    def pages(self, before: int) -> list[list[Mapping[str, Json]]]:
        """Return the messages of each later model request."""
        return [cast("list[Mapping[str, Json]]", request.page["messages"]) for request in self.model.requests[before:]]


@contextmanager
def run_scripted_server(folder: Path) -> Generator[ScriptedServer]:
    """Start a server whose agent can calculate, and send letters with approval."""
    agent = folder / "agents" / "helper"
    agent.mkdir(parents=True)
    (agent / "AGENT.md").write_text(AGENT, encoding="utf-8")
    (agent / "tools.py").write_text(TOOLS, encoding="utf-8")
    answers, go = list[Answer](), threading.Event()

    def give(_: Request) -> Answer:
        return answers.pop(0) if answers else Answer(text="Well.")

    with ModelServer(give) as model:
        settings = {"RECTO_MODEL": "compatible:x", "RECTO_MODEL_URL": model.url, "RECTO_AGENT": "helper"}
        settings |= {"RECTO_RETRY_SECONDS": "0", "RECTO_SNAPSHOT_BYTES": str(PAGE_BYTES)}
        with ServerProcess.serve(folder / "data", settings, "--agents", str(folder / "agents")) as server:
            yield ScriptedServer(server=server, model=model, go=go, answers=answers)
            go.set()


def words_of(turn: TURNS) -> list[str]:
    """Return the pieces of a turn's text."""

    async def collect(turn: AsyncChatTurn) -> list[str]:
        return [words async for words in turn]

    return list(turn) if isinstance(turn, ChatTurn) else asyncio.run(collect(turn))


def events_of(turn: TURNS, each: Callable[[], object] = lambda: None) -> list[Mapping[str, Json]]:
    """Return all events of a turn; call `each` after each of them."""
    events: list[Mapping[str, Json]] = []

    async def collect(turn: AsyncChatTurn) -> None:
        async for event in turn.events():
            events.append(event)
            each()

    if isinstance(turn, AsyncChatTurn):
        asyncio.run(collect(turn))
        return events
    for event in turn.events():
        events.append(event)
        each()
    return events


def answer_of(turn: TURNS) -> str:
    """The answer of a turn."""
    return turn.answer() if isinstance(turn, ChatTurn) else asyncio.run(turn.answer())
