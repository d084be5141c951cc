"""Entry points of the server, passed to the commands by the composition root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from threading import Event

    import typer

    from recto.cli.external_tools import TryTools
    from recto.config.settings import ServerSettings

# Called with the URL once the server answers, and the local token if there is one.
Announce: TypeAlias = Callable[[str, str | None], None]


@dataclass(frozen=True, kw_only=True)
class ServerEntry:
    """Functions to serve, relay, check settings and try external tools.

    With an event, `serve` runs in a thread until the event is set.
    """

    serve: Callable[[ServerSettings, Announce, Event | None], None]
    relay: Callable[[ServerSettings, Announce], None]
    check: Callable[[ServerSettings], Mapping[str, str]]
    try_tools: TryTools


def tool_probe(context: typer.Context) -> TryTools | None:
    """Return the function that tries external tools, if the command has one."""
    entry: ServerEntry | None = context.obj
    return entry.try_tools if entry else None
