"""Settings of the server (C2) and limits of a run: each is one field with its type, its bounds and its default.

What a setting is called in the environment, in `recto.toml` and on the command line follows from the field's name.
"""

from __future__ import annotations

import re
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from recto.config.checked import Count, CountOrZero, Seconds, Table, Zone

# No value of these is ever shown: a url may hold a password.
SECRETS = frozenset(
    {
        *("database_url", "storage_url", "signing_keys", "token", "api_keys"),
        *("jwt_secret", "jwt_public_key", "jwt_jwks_url"),
    }
)
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


Name = Annotated[str, Field(min_length=1)]
SecondsOrZero = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# A century: more is a mistake, and a time beyond the calendar.
Days = Annotated[float, Field(ge=0, le=36_500, allow_inf_nan=False)]
Secret = Annotated[str, Field(min_length=16)]
# What a parser needs before it has read anything; with less no document could be.
Memory = Annotated[int, Field(ge=256 * 2**20)]
Networks = Annotated[str, AfterValidator(_check_networks)]
Languages = Annotated[str, AfterValidator(_check_languages)]


class Limits(Table):
    """What a run may use: replies of the model, calls and characters of each, seconds in all and of each tool.

    `tool_characters` are those of a tool's result.
    `failures` of the model in a row, replies in a row whose calls no tool could take, and `claims`: how often a run may
    be taken up again before it is given up as one that brings its worker down. `client_seconds` is how long a client
    may take to answer a call of one of its own tools.
    """

    steps: Count = 50
    calls: Count = 128
    reply_characters: Count = 1_000_000
    seconds: Seconds = 1_800
    tool_seconds: Seconds = 120
    tool_characters: Annotated[int, Field(ge=200)] = 50_000
    failures: Count = 4
    bad_arguments: CountOrZero = 3
    claims: Count = 20
    compactions: Count = 3
    client_seconds: Seconds = 86_400

    def with_given(self, other: Limits) -> Limits:
        """These, but those that were given of the other in their place."""
        return self.model_copy(update=given(other))


class ServerTable(BaseModel):
    """What the `[server]` table of a file, the environment or the command line may say.

    In the limits of users, uploads and the queue, and in the time to keep things, 0 means that there is none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8787
    data: Path = Path("recto-data")
    agents: Path | None = None
    agent: Name | None = None
    model: Name = "demo"
    timezone: Zone | None = None
    database_url: str | None = None
    synchronous: Literal["NORMAL", "FULL"] = "NORMAL"
    runs: CountOrZero = 200
    waiting_writes: Count = 10_000
    lease_seconds: Seconds = 10.0
    grace_seconds: SecondsOrZero = 7.0
    event_seconds: SecondsOrZero = 0.04
    heartbeat_seconds: Seconds = 15.0
    streams: CountOrZero = 1_000
    stream_bytes: Count = 65_536
    event_characters: Count = 8_192
    retry_seconds: SecondsOrZero = 0.5
    retry_after_seconds: SecondsOrZero = 60.0
    model_connect_seconds: Seconds = 10.0
    model_first_byte_seconds: Seconds = 120.0
    model_between_seconds: Seconds = 60.0
    log_cache_threads: Count = 256
    log_cache_entries: Count = 100_000
    log_cache_bytes: Count = 64 * 2**20
    quotes_at_once: Count = 2
    database_connections: Count = 10
    window: Count = 128_000
    token: Secret | None = None
    api_keys: str | None = None
    jwt_secret: Secret | None = None
    jwt_public_key: str | None = None
    jwt_jwks_url: str | None = None
    jwt_audience: str | None = None
    jwt_issuer: str | None = None
    jwt_cache_seconds: Seconds = 600.0
    public_url: str | None = None
    proxies: Networks = ""
    header_bytes: Annotated[int, Field(ge=8_192)] = 65_536
    header_fields: Annotated[int, Field(ge=16)] = 100
    header_seconds: Seconds = 10.0
    body_seconds: Seconds = 60.0
    chat_bytes: Annotated[int, Field(ge=262_144)] = 2**20
    queued_bytes: CountOrZero = 2**20
    keep_alive_seconds: Count = 5
    unread_seconds: Seconds = 60.0
    address_connections: Count = 1_024
    connections: Count = 8_192
    cors_origins: str = ""
    operators: str = "local"
    user_runs: CountOrZero = 200
    user_slots: CountOrZero = 0
    user_streams: CountOrZero = 200
    user_requests: CountOrZero = 6_000
    user_tokens: CountOrZero = 0
    thread_queue: CountOrZero = 50
    queue: CountOrZero = 10_000
    client_tools: CountOrZero = 128
    schema_bytes: Count = 262_144
    schema_depth: Annotated[int, Field(ge=1, le=128)] = 64
    pattern_bytes: CountOrZero = 4 * 2**20
    schema_cache_bytes: Count = 64 * 2**20
    event_days: Days = 30.0
    call_days: Days = 0.0
    thread_days: Days = 0.0
    cleaning_seconds: Seconds = 3_600.0
    storage_url: str | None = None
    signing_keys: str | None = None
    url_seconds: Annotated[float, Field(ge=60, le=604_800)] = 86_400.0
    redirects: bool = True
    uploads: Count = 100
    user_uploads: Count = 50
    upload_files: Count = 20
    upload_bytes: CountOrZero = 2**30
    upload_seconds: Seconds = 60.0
    unused_hours: Annotated[float, Field(ge=0, le=876_000, allow_inf_nan=False)] = 24.0
    user_bytes: CountOrZero = 10 * 2**30
    vision: bool | None = None
    image_urls: bool | None = None
    image_bytes: Count = 5_000_000
    page_image_bytes: Count = 20_000_000
    page_images: CountOrZero = 20
    workspace_bytes: CountOrZero = 2**30
    user_files: CountOrZero = 100_000
    profile_bytes: Annotated[int, Field(ge=1_000)] = 262_144
    parse_children: Annotated[int, Field(ge=0, le=64)] = 0
    parse_waiting: Count = 100
    parse_slow_seconds: Seconds = 5.0
    parse_seconds: Seconds = 60.0
    parse_memory_bytes: Memory = 512 * 2**20
    parse_bytes: Count = 100 * 2**20
    parse_pages: Count = 5_000
    parse_characters: Count = 100_000_000
    ocr: Languages = "chi_sim+eng"
    ocr_pages: CountOrZero = 50
    ocr_seconds: Seconds = 240.0
    parsed_bytes: CountOrZero = 5 * 2**30
    parsed_days: Days = 30.0
    fetches: Count = 16
    user_fetches: Count = 4
    fetch_seconds: Seconds = 20.0
    fetch_bytes: Count = 50 * 2**20
    fetch_redirects: Annotated[int, Field(ge=0, le=20)] = 5
    fetch_networks: Networks = ""
    prices: Path | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    log_format: Literal["text", "json"] = "text"


class ServerSettings(ServerTable):
    """Everything a server can be told."""

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


def given(table: BaseModel) -> dict[str, object]:
    """What was given of a table, without what has its default."""
    return {name: getattr(table, name) for name in table.model_fields_set}
