"""What the tests of the client share: both clients through one door, and a server whose model says what is given."""

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
class Talking:
    """A server, its model, and what that says next."""

    server: ServerProcess
    model: ModelServer
    go: threading.Event
    answers: list[Answer] = field(default_factory=list[Answer])

    def client(self, kind: Kind, **settings: object) -> Client | AsyncClient:
        """A client of either kind."""
        made = {"url": self.server.url, "token": TOKEN, "patience": SOON, **settings}
        make = Client if kind == "blocking" else AsyncClient
        return make(**made)  # pyright: ignore[reportArgumentType] - what a test gives is what a client has

    def will(self, *answers: Answer) -> int:
        """Have the model give these answers next. How many requests it had before."""
        self.answers[:] = answers
        return len(self.model.requests)

    def pages(self, before: int) -> list[list[Mapping[str, Json]]]:
        """The messages of each request the model had since."""
        return [cast("list[Mapping[str, Json]]", made.page["messages"]) for made in self.model.requests[before:]]


@contextmanager
def talking(folder: Path) -> Generator[Talking]:
    """A server with one agent that can calculate, and may send letters where a person agrees."""
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
            yield Talking(server=server, model=model, go=go, answers=answers)
            go.set()


def words_of(turn: TURNS) -> list[str]:
    """The words of a turn as they come."""

    async def collect(turn: AsyncChatTurn) -> list[str]:
        return [words async for words in turn]

    return list(turn) if isinstance(turn, ChatTurn) else asyncio.run(collect(turn))


def events_of(turn: TURNS, each: Callable[[], object] = lambda: None) -> list[Mapping[str, Json]]:
    """All events of a turn; `each` is called as each of them comes."""
    heard: list[Mapping[str, Json]] = []

    async def collect(turn: AsyncChatTurn) -> None:
        async for event in turn.events():
            heard.append(event)
            each()

    if isinstance(turn, AsyncChatTurn):
        asyncio.run(collect(turn))
        return heard
    for event in turn.events():
        heard.append(event)
        each()
    return heard


def answer_of(turn: TURNS) -> str:
    """The answer of a turn."""
    return turn.answer() if isinstance(turn, ChatTurn) else asyncio.run(turn.answer())
