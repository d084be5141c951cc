"""Files in a workspace with the whole output of commands, readable by the file tools.

The server follows no link and keeps each file open, so no command can redirect the output.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress

from recto.errors import ToolError
from recto.tools.workspace import workspace_files

OWN, OUTPUTS = ".recto", "output"
# Hide the files from git.
IGNORE, IGNORED = ".gitignore", b"*\n"
NAME = re.compile(r"(?:job-)?([1-9][0-9]{0,8})\.txt")
TRIES = 100


class WholeOutput:
    """A growing file. It ends early if a write fails."""

    def __init__(self, descriptor: int, path: str) -> None:
        self._descriptor: int | None = descriptor
        self.path = path

    def write(self, text: str) -> None:
        """Append text. If the disk is full, close the file."""
        if self._descriptor is None:
            return
        data = memoryview(text.encode(errors="replace"))
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            self.close()

    def close(self) -> None:
        """Close the file; later writes are dropped."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def new_output(
    workspace: workspace_files.Workspace, prefix: str, *, most: int, used_paths: Collection[str] = ()
) -> WholeOutput:
    """Create a file with the next number. Delete the oldest unused files beyond `most`. May raise ToolError."""
    try:
        with _open_outputs(workspace, make=workspace_files.PRIVATE_FOLDER) as folder, os.scandir(folder) as entries:
            numbers = {entry.name: int(match[1]) for entry in entries if (match := NAME.fullmatch(entry.name))}
            older = sorted((name for name in numbers if path_of(name) not in used_paths), key=numbers.__getitem__)
            for name in older[: max(len(older) - most + 1, 0)]:
                with suppress(OSError):
                    os.unlink(name, dir_fd=folder)
            first = max(numbers.values(), default=0) + 1
            for number in range(first, first + TRIES):
                name = f"{prefix}{number}.txt"
                with suppress(FileExistsError):
                    return WholeOutput(
                        os.open(name, workspace_files.NEW_FILE, workspace_files.PRIVATE_FILE, dir_fd=folder),
                        path_of(name),
                    )
    except OSError as error:
        raise ToolError(f"What a command prints cannot be kept in {OWN}/{OUTPUTS}: {error.strerror}.") from error
    raise ToolError(f"There is no free name in {OWN}/{OUTPUTS}. Delete what is not needed there.")


def path_of(name: str) -> str:
    """Return the path of an output file in its workspace."""
    return f"{OWN}/{OUTPUTS}/{name}"


def end_of_output(workspace: workspace_files.Workspace, name: str, most: int) -> str | None:
    """Return the last bytes of an output as text, or None if there is no such file."""
    # Open without blocking, because a command may have put a pipe in the file's place.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with suppress(OSError, ToolError), _open_outputs(workspace) as folder:
        file = os.open(name, flags, dir_fd=folder)
        try:
            os.lseek(file, max(os.fstat(file).st_size - most, 0), os.SEEK_SET)
            return os.read(file, most).decode(errors="replace")
        finally:
            os.close(file)
    return None


@contextmanager
def _open_outputs(workspace: workspace_files.Workspace, *, make: int | None = None) -> Generator[int]:
    """Open the folder of outputs and add a `.gitignore`. With `make`, create missing folders with that mode."""
    top = workspace_files.open_root(workspace)
    try:
        with (
            workspace_files.open_folder(top, (OWN,), make=make) as own,
            workspace_files.open_folder(own, (OUTPUTS,), make=make) as folder,
        ):
            with suppress(FileExistsError):
                ignore = os.open(IGNORE, workspace_files.NEW_FILE, workspace_files.PRIVATE_FILE, dir_fd=own)
                os.write(ignore, IGNORED)
                os.close(ignore)
            yield folder
    finally:
        os.close(top)
