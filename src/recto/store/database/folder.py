"""The data folder: its lock, the name of this node, and the address of the process that uses the folder."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from recto.errors import SettingsError
from recto.ids import new_id

LOGGER = logging.getLogger("recto.store")
PRIVATE_FOLDER, PRIVATE_FILE, OTHERS_MASK = 0o700, 0o600, 0o077
# SQLite creates two more files beside an open database, with the permissions of the database.
SUFFIXES = ("", "-wal", "-shm")
# The folder may be inside a project. The pattern is not `*`, because tools in a workspace below the folder would then
# ignore the files of that workspace.
GITIGNORE = "/*\n"
# `address` holds the URL of the process. A killed process leaves the file behind, so its URL is valid only while the
# lock is held.
ADDRESS, LOCK = "address", "lock"
# Time to wait for the lock, because a process that checks the lock holds it for a moment.
LOCK_TIMEOUT_SECONDS, LOCK_POLL_SECONDS = 0.2, 0.02


class DataFolder:
    """A data folder that this process locks until `close`. Reject a folder that another process has locked."""

    def __init__(self, path: Path) -> None:
        from filelock import FileLock, Timeout  # here: commands that only read a folder need no lock

        self.path = path
        try:
            make_folder(path)
            # Allow any thread to release the lock.
            self._lock = FileLock(path / LOCK, thread_local=False)
            self._lock.acquire(LOCK_TIMEOUT_SECONDS, poll_interval=LOCK_POLL_SECONDS)
            # Delete the address that a killed process left, because another program may use that address now.
            (path / ADDRESS).unlink(missing_ok=True)
        except Timeout:
            allowed = "another Recto is using it. Stop that one, or name another folder with --data"
            raise SettingsError(name="data", value=str(path), allowed=allowed) from None
        except OSError as error:
            allowed = f"it cannot be used ({error.strerror}). Name another folder with --data"
            raise SettingsError(name="data", value=str(path), allowed=allowed) from error

    @property
    def database_url(self) -> str:
        """The default URL of the database."""
        return f"sqlite:///{self.path / 'recto.db'}"

    def node(self) -> str:
        """Return the name of this node. The first call creates and stores the name."""
        file = self.path / "node"
        if not file.exists():
            # Replace the file atomically: a truncated name could be the name of another node.
            draft = self.path / "node.new"
            draft.write_text(new_id(), encoding="utf-8")
            draft.replace(file)
        return file.read_text(encoding="utf-8").strip()

    def write_address(self, url: str) -> None:
        """Store this process's URL for programs that need to reach it."""
        draft = self.path / f"{ADDRESS}.new"
        draft.touch(PRIVATE_FILE)
        draft.write_text(url, encoding="ascii")
        draft.replace(self.path / ADDRESS)

    def close(self) -> None:
        """Release the folder."""
        (self.path / ADDRESS).unlink(missing_ok=True)
        self._lock.release()


def make_folder(path: Path) -> None:
    """Create a folder that only its owner can read and Git ignores, unless it exists."""
    try:
        path.mkdir(mode=PRIVATE_FOLDER, parents=True)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        (path / ".gitignore").write_text(GITIGNORE, encoding="utf-8")


def is_locked(path: Path) -> bool:
    """Return True if a process holds the folder's lock."""
    from filelock import FileLock, Timeout

    if not (path / LOCK).exists():
        return False
    try:
        with FileLock(path / LOCK, blocking=False):
            return False
    except Timeout:
        return True


def read_address(path: Path) -> str | None:
    """Return the URL of the process that holds the folder, or None."""
    try:
        return (path / ADDRESS).read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def make_private(database: Path) -> None:
    """Restrict a database to its owner: create a new one with mode 0600, fix the mode of an existing one."""
    try:
        os.close(os.open(database, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
    except OSError:
        # SQLite cannot open the file either, and its error gives the reason.
        return
    files = [file for end in SUFFIXES if (file := database.with_name(database.name + end)).exists()]
    readable = [file for file in files if stat.S_IMODE(file.stat().st_mode) & OTHERS_MASK]
    if not readable or os.name != "posix":
        return
    try:
        for file in readable:
            file.chmod(PRIVATE_FILE)
    except OSError as error:
        LOGGER.warning("Others can read %s, and its mode cannot be changed (%s).", database, error.strerror)
    else:
        LOGGER.warning("Others could read %s and may have done so. Now only you can.", database)
