"""Users, authentication results, and the services that the routes call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from starlette.requests import HTTPConnection, Request

from recto.agents.agent import Agent
from recto.api.copilotkit.suggestions import Suggestions
from recto.api.files.uploads import ActiveUploads
from recto.api.runs.streams import OpenStreams
from recto.config.access_settings import BodyLimits
from recto.config.file_settings import UploadRules
from recto.config.run_settings import Bounds
from recto.conversation.history import FileUrlSigner
from recto.conversation.locale import DEFAULT_LOCALE
from recto.conversation.message_files import FileRef
from recto.conversation.messages import File, Key
from recto.engine.hub import Hub
from recto.engine.ports import Previewer
from recto.errors import WireError
from recto.files.attachments import Attachments
from recto.files.signing import Signer
from recto.models.prices import Prices
from recto.store.ports import Admission, AdmissionResult
from recto.tools.client_schema import Schemas
from recto.tools.commands.terminal import Terminal
from recto.tools.registry import Registry
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
    """The user of a request. A gateway caller (`is_caller`) is known only by the hash of a provider key (X3)."""

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


@dataclass(frozen=True, kw_only=True)
class AgentCatalog:
    """The agents by name, with their current tools. `default` answers requests that name no agent, `chat` on `/chat`.

    `unavailable` returns the unreachable external tool servers of an agent.
    """

    by_name: Mapping[str, Agent]
    tools: Mapping[str, Registry]
    default: str
    chat: str
    unavailable: Callable[[str], tuple[str, ...]]

    def require(self, name: str, field: str) -> Agent:
        """Return the agent that a request names in this field."""
        if name not in self.by_name:
            names = ", ".join(self.by_name)
            raise WireError(where=field, problem=f"there is no agent {name[:64]!r}; known: {names}")
        return self.by_name[name]

    def locale(self, name: str | None) -> str:
        """Return the language of an agent, or the default language if the agent no longer exists."""
        agent = self.by_name.get(name or "")
        return agent.locale if agent else DEFAULT_LOCALE

    def tools_of(self, name: str | None) -> Registry:
        """Return the current tools of an agent, or none if the agent no longer exists."""
        return self.tools.get(name or "", Registry())


@dataclass(frozen=True, kw_only=True)
class RunService:
    """Admission, cancellation and event streams of runs.

    `admit` stores a run, `cancel` ends an active run of this process. `has_spans` is true if runs are traced.
    """

    hub: Hub
    admit: Callable[[Admission], Awaitable[AdmissionResult]]
    cancel: Callable[[str], None]
    preview: Previewer
    streams: OpenStreams
    suggestions: Suggestions
    schemas: Schemas
    bounds: Bounds
    state_bytes: int
    has_spans: bool


@dataclass(frozen=True, kw_only=True)
class FileService:
    """Attachments and their signed URLs, uploads in progress, and the workspaces of threads."""

    attachments: Attachments
    signer: Signer
    clock: Callable[[], datetime]
    rules: UploadRules
    uploads: ActiveUploads
    outbound: Callable[[], Outbound]
    workspaces: Workspaces | None
    terminal: Terminal | None
    snapshots: Snapshots | None

    def url(self, attachment: str, name: str) -> str:
        """Return a signed URL of an attachment. URLs are signed when they are sent, never stored."""
        return self.signer.url(attachment, name, self.clock() + timedelta(seconds=self.rules.url_seconds))

    def urls(self, refs: Iterable[FileRef]) -> FileUrlSigner:
        """Return a signer of the file URLs of a thread. The signer returns None for a deleted file."""
        attachments = {ref.attachment for ref in refs if ref.is_there}

        def url_of(file: File) -> str | None:
            key = file.source.key if isinstance(file.source, Key) else ""
            return self.url(key, file.name or file.kind) if key in attachments else None

        return url_of


@dataclass(frozen=True, kw_only=True)
class ModelCatalog:
    """Base URLs, windows (in tokens) and prices of the models, by name."""

    urls: Mapping[str, str]
    windows: Mapping[str, int]
    prices: Prices


@dataclass(frozen=True, kw_only=True)
class Operations:
    """Operation of the whole server, for its operators.

    `problem` returns the reason why no runs start, or None. `forget_deleted` clears caches after a deletion.
    """

    operators: frozenset[str]
    problem: Callable[[], str | None]
    metrics: Callable[[], bytes]
    forget_deleted: Callable[[], Awaitable[int]]


@dataclass(frozen=True, kw_only=True)
class Backend:
    """The services of all routes. Each route takes only the services it uses.

    `body_turns` admits large bodies one at a time, so that other requests run in between. `calls` limits the
    concurrent requests through the `gateway`.
    """

    store: Store
    agents: AgentCatalog
    runs: RunService
    files: FileService
    models: ModelCatalog
    operations: Operations
    gateway: Gateway | None
    calls: OpenStreams
    bodies: BodyLimits
    profile_bytes: int
    clock: Callable[[], datetime]
    new_id: Callable[[], str]
    body_turns: asyncio.Lock = field(default_factory=asyncio.Lock)


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
    return user_of(request).name in backend_of(request).operations.operators
