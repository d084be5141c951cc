"""A real server that ends itself as `kill -9` would, at a named point of a run. Nothing else about it is different.

Usage: python -m recto.testing.crashing POINT TIMES PORT DATA [AGENTS]. It dies when a run reaches POINT (`any` is
every point) for the TIMES-th time.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from recto.app.run_server import serve
from recto.cli.server_settings import load_settings
from recto.worker.runtime import Point

ANY = "any"


def dies_at(point: str, times: int) -> Callable[[Point], None]:
    """Called at every point; the last call is the one to die at."""
    seen = 0

    def reached(here: Point) -> None:
        nonlocal seen
        seen += point in (here, ANY)
        if seen == times:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


def main(arguments: Sequence[str]) -> None:
    """Serve until the point is reached."""
    point, times, port, data, *agents = arguments
    flags = {"port": int(port), "data": Path(data), "agents": Path(agents[0]) if agents else None}
    settings = load_settings(flags, os.environ, None)
    serve(settings, lambda url, _: print(f"listening on {url}", flush=True), reached=dies_at(point, int(times)))  # noqa: T201 - its url is what the test waits for


if __name__ == "__main__":
    main(sys.argv[1:])
