"""`recto storage`: whose files a storage holds. Refuses to change that while a server uses the data folder."""

from __future__ import annotations

import asyncio

import typer

from recto.cli import options
from recto.cli.command import exit_codes, group
from recto.cli.data import opened_store, settings_of_server
from recto.config.settings import ServerSettings

ADOPTED = (
    "The storage now belongs to the data folder {data}; servers of any other refuse to start on it. What its database "
    "does not know is deleted from the storage once it is older than an hour and a server runs."
)

storage = group("storage", "Say whose files a storage holds.")


@storage.callback()
def _several() -> None:
    """Say whose files a storage holds."""


@storage.command("adopt")
def adopt_storage(*, data: options.DataDir = None, config: options.ServerConfig = None) -> None:
    """Make the storage of files this data folder's, whosever it was. For when the one it belonged to is gone for good.

    Exit codes: 0 done, 1 failed, 2 wrong use.
    """
    with exit_codes("storage adopt"):
        settings = settings_of_server(data, config)
        asyncio.run(_adopt(settings))
    typer.echo(ADOPTED.format(data=settings.data))


async def _adopt(settings: ServerSettings) -> None:
    from recto.files.storage.choose_storage import open_storage
    from recto.files.storage.owner import adopt, owner_of
    from recto.ids import new_id
    from recto.store.database.folder import DataFolder

    async with opened_store(settings) as store:
        folder = DataFolder(settings.data)
        try:
            is_in_data_folder = settings.storage_url is None
            owner = owner_of(folder.node(), is_shared=store.is_shared, is_in_data_folder=is_in_data_folder)
            await adopt(open_storage(settings.storage_url, settings.files_folder), store, owner, new_id)
        finally:
            folder.close()
