"""Where the server is, and the credential for it: as told, else of the environment, else of the folder one is in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from recto.errors import SettingsError

URL, TOKEN, DATA = "RECTO_URL", "RECTO_TOKEN", "RECTO_DATA"
DEFAULT_URL, DEFAULT_DATA = "http://127.0.0.1:8787", "recto-data"
# Where a server that was given no token keeps the one it made.
TOKEN_FILE = "token"  # noqa: S105 - the name of a file


@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """A server by the beginning of its addresses, and what it is shown. Without a token one comes as nobody."""

    url: str
    token: str | None


def find_server(url: str | None, token: str | None, environment: Mapping[str, str]) -> ServerAddress:
    """The server to talk to. The token in a data folder is for servers of this machine, and shown to no other."""
    found = (url or environment.get(URL) or DEFAULT_URL).rstrip("/")
    host = _host_of(found)
    if host is None:
        raise SettingsError(name=URL, value=found, allowed=f"it is an address such as {DEFAULT_URL}")
    token = token or environment.get(TOKEN) or None
    if token is None and _is_here(host):
        token = _token_in(Path(environment.get(DATA) or DEFAULT_DATA))
    return ServerAddress(url=found, token=token)


def _host_of(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        # A port that is none is told when it is read.
        return parts.hostname if parts.scheme in ("http", "https") and parts.port != 0 else None
    except ValueError:
        return None


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _token_in(data: Path) -> str | None:
    try:
        return (data / TOKEN_FILE).read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None
