"""The command `recto`, and `python -m recto`: the command line, with the server behind it."""

from __future__ import annotations

from collections.abc import Callable

from recto.cli.commands import Doors, app
from recto.cli.server_settings import ServerSettings


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 failed, 2 wrong use."""
    app(obj=Doors(serve=_serve))


def _serve(settings: ServerSettings, announce: Callable[[str], None]) -> None:
    from recto.app import serve  # here: commands that need no server do not wait for one to be loaded

    serve(settings, announce)


if __name__ == "__main__":
    main()
