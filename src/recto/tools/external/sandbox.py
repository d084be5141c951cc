"""The sandbox of servers that are started here: bubblewrap with a read-only system and a temporary home of its own.

Where it does not work, nothing is started in its place.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recto.agents.external_tools import McpSettings

TRIAL_SECONDS = 10
HOME = "/home/server"
# Where programs and libraries are. What is secret lies elsewhere.
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")
# What is needed besides, to find hosts and to trust them.
OF_NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl", "/etc/ca-certificates", "/etc/pki")
NO_SANDBOX = (
    "it would run in a sandbox, and bubblewrap does not work here. Install it and allow user namespaces; or say "
    "sandbox: false, and it has all the rights that this server has"
)
NO_PROGRAM = "there is no program {name!r}. Install it, or give its whole path"
NO_FOLDER = "it may use {path}, which is not there. Make it, or take it out"


class CannotStart(Exception):
    """A server that cannot be started here; its text is the reason."""


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """How servers are confined: by the `program`, where there is one, with `scratch_bytes` of their own to write."""

    program: str | None
    scratch_bytes: int

    async def command(self, settings: McpSettings) -> tuple[str, ...]:
        """The whole command of a server, which raises CannotStart where it cannot be had."""
        program = shutil.which(settings.command[0], path=search_path())
        if program is None:
            raise CannotStart(NO_PROGRAM.format(name=settings.command[0]))
        command = (program, *settings.command[1:])
        if not settings.sandbox:
            return command
        missing = [path for path in (*settings.readable, *settings.writable) if not Path(path).exists()]
        if missing:
            raise CannotStart(NO_FOLDER.format(path=missing[0]))
        if self.program is None or not await self._works:
            raise CannotStart(NO_SANDBOX)
        return (*self._prefix(settings), *command)

    @cached_property
    def _works(self) -> asyncio.Future[bool]:
        """Whether it works here, tried once."""
        return asyncio.ensure_future(_succeeds((*self._words(()), "--", sys.executable, "-c", "")))

    def _prefix(self, settings: McpSettings) -> tuple[str, ...]:
        network = ("--share-net",) if settings.network else ()
        readable = (*(OF_NETWORK if settings.network else ()), str(settings.place.folder.resolve()), *settings.readable)
        writable = [word for path in settings.writable for word in ("--bind", path, path)]
        folder = str(settings.place.folder.resolve())
        return (*self._words(readable), *network, *writable, "--chdir", folder, "--")

    def _words(self, readable: Iterable[str]) -> tuple[str, ...]:
        size = ("--size", str(self.scratch_bytes), "--tmpfs")
        return (
            *(str(self.program), "--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL"),
            *("--die-with-parent", "--new-session", "--tmpfs", "/", "--dev", "/dev", "--proc", "/proc"),
            *(*size, "/tmp", *size, HOME, *_bound(readable)),  # noqa: S108 - its own
            *("--remount-ro", "/"),
        )


def environment(settings: McpSettings, given: dict[str, str]) -> dict[str, str]:
    """All that a server sees of an environment: what its settings name, where programs are, and a home of its own."""
    home = {"HOME": HOME, "TMPDIR": "/tmp"} if settings.sandbox else {}  # noqa: S108 - its own
    return {"PATH": search_path(), "LANG": "C.UTF-8", **home, **given}


def search_path() -> str:
    """Where programs are looked for: beside the Python that runs us, and where systems have theirs."""
    return f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"


def _bound(readable: Iterable[str]) -> Iterator[str]:
    wanted = (*SYSTEM, sys.prefix, sys.base_prefix, *readable)
    for path in dict.fromkeys(one for one in wanted if Path(one).exists()):
        yield from ("--ro-bind", path, path)


async def _succeeds(command: Sequence[str]) -> bool:
    nothing = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(*command, stdin=nothing, stdout=nothing, stderr=nothing)
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
