"""The data folder: one process at a time, under a name that stays the same over restarts."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path

from recto.errors import SettingsError
from recto.ids import new_id

LOGGER = logging.getLogger("recto.store")
PRIVATE_FOLDER, PRIVATE, OTHERS = 0o700, 0o600, 0o077
# SQLite keeps two more files beside a database while it is open. It makes them as readable as the database is.
BESIDE = ("", "-wal", "-shm")
# It may lie in somebody's project. Not `*`: tools at work in a workspace below would heed that too.
GITIGNORE = "/*\n"
# Where the process is that holds the folder. One that was killed leaves it: it counts while somebody has the lock.
ADDRESS, LOCK = "address", "lock"
# Whoever looks whether it is held has the lock for a moment.
LOOKED_AT_SECONDS, AGAIN_SECONDS = 0.2, 0.02


class DataFolder:
    """A folder that is ours while this object is open. A second process is refused."""

    def __init__(self, path: Path) -> None:
        from filelock import FileLock, Timeout  # here: commands that only read a folder lock nothing

        self.path = path
        try:
            make_folder(path)
            # Whichever thread closes it, it is free.
            self._lock = FileLock(path / LOCK, thread_local=False)
            self._lock.acquire(LOOKED_AT_SECONDS, poll_interval=AGAIN_SECONDS)
            # Of one that was killed: whoever listens there now is not this process.
            (path / ADDRESS).unlink(missing_ok=True)
        except Timeout:
            allowed = "another Recto is using it. Stop that one, or name another folder with --data"
            raise SettingsError(name="data", value=str(path), allowed=allowed) from None
        except OSError as error:
            allowed = f"it cannot be used ({error.strerror}). Name another folder with --data"
            raise SettingsError(name="data", value=str(path), allowed=allowed) from error

    @property
    def database_url(self) -> str:
        """Where the database is by default."""
        return f"sqlite:///{self.path / 'recto.db'}"

    def node(self) -> str:
        """The name of this node: made once, then kept in the folder."""
        file = self.path / "node"
        if not file.exists():
            # Whole or not at all: a name cut short would be another node's.
            draft = self.path / "node.new"
            draft.write_text(new_id(), encoding="utf-8")
            draft.replace(file)
        return file.read_text(encoding="utf-8").strip()

    def tell_address(self, url: str) -> None:
        """Leave word where this process can be reached, for programs that have something to say to it."""
        draft = self.path / f"{ADDRESS}.new"
        draft.touch(PRIVATE)
        draft.write_text(url, encoding="ascii")
        draft.replace(self.path / ADDRESS)

    def close(self) -> None:
        """Let others in."""
        (self.path / ADDRESS).unlink(missing_ok=True)
        self._lock.release()


def make_folder(path: Path) -> None:
    """Have the folder there; a new one is its owner's alone, and nothing that Git takes along."""
    try:
        path.mkdir(mode=PRIVATE_FOLDER, parents=True)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        (path / ".gitignore").write_text(GITIGNORE, encoding="utf-8")


def is_held(path: Path) -> bool:
    """Whether a process has the folder."""
    from filelock import FileLock, Timeout

    if not (path / LOCK).exists():
        return False
    try:
        with FileLock(path / LOCK, blocking=False):
            return False
    except Timeout:
        return True


def address_in(path: Path) -> str | None:
    """Where the process says it listens that has the folder."""
    try:
        return (path / ADDRESS).read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def make_private(database: Path) -> None:
    """Have a database that only its owner can read: a new one from its first byte, an old one from now on."""
    try:
        os.close(os.open(database, os.O_RDWR | os.O_CREAT, PRIVATE))
    except OSError:
        # SQLite cannot open it either, and says so.
        return
    files = [file for end in BESIDE if (file := database.with_name(database.name + end)).exists()]
    readable = [file for file in files if stat.S_IMODE(file.stat().st_mode) & OTHERS]
    if not readable or os.name != "posix":
        return
    try:
        for file in readable:
            file.chmod(PRIVATE)
    except OSError as error:
        LOGGER.warning("Others may read %s, and it is not ours to close to them (%s).", database, error.strerror)
    else:
        LOGGER.warning("Others could read %s; now only you can. What they have read they know.", database)
