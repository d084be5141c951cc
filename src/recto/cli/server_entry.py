"""What a command is given that needs a server: how one is served, checked, and its tools elsewhere tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from threading import Event

    import typer

    from recto.cli.elsewhere import TryTools
    from recto.config.settings import ServerSettings

# Called with the url once the server answers, and the token of this machine's own user, if there is one.
Announce: TypeAlias = Callable[[str, str | None], None]


@dataclass(frozen=True, kw_only=True)
class ServerEntry:
    """Serve, or nothing but relay; or say what would be served; or try tools that live elsewhere.

    With an event, it is served in a thread until that is set.
    """

    serve: Callable[[ServerSettings, Announce, Event | None], None]
    relay: Callable[[ServerSettings, Announce], None]
    check: Callable[[ServerSettings], Mapping[str, str]]
    try_tools: TryTools


def tools_tried(context: typer.Context) -> TryTools | None:
    """What tries tools that live elsewhere, of what a command was given."""
    entry: ServerEntry | None = context.obj
    return entry.try_tools if entry else None
