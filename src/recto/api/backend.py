"""Users, authentication results, and the backend that the routes call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from recto.agents.agent import Agent
from recto.api.copilotkit.suggestions import Suggestions
from recto.api.files.uploads import UnderWay
from recto.api.runs.streams import OpenStreams
from recto.config.access_settings import BodyLimits
from recto.config.file_settings import UploadRules
from recto.config.run_settings import UNBOUNDED, Bounds, WorkSettings
from recto.conversation.attachment import FileRef
from recto.conversation.input.run_input import RunInput
from recto.conversation.json import dump
from recto.conversation.messages import ToolOffer
from recto.engine.hub import Hub
from recto.engine.ports import Preview, Previewer
from recto.errors import Conflict, WireError
from recto.files.attachments import Attachments
from recto.files.urls.signing import Signer
from recto.models.prices import Prices, load_prices
from recto.store.ports import Admission, AdmissionResult, StoredRun
from recto.tools.client_schema import Schemas
from recto.tools.commands.terminal import Terminal
from recto.tools.mark import ProfileCheck
from recto.tools.workspace.snapshots import Snapshots
from recto.tools.workspace.workspaces import Workspaces

if TYPE_CHECKING:
    from recto.files.fetch.outbound import Outbound
    from recto.store.store import Store
    from recto.worker.gateway.relay import Gateway

# Name of the user with the server's local token.
LOCAL = "local"
NAME_LENGTH = 255


@dataclass(frozen=True, kw_only=True)
class User:
    """The user of a request. Callers of the gateway are known by the hash of a provider key alone (X3)."""

    name: str
    can_write: bool = True
    is_caller: bool = False


@dataclass(frozen=True, kw_only=True)
class Denied:
    """A rejected credential. `reason` is logged, `detail` is sent to the client; neither contains the credential."""

    reason: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Delayed:
    """A credential that cannot be verified at present. The client may retry after `retry` seconds."""

    detail: str
    retry: float


AuthResult: TypeAlias = User | Denied | Delayed


def is_name(text: str) -> bool:
    """Return True if the text is a valid user name. Unprintable characters could make two names look alike."""
    return 0 < len(text) <= NAME_LENGTH and text.isprintable() and text == text.strip()


async def forget_nothing() -> int:
    """Do nothing, for servers without caches."""
    return 0


async def no_preview(_row: StoredRun, _asked: RunInput, _refs: Sequence[FileRef]) -> Preview:
    """Raise Conflict, for servers without pages."""
    raise Conflict("This server sets no pages, so it has no previews.")


def usual_outbound() -> Outbound:
    """Return a client that fetches files from public addresses only."""
    from recto.files.fetch.outbound import Outbound  # here: few servers ever fetch one, and its client is large

    return Outbound()


def none_unavailable(_agent: str) -> tuple[str, ...]:
    """Return no tools, for servers without external tools."""
    return ()


@dataclass(frozen=True, kw_only=True)
class Backend:
    """Everything the routes call.

    `admit` stores a run, `cancel` ends an active run of this process, `problem` explains why no runs start,
    `forget_gone` clears caches after a deletion. `agent` is the default agent, `chat_agent` that of `/chat`.

    By agent: `tool_names` are its own tools; `offered` all tools its models see, including those a client may answer;
    `forms` the parameters of the latter; `confirmed` the tools that need approval, with their schemas; `profile_checks`
    validate a profile; `unavailable_tools` lists unreachable tool servers.

    `body_turns` serialises large bodies, so that other requests get time in between. `model_urls`, `windows` (tokens)
    and `prices` describe the models. `has_spans` is true if runs are traced.
    """

    store: Store
    hub: Hub
    files: Attachments
    signer: Signer
    agent: str
    chat_agent: str
    agents: Mapping[str, Agent]
    admit: Callable[[Admission], Awaitable[AdmissionResult]]
    cancel: Callable[[str], None]
    problem: Callable[[], str | None]
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    metrics: Callable[[], bytes]
    forget_gone: Callable[[], Awaitable[int]] = forget_nothing
    bounds: Bounds = UNBOUNDED
    operators: frozenset[str] = frozenset({LOCAL})
    workspaces: Workspaces | None = None
    terminal: Terminal | None = None
    snapshots: Snapshots | None = None
    tool_names: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    offered: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    forms: Mapping[str, tuple[ToolOffer, ...]] = field(default_factory=dict[str, tuple[ToolOffer, ...]])
    confirmed: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    profile_checks: Mapping[str, tuple[ProfileCheck, ...]] = field(default_factory=dict[str, tuple[ProfileCheck, ...]])
    bodies: BodyLimits = BodyLimits()
    body_turns: asyncio.Lock = field(default_factory=asyncio.Lock)
    uploads: UploadRules = UploadRules()
    uploading: UnderWay = field(default_factory=UnderWay)
    streams: OpenStreams = field(default_factory=OpenStreams)
    outbound: Callable[[], Outbound] = field(default_factory=lambda: cache(usual_outbound))
    schemas: Schemas = field(default_factory=Schemas)
    profile_bytes: int = WorkSettings.profile_bytes
    state_bytes: int = WorkSettings.state_bytes
    suggestions: Suggestions = field(default_factory=Suggestions)
    model_urls: Mapping[str, str] = field(default_factory=dict[str, str])
    windows: Mapping[str, int] = field(default_factory=dict[str, int])
    prices: Prices = field(default_factory=load_prices)
    preview: Previewer = no_preview
    has_spans: bool = False
    gateway: Gateway | None = None
    calls: OpenStreams = field(default_factory=OpenStreams)
    unavailable_tools: Callable[[str], tuple[str, ...]] = none_unavailable


def backend_of(request: HTTPConnection) -> Backend:
    """Return the backend of a request's application."""
    backend: Backend = request.app.state.backend
    return backend


def user_of(request: Request) -> User:
    """Return the user that the gate admitted."""
    user: User = request.state.user
    return user


def is_operator(request: Request) -> bool:
    """Return True if the caller may read server-wide metrics."""
    return user_of(request).name in backend_of(request).operators


def agent_named(backend: Backend, name: str, where: str) -> Agent:
    """Return the agent that a request names in the field `where`."""
    if name not in backend.agents:
        raise WireError(where=where, problem=f"there is no agent {name[:64]!r}; known: {', '.join(backend.agents)}")
    return backend.agents[name]


def json_answer(value: Mapping[str, object], status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(dump(value), status, media_type="application/json")
