"""Routes without a server process: a real store, and whoever the test says asks. Bodies go in and out as bytes."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import cast
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import Message, Scope

from recto.api.backend import Backend, User
from recto.api.problems import refuse, refuse_fields, refuse_http
from recto.api.route import Route, add
from recto.engine.hub import Hub
from recto.errors import RectoError
from recto.ids import new_id
from recto.page.canonical import Json, dump, load
from recto.store.ports import Admission, Admitted
from recto.store.store import Store, open_store

NOW = datetime(2026, 5, 14, 12, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Mapping[str, Json]:
        return cast("Mapping[str, Json]", load(self.body))

    def rows(self, name: str) -> list[Mapping[str, Json]]:
        """The objects a field lists."""
        return list(cast("Sequence[Mapping[str, Json]]", self.json[name]))


@dataclass(kw_only=True)
class LocalApi:
    """An application of some routes, its store, and the runs it was told to cancel."""

    app: FastAPI
    store: Store
    hub: Hub
    cancelled: list[str] = field(default_factory=list[str])

    async def ask(self, method: str, path: str, body: object = None, *, user: str = "ann") -> Answer:
        """One request. A body that is no bytes goes as JSON."""
        data = body if isinstance(body, bytes) else dump(body) if body is not None else b""
        route, _, query = path.partition("?")
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": route,
            "raw_path": quote(route).encode(),
            "query_string": quote(query, safe="=&%+/").encode(),
            "headers": [(b"content-type", b"application/json"), (b"host", b"localhost")],
            "state": {"user": User(name=user)},
        }
        sent: list[Message] = []
        waiting: list[Message] = [{"type": "http.request", "body": data}]

        async def receive() -> Message:
            # Whoever asks here stays until all is told.
            return waiting.pop() if waiting else await asyncio.get_running_loop().create_future()

        async def send(message: Message) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(
            status=sent[0]["status"], headers=headers, body=b"".join([part.get("body", b"") for part in sent[1:]])
        )


@asynccontextmanager
async def local_api(folder: Path, routes: Sequence[Route]) -> AsyncGenerator[LocalApi]:
    """An application of these routes over a new store."""
    store = await open_store(f"sqlite:///{folder / 'recto.db'}")
    app = FastAPI()
    for kind, handler in ((RectoError, refuse), (RequestValidationError, refuse_fields), (HTTPException, refuse_http)):
        app.add_exception_handler(kind, handler)
    for route in routes:
        add(app, route)
    api = LocalApi(app=app, store=store, hub=Hub(store))
    app.state.backend = Backend(
        store=store,
        hub=api.hub,
        agent="vibe",
        agents={},
        admit=_refuse_admission,
        cancel=api.cancelled.append,
        problem=lambda: None,
        clock=lambda: NOW,
        new_id=new_id,
        metrics=lambda: b"",
        tool_names={"vibe": frozenset({"ours"})},
    )
    try:
        yield api
    finally:
        await store.close()


async def _refuse_admission(_admission: Admission) -> Admitted:
    raise RuntimeError("These routes admit nothing.")


def assert_problem(answer: Answer, status: int, words: str) -> None:
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert words in str(answer.json["detail"])
