"""A server whose agents take files, on both wires, with a model that says what a test gives it to say.

It may be stopped, killed and started again. Urls are signed with a key the tests know, so that they can sign others.
"""

import base64
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from recto.conversation.json import Json, dump, load
from recto.conversation.log import Entry
from recto.conversation.messages import UserMessage
from recto.files.signing import Signer, SigningKey
from recto.ids import new_id
from recto.testing.answer_bytes import wire_at
from recto.testing.model_server import Answer, Call, ModelServer, Request
from tests.api.forms import FORM, Field, form_of
from tests.end_to_end.harness import assert_calls_were_stored_as_sent, read_log
from tests.end_to_end.world import ServerHere
from tests.page.page_rules import orphans
from tests.support.client import RUNS, HttpReply, ReceivedEvent, parse_events, request

ANN, BOB = "ann-key-of-our-file-tests", "bob-key-of-our-file-tests"
SECRET = "a secret that signs urls in our tests"
ATTACHMENTS, DATASETS = "/api/v1/agent/attachments", "/api/v1/agent/datasets"
THREADS = "/api/v1/agent/threads"
WELL = Answer(text="Well.")
PERSONA = "You are a careful reader."
TOOLS = '''
"""A tool of the agent's own."""

from recto import tool


@tool
def show(file: str) -> str:
    """Say what it was given."""
    return f"given {file}"
'''
SETTINGS = """\
---
model: {model}
locale: {locale}
tools: [{tools}]
file_input: {{on: true, audio: true, video: true, max_files: {most}{files}}}
datasets: [{datasets}]
{more}
---
{persona}
"""
MODELS = {"openai": "openai:sees", "anthropic": "anthropic:claude-sees", "blind": "compatible:blind"}


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The request of a turn, its events, and its model calls."""

    body: Mapping[str, Json]
    events: Sequence[ReceivedEvent]
    requests: Sequence[Request]

    @property
    def thread(self) -> str:
        return str(self.body["threadId"])

    @property
    def pages(self) -> list[list[Mapping[str, Json]]]:
        return [messages_of(model_request) for model_request in self.requests]

    @property
    def last(self) -> Mapping[str, Json]:
        return self.events[-1].event

    @property
    def results(self) -> list[str]:
        return [
            str(received.event["content"]) for received in self.events if received.event["type"] == "TOOL_CALL_RESULT"
        ]

    @property
    def contents(self) -> list[Json]:
        """Return the file contents in the results of `read_files`."""
        return [row["content"] for result in self.results for row in rows(load(result))]


@dataclass(frozen=True, kw_only=True)
class Talk:
    """The thread, the agent and the user of a turn."""

    agent: str = "en-openai"
    thread: str = field(default_factory=new_id)
    token: str = ANN


class FileWorld(ServerHere):
    """A server with agents that accept files. The model gives `answers` in order, then a default."""

    def __init__(self, folder: Path, **settings: object) -> None:
        super().__init__()
        self.answers: list[Answer] = []
        self.model = ModelServer(self._answer)
        self.data = folder / "data"
        self.agents = folder / "agents"
        self._settings = settings
        # By thread, as far as there still is one.
        self._sent: dict[str, list[bytes]] = {}

    def __enter__(self) -> Self:
        for wire, model in MODELS.items():
            self.write_agent(f"zh-{wire}", locale="zh", model=model)
            self.write_agent(f"en-{wire}", locale="en", model=model)
        self.model.__enter__()
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            self.end(kill=True)
            if kind is None:
                self._look_back()
        finally:
            self.model.__exit__(kind, error, _)

    def _look_back(self) -> None:
        """Check that each call of a page has its result, and that pages are stored as sent."""
        for model_request in self.model.requests:
            assert orphans(model_request.page, wire_at(model_request.path) or "openai") == []
        assert_calls_were_stored_as_sent(self.database, [body for bodies in self._sent.values() for body in bodies])

    def write_agent(self, name: str, **settings: object) -> None:
        folder = self.agents / name
        folder.mkdir(parents=True, exist_ok=True)
        environment = {"model": MODELS["openai"], "locale": "en", "most": 10, "datasets": "", "persona": PERSONA}
        environment |= {"tools": "read_files, sandbox_fetch_user_file", "files": "", "more": ""}
        (folder / "AGENT.md").write_text(SETTINGS.format_map(environment | settings), encoding="utf-8")
        (folder / "tools.py").write_text(TOOLS, encoding="utf-8")

    @property
    def signer(self) -> Signer:
        base = str(self._settings.get("public_url", self.url))
        return Signer([SigningKey(id="k1", secret=SECRET.encode())], lambda: base)

    @property
    def database(self) -> str:
        return f"sqlite:///{self.data / 'recto.db'}"

    def start(self) -> None:
        settings: Mapping[str, object] = {
            "port": self._port,
            "data": self.data,
            "agents": self.agents,
            "agent": "en-openai",
            "model": MODELS["openai"],
            "model_url": self.model.url,
            "api_keys": f"ann:{ANN},bob:{BOB}",
            "signing_keys": f"k1:{SECRET}",
            "user_requests": 0,
            "grace_seconds": 0.2,
            "event_seconds": 0.005,
        }
        ours = {f"RECTO_{name.upper()}": str(value) for name, value in {**settings, **self._settings}.items()}
        providers = {"OPENAI_BASE_URL": self.model.url, "ANTHROPIC_BASE_URL": self.model.root}
        keys = {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2"}
        self.begin({**ours, **providers, **keys})

    def restart(self, *, kill: bool = False) -> None:
        self.end(kill=kill)
        self.start()

    def _answer(self, _request: Request) -> Answer:
        return self.answers.pop(0) if self.answers else WELL

    def ask(self, method: str, path: str, body: object = None, *, token: str = ANN, **headers: str) -> HttpReply:
        return request(self.url, method, path, body, token=token, **headers)

    def upload(self, *files: Field, agent: str = "en-openai", token: str = ANN) -> list[Mapping[str, Json]]:
        reply = self.ask("POST", f"{ATTACHMENTS}?agent={agent}", form_of(*files), token=token, content_type=FORM)
        assert reply.status == 200, reply.body
        return rows(reply.json["attachments"])

    def post(self, body: Mapping[str, Json], token: str = ANN) -> HttpReply:
        return self.ask("POST", RUNS, body, token=token)

    def say(self, talk: Talk, content: Json, *answers: Answer, **rest: Json) -> Turn:
        """Run a turn with one user message."""
        return self.play(talk, a_run(talk, content, **rest), *answers)

    def play(self, talk: Talk, body: Mapping[str, Json], *answers: Answer) -> Turn:
        """Run this request with these answers of the model."""
        before = len(self.model.requests)
        self.answers[:] = answers
        reply = self.ask("POST", RUNS, body, token=talk.token, accept="text/event-stream")
        assert reply.status == 200, reply.body
        events = list(parse_events(iter(reply.body.splitlines(keepends=True))))
        assert [received.event["type"] for received in events].index("RUN_STARTED") == 0
        turn = Turn(body=body, events=events, requests=self.model.requests[before:])
        self._sent.setdefault(turn.thread, []).extend([model_request.body for model_request in turn.requests])
        return turn

    def attach(self, talk: Talk, *files: Mapping[str, Json]) -> str:
        """Run a turn with uploads. Return the prefix of their ids."""
        self.say(talk, [words("Here."), *map(part, files)])
        return self.response_id(talk.thread)

    def delete_thread(self, thread: str) -> None:
        assert self.ask("DELETE", f"{THREADS}/{thread}").status == 200
        del self._sent[thread]

    def forget_all(self) -> None:
        """Skip the check of stored pages."""
        self._sent.clear()

    def get(self, url: str) -> HttpReply:
        """Fetch a URL without a credential."""
        return request(self.url, "GET", url.removeprefix(self.url), token=None)

    def log(self, thread: str) -> Sequence[Entry]:
        return read_log(self.database, thread)

    def users(self, thread: str) -> list[UserMessage]:
        return [entry for entry in self.log(thread) if isinstance(entry, UserMessage)]

    def response_id(self, thread: str) -> str:
        """Return the response id of the newest turn."""
        return self.users(thread)[-1].response_id

    def page_url(self, row: Mapping[str, Json], thread: str) -> str:
        """Return the URL of an upload in pages of the newest turn."""
        admitted_at = self.users(thread)[-1].time
        assert admitted_at
        return self.signer.page_url(str(row["id"]), str(row["name"]), admitted_at)

    def column(self, query: str, *values: str) -> list[bytes]:
        """Return the first column of a query, as bytes."""
        with closing(sqlite3.connect(self.data / "recto.db")) as connection:
            results = cast("list[tuple[str | bytes]]", connection.execute(query, values).fetchall())
        return [one if isinstance(one, bytes) else str(one).encode() for (one,) in results]


def rows(value: Json) -> list[Mapping[str, Json]]:
    return list(cast("Sequence[Mapping[str, Json]]", value))


def messages_of(model_request: Request) -> list[Mapping[str, Json]]:
    return rows(model_request.page["messages"])


def a_run(talk: Talk, content: Json, **rest: Json) -> dict[str, Json]:
    """A RunAgentInput with one user message."""
    message: Json = {"id": new_id(), "role": "user", "content": content}
    props = {"agent": talk.agent, **cast("dict[str, Json]", rest.pop("forwardedProps", {}))}
    ids = {"threadId": talk.thread, "runId": new_id()}
    return {**ids, "messages": [message], "protocolVersion": "1.0", "forwardedProps": props, **rest}


def calling(name: str, id: str = "c1", **arguments: Json) -> Answer:
    """Return an answer that calls a tool."""
    return Answer(calls=(Call(name=name, arguments=dump(arguments).decode(), id=id),))


def reading(*ids: str) -> Answer:
    return calling("read_files", ids=list(ids))


def words(text: str) -> Json:
    return {"type": "text", "text": text}


def part(row: Mapping[str, Json]) -> Json:
    return {"type": row["type"], "source": {"type": "url", "value": row["url"]}}


def binary(row: Mapping[str, Json]) -> Json:
    """Return a picture as older clients send it."""
    return {"type": "binary", "mimeType": row["mimeType"], "url": row["url"]}


def inline(kind: str, data: bytes, name: str, mime_type: str) -> Json:
    """Return a file part with its bytes."""
    source = {"type": "data", "value": base64_of(data), "mimeType": mime_type}
    return {"type": kind, "source": source, "metadata": {"filename": name}}


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()
