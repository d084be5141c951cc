"""Where threads work, and what of the server's own nobody is to see or to change there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from recto.cli.server_settings import FILE
from recto.config.settings import ServerSettings
from recto.files.storage.choose_storage import read_storage_url
from recto.tools.workspace.workspaces import DATABASE_ENDINGS, Workspaces


def make_workspaces(settings: ServerSettings) -> Workspaces:
    """The folders of threads, or the one that was given."""
    code = (Path(sys.prefix), Path(__file__).parents[1])
    return Workspaces(
        root=settings.workspaces_folder,
        given=settings.workspace,
        most_bytes=settings.work.workspace_bytes,
        search=settings.search,
        limits=settings.file_tools,
        private=tuple(private_paths(settings)),
        # Settings are both: hidden, and not made by anybody where they are missing.
        guarded=(*((settings.agents,) if settings.agents else ()), *_settings_files(settings), *code),
    )


def private_paths(settings: ServerSettings) -> Iterator[Path]:
    """What the server keeps on this machine, and where its secrets may be."""
    yield from (settings.data, *_settings_files(settings))
    if settings.database_url:
        yield from _database_files(settings.database_url)
    if settings.storage_url and isinstance(found := read_storage_url(settings.storage_url), Path):
        yield found


def _database_files(url: str) -> Iterator[Path]:
    from recto.store.database.opening import database_file  # here: who names no database does not wait for its library

    if file := database_file(url):
        yield from (file, *(file.with_name(file.name + ending) for ending in DATABASE_ENDINGS))


def _settings_files(settings: ServerSettings) -> tuple[Path, ...]:
    """What it was started with, and what it would be without being told."""
    return settings.config_file, Path(FILE)
