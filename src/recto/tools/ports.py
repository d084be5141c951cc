"""The tool interface for other packages: name, schema, action, and the context of a call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Protocol, TypeAlias

from recto.config.problem import FileProblem
from recto.conversation.document import Element, Excerpt, Extent, Selection
from recto.conversation.json import Json
from recto.conversation.message_files import FileMaps, InputFile
from recto.conversation.messages import ToolOffer, ToolPart
from recto.conversation.thread_state import ValueChange
from recto.page.earlier_results import NotRecalled, Recalled
from recto.page.manifest import Recall
from recto.tools.commands.terminal import Terminal
from recto.tools.mark import Mark
from recto.tools.workspace.workspaces import Workspace

LIMIT_CHARACTERS = 50_000
LIMIT_SECONDS = 120.0


class Document(Protocol):
    """A document that is parsed in the background; its beginning is available before its end.

    Each method waits until the requested part is parsed. It raises FileRefused for a document that cannot be read.
    """

    @property
    def extent(self) -> Extent:
        """The extent parsed so far."""
        ...

    async def characters(self, start: int, count: int) -> Excerpt:
        """Return up to `count` characters from `start` on; none past the end."""
        ...

    async def pages(self, first: int, last: int, start: int = 0, count: int | None = None) -> Excerpt:
        """Return the text of these pages, slides or sheets, counted from 1. Pages that do not exist are left out.

        With `count`, return up to `count` characters from `start` on, and wait only for those.
        """
        ...

    async def elements(self, start: int, count: int) -> Sequence[Element]:
        """Return up to `count` elements from `start` on, counted from 0 (D9)."""
        ...

    async def page_elements(self, first: int, last: int, start: int, count: int) -> Selection:
        """Return up to `count` elements of these pages from `start` on, counted from 0. Elements before the first page
        belong to it.
        """
        ...

    async def whole(self) -> Extent:
        """Wait for the end of the document and return its extent."""
        ...


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of a long task. `id` tells parallel tasks apart; `text` is the newest output."""

    label: str
    done: int
    total: int | None
    unit: str
    id: str = ""
    text: str = ""


ReportProgress: TypeAlias = Callable[[Progress], None]


def discard_progress(progress: Progress) -> None:
    """Discard the progress."""


class ToolFiles(Protocol):
    """The files of a thread."""

    @property
    def maps(self) -> FileMaps:
        """The file of each id that was ever shown in the thread (F7)."""
        ...

    @property
    def turns(self) -> Sequence[Sequence[InputFile]]:
        """The files of each visible user message, oldest first; the current turn's are last."""
        ...

    @property
    def max_files(self) -> int:
        """The most documents to read when all are requested (D4)."""
        ...

    async def document(self, file: InputFile) -> Document:
        """Open a file as a document that all callers share (D3). Raise the same errors as `read`."""
        ...

    def read(self, file: InputFile) -> AsyncGenerator[bytes]:
        """Stream the bytes of a file. Raises FileRefused if it was deleted, StorageDown if the storage fails."""
        ...


class ToolProfile(Protocol):
    """The stored profile of the run's user. Only requested fields are read."""

    async def fields(self, *names: str) -> Mapping[str, Json]:
        """Return the profile fields of these names that exist."""
        ...

    async def change(self, field: str, value: Json) -> None:
        """Store a field, or delete it with None. Raises ToolError for a value that the agent's schema rejects."""
        ...

    async def skill_data(self, skill: str) -> Json:
        """Return the data that a skill stores for this user, or None."""
        ...

    async def keep(self, skill: str, data: Json) -> None:
        """Replace the data that a skill stores for this user, or delete it with None."""
        ...


class ToolState(Protocol):
    """The state that the thread shares with its clients. Paths are JSON Pointers: `/todo/0/done`; empty is the whole.

    A tool's changes are stored and sent to clients together with its result. A failed tool changes nothing.
    """

    def get(self, path: str = "") -> Json:
        """Return a copy of the value at a path, with this call's changes applied, or None."""
        ...

    def put(self, path: str, value: Json) -> None:
        """Set the value at a path. Missing parent objects are created; `-` appends to a list.

        Raise ToolError for an invalid path, and if the state would be too long.
        """
        ...

    def remove(self, path: str) -> None:
        """Delete the value at a path."""
        ...


@dataclass(frozen=True, kw_only=True)
class Activation:
    """The activation of a skill; `skill` None deactivates it. The tool `collect_tool` asks for the values at the paths
    in `missing`.
    """

    skill: str | None
    scenario: str | None = None
    missing: tuple[str, ...] = ()
    collect_tool: str = ""


class ToolSkills(Protocol):
    """The skills of the run's agent."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the skills, in order."""
        ...

    async def activate(self, skill: str, scenario: str | None) -> Activation:
        """Activate a skill and return the activation with its missing values. Raise ToolError for an unknown skill or
        scenario.
        """
        ...

    async def read(self, path: str) -> bytes:
        """Return a file of the active skill's folder. Raises ToolError if it does not exist."""
        ...


class ToolLog(Protocol):
    """The thread's log up to the reply that contains the call."""

    async def recall(self, query: Recall) -> Recalled | NotRecalled:
        """Return an earlier result of a tool (X5)."""
        ...


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """The context of a tool call: its run and the services that the tool may use.

    - `message` is the reply that contains the `call`. Together they identify the call, even if it runs again.
    - `props` are the request's forwarded properties.
    - `profile` and `tier` are the user's; `skills` and `locale` are the agent's.
    - `state` is shared with the thread's clients; `log` is the thread's log; `files` are the thread's files.
    - `workspace` is the thread's folder, and `terminal` runs commands in it; None if the server has none.
    - `characters` limits the result: a longer one loses its middle. `seconds` limits the call: a longer one is
      cancelled.
    - `report` sends progress to the subscribers of the run.
    """

    owner: str
    thread: str
    run: str
    call: str
    now: datetime
    message: str = ""
    zone: tzinfo = UTC
    props: Mapping[str, Json] = field(default_factory=dict[str, Json])
    files: ToolFiles | None = None
    workspace: Workspace | None = None
    characters: int = LIMIT_CHARACTERS
    seconds: float = LIMIT_SECONDS
    terminal: Terminal | None = None
    report: ReportProgress = discard_progress
    profile: ToolProfile | None = None
    skills: ToolSkills | None = None
    state: ToolState | None = None
    log: ToolLog | None = None
    tier: str = "free"
    locale: str = "en"


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """The result of a tool. `error` is the kind of failure, or None; the parts describe it.

    The write that stores the result also activates the skill of `activates` and applies `changes` to the shared state.
    """

    parts: tuple[ToolPart, ...] = ()
    error: str | None = None
    activates: Activation | None = None
    changes: tuple[ValueChange, ...] = ()


Action: TypeAlias = Callable[[str, ToolContext], Awaitable[ToolResult]]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool of an agent. `act` receives the arguments as the model wrote them and never raises for a bad call.

    `origin` is the place of the tool's definition, for people; `warnings` are likely mistakes in it. A tool with
    `is_offered` False is in no list, but calls in old logs still work.
    """

    offer: ToolOffer
    act: Action
    mark: Mark = Mark()
    origin: str = ""
    warnings: tuple[FileProblem, ...] = ()
    is_offered: bool = True

    @property
    def name(self) -> str:
        """The name that the model calls."""
        return self.offer.name
