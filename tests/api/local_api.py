"""Routes without a server process: a real store, and whoever the test says asks. Bodies go in and out as bytes."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from dataclasses import fields as dataclass_fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias, cast
from urllib.parse import quote, unquote

from starlette.types import Message, Scope

from recto.api.backend import LOCAL, AgentCatalog, Backend, FileService, ModelCatalog, Operations, RunService, User
from recto.api.copilotkit.suggestions import Suggestions
from recto.api.files.uploads import ActiveUploads
from recto.api.route import Route
from recto.api.router import Api
from recto.api.runs.streams import OpenStreams
from recto.config.access_settings import BodyLimits
from recto.config.file_settings import FileSettings, UploadRules
from recto.config.run_settings import UNBOUNDED, WorkSettings
from recto.conversation.input.run_input import RunInput
from recto.conversation.json import Json, dump, load
from recto.conversation.message_files import FileRef
from recto.engine.hub import Hub
from recto.engine.ports import Preview
from recto.files.attachments import Attachments
from recto.files.fetch.outbound import Outbound
from recto.files.signing import Signer, SigningKey
from recto.ids import new_id
from recto.models.prices import load_prices
from recto.store.ports import Admission, AdmissionResult, StoredRun
from recto.store.store import Store, open_store
from recto.tools.client_schema import Schemas
from recto.tools.function import make_tool
from recto.tools.ports import Tool
from recto.tools.registry import Registry
from tests.api.memory_storage import MemoryStorage
from tests.waiting import settle

JSON = {"content-type": "application/json"}
# Whoever sends a request ends it, goes away, or says no more.
End: TypeAlias = Literal["whole", "left", "silent"]
BASE = "http://localhost"
SERVICES = (AgentCatalog, RunService, FileService, ModelCatalog, Operations)
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
    """An application of some routes, its store and storage, and the runs it was told to cancel."""

    app: Api
    store: Store
    hub: Hub
    storage: MemoryStorage
    cancelled: list[str] = field(default_factory=list[str])

    @property
    def backend(self) -> Backend:
        backend: Backend = self.app.state.backend
        return backend

    def change(self, **fields: object) -> None:
        """Replace these fields of the backend and of its services."""
        self.app.state.backend = _change(self.backend, fields)

    async def ask(
        self, method: str, path: str, body: object = None, *, user: str = "ann", headers: Mapping[str, str] = JSON
    ) -> Answer:
        """One request. A body that is no bytes goes as JSON."""
        data = body if isinstance(body, bytes) else dump(body) if body is not None else b""
        route, _, query = path.partition("?")
        target = f"{quote(route)}?{quote(query, safe='=&%+/')}"
        return await self.send(method, target, [data], user=user, headers=headers)

    async def send(
        self,
        method: str,
        target: str,
        pieces: Iterable[bytes] = (),
        *,
        user: str = "ann",
        headers: Mapping[str, str] = JSON,
        end: End = "whole",
    ) -> Answer:
        """One request as it stands on the wire, its body in pieces, and how that ends."""
        route, _, query = target.removeprefix(BASE).partition("?")
        fields = {"host": "localhost", **headers}
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": unquote(route),
            "raw_path": route.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
            "state": {"user": User(name=user)},
        }
        return await self._call(scope, _messages(pieces, end))

    async def _call(self, scope: Scope, waiting: Iterator[Message]) -> Answer:
        messages: list[Message] = []

        async def receive() -> Message:
            # Whoever asks here stays until all is told.
            return next(waiting, None) or await asyncio.get_running_loop().create_future()

        async def send(message: Message) -> None:
            messages.append(message)
            # As a socket does that takes no more for now.
            await settle(1)

        await self.app(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
        return Answer(
            status=messages[0]["status"],
            headers=headers,
            body=b"".join([part.get("body", b"") for part in messages[1:]]),
        )


def _messages(pieces: Iterable[bytes], end: End) -> Iterator[Message]:
    for piece in pieces:
        yield {"type": "http.request", "body": piece, "more_body": True}
    match end:
        case "whole":
            yield {"type": "http.request", "body": b""}
        case "left":
            yield {"type": "http.disconnect"}
        case "silent":
            pass


@asynccontextmanager
async def local_api(folder: Path, routes: Sequence[Route]) -> AsyncGenerator[LocalApi]:
    """An application of these routes over a new store."""
    store = await open_store(f"sqlite:///{folder / 'recto.db'}")
    app = Api(routes)
    api = LocalApi(app=app, store=store, hub=Hub(store.events), storage=MemoryStorage())
    app.state.backend = Backend(
        store=store,
        agents=AgentCatalog(
            by_name={},
            tools={"vibe": Registry([named_tool("ours")])},
            default="vibe",
            chat="vibe",
            unavailable=lambda _agent: (),
        ),
        runs=RunService(
            hub=api.hub,
            admit=_reject_admission,
            cancel=api.cancelled.append,
            preview=_reject_preview,
            streams=OpenStreams(),
            suggestions=Suggestions(),
            schemas=Schemas(),
            bounds=UNBOUNDED,
            state_bytes=WorkSettings.state_bytes,
            has_spans=False,
        ),
        files=FileService(
            attachments=Attachments(api.storage, store.files, FileSettings(), clock=lambda: NOW, new_id=new_id),
            signer=Signer([SigningKey(id="k1", secret=b"a secret of our tests")], lambda: BASE),
            clock=lambda: NOW,
            rules=UploadRules(),
            uploads=ActiveUploads(),
            outbound=_reject_fetch,
            workspaces=None,
            terminal=None,
            snapshots=None,
        ),
        models=ModelCatalog(urls={}, windows={}, prices=load_prices()),
        operations=Operations(
            operators=frozenset({LOCAL}), problem=lambda: None, metrics=lambda: b"", forget_deleted=_forget_nothing
        ),
        gateway=None,
        calls=OpenStreams(),
        bodies=BodyLimits(),
        profile_bytes=WorkSettings.profile_bytes,
        clock=lambda: NOW,
        new_id=new_id,
    )
    try:
        yield api
    finally:
        await store.close()


async def _reject_admission(_admission: Admission) -> AdmissionResult:
    raise RuntimeError("These routes admit nothing.")


async def _reject_preview(_row: StoredRun, _input: RunInput, _refs: Sequence[FileRef]) -> Preview:
    raise RuntimeError("These routes preview nothing.")


def _reject_fetch() -> Outbound:
    raise RuntimeError("These routes fetch nothing.")


async def _forget_nothing() -> int:
    return 0


def named_tool(name: str, **mark: object) -> Tool:
    """Return a tool of this name, with these fields of its mark."""

    def act() -> str:
        """Do nothing."""
        return ""

    tool = make_tool(act)
    return replace(tool, offer=replace(tool.offer, name=name), mark=replace(tool.mark, **mark))


def _change(value: object, fields: Mapping[str, object]) -> object:
    """Return a dataclass with these fields replaced, also in the services that it contains."""
    changes = {
        field.name: fields[field.name] if field.name in fields else _change(getattr(value, field.name), fields)
        for field in dataclass_fields(cast("Backend", value))
        if field.name in fields or isinstance(getattr(value, field.name), SERVICES)
    }
    return replace(cast("Backend", value), **changes) if changes else value


def assert_problem(answer: Answer, status: int, words: str) -> None:
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert words in str(answer.json["detail"])
