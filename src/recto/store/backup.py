"""A copy of a SQLite database that may be in use, by this process or another. Refuses to overwrite anything."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from recto.errors import SettingsError, StoreDown

NAME = "backup"


def backup_file(source: Path, target: Path) -> None:
    """Copy a database as it is at one moment. Writers go on meanwhile; there is a target only once it is whole."""
    if target.exists():
        raise SettingsError(name=NAME, value=str(target), allowed="there is such a file already. Name a new one")
    draft = target.with_name(f"{target.name}.part")
    draft.unlink(missing_ok=True)
    try:
        # Only what is there: opening must not make an empty database to copy.
        with closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True, timeout=30)) as connection:
            connection.execute("VACUUM INTO ?", (str(draft),))
        draft.rename(target)
    except (sqlite3.Error, OSError) as error:
        draft.unlink(missing_ok=True)
        raise StoreDown(problem=f"it could not be copied to {target}: {error}") from error
