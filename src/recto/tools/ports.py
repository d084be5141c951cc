"""What a tool is to the rest: a name, a schema, and something that acts. What it may not decide: how much is shown."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import Protocol, TypeAlias

from recto.config.problem import FileProblem
from recto.conversation.document import Element, Excerpt, Extent, Selection
from recto.conversation.input_files import FileMaps, InputFile
from recto.conversation.json import Json
from recto.conversation.messages import ToolOffer, ToolPart
from recto.conversation.state.json_patch import ValueChange
from recto.page.earlier_results import NotRecalled, Recalled
from recto.page.manifest import Recall
from recto.tools.commands.terminal import Terminal
from recto.tools.mark import Mark
from recto.tools.workspace.workspaces import Workspace

LIMIT_CHARACTERS = 50_000
LIMIT_SECONDS = 120.0


class Document(Protocol):
    """A document that is being read, or was. Its beginning is there before its end.

    Each method waits until what it is asked for is read, and raises FileRefused for a document that cannot be.
    """

    @property
    def extent(self) -> Extent:
        """How much is read by now."""
        ...

    async def characters(self, start: int, count: int) -> Excerpt:
        """The text from a character on: up to `count` of them. From the end on there are none."""
        ...

    async def pages(self, first: int, last: int, start: int = 0, count: int | None = None) -> Excerpt:
        """The text of these pages, slides or sheets, counted from 1. Those it does not have are left out.

        With a `count`, it is up to so many characters of it from the one at `start` on, and no more is waited for.
        """
        ...

    async def elements(self, start: int, count: int) -> Sequence[Element]:
        """What it is made of, as data: up to `count` elements from the one at `start` on, counted from 0 (D9)."""
        ...

    async def page_elements(self, first: int, last: int, start: int, count: int) -> Selection:
        """The same of these pages, whose elements are counted from 0. What stands before the first page is its own."""
        ...

    async def whole(self) -> Extent:
        """How much there is of it, once it is read to its end."""
        ...


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far something is that takes a while: what, how much of it is done, of how much, counted in what.

    Where several things go on at once, each has an `id`. `text` is the newest of what it has to show.
    """

    label: str
    done: int
    total: int | None
    unit: str
    id: str = ""
    text: str = ""


ReportProgress: TypeAlias = Callable[[Progress], None]


def report_nothing(progress: Progress) -> None:
    """For where nobody waits to see how far it is."""


class FilesAtHand(Protocol):
    """The files of a thread, for the tools that work with them."""

    @property
    def maps(self) -> FileMaps:
        """What each file id ever shown in the thread stands for (F7)."""
        ...

    @property
    def turns(self) -> Sequence[Sequence[InputFile]]:
        """The files of each user message in view, oldest first; those of the current turn are the last."""
        ...

    @property
    def max_files(self) -> int:
        """How many documents are read where all of them are asked for (D4)."""
        ...

    async def document(self, file: InputFile) -> Document:
        """A file as a document, read once for all who want it (D3). It raises what `read` raises."""
        ...

    def read(self, file: InputFile) -> AsyncGenerator[bytes]:
        """The bytes of a file, in pieces. One that was deleted raises FileRefused, a storage at fault StorageDown."""
        ...


class ProfileAtHand(Protocol):
    """What is kept of the run's user, for the tools that need it. Only what is asked for is read."""

    async def fields(self, *names: str) -> Mapping[str, Json]:
        """Fields of the profile by name; those that are not there are left out."""
        ...

    async def change(self, field: str, value: Json) -> None:
        """Keep a field, in the place of what it was; None forgets it. One the agent's schema refuses: ToolError."""
        ...

    async def skill_data(self, skill: str) -> Json:
        """What a skill has kept of this user; None: nothing."""
        ...

    async def keep(self, skill: str, data: Json) -> None:
        """Have a skill keep this of the user, in the place of what it has; None forgets it."""
        ...


