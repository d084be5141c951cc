"""Entry point of `recto` and `python -m recto`: the command line with the server behind it."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from recto.cli.main import command_in, make_app

if TYPE_CHECKING:
    from threading import Event

    from recto.agents.agent import Agent
    from recto.cli.server_entry import Announce, ServerEntry
    from recto.config.settings import ServerSettings
    from recto.tools.external.services import ToolSource
    from recto.tools.registry import Registry

# Allocations between garbage collections.
GARBAGE_OBJECTS = 50_000

# Commands without a server do not import the composition root.


def main() -> None:
    """Run the command line. Exit codes: 0 success, 1 failure, 2 usage error."""
    command = command_in(sys.argv[1:])
    # Importing modules creates almost no garbage.
    gc.disable()
    app = make_app(command)
    # Most objects of a command live until its end.
    gc.set_threshold(GARBAGE_OBJECTS)
    gc.enable()
    # Skip the final collection; the process frees everything.
    atexit.register(gc.freeze)
    app(obj=_entry() if command in ("serve", "gateway", "agents", "chat") else None)


def _entry() -> ServerEntry:
    from recto.cli.server_entry import ServerEntry

    return ServerEntry(serve=_serve, relay=_relay, check=_check, try_tools=_try_tools)


def _serve(settings: ServerSettings, announce: Announce, stop: Event | None) -> None:
    # See `main`; the server enables collection once it is ready.
    gc.disable()
    from recto.app.run_server import serve

    serve(settings, announce, stop)


def _relay(settings: ServerSettings, announce: Announce) -> None:
    gc.disable()
    from recto.app.run_server import serve

    serve(settings, announce, gateway_only=True)


def _try_tools(
    settings: ServerSettings, agents: Mapping[str, Agent], own: Mapping[str, Registry]
) -> Mapping[str, Sequence[ToolSource]]:
    from recto.app.file_services import try_tools

    return try_tools(settings, agents, own)


def _check(settings: ServerSettings) -> Mapping[str, str]:
    from recto.app.check_server import check

    return check(settings)


if __name__ == "__main__":
    main()
