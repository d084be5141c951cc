"""The server of a data folder: connect to the one that holds the folder, or start one in this process.

If the serving process exits, the first connected process that notices takes over. Nothing is lost, because the log
is in the folder.
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
from recto.store.database.folder import ADDRESS, PRIVATE_FILE, is_locked, make_folder, read_address

if TYPE_CHECKING:
    from recto.cli.server_entry import ServerEntry
    from recto.config.settings import ServerSettings

LOG = "chat.log"
FILE = "recto.toml"
# Longest wait for the address of a server that holds the folder, and the polling interval.
JOIN_SECONDS, POLL_SECONDS = 30.0, 0.05
STOP_SECONDS = 12.0
# Wildcard addresses, and the loopback address to connect to.
LOOPBACK = {"http://0.0.0.0:": "http://127.0.0.1:", "http://[::]:": "http://[::1]:"}


@dataclass(frozen=True, kw_only=True)
class FolderOptions:
    """Command-line options for a server on this machine."""

    data: Path | None = None
    agents: Path | None = None
    workspace: Path | None = None
    mode: str | None = None
    config: Path | None = None


@dataclass(frozen=True, kw_only=True)
class ServerLocation:
    """Address of a server and how it was found."""

    address: ServerAddress
    how: Literal["named", "joined", "started"]
    data: Path | None = None


class FolderServer:
    """The server of a folder, whichever process runs it."""

    def __init__(self, options: FolderOptions, entry: ServerEntry, environment: Mapping[str, str]) -> None:
        self._options, self._entry, self._environment = options, entry, environment
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self.data = find_data_folder(options, environment)

    def find(self) -> ServerLocation:
        """Connect to the server that holds the folder, or start one. Block until it answers."""
        until = time.monotonic() + JOIN_SECONDS
        while time.monotonic() < until:
            if is_locked(self.data):
                if url := read_address(self.data):
                    for wildcard, loopback in LOOPBACK.items():
                        url = url.replace(wildcard, loopback)
                    return ServerLocation(address=self._find_address(url), how="joined", data=self.data)
                time.sleep(POLL_SECONDS)
            elif location := self._start():
                return location
        problem = f"a process locks the folder {self.data}, but did not publish its address"
        raise ServerUnreachable(url=str(self.data / ADDRESS), problem=problem)

    def stop(self) -> None:
        """Stop the server if this process started it."""
        self._stop.set()
        if self._thread:
            self._thread.join(STOP_SECONDS)

    def _start(self) -> ServerLocation | None:
        """Start a server in this process; return None if another process was faster."""
        from recto.cli.server_settings import load_settings  # slow to import, and needed to start a server only

        options = self._options
        flags = {name: value for name, value in vars(options).items() if name != "config"}
        settings = load_settings(flags, self._environment, options.config)
        workspace = settings.workspace or Path.cwd()
        settings = replace(settings, host="127.0.0.1", port=0, workspace=workspace)
        try:
            self._thread, url, token = start_server(settings, self._entry, self._stop)
        except SettingsError:
            if is_locked(self.data):
                return None
            raise
        address = self._find_address(url)
        return ServerLocation(address=replace(address, token=token or address.token), how="started", data=self.data)

    def _find_address(self, url: str) -> ServerAddress:
        return find_server(url, None, {**self._environment, DATA: str(self.data)})


def start_server(
    settings: ServerSettings, entry: ServerEntry, stop: threading.Event
) -> tuple[threading.Thread, str, str | None]:
    """Start a server in a thread; return the thread, URL and local token. Raise the error that prevented the start.

    The server logs to a file in the data folder, never to the screen.
    """
    from recto.cli.log_output import Secrets, set_up_logs
    from recto.cli.serve import secrets_of

    make_folder(settings.data)
    (settings.data / LOG).touch(PRIVATE_FILE)
    stream = (settings.data / LOG).open("a", encoding="utf-8")
    set_up_logs(settings.log_level, settings.log_format, Secrets(secrets_of(settings, os.environ)), stream)
    is_ready = threading.Event()
    addresses: list[tuple[str, str | None]] = []
    problems: list[Exception] = []

    def announce(url: str, token: str | None) -> None:
        addresses.append((url, token))
        is_ready.set()

    def serve() -> None:
        try:
            entry.serve(settings, announce, stop)
        except (RectoError, OSError) as error:
            problems.append(error)
        finally:
            is_ready.set()

    thread = threading.Thread(target=serve, name="recto-server", daemon=True)
    thread.start()
    is_ready.wait()
    for url, token in addresses:
        return thread, url, token
    problems.append(ServerUnreachable(url=str(settings.data), problem="the server stopped during its start"))
    raise problems[0]


def find_data_folder(options: FolderOptions, environment: Mapping[str, str]) -> Path:
    """Return the data folder as a server would find it (C2), without reading all settings, which is slow."""
    if folder := options.data or environment.get(DATA):
        return Path(folder)
    try:
        table = tomllib.loads((options.config or Path(FILE)).read_text(encoding="utf-8")).get("server", {})
        return Path(str(table.get("data", DEFAULT_DATA)))
    except (OSError, ValueError, AttributeError):
        # The server reads the file again and reports the error.
        return Path(DEFAULT_DATA)


FindServer = Callable[[], ServerLocation]