class StateAtHand(Protocol):
    """The state that the thread shares with its clients. Places are JSON Pointers: `/todo/0/done`; empty is the whole.

    What a tool changes is stored with its result, and clients hear of it then; one that fails changes nothing.
    """

    def get(self, path: str = "") -> Json:
        """What stands at a place, with what this call has changed; None where there is nothing. It is a copy."""
        ...

    def put(self, path: str, value: Json) -> None:
        """Have a value stand at a place; objects on the way are made, `-` is behind the last of a list.

        Raises ToolError for a place that cannot be, and for a state that would be too long.
        """
        ...

    def remove(self, path: str) -> None:
        """Have nothing stand at a place."""
        ...


@dataclass(frozen=True, kw_only=True)
class Activation:
    """What became of a wish for a skill: None is that of having none. `missing` are the paths nothing is known at.

    `collect_tool` asks for them.
    """

    skill: str | None
    scenario: str | None = None
    missing: tuple[str, ...] = ()
    collect_tool: str = ""


class SkillsAtHand(Protocol):
    """The skills of the run's agent."""

    @property
    def names(self) -> Sequence[str]:
        """What they go by, in their order."""
        ...

    async def activate(self, skill: str, scenario: str | None) -> Activation:
        """Look up what the skill needs to know. Raises ToolError for a skill or a scenario there is not."""
        ...

    async def read(self, path: str) -> bytes:
        """A file of the active skill's folder. Raises ToolError for one there is not."""
        ...


class LogAtHand(Protocol):
    """The thread's log as the model knows it: up to the reply that asks."""

    async def recall(self, asked: Recall) -> Recalled | NotRecalled:
        """An earlier result of a tool (X5)."""
        ...


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """What a tool may know of the run it acts for. `props` are the request's forwarded properties.

    `message` is the reply that asks for the `call`; the two name it for good, and are the same when it is run again.

    `profile` is what is kept of its user, `skills` are those of its agent, `tier` is the user's, `locale` the agent's.
    `state` is what the thread shares with its clients, `log` what was said in it.

    `files` are those of the thread, `workspace` is the folder it works in; None where the server keeps none. Of an
    answer longer than `characters` the middle is left out: who cannot have that answers less; what takes longer than
    `seconds` is broken off. `report` says how far it is, to whoever watches the run. `terminal` runs commands; None
    where the server runs none.
    """

    owner: str
    thread: str
    run: str
    call: str
    now: datetime
    message: str = ""
    zone: tzinfo = UTC
    props: Mapping[str, Json] = field(default_factory=dict[str, Json])
    files: FilesAtHand | None = None
    workspace: Workspace | None = None
    characters: int = LIMIT_CHARACTERS
    seconds: float = LIMIT_SECONDS
    terminal: Terminal | None = None
    report: ReportProgress = report_nothing
    profile: ProfileAtHand | None = None
    skills: SkillsAtHand | None = None
    state: StateAtHand | None = None
    log: LogAtHand | None = None
    tier: str = "free"
    locale: str = "en"


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a tool answered. `error` is None when it went well, else the kind of failure; the parts say it in words.

    `activates` changes the skill the thread works in, `changes` the state it shares with its clients, in the write that
    stores the result.
    """

    parts: tuple[ToolPart, ...] = ()
    error: str | None = None
    activates: Activation | None = None
    changes: tuple[ValueChange, ...] = ()


Action: TypeAlias = Callable[[str, ToolContext], Awaitable[ToolResult]]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool an agent has. `act` takes the arguments as the model wrote them and never raises for a bad call.

    `mark` has its flags. `origin` says to people where it is defined, `warnings` what is hardly meant there.
    Without `is_offered` old logs may call it, but it is in no list.
    """

    offer: ToolOffer
    act: Action
    mark: Mark = Mark()
    origin: str = ""
    warnings: tuple[FileProblem, ...] = ()
    is_offered: bool = True

    @property
    def name(self) -> str:
        """What the model calls it by."""
        return self.offer.name
