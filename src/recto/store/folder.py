"""The data folder: one process at a time, under a name that stays the same over restarts."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock, Timeout

from recto.errors import SettingsError
from recto.ids import new_id


class DataFolder:
    """A folder that is ours while this object is open. A second process is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            # Whichever thread closes it, it is free.
            self._lock = FileLock(path / "lock", thread_local=False)
            self._lock.acquire(blocking=False)
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

    def close(self) -> None:
        """Let others in."""
        self._lock.release()
