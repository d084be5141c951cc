"""A server whose model says what a test gives it to say, for one or more users and agents."""

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from recto.conversation.json import Json
from recto.ids import new_id
from recto.testing.model_server import Answer, ModelServer, Request
from recto.testing.process import ServerProcess
from tests.support.client import RUNS, HttpReply, Reader, ReceivedEvent, ask, request, start

ALICE, BOB, LOOKER = "alice-key-of-our-tests", "bob-key-of-our-tests-too", "alice-looks-only-with-this"
KEYS = f"alice:{ALICE},bob:{BOB},alice:{LOOKER}:read"
HOLD = "hold"
PLAIN = Answer(text="one two three four five six")


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """A server and its model. `answers` are given in order; then all get the same words.

    A question with `hold` in it is answered by half, until `go` is set. Requests are those of `user`.
    """

    url: str
    pid: int
    process: ServerProcess
    model: ModelServer
    go: threading.Event
    answers: list[Answer] = field(default_factory=list[Answer])
    user: str = "alice"
    token: str = ALICE

    def get(self, path: str, token: str = "") -> Mapping[str, Json]:
        reply = request(self.url, "GET", f"/api/v1/agent{path}", token=token or self.token)
        assert reply.status == 200, reply.body
        return reply.json

    def rows(self, path: str, name: str, token: str = "") -> list[Mapping[str, Json]]:
        return list(cast("list[Mapping[str, Json]]", self.get(path, token)[name]))

    def post(self, body: object, token: str = "", **headers: str) -> HttpReply:
        return request(self.url, "POST", RUNS, body, token=token or self.token, **headers)

    def play(self, body: Mapping[str, Json], *answers: Answer) -> tuple[Sequence[ReceivedEvent], list[Request]]:
        """Have a run with these answers of the model: its events, and what the model was sent."""
        before = len(self.model.requests)
        self.answers[:] = answers
        reply = self.post(body)
        assert reply.status == 202, reply.body
        events = self.reader(str(reply.json["taskId"])).wait()
        assert self.answers == []
        return events, self.model.requests[before:]

    def begin(self, body: Mapping[str, Json]) -> tuple[str, Request]:
        """A run that stands in the middle of its answer, with words told, and the request of its model."""
        before = len(self.model.requests)
        self.go.clear()
        run = start(self.url, body, token=self.token)
        model_request = self.model.wait_requests(before + 1)[before]
        assert model_request.wait_held()
        self.reader(run).wait_for(lambda received: b"TEXT_MESSAGE_CONTENT" in received.body)
        return run, model_request

    def create_thread(self, *messages: str, token: str = "") -> str:
        """Create a thread with these messages and their answers. Return its id."""
        thread = new_id()
        for text in messages:
            reply = self.post(ask(text, thread=thread), token, accept="text/event-stream")
            assert b"RUN_FINISHED" in reply.body
        return thread

    def reader(self, run: str, token: str = "") -> Reader:
        return Reader(lambda: self.url, run, token=token or self.token)


@contextmanager
def scripted_server(folder: Path, settings: Mapping[str, str] | None = None) -> Generator[Scripted]:
    """A server for alice and bob on a new data folder."""
    go, answers = threading.Event(), list[Answer]()

    def script(model_request: Request) -> Answer:
        if answers:
            return answers.pop(0)
        gate = go if HOLD in last_words(model_request) else None
        return Answer(text=PLAIN.text, hold=gate, hold_after=4)

    with ModelServer(script) as model:
        environment = {
            "RECTO_MODEL": "compatible:x",
            "RECTO_MODEL_URL": model.url,
            "RECTO_API_KEYS": KEYS,
            "RECTO_AGENT": "chat",
        }
        with ServerProcess.serve(folder, {**environment, **(settings or {})}) as server:
            yield Scripted(url=server.url, pid=server.pid, process=server, model=model, go=go, answers=answers)
        go.set()


@contextmanager
def agent_server(folder: Path, agent: str, tools: str, **settings: object) -> Generator[Scripted]:
    """A scripted server with one agent: its AGENT.md and its tools."""
    helper = folder / "agents" / "helper"
    helper.mkdir(parents=True)
    (helper / "AGENT.md").write_text(agent, "utf-8")
    (helper / "tools.py").write_text(tools, "utf-8")
    variables = {f"RECTO_{name.upper()}": str(value) for name, value in settings.items()}
    with scripted_server(
        folder / "data", {"RECTO_AGENTS": str(folder / "agents"), "RECTO_AGENT": "helper", **variables}
    ) as server:
        yield server


def page_messages(model_request: Request) -> list[Mapping[str, Json]]:
    return list(cast("list[Mapping[str, Json]]", model_request.page["messages"]))


def last_words(model_request: Request) -> str:
    return str(page_messages(model_request)[-1]["content"])
