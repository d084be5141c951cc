"""What a tool is to the rest: a name, a schema, and something that acts. What it may not decide: how much is shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from typing import TypeAlias

from recto.page import ToolOffer
from recto.page.canonical import Json
from recto.page.messages import ToolPart


@dataclass(frozen=True, kw_only=True)
class ToolContext:
    """What a tool may know of the run it acts for. `props` are the request's forwarded properties."""

    owner: str
    thread: str
    run: str
    call: str
    now: datetime
    zone: tzinfo = UTC
    props: Mapping[str, Json] = field(default_factory=dict[str, Json])


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
    agree before it acts. `origin` says to people where it is defined.
    """

    offer: ToolOffer
    act: Action
    safe_to_repeat: bool = False
    confirm: bool = False
    origin: str = ""

    @property
    def name(self) -> str:
        """What the model calls it by."""
        return self.offer.name
