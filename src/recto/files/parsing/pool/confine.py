"""A sandbox around children, by bubblewrap where it works: no network, nothing to write, little to read. No must."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from recto.sandbox.bubblewrap import isolated, program_path, readable, succeeds

# Where the child is: a folder of its own, in which nothing is. Python itself may be in the system's temporary one.
SCRATCH = "/scratch"
# A package beside the parsers and one of ours: whoever finds these finds all, and they are quick to load.
TRIAL = (sys.executable, "-P", "-c", "import orjson, recto.errors")


async def confinement(program: str) -> tuple[str, ...]:
    """The words before a command that confine it, after trying them out; none where there is no such program."""
    path = program_path(program) if program else None
    if path is None:
        return ()
    prefix = prefix_of(path)
    return prefix if await asyncio.to_thread(succeeds, (*prefix, *TRIAL)) else ()


def prefix_of(path: str) -> tuple[str, ...]:
    """How bubblewrap is asked for a sandbox in which Python, its packages and this one run."""
    package = str(Path(__file__).parents[4])
    return (
        *(*isolated(path), "--tmpfs", "/tmp"),  # noqa: S108 - its own
        *readable((package, os.environ.get("TESSDATA_PREFIX", ""))),
        *("--tmpfs", SCRATCH, "--remount-ro", "/", "--chdir", SCRATCH),
        *("--setenv", "HOME", SCRATCH, "--setenv", "TMPDIR", SCRATCH),
        "--",
    )


def in_words(prefix: Sequence[str]) -> str:
    """What is logged for operators."""
    if prefix:
        return f"Documents are parsed in a sandbox ({prefix[0]}): no network, and no files but those of Python."
    return (
        "Documents are parsed in child processes with limits on time and memory, without a sandbox. "
        "Install bubblewrap and allow user namespaces to have one."
    )
