"""Recto's command under cProfile, each thread by itself. At its end it prints where the time went."""

from __future__ import annotations

import cProfile
import pstats
import sys
import threading
from pathlib import Path

from recto.__main__ import main

TOP = 40
HERE = Path(__file__).parent.parent


def profiled() -> None:
    """Run until interrupted, then print. Threads that stand for the same thing are added up."""
    by_name: dict[str, list[cProfile.Profile]] = {}
    run = threading.Thread.run

    def run_profiled(self: threading.Thread) -> None:
        profile = cProfile.Profile()
        by_name.setdefault(self.name.partition("_")[0], []).append(profile)
        profile.runcall(run, self)

    threading.Thread.run = run_profiled
    main_profile = cProfile.Profile()
    by_name["main"] = [main_profile]
    try:
        main_profile.runcall(main)
    except (KeyboardInterrupt, SystemExit):
        sys.stdout.write("\n")
    for name, profiles in by_name.items():
        _print(name, profiles)


def _print(name: str, profiles: list[cProfile.Profile]) -> None:
    stats = pstats.Stats(profiles[0])
    for profile in profiles[1:]:
        stats.add(profile)
    for order in ("tottime", "cumulative"):
        print(f"== thread {name}, by {order}")
        stats.sort_stats(order).print_stats(TOP)


if __name__ == "__main__":
    profiled()
