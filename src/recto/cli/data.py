"""`recto backup`, `recto user`, `recto storage` and `recto keys`: administration of a data folder."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recto.cli import options
from recto.cli.command import FAILED, exit_codes, group, stop
from recto.cli.server_settings import load_settings
from recto.config.settings import ServerSettings
from recto.errors import SettingsError, WireError

if TYPE_CHECKING:
    from recto.store.store import Store
    from recto.store.users.user_data import DeletedUser


SQLITE, DATABASE = "sqlite:///", "recto.db"
PRIVATE_UMASK = 0o077
Tier = Annotated[
    str, typer.Argument(metavar="TIER", help="1 to 32 of a-z, 0-9, `_` and `-`. The default tier is `free`.")
]

user = group("user", "Export or delete the data of a user, or set their tier.")
storage = group("storage", "Manage the file storage.")
keys = group("keys", "Manage the keys that sign file URLs.")


def backup(target: options.BackupDir, *, data: options.DataDir = None, config: options.ServerConfig = None) -> None:
    """Copy database and files into a new folder.

    The server may be running. A server can start on the copy. Use pg_dump for PostgreSQL, and the tools of the provider
    for an external storage. Exit codes: 0 success, 1 failure, 2 usage error.
    """
    from rich.console import Console

    from recto.files.storage.local_storage import copy_files
    from recto.store.database.sqlite import backup_file

    with exit_codes("backup"), Console(stderr=True).status("Copying") as status:
        settings = load_server_settings(data, config)
        source = _database(settings)
        # Make new files private, because the copy holds the data of all users.
        os.umask(PRIVATE_UMASK)
        target.mkdir(parents=True, exist_ok=True)

        def report(count: int) -> None:
            status.update(f"Copying: {count} files")

        is_local = settings.storage_url is None
        # Copy files first, because the running server may delete files that the copied database still names. Copy new
        # files afterwards.
        count = copy_files(settings.files_folder, target / settings.files_folder.name, report) if is_local else 0
        backup_file(source, target / source.name)
        count += copy_files(settings.files_folder, target / settings.files_folder.name, report) if is_local else 0
    files = f" with {count} files" if count else "" if is_local else "; the files are in an external storage"
    typer.echo(f"Copied to {target}{files}. Start a server on it with: recto serve --data {target}")


@user.command("export")
def export_user(
    name: options.UserArgument, *, data: options.DataDir = None, config: options.ServerConfig = None
) -> None:
    """Print all data of a user, one JSON object per line. Exit codes: 0 success, 1 failure, 2 usage error."""
    with exit_codes("user export"):
        settings = load_server_settings(data, config)

        async def export() -> int:
            count = 0
            async with open_existing_store(settings) as store:
                async for line in store.users.export(name):
                    sys.stdout.buffer.write(line)
                    count += 1
            sys.stdout.buffer.flush()
            return count

        count = asyncio.run(export())
    if not count:
        problem = (
            f"There is no data of a user {name!r}. The name is that in RECTO_API_KEYS, the `sub` of the JWT, or "
            "'local' for the local token. Choose the data folder of the server with --data."
        )
        raise stop("user export", problem, FAILED)
    typer.echo(f"{count} lines.", err=True)


@user.command("delete")
def delete_user(
    name: options.UserArgument,
    *,
    yes: options.Yes = False,
    data: options.DataDir = None,
    config: options.ServerConfig = None,
) -> None:
    """Delete all data of a user forever. Exit codes: 0 success, 1 failure, 2 usage error."""
    if not yes:
        typer.confirm(f"Delete all threads, runs, calls and files of {name!r} forever?", abort=True, err=True)
    with exit_codes("user delete"):
        counts = asyncio.run(_delete(load_server_settings(data, config), name))
    summary = f"{counts.threads} threads, {counts.attachments} files and {counts.datasets} datasets"
    typer.echo(f"Deleted {summary}; stopped {len(counts.stopped)} active runs.")


@user.command("tier")
def set_tier(
    name: options.UserArgument, tier: Tier, *, data: options.DataDir = None, config: options.ServerConfig = None
) -> None:
    """Set the tier of a user for all later runs. Exit codes: 0 success, 1 failure, 2 usage error."""
    with exit_codes("user tier", WireError):
        settings = load_server_settings(data, config)

        async def change() -> None:
            async with open_existing_store(settings) as store:
                await store.users.set_tier(name, tier, datetime.now(UTC))

        asyncio.run(change())
    typer.echo(f"User {name!r} has the tier {tier!r}.")


async def _delete(settings: ServerSettings, name: str) -> DeletedUser:
    from recto.files.documents.document_folder import DocumentFolder
    from recto.files.storage.choose_storage import open_storage
    from recto.files.storage.owner import check_owner, owner_of
    from recto.tools.workspace.workspaces import sweep_workspaces

    async with open_existing_store(settings) as store:
        storage = open_storage(settings.storage_url, settings.files_folder)
        # The node name is empty if no server ever used the data folder.
        node = settings.data / "node"
        node_name = node.read_text(encoding="utf-8").strip() if node.exists() else ""
        owner = owner_of(node_name, is_shared=store.is_shared, is_in_data_folder=settings.storage_url is None)
        # Check the owner first, because a copied database may name files that belong to another server.
        await check_owner(storage, store, owner)
        deletion = await store.users.delete(name)
        await sweep_workspaces(settings.workspaces_folder, store.threads.find_existing)
    DocumentFolder(settings.parsed_folder).forget(deletion.blobs)
    await storage.delete(deletion.blobs)
    return deletion


@asynccontextmanager
async def open_existing_store(settings: ServerSettings, *, is_reader: bool = False) -> AsyncGenerator[Store]:
    """Open the existing database of a server. With `is_reader`, the store cannot change it."""
    from recto.store.store import open_store  # slow to import

    is_server = settings.database_url and not settings.database_url.startswith(SQLITE)
    url = settings.database_url if is_server else f"{SQLITE}{_database(settings)}"
    store = await open_store(url or "", is_reader=is_reader)
    try:
        yield store
    finally:
        await store.close()


def _database(settings: ServerSettings) -> Path:
    """Return the existing SQLite file."""
    url = settings.database_url or ""
    if url and not url.startswith(SQLITE):
        raise SettingsError(name="database_url", value="(not shown)", allowed="copy PostgreSQL with pg_dump")
    file = Path(url.removeprefix(SQLITE)) if url else settings.data / DATABASE
    if not file.exists():
        raise SettingsError(
            name="data", value=str(file), allowed="there is no database. Choose the data folder with --data"
        )
    return file


def load_server_settings(data: Path | None, config: Path | None) -> ServerSettings:
    """Load the settings of a server by data folder."""
    return load_settings({"data": data}, os.environ, config)


@storage.command("adopt")
def adopt_storage(*, data: options.DataDir = None, config: options.ServerConfig = None) -> None:
    """Assign the file storage to this data folder, for use after its previous data folder is lost.

    Exit codes: 0 success, 1 failure, 2 usage error.
    """
    from recto.files.storage.choose_storage import open_storage
    from recto.files.storage.owner import adopt, owner_of
    from recto.ids import new_id
    from recto.store.database.folder import DataFolder

    with exit_codes("storage adopt"):
        settings = load_server_settings(data, config)
        is_in_data_folder = settings.storage_url is None

        async def run() -> None:
            async with open_existing_store(settings) as store:
                with closing(DataFolder(settings.data)) as folder:
                    owner = owner_of(folder.node(), is_shared=store.is_shared, is_in_data_folder=is_in_data_folder)
                    await adopt(open_storage(settings.storage_url, settings.files_folder), store, owner, new_id)

        asyncio.run(run())
    typer.echo(
        f"The storage now belongs to the data folder {settings.data}; servers of others do not start on it. "
        "A running server deletes files that its database does not know after an hour."
    )


@keys.command("rotate")
def rotate(*, data: options.DataDir = None, config: options.ServerConfig = None) -> None:
    """Sign with a new key from the next start on. URLs signed with the previous key stay valid until the next rotation.

    Exit codes: 0 success, 1 failure, 2 usage error.
    """
    from recto.files.signing import rotate_keys

    with exit_codes("keys rotate"):
        settings = load_server_settings(data, config)
        if settings.signing_keys:
            allowed = (
                "RECTO_SIGNING_KEYS sets the keys: put a new one first there, and keep old ones while URLs use them"
            )
            raise SettingsError(name="signing_keys", value="(not shown)", allowed=allowed)
        if not settings.data.is_dir():
            allowed = "there is no such folder. Choose the data folder of a server with --data"
            raise SettingsError(name="data", value=str(settings.data), allowed=allowed)
        id = rotate_keys(settings.data)
    typer.echo(f"Key {id} signs from the next start on. Restart the server.")
