"""The `[server]` table of `recto.toml`: the type and bounds of every setting. Refuses to know their defaults."""

from __future__ import annotations

import re
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from recto.config.zones import find_zone

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
    shelf_threads: Count | None = None
    shelf_entries: Count | None = None
    shelf_bytes: Count | None = None
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
