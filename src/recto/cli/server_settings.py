"""Settings of the server (C2): command line over environment over `recto.toml` over defaults. Checked here."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ValidationError

from recto.agents.agent import Limits
from recto.agents.tables import LimitsTable
from recto.cli.server_table import ServerTable
from recto.errors import SettingsError

PREFIX = "RECTO_"
FILE = "recto.toml"
# Read elsewhere, by whoever needs them; here so that no known name is called unknown.
# RECTO_URL is for clients: whoever exports it may still start a server.
OTHERS = frozenset({"RECTO_MODEL_URL", "RECTO_MODEL_KEY", "RECTO_URL"})
# A url may hold a password, and the value of a name we do not know may be a secret under a name that is nearly right.
HIDDEN = "(not shown)"
SECRETS = frozenset(
    {
        *("database_url", "storage_url", "signing_keys", "token", "api_keys"),
        *("jwt_secret", "jwt_public_key", "jwt_jwks_url"),
    }
)
BaseModelT = TypeVar("BaseModelT", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Everything a server can be told. Limits of runs are apart.

    In the limits of users, uploads and the queue, and in the time to keep things, 0 means that there is none.
    """

    host: str = "127.0.0.1"
    port: int = 8787
    data: Path = Path("recto-data")
    agents: Path | None = None
    agent: str | None = None
    model: str = "demo"
    timezone: str | None = None
    database_url: str | None = None
    synchronous: Literal["NORMAL", "FULL"] = "NORMAL"
    runs: int = 200
    waiting_writes: int = 10_000
    lease_seconds: float = 10.0
    grace_seconds: float = 7.0
    event_seconds: float = 0.04
    heartbeat_seconds: float = 15.0
    streams: int = 1_000
    stream_bytes: int = 65_536
    event_characters: int = 8_192
    retry_seconds: float = 0.5
    retry_after_seconds: float = 60.0
    model_connect_seconds: float = 10.0
    model_first_byte_seconds: float = 120.0
    model_between_seconds: float = 60.0
    shelf_threads: int = 256
    shelf_entries: int = 100_000
    shelf_bytes: int = 64 * 2**20
    quotes_at_once: int = 2
    database_connections: int = 10
    window: int = 128_000
    token: str | None = None
    api_keys: str | None = None
    jwt_secret: str | None = None
    jwt_public_key: str | None = None
    jwt_jwks_url: str | None = None
    jwt_audience: str | None = None
    jwt_issuer: str | None = None
    jwt_cache_seconds: float = 600.0
    public_url: str | None = None
    proxies: str = ""
    header_bytes: int = 65_536
    header_fields: int = 100
    header_seconds: float = 10.0
    body_seconds: float = 60.0
    chat_bytes: int = 2**20
    queued_bytes: int = 2**20
    keep_alive_seconds: int = 5
    unread_seconds: float = 60.0
    address_connections: int = 1_024
    connections: int = 8_192
    cors_origins: str = ""
    operators: str = "local"
    user_runs: int = 200
    user_slots: int = 0
    user_streams: int = 200
    user_requests: int = 6_000
    user_tokens: int = 0
    thread_queue: int = 50
    queue: int = 10_000
    client_tools: int = 128
    schema_bytes: int = 262_144
    schema_depth: int = 64
    pattern_bytes: int = 4 * 2**20
    schema_cache_bytes: int = 64 * 2**20
    event_days: float = 30.0
    call_days: float = 0.0
    thread_days: float = 0.0
    cleaning_seconds: float = 3_600.0
    storage_url: str | None = None
    signing_keys: str | None = None
    url_seconds: float = 86_400.0
    redirects: bool = True
    uploads: int = 100
    user_uploads: int = 50
    upload_files: int = 20
    upload_bytes: int = 2**30
    upload_seconds: float = 60.0
    unused_hours: float = 24.0
    user_bytes: int = 10 * 2**30
    vision: bool | None = None
    image_urls: bool | None = None
    image_bytes: int = 5_000_000
    page_image_bytes: int = 20_000_000
    page_images: int = 20
    workspace_bytes: int = 2**30
    user_files: int = 100_000
    profile_bytes: int = 262_144
    parse_children: int = 0
    parse_waiting: int = 100
    parse_slow_seconds: float = 5.0
    parse_seconds: float = 60.0
    parse_memory_bytes: int = 512 * 2**20
    parse_bytes: int = 100 * 2**20
    parse_pages: int = 5_000
    parse_characters: int = 100_000_000
    ocr: str = "chi_sim+eng"
    ocr_pages: int = 50
    ocr_seconds: float = 240.0
    parsed_bytes: int = 5 * 2**30
    parsed_days: float = 30.0
    fetches: int = 16
    user_fetches: int = 4
    fetch_seconds: float = 20.0
    fetch_bytes: int = 50 * 2**20
    fetch_redirects: int = 5
    fetch_networks: str = ""
    prices: Path | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    log_format: Literal["text", "json"] = "text"
    limits: Limits = Limits()

    @property
    def run_agent(self) -> str:
        """Who answers a run that names nobody, in a thread where nobody has answered (C4)."""
        return self.agent or "chat"

    @property
    def chat_agent(self) -> str:
        """The same, of what is said on `/chat`."""
        return self.agent or "vibe"

    @property
    def slots_of_user(self) -> int:
        """How many runs of one user are worked on at once."""
        return self.user_slots or max(1, self.runs // 4)

    @property
    def files_folder(self) -> Path:
        """Where files are kept that are not in a storage of their own."""
        return self.data / "files"

    @property
    def parsed_folder(self) -> Path:
        """Where the texts of documents are kept that were read before."""
        return self.data / "parsed"

    @property
    def workspaces_folder(self) -> Path:
        """Where each thread has a folder to work in."""
        return self.data / "workspaces"


class _File(BaseModel):
    """A whole file: other tables belong to other commands."""

    server: ServerTable = ServerTable()
    limits: LimitsTable = LimitsTable()


def load_settings(flags: Mapping[str, object], environment: Mapping[str, str], file: Path | None) -> ServerSettings:
    """The settings in force. An unknown name or a value that means nothing raises SettingsError."""
    table = _checked(_File, _read(file), "")
    spoken = {name: value for name, value in flags.items() if value is not None}
    merged = _given(table.server) | _given(_checked(ServerTable, _from_environment(environment), PREFIX))
    merged |= _given(_checked(ServerTable, spoken, "--"))
    merged["limits"] = Limits(**_given(table.limits))  # pyright: ignore[reportArgumentType] - its table checked them
    settings = ServerSettings(**merged)  # pyright: ignore[reportArgumentType] - the tables above checked them
    if settings.database_url is not None:
        from recto.store.store import check_url  # here: commands that need no database do not wait for its library

        check_url(settings.database_url)
    return settings


def _read(file: Path | None) -> dict[str, object]:
    path = file or Path(FILE)
    if file is None and not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(name="config", value=str(path), allowed=f"it cannot be read ({error})") from error


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    known = {PREFIX + field.name.upper(): field.name for field in fields(ServerSettings)}
    known.pop(PREFIX + "LIMITS")
    found = {name: value for name, value in environment.items() if name.startswith(PREFIX) and name not in OTHERS}
    for name in sorted(found.keys() - known.keys()):
        raise SettingsError(name=name, value=HIDDEN, allowed=f"there is no such setting; known: {_list(known)}")
    return {known[name]: value for name, value in found.items()}


def _list(known: Mapping[str, str]) -> str:
    return ", ".join(sorted({*known, *OTHERS}))


def _checked(kind: type[BaseModelT], values: Mapping[str, object], prefix: str) -> BaseModelT:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(step) for step in first["loc"])
        name = {PREFIX: PREFIX + name.upper(), "--": f"--{name.replace('_', '-')}"}.get(prefix, name)
        is_open = first["type"] != "extra_forbidden" and first["loc"][-1] not in SECRETS
        value = first["input"] if is_open else HIDDEN
        # Only its first letter is made small: there are names in it.
        told = first["msg"].removeprefix("Value error, ")
        raise SettingsError(name=name, value=value, allowed=told[:1].lower() + told[1:]) from error


def _given(table: BaseModel) -> dict[str, object]:
    return {name: value for name, value in table if value is not None}
