"""A server that kills itself with SIGKILL at a named point of a run.

Usage: python -m tests.support.crash_server POINT TIMES PORT DATA [AGENTS]. It dies when a run reaches POINT (`any`
matches every point) for the TIMES-th time.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from recto.app.run_server import serve
from recto.cli.server_settings import load_settings
from recto.worker.runtime import Checkpoint

ANY = "any"


def dies_at(point: str, times: int) -> Callable[[Checkpoint], None]:
    """Return a callback that kills the process at the `times`-th call for this point."""
    count = 0

    def reach(here: Checkpoint) -> None:
        nonlocal count
        count += point in (here, ANY)
        if count == times:
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


def main(arguments: Sequence[str]) -> None:
    """Serve until the point is reached."""
    point, times, port, data, *agents = arguments
    flags = {"port": int(port), "data": Path(data), "agents": Path(agents[0]) if agents else None}
    settings = load_settings(flags, os.environ, None)
    serve(settings, lambda url, _: print(f"listening on {url}", flush=True), checkpoint=dies_at(point, int(times)))


if __name__ == "__main__":
    main(sys.argv[1:])
