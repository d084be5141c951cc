"""The workspaces of threads, and the paths of the server that tools must not see or change."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from recto.cli.server_settings import FILE
from recto.config.settings import ServerSettings
from recto.files.storage.choose_storage import read_storage_url
from recto.tools.workspace.workspaces import DATABASE_ENDINGS, Workspaces


def make_workspaces(settings: ServerSettings) -> Workspaces:
    """Return the workspaces: a folder for each thread, or the configured one."""
    code = (Path(sys.prefix), Path(__file__).parents[1])
    return Workspaces(
        root=settings.workspaces_folder,
        given_folder=settings.workspace,
        most_bytes=settings.work.workspace_bytes,
        search=settings.search,
        limits=settings.file_tools,
        private=tuple(private_paths(settings)),
        # Settings are also private. Guarding keeps tools from creating missing ones.
        guarded=(*((settings.agents,) if settings.agents else ()), *_settings_files(settings), *code),
    )


def private_paths(settings: ServerSettings) -> Iterator[Path]:
    """Yield the files of the server on this machine, which may contain secrets."""
    yield from (settings.data, *_settings_files(settings))
    if settings.database_url:
        from recto.store.database.opening import (
            database_file,  # here: servers without a database url need no database library
        )

        if file := database_file(settings.database_url):
            yield from (file, *(file.with_name(file.name + ending) for ending in DATABASE_ENDINGS))
    if settings.storage_url and isinstance(folder := read_storage_url(settings.storage_url), Path):
        yield folder


def _settings_files(settings: ServerSettings) -> tuple[Path, ...]:
    """Return the configuration file of the server and the default one."""
    return settings.config_file, Path(FILE)
