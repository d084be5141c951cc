"""What a tool is to the rest: a name, a schema, and something that acts. What it may not decide: how much is shown."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Protocol, TypeAlias

from recto.page import ToolOffer
from recto.page.canonical import Json
from recto.page.input_files import FileMaps, InputFile
from recto.page.messages import ToolPart

LIMIT_CHARACTERS = 50_000


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

    def read(self, file: InputFile) -> AsyncGenerator[bytes]:
        """The bytes of a file, in pieces. One that was deleted raises FileRefused, a storage at fault StorageDown."""
        ...


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """What a tool may know of the run it acts for. `props` are the request's forwarded properties.

    `files` are those of the thread, `workspace` a folder of its own; None where the server keeps none. Of an answer
    longer than `characters` the middle is left out: who cannot have that answers less.
    """

    owner: str
    thread: str
    run: str
    call: str
    now: datetime
    zone: tzinfo = UTC
    props: Mapping[str, Json] = field(default_factory=dict[str, Json])
    files: FilesAtHand | None = None
    workspace: Path | None = None
    characters: int = LIMIT_CHARACTERS


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What a tool answered. `error` is None when it went well, else the kind of failure; the parts say it in words."""

    parts: tuple[ToolPart, ...] = ()
    error: str | None = None


Action: TypeAlias = Callable[[str, ToolContext], Awaitable[ToolResult]]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool an agent has. `act` takes the arguments as the model wrote them and never raises for a bad call.

    `safe_to_repeat`: acting twice does no harm, so a start that was lost is started again. `confirm`: a person has to
    agree before it acts. `origin` says to people where it is defined. Without `is_offered` old logs may call it, but it
    is in no list. `is_external`: it acts elsewhere, so file ids in its arguments become urls (F8).
    """

    offer: ToolOffer
    act: Action
    safe_to_repeat: bool = False
    confirm: bool = False
    origin: str = ""
    is_offered: bool = True
    is_external: bool = False

    @property
    def name(self) -> str:
        """What the model calls it by."""
        return self.offer.name
