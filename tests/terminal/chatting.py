"""What the tests of `recto chat` share: a server whose model says what is given, and terminals that talk to it."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from recto.testing.model_server import Answer, ModelServer, Request
from recto.testing.process import ServerProcess
from tests.support.client import TOKEN
from tests.terminal.terminal import RECTO, Terminal

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
PROMPT = "helper"


@dataclass(frozen=True, kw_only=True)
class Chatting:
    """A server, its model and what that says next; and the folder that people and the coder stand in."""

    server: ServerProcess
    model: ModelServer
    folder: Path
    go: threading.Event
    answers: list[Answer] = field(default_factory=list[Answer])

    def will(self, *answers: Answer) -> None:
        """Have the model give these answers next."""
        self.answers[:] = answers

    def chat(self, *flags: str, size: tuple[int, int] = (80, 24), **settings: str) -> Terminal:
        """`recto chat` against the server."""
        known = {"RECTO_TOKEN": TOKEN, "HOME": str(self.folder.parent), **settings}
        command = (*RECTO, "chat", "--server", self.server.url, *flags)
        return Terminal(command, folder=self.folder, settings=known, size=size)


@contextmanager
def chatting(folder: Path, mode: str = "ask") -> Generator[Chatting]:
    """A server with an agent that can calculate and may send letters where a person agrees; and the coder."""
    agent, work = folder / "agents" / "helper", folder / "work"
    agent.mkdir(parents=True)
    work.mkdir()
    (agent / "AGENT.md").write_text(AGENT, encoding="utf-8")
    (agent / "tools.py").write_text(TOOLS, encoding="utf-8")
    answers, go = list[Answer](), threading.Event()

    def answer(request: Request) -> Answer:
        # Titles are asked for beside the turns, whenever a server has time for them.
        return answers.pop(0) if answers else Answer(text=f"Answer {request.number}.")

    with ModelServer(answer) as model:
        given = {"RECTO_MODEL": "compatible:scripted", "RECTO_MODEL_URL": model.url, "RECTO_AGENT": "helper"}
        flags = ("--agents", str(folder / "agents"), "--workspace", str(work), "--mode", mode)
        with ServerProcess.serve(folder / "data", given, *flags) as server:
            yield Chatting(server=server, model=model, folder=work, go=go, answers=answers)


def wait_idle(terminal: Terminal) -> str:
    """Wait until no run is at work. The screen as it then is."""
    return terminal.wait_for(lambda screen: "Ctrl-C\n" not in screen and "\n›" in screen)
