"""Bubblewrap sandbox of MCP servers: a read-only system and a temporary home. No server starts without it."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from recto.agents.external_tools import McpSettings
from recto.sandbox.bubblewrap import NETWORK_FILES, isolation_words, readable_words, succeeds

HOME = "/home/server"
NO_SANDBOX = (
    "it would run in a sandbox, and bubblewrap does not work here. Install it and allow user namespaces; or say "
    "sandbox: false, and it has all the rights that this server has"
)
NO_PROGRAM = "there is no program {name!r}. Install it, or give its whole path"
NO_FOLDER = "it may use {path}, which is not there. Make it, or take it out"


class CannotStart(Exception):
    """A server that cannot be started here; the text is the reason."""


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """The confinement of MCP servers: bubblewrap's `program`, if any, and `scratch_bytes` of writable space."""

    program: str | None
    scratch_bytes: int

    async def command(self, settings: McpSettings) -> tuple[str, ...]:
        """Return the whole command of a server. Raises CannotStart if it cannot be built."""
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
        network = ("--share-net",) if settings.network else ()
        folder = str(settings.place.folder.resolve())
        read = (*(NETWORK_FILES if settings.network else ()), folder, *settings.readable)
        writable = [word for path in settings.writable for word in ("--bind", path, path)]
        return (*(*self._words(read), *network, *writable, "--chdir", folder, "--"), *command)

    @cached_property
    def _works(self) -> asyncio.Future[bool]:
        """The cached result of one trial run."""
        trial = (*self._words(()), "--", sys.executable, "-c", "")
        return asyncio.ensure_future(asyncio.to_thread(succeeds, trial))

    def _words(self, read: Iterable[str]) -> tuple[str, ...]:
        size = ("--size", str(self.scratch_bytes), "--tmpfs")
        scratch = (*size, "/tmp", *size, HOME)  # noqa: S108 - its own
        return (*isolation_words(str(self.program)), *scratch, *readable_words(read), "--remount-ro", "/")


def environment(settings: McpSettings, values: dict[str, str]) -> dict[str, str]:
    """Return the environment of a server: configured values, a search path, and a home."""
    home = {"HOME": HOME, "TMPDIR": "/tmp"} if settings.sandbox else {}  # noqa: S108 - its own
    return {"PATH": search_path(), "LANG": "C.UTF-8", **home, **values}


def search_path() -> str:
    """Return the search path for programs: the folder of our Python, then the system's."""
    return f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
