"""A temporary folder for children, and the end of those that killed processes left. Removes none that is in use.

Who has one holds a lock on it, which the system takes back from whoever ends, in whatever way.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PREFIX = "recto-parsing-"
# From being made to being locked it takes no time to speak of.
YOUNG_SECONDS = 60


class ScratchFolder:
    """A folder of this process, until it is removed."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _locked(self.path)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def sweep() -> None:
    """Remove the folders of processes that are gone."""
    before = time.time() - YOUNG_SECONDS
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_mtime < before and (lock := _locked(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _locked(folder: Path) -> int | None:
    """An open folder that nobody else has locked; None where somebody has, or where there are no such locks."""
    if sys.platform == "win32":
        return None
    from fcntl import LOCK_EX, LOCK_NB, flock

    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        flock(opened, LOCK_EX | LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened
