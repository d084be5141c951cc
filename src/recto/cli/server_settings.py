"""Settings of the server (C2): command line over environment over `recto.toml` over defaults. Checked here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from recto.agents.agent import Limits
from recto.agents.agent_settings import LimitsTable
from recto.config.zones import find_zone
from recto.errors import SettingsError

# A year and a century: more is a mistake, and a time beyond the calendar.
Seconds = Annotated[float, Field(gt=0, le=31_536_000, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Days = Annotated[float, Field(ge=0, le=36_500, allow_inf_nan=False)]
Secret = Annotated[str, Field(min_length=16)]
# What a parser needs before it has read anything; with less no document could be.
Memory = Annotated[int, Field(ge=256 * 2**20)]
LANGUAGES = re.compile(r"[A-Za-z0-9_]+(\+[A-Za-z0-9_]+)*")


def _check_networks(text: str) -> str:
    for part in filter(None, text.split(",")):
        try:
            ip_network(part.strip())
        except ValueError:
            raise ValueError(f"{part.strip()!r} is no address; name addresses or networks, by commas") from None
    return text


def _check_languages(text: str) -> str:
    if text and not LANGUAGES.fullmatch(text):
        raise ValueError("it is languages as tesseract names them, such as chi_sim+eng, or nothing")
    return text


def _check_zone(name: str) -> str:
    find_zone(name)
    return name


class ServerTable(BaseModel):
    """What was said of the server, in a file, the environment or on the command line. None: nothing was."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str | None = None
    port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    data: Path | None = None
    agents: Path | None = None
    agent: Annotated[str, Field(min_length=1)] | None = None
    model: Annotated[str, Field(min_length=1)] | None = None
    timezone: Annotated[str, AfterValidator(_check_zone)] | None = None
    database_url: str | None = None
    synchronous: Literal["NORMAL", "FULL"] | None = None
    runs: Annotated[int, Field(ge=0)] | None = None
    waiting_writes: Count | None = None
    lease_seconds: Seconds | None = None
    grace_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    event_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    heartbeat_seconds: Seconds | None = None
    streams: Annotated[int, Field(ge=0)] | None = None
    stream_bytes: Count | None = None
    event_characters: Count | None = None
    retry_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    retry_after_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    model_connect_seconds: Seconds | None = None
    model_first_byte_seconds: Seconds | None = None
    model_between_seconds: Seconds | None = None
    log_cache_threads: Count | None = None
    log_cache_entries: Count | None = None
    log_cache_bytes: Count | None = None
    quotes_at_once: Count | None = None
    database_connections: Count | None = None
    window: Count | None = None
    token: Secret | None = None
    api_keys: str | None = None
    jwt_secret: Secret | None = None
    jwt_public_key: str | None = None
    jwt_jwks_url: str | None = None
    jwt_audience: str | None = None
    jwt_issuer: str | None = None
    jwt_cache_seconds: Seconds | None = None
    public_url: str | None = None
    proxies: Annotated[str, AfterValidator(_check_networks)] | None = None
    header_bytes: Annotated[int, Field(ge=8_192)] | None = None
    header_fields: Annotated[int, Field(ge=16)] | None = None
    header_seconds: Seconds | None = None
    body_seconds: Seconds | None = None
    chat_bytes: Annotated[int, Field(ge=262_144)] | None = None
    queued_bytes: Annotated[int, Field(ge=0)] | None = None
    keep_alive_seconds: Count | None = None
    unread_seconds: Seconds | None = None
    address_connections: Count | None = None
    connections: Count | None = None
    cors_origins: str | None = None
    operators: str | None = None
    user_runs: Annotated[int, Field(ge=0)] | None = None
    user_slots: Annotated[int, Field(ge=0)] | None = None
    user_streams: Annotated[int, Field(ge=0)] | None = None
    user_requests: Annotated[int, Field(ge=0)] | None = None
    user_tokens: Annotated[int, Field(ge=0)] | None = None
    thread_queue: Annotated[int, Field(ge=0)] | None = None
    queue: Annotated[int, Field(ge=0)] | None = None
    client_tools: Annotated[int, Field(ge=0)] | None = None
    schema_bytes: Count | None = None
    schema_depth: Annotated[int, Field(ge=1, le=128)] | None = None
    pattern_bytes: Annotated[int, Field(ge=0)] | None = None
    schema_cache_bytes: Count | None = None
    event_days: Days | None = None
    call_days: Days | None = None
    thread_days: Days | None = None
    cleaning_seconds: Seconds | None = None
    storage_url: str | None = None
    signing_keys: str | None = None
    url_seconds: Annotated[float, Field(ge=60, le=604_800)] | None = None
    redirects: bool | None = None
    uploads: Count | None = None
    user_uploads: Count | None = None
    upload_files: Count | None = None
    upload_bytes: Annotated[int, Field(ge=0)] | None = None
    upload_seconds: Seconds | None = None
    unused_hours: Annotated[float, Field(ge=0, le=876_000, allow_inf_nan=False)] | None = None
    user_bytes: Annotated[int, Field(ge=0)] | None = None
    vision: bool | None = None
    image_urls: bool | None = None
    image_bytes: Count | None = None
    page_image_bytes: Count | None = None
    page_images: Annotated[int, Field(ge=0)] | None = None
    workspace_bytes: Annotated[int, Field(ge=0)] | None = None
    user_files: Annotated[int, Field(ge=0)] | None = None
    profile_bytes: Annotated[int, Field(ge=1_000)] | None = None
    parse_children: Annotated[int, Field(ge=0, le=64)] | None = None
    parse_waiting: Count | None = None
    parse_slow_seconds: Seconds | None = None
    parse_seconds: Seconds | None = None
    parse_memory_bytes: Memory | None = None
    parse_bytes: Count | None = None
    parse_pages: Count | None = None
    parse_characters: Count | None = None
    ocr: Annotated[str, AfterValidator(_check_languages)] | None = None
    ocr_pages: Annotated[int, Field(ge=0)] | None = None
    ocr_seconds: Seconds | None = None
    parsed_bytes: Annotated[int, Field(ge=0)] | None = None
    parsed_days: Days | None = None
    fetches: Count | None = None
    user_fetches: Count | None = None
    fetch_seconds: Seconds | None = None
    fetch_bytes: Count | None = None
    fetch_redirects: Annotated[int, Field(ge=0, le=20)] | None = None
    fetch_networks: Annotated[str, AfterValidator(_check_networks)] | None = None
    prices: Path | None = None
    log_level: Literal["debug", "info", "warning", "error"] | None = None
    log_format: Literal["text", "json"] | None = None


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
    log_cache_threads: int = 256
    log_cache_entries: int = 100_000
    log_cache_bytes: int = 64 * 2**20
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
