"""A server with a scripted model, and terminals with `recto chat`."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from recto.testing.model_server import Answer, ModelServer, Request
from recto.testing.process import ServerProcess
from tests.client.scripted_server import AGENT, TOOLS
from tests.support.client import TOKEN
from tests.terminal.terminal import RECTO, Terminal

PROMPT = "helper"


@dataclass(frozen=True, kw_only=True)
class ChatWorld:
    """A server, its model, the next answers, and the working folder."""

    server: ServerProcess
    model: ModelServer
    folder: Path
    go: threading.Event
    answers: list[Answer] = field(default_factory=list[Answer])

    def will(self, *answers: Answer) -> None:
        """Set the next answers of the model."""
        self.answers[:] = answers

    def chat(self, *flags: str, size: tuple[int, int] = (80, 24), **settings: str) -> Terminal:
        """Return a terminal that runs `recto chat` with the server."""
        environment = {"RECTO_TOKEN": TOKEN, "HOME": str(self.folder.parent), **settings}
        command = (*RECTO, "chat", "--server", self.server.url, *flags)
        return Terminal(command, folder=self.folder, settings=environment, size=size)


@contextmanager
def run_chat_world(folder: Path, mode: str = "ask") -> Generator[ChatWorld]:
    """Start a server with the coder and an agent that can calculate, and send letters with approval."""
    agent, work = folder / "agents" / "helper", folder / "work"
    agent.mkdir(parents=True)
    work.mkdir()
    (agent / "AGENT.md").write_text(AGENT, encoding="utf-8")
    (agent / "tools.py").write_text(TOOLS, encoding="utf-8")
    answers, go = list[Answer](), threading.Event()

    def answer(request: Request) -> Answer:
        # The server may request titles at any time.
        return answers.pop(0) if answers else Answer(text=f"Answer {request.number}.")

    with ModelServer(answer) as model:
        settings = {"RECTO_MODEL": "compatible:scripted", "RECTO_MODEL_URL": model.url, "RECTO_AGENT": "helper"}
        flags = ("--agents", str(folder / "agents"), "--workspace", str(work), "--mode", mode)
        with ServerProcess.serve(folder / "data", settings, *flags) as server:
            yield ChatWorld(server=server, model=model, folder=work, go=go, answers=answers)


def wait_idle(terminal: Terminal) -> str:
    """Wait until no run is active; return the screen."""
    return terminal.wait_for(lambda screen: "Ctrl-C\n" not in screen and "\n›" in screen)
