"""A whole server in this process: everything but its socket, with a scripted model."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from starlette.types import Message, Scope

from recto.api.backend import Backend
from recto.api.router import Api
from recto.app.run_server import make_application
from recto.cli.server_settings import load_settings
from recto.conversation.json import Json, dump
from recto.conversation.log import Entry
from recto.store.database.folder import DataFolder
from recto.testing.model_server import Answer, ModelServer, Request
from recto.worker.runtime import Checkpoint
from tests.support.client import RUNS, TOKEN, HttpReply, ReceivedEvent, ask, parse_events

CHAT = "/api/v1/chat"
STREAM = {"accept": "text/event-stream"}
AGENT = """---
tools: [{built_in}]
{settings}
---

You are a careful helper.
"""
TOOLS = '''
from recto import tool


@tool
def note(text: str) -> str:
    """Write a line down."""
    return f"noted {text}"
'''


@dataclass(kw_only=True)
class InProcess:
    """A server and its scripted model. The first of `scripts` answers instead of `answers`."""

    api: Api
    model: ModelServer
    answers: list[Answer]
    checkpoints: list[Checkpoint]
    scripts: list[Callable[[Request], Answer]] = field(default_factory=list[Callable[[Request], Answer]])

    @property
    def backend(self) -> Backend:
        backend: Backend = self.api.state.backend
        return backend

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = TOKEN,
        headers: Mapping[str, str] | None = None,
    ) -> HttpReply:
        """Send one request and read its response to the end."""
        route, _, query = path.partition("?")
        fields = {"host": "localhost", "content-type": "application/json", **(headers or {})}
        if token:
            fields["authorization"] = f"Bearer {token}"
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": route,
            "raw_path": route.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "client": ("127.0.0.1", 1),
            "server": ("localhost", 80),
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        }
        data = body if isinstance(body, bytes) else dump(body) if body is not None else b""
        return await _call(self.api, scope, data)

    async def run(self, words: str, *answers: Answer, thread: str = "", tools: Json = ()) -> Sequence[ReceivedEvent]:
        """Run a message with these answers of the model. Return the events."""
        self.answers += answers
        reply = await self.send("POST", RUNS, ask(words, thread=thread, tools=tools), headers=STREAM)
        assert reply.status == 200, reply.body
        return events_of(reply)

    async def log(self, thread: str) -> Sequence[Entry]:
        return await self.backend.store.log.read_after(thread)

    @property
    def pages(self) -> Sequence[Mapping[str, Json]]:
        """Return the requests of the model."""
        return [model_request.page for model_request in self.model.requests]


async def _call(api: Api, scope: Scope, body: bytes) -> HttpReply:
    messages: list[Message] = []
    waiting: list[Message] = [{"type": "http.request", "body": body}]

    async def receive() -> Message:
        # Whoever asks here stays until all is said.
        return waiting.pop() if waiting else await asyncio.get_running_loop().create_future()

    async def send(message: Message) -> None:
        messages.append(message)

    await api(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
    return HttpReply(
        status=messages[0]["status"], headers=headers, body=b"".join([one.get("body", b"") for one in messages[1:]])
    )


def events_of(reply: HttpReply) -> Sequence[ReceivedEvent]:
    return list(parse_events(iter(reply.body.splitlines(keepends=True))))


def types_of(events: Sequence[ReceivedEvent]) -> Sequence[Json]:
    return [received.event["type"] for received in events]


def without_progress(events: Sequence[ReceivedEvent]) -> Sequence[ReceivedEvent]:
    """Return the events without progress reports, whose number varies."""
    return [one for one in events if one.event["type"] != "ACTIVITY_SNAPSHOT"]


def messages_of(page: Mapping[str, Json]) -> Sequence[Mapping[str, Json]]:
    return cast("Sequence[Mapping[str, Json]]", page["messages"])


@asynccontextmanager
async def in_process(
    folder: Path,
    patch: pytest.MonkeyPatch,
    *,
    settings: str = "",
    tools: str = TOOLS,
    built_in: str = "current_time",
    **environment: object,
) -> AsyncGenerator[InProcess]:
    """Run a server with one agent: lines of its AGENT.md, tools, and settings (None removes one)."""
    agent = folder / "agents" / "helper"
    agent.mkdir(parents=True)
    (agent / "AGENT.md").write_text(AGENT.format(settings=settings, built_in=built_in), encoding="utf-8")
    (agent / "tools.py").write_text(tools, encoding="utf-8")
    answers, checkpoints, scripts = list[Answer](), list[Checkpoint](), list[Callable[[Request], Answer]]()

    def give(model_request: Request) -> Answer:
        if scripts:
            return scripts[0](model_request)
        return answers.pop(0) if answers else Answer(text="Well.")

    with ModelServer(give) as model:
        urls = {"RECTO_MODEL_URL": model.url, "OPENAI_BASE_URL": model.url, "ANTHROPIC_BASE_URL": model.root}
        for name, value in (urls | {"GEMINI_BASE_URL": f"{model.root}/v1beta", "GEMINI_API_KEY": "k-1"}).items():
            patch.setenv(name, value)
        settings_in_use = {"model": "compatible:scripted", "agent": "helper", "token": TOKEN}
        variables = {**settings_in_use, "agents": folder / "agents", "data": folder / "data", **environment}
        process_environment = {
            f"RECTO_{name.upper()}": str(value) for name, value in variables.items() if value is not None
        }
        server_settings = load_settings({}, process_environment, None)
        data = DataFolder(server_settings.data)
        api = make_application(server_settings, data, checkpoints.append).api
        try:
            async with api.lifespan(api):
                yield InProcess(api=api, model=model, answers=answers, checkpoints=checkpoints, scripts=scripts)
        finally:
            data.close()
