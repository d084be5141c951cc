"""Who asks, what became of their credential, and what the routes lead to. Nothing here decides."""

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
from recto.store.ports import Admission, Admitted, StoredRun
from recto.tools.client_schema import Schemas
from recto.tools.commands.terminal import Terminal
from recto.tools.mark import ProfileCheck
from recto.tools.workspace.snapshots import Snapshots
from recto.tools.workspace.workspaces import Workspaces

if TYPE_CHECKING:
    from recto.files.fetch.outbound import Outbound
    from recto.store.store import Store
    from recto.worker.gateway.relay import Gateway

# Whoever comes with the token of a server on this machine.
LOCAL = "local"
NAME_LENGTH = 255


@dataclass(frozen=True, kw_only=True)
class User:
    """Who asks. One that may not write may only look at what is theirs.

    A caller of the gateway is known by a provider's key alone (X3), and goes by its hash.
    """

    name: str
    can_write: bool = True
    is_caller: bool = False


@dataclass(frozen=True, kw_only=True)
class Denied:
    """A credential that opens nothing: `reason` is for the audit log, `told` for whoever sent it. It is in neither."""

    reason: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Delayed:
    """Whether a credential is good cannot be found out at present; ask again in `retry` seconds."""

    detail: str
    retry: float


AuthResult: TypeAlias = User | Denied | Delayed


def is_name(text: str) -> bool:
    """Whether a user may be called that. What cannot be printed could make two names look like one."""
    return 0 < len(text) <= NAME_LENGTH and text.isprintable() and text == text.strip()


async def forget_nothing() -> int:
    """For where nothing is kept in memory."""
    return 0


async def no_preview(_row: StoredRun, _asked: RunInput, _refs: Sequence[FileRef]) -> Preview:
    """For where no pages are set."""
    raise Conflict("This server sets no pages, so it has no previews.")


def usual_outbound() -> Outbound:
    """What fetches files from public addresses only."""
    from recto.files.fetch.outbound import Outbound  # here: few servers ever fetch one, and its client is large

    return Outbound()


def none_unavailable(_agent: str) -> tuple[str, ...]:
    """For where no tools live elsewhere."""
    return ()


@dataclass(frozen=True, kw_only=True)
class Backend:
    """What the routes lead to. `cancel` tells a run at work here that it is to end, `problem` why none is begun.

    `forget_gone` has nothing left in memory of who was deleted.

    `agent` is the one a thread gets that names none, `chat_agent` the one it gets on `/chat`; `tool_names` are those of
    each agent's own tools, `offered` those its models are offered, also where a client may answer for them, `forms`
    what these take, `confirmed` those a person has to agree to, with their schemas, `profile_checks` what they have to
    say of a profile that a client changes. `operators` are the users who may look at how the whole server does.
    `uploading` counts the uploads at work in this process, `streams` the readers of events; `outbound` gives what
    fetches files of other addresses; `schemas` judges the tools of requests; `profile_bytes` is how much may be kept of
    a user, `state_bytes` how long the state of a thread may be; `suggestions` asks models what users could say next.
    Large bodies that come at once wait for `body_turns`, so that others get theirs in between. `model_urls` are the
    addresses of models, by their names, `windows` the tokens they take, `prices` what these cost. `preview` sets the
    page of a run that is not stored. `has_spans`: those of runs are recorded, below that of whoever asked for one.
    `unavailable_tools` names the places elsewhere whose tools an agent cannot use at present.
    `snapshots` has the files of workspaces as they were. `gateway` relays requests of other agents, and `calls` counts
    them.
    """

    store: Store
    hub: Hub
    files: Attachments
    signer: Signer
    agent: str
    chat_agent: str
    agents: Mapping[str, Agent]
    admit: Callable[[Admission], Awaitable[Admitted]]
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
    """The backend of the application that got a request."""
    backend: Backend = request.app.state.backend
    return backend


def user_of(request: Request) -> User:
    """Who sent a request. Whoever comes this far was let in by name."""
    user: User = request.state.user
    return user


def is_operator(request: Request) -> bool:
    """Whether a request comes from somebody who may look at how the whole server does."""
    return user_of(request).name in backend_of(request).operators


def agent_named(backend: Backend, name: str, where: str) -> Agent:
    """An agent by the name that a request has for it in a field."""
    if name not in backend.agents:
        raise WireError(where=where, problem=f"there is no agent {name[:64]!r}; known: {', '.join(backend.agents)}")
    return backend.agents[name]


def json_answer(value: Mapping[str, object], status: int = 200) -> Response:
    """A value as the body of an answer."""
    return Response(dump(value), status, media_type="application/json")
