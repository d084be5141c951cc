"""`recto keys`: keys that sign file URLs."""

from __future__ import annotations

import os

import typer

from recto.cli import options
from recto.cli.command import WRONG_USE, group, stop
from recto.cli.server_settings import load_settings
from recto.errors import SettingsError

keys = group("keys", "Manage the keys that sign file URLs.")


@keys.callback()
def _several() -> None:
    """Manage the keys that sign file URLs."""


@keys.command("rotate")
def rotate(*, data: options.DataDir = None, config: options.ServerConfig = None) -> None:
    """Sign with a new key from the next start on. URLs signed with the previous key stay valid until the next rotation.

    Exit codes: 0 success, 1 failure, 2 usage error.
    """
    from recto.files.signing import rotate_keys

    try:
        settings = load_settings({"data": data}, os.environ, config)
        if settings.signing_keys:
            allowed = (
                "RECTO_SIGNING_KEYS sets the keys: put a new one first there, and keep old ones while URLs use them"
            )
            raise SettingsError(name="signing_keys", value="(not shown)", allowed=allowed)
        if not settings.data.is_dir():
            allowed = "there is no such folder. Choose the data folder of a server with --data"
            raise SettingsError(name="data", value=str(settings.data), allowed=allowed)
        id = rotate_keys(settings.data)
    except SettingsError as error:
        raise stop("keys rotate", error, WRONG_USE) from error
    typer.echo(f"Key {id} signs from the next start on. Restart the server.")
