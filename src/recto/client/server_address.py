"""Lookup of server URL and token: arguments, then environment, then the data folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from recto.errors import SettingsError

URL, TOKEN, DATA = "RECTO_URL", "RECTO_TOKEN", "RECTO_DATA"
DEFAULT_URL, DEFAULT_DATA = "http://127.0.0.1:8787", "recto-data"
# File with the token that a server generated.
TOKEN_FILE = "token"  # noqa: S105 - the name of a file


@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """Base URL and token of a server. Without a token, requests are anonymous."""

    url: str
    token: str | None


def find_server(url: str | None, token: str | None, environment: Mapping[str, str]) -> ServerAddress:
    """Return the server to connect to. The token of the data folder is used for loopback addresses only."""
    address = (url or environment.get(URL) or DEFAULT_URL).rstrip("/")
    host: str | None = None
    # Reading an invalid port raises ValueError.
    with suppress(ValueError):
        parts = urlsplit(address)
        host = parts.hostname if parts.scheme in ("http", "https") and parts.port != 0 else None
    if host is None:
        raise SettingsError(name=URL, value=address, allowed=f"it is an address such as {DEFAULT_URL}")
    token = token or environment.get(TOKEN) or None
    # The host may be a name. The token file may be missing or invalid.
    with suppress(OSError, ValueError):
        if token is None and (host == "localhost" or ip_address(host).is_loopback):
            file = Path(environment.get(DATA) or DEFAULT_DATA) / TOKEN_FILE
            token = file.read_text(encoding="ascii").strip() or None
    return ServerAddress(url=address, token=token)
