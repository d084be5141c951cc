"""A server that may be stopped, killed and started again, and a model that does as the newest words say."""

import multiprocessing
import os
import re
import threading
from collections import Counter
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias, cast

from recto.app.run_server import serve
from recto.cli.server_settings import load_settings
from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer, Call, ModelServer, Request, failure
from recto.testing.process import free_port
from tests.end_to_end.harness import TOOLS
from tests.support.client import request
from tests.waiting import wait_for

SECRET = "a secret that only this test and its server know"
ORDER = re.compile(r"(say|note|client|send|hold|fail) (w[0-9a-f]{12})")
WORD = re.compile(r"w[0-9a-f]{12}")
AGENT = "---\ncompact: {least: 1}\n---\n\nYou are a careful helper.\n"
# How long anything may take that should happen at once, on a busy machine.
SOON = 20.0
Row: TypeAlias = Mapping[str, Json]


def serve_here(environment: Mapping[str, str]) -> None:
    """Serve in this process, which has everything imported already."""
    os.environ.update(environment)
    # A group of its own, as for one started by itself: nobody's Ctrl-C is meant for it.
    os.setsid()
    serve(load_settings({}, environment, None), lambda _url, _token: None)


class ServerHere:
    """A server in a prepared process that can be stopped, killed and restarted on its port."""

    def __init__(self) -> None:
        self._port = free_port()
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload([__name__])
        self._server: ForkServerProcess | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        assert self._server and self._server.pid
        return self._server.pid

    def begin(self, environment: Mapping[str, str]) -> None:
        self._server = self._processes.Process(target=serve_here, args=(environment,))
        self._server.start()
        wait_for(self._is_ready, "the server to start")

    def _is_ready(self) -> bool:
        try:
            return request(self.url, "GET", "/readyz", token=None).status == 200
        except OSError:
            return False

    def end(self, *, kill: bool = False) -> None:
        if self._server:
            self._server.kill() if kill else self._server.terminate()
            self._server.join(SOON)
            assert self._server.exitcode == (-9 if kill else 0)
            self._server = None


class World(ServerHere):
    """The model and the server that all examples share."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.model = ModelServer(self._answer)
        self.gate = threading.Event()
        self.steps = 0
        self.data = folder / "data"
        self._agents = folder / "agents"
        self.tally = Counter[str]()

    def __enter__(self) -> Self:
        (self._agents / "helper").mkdir(parents=True)
        (self._agents / "helper" / "AGENT.md").write_text(AGENT, encoding="utf-8")
        (self._agents / "helper" / "tools.py").write_text(TOOLS, encoding="utf-8")
        self.model.__enter__()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.end(kill=True)
        finally:
            self.model.__exit__(kind, error, _)

    def start(self) -> None:
        settings: Mapping[str, object] = {
            "port": self._port,
            "data": self.data,
            "agents": self._agents,
            "agent": "helper",
            "model": "compatible:scripted",
            "model_url": self.model.url,
            "jwt_secret": SECRET,
            "user_requests": 0,
            "grace_seconds": 0.2,
            "event_seconds": 0.005,
        }
        self.begin({f"RECTO_{name.upper()}": str(value) for name, value in settings.items()})

    def _answer(self, model_request: Request) -> Answer:
        """Do what the newest words say. A summary contains all words of its input."""
        first, *_, last = cast("list[Row]", model_request.page["messages"])
        if str(first["content"]).startswith("You summarise"):
            return self._summarise(str(last["content"]))
        match = ORDER.search(str(last["content"]))
        match (str(match[1]) if match else "", model_request.page.get("tools")):
            case ("note", _):
                return Answer(text="Let me see.", calls=(Call(name="note", arguments='{"text": "x"}', id=new_id()),))
            case ("send", _):
                return Answer(calls=(Call(name="send", arguments='{"text": "x"}', id=new_id()),))
            case ("client", tools) if "ask_me" in str(tools):
                return Answer(calls=(Call(name="ask_me", id=new_id()),))
            case ("hold", _):
                return Answer(text="I was held up for a while.", hold=self.gate, hold_after=3)
            case ("fail", _):
                return failure(400, "I never do that")
            case _:
                return Answer(text="You are welcome.")

    def _summarise(self, piece: str) -> Answer:
        words = " ".join(["So far:", *WORD.findall(piece)])
        match str(match[1]) if (match := ORDER.search(piece)) else "":
            case "fail":
                return failure(400, "I never do that")
            case "hold":
                return Answer(text=words, hold=self.gate)
            case _:
                return Answer(text=words)
