"""The server of a data folder: the one that holds it is joined, else one is started in this process.

Whoever serves may leave: those who had joined find nobody, and the first of them serves. The log is the folder's, so
nothing is lost by it.
"""

from __future__ import annotations

import os
import threading
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from recto.client.server_address import DATA, DEFAULT_DATA, ServerAddress, find_server
from recto.errors import RectoError, ServerUnreachable, SettingsError
from recto.store.database.folder import ADDRESS, PRIVATE, address_in, is_held, make_folder

if TYPE_CHECKING:
    from recto.cli.server_entry import ServerEntry
    from recto.config.settings import ServerSettings

LOG = "chat.log"
FILE = "recto.toml"
# How long a server that holds the folder may take to say where it is, and how often it is looked for.
JOIN_SECONDS, LOOK_SECONDS = 30.0, 0.05
STOP_SECONDS = 12.0
# What a server listens on that listens everywhere, and where it is found on this machine.
EVERYWHERE = {"http://0.0.0.0:": "http://127.0.0.1:", "http://[::]:": "http://[::1]:"}


@dataclass(frozen=True, kw_only=True)
class FolderOptions:
    """What the command line says of a server of this machine."""

    data: Path | None = None
    agents: Path | None = None
    workspace: Path | None = None
    mode: str | None = None
    config: Path | None = None


@dataclass(frozen=True, kw_only=True)
class ServerFound:
    """A server that answers: where, and how it came about."""

    address: ServerAddress
    how: Literal["named", "joined", "started"]
    data: Path | None = None


class FolderServer:
    """The server of a folder, whoever serves it at the time."""

    def __init__(self, options: FolderOptions, entry: ServerEntry, environment: Mapping[str, str]) -> None:
        self._options, self._entry, self._environment = options, entry, environment
        self._serving: Serving | None = None
        self.data = data_folder(options, environment)

    def find(self) -> ServerFound:
        """Join the server that holds the folder; else start one. It blocks until one answers."""
        until = time.monotonic() + JOIN_SECONDS
        while time.monotonic() < until:
            if is_held(self.data):
                if url := address_in(self.data):
                    return ServerFound(address=self._known(_here(url)), how="joined", data=self.data)
                time.sleep(LOOK_SECONDS)
            elif started := self._start():
                return started
        problem = f"something holds the folder {self.data} and does not say where it listens"
        raise ServerUnreachable(url=str(self.data / ADDRESS), problem=problem)

    def stop(self) -> None:
        """End what was started here."""
        if self._serving:
            self._serving.stop()

    def _start(self) -> ServerFound | None:
        """A server in this process; None where another process was quicker."""
        from recto.cli.server_settings import load_settings  # here: who joins one needs no settings

        options = self._options
        flags = {name: value for name, value in vars(options).items() if name != "config"}
        settings = load_settings(flags, self._environment, options.config)
        here = settings.workspace or Path.cwd()
        serving = Serving(replace(settings, host="127.0.0.1", port=0, workspace=here), self._entry)
        try:
            url, token = serving.start()
        except SettingsError:
            if is_held(self.data):
                return None
            raise
        self._serving = serving
        known = self._known(url)
        return ServerFound(address=replace(known, token=token or known.token), how="started", data=self.data)

    def _known(self, url: str) -> ServerAddress:
        return find_server(url, None, {**self._environment, DATA: str(self.data)})


class Serving:
    """A server in a thread of this process. What it logs goes into a file of its folder, never onto the screen."""

    def __init__(self, settings: ServerSettings, entry: ServerEntry) -> None:
        self._settings, self._entry = settings, entry
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="recto-server", daemon=True)
        self._ready = threading.Event()
        self._address: tuple[str, str | None] | None = None
        self._problem: Exception | None = None

    def start(self) -> tuple[str, str | None]:
        """Its url and the token of this machine's own user, once it answers. Raises what keeps it from starting."""
        _log_to_file(self._settings)
        self._thread.start()
        self._ready.wait()
        if self._address is None:
            raise self._problem or ServerUnreachable(url=str(self._settings.data), problem="it ended at once")
        return self._address

    def stop(self) -> None:
        """End it, in the order that loses nothing."""
        self._stop.set()
        self._thread.join(STOP_SECONDS)

    def _serve(self) -> None:
        try:
            self._entry.serve(self._settings, self._announce, self._stop)
        except (RectoError, OSError) as error:
            self._problem = error
        finally:
            self._ready.set()

    def _announce(self, url: str, token: str | None) -> None:
        self._address = url, token
        self._ready.set()


def data_folder(options: FolderOptions, environment: Mapping[str, str]) -> Path:
    """The data folder, as a server finds it (C2): without reading all of its settings, which takes its time."""
    if named := options.data or environment.get(DATA):
        return Path(named)
    try:
        table = tomllib.loads((options.config or Path(FILE)).read_text(encoding="utf-8")).get("server", {})
        return Path(str(table.get("data", DEFAULT_DATA)))
    except (OSError, ValueError, AttributeError):
        # Who serves reads it again, and says what is wrong with it.
        return Path(DEFAULT_DATA)


def _here(url: str) -> str:
    """Where a server is found on this machine that may listen everywhere."""
    for everywhere, here in EVERYWHERE.items():
        url = url.replace(everywhere, here)
    return url


def _log_to_file(settings: ServerSettings) -> None:
    from recto.cli.logs import Secrets, set_up_logs
    from recto.cli.serve import secrets_of

    make_folder(settings.data)
    (settings.data / LOG).touch(PRIVATE)
    stream = (settings.data / LOG).open("a", encoding="utf-8")
    set_up_logs(settings.log_level, settings.log_format, Secrets(secrets_of(settings, os.environ)), stream)


FindServer = Callable[[], ServerFound]
