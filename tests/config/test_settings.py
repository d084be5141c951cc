"""C2: settings are one tree; what each is called in the environment, in `recto.toml` and on the command line."""

import os
import re
import subprocess
import sys
from pathlib import Path

from recto.cli.server_settings import load_settings
from recto.config.settings import ServerSettings

# People have these in files and in the environment: none may go or change, more may come.
NAMES = tuple(
    re.findall(
        r"\w+",
        """
        host port data agents agent model timezone database_url synchronous runs waiting_writes lease_seconds
        grace_seconds event_seconds heartbeat_seconds streams stream_bytes event_characters retry_seconds
        retry_after_seconds model_connect_seconds model_first_byte_seconds model_between_seconds log_cache_threads
        log_cache_entries log_cache_bytes quotes_at_once database_connections window token api_keys jwt_secret
        jwt_public_key jwt_jwks_url jwt_audience jwt_issuer jwt_cache_seconds public_url proxies header_bytes
        header_fields header_seconds body_seconds chat_bytes queued_bytes keep_alive_seconds unread_seconds
        address_connections connections cors_origins operators user_runs user_slots user_streams user_requests
        user_tokens thread_queue queue client_tools schema_bytes schema_depth pattern_bytes schema_cache_bytes
        event_days call_days thread_days cleaning_seconds storage_url signing_keys url_seconds redirects uploads
        user_uploads upload_files upload_bytes upload_seconds unused_hours user_bytes vision image_urls image_bytes
        page_image_bytes page_images workspace_bytes user_files profile_bytes parse_children parse_waiting
        parse_slow_seconds parse_seconds parse_memory_bytes parse_bytes parse_pages parse_characters ocr ocr_pages
        ocr_seconds parsed_bytes parsed_days fetches user_fetches fetch_seconds fetch_bytes fetch_redirects
        fetch_networks prices log_level log_format
        """,
    )
)
# Values that are right for those whose default means that there is none, or has another form.
GIVEN = {
    "timezone": "Asia/Shanghai",
    "database_url": "sqlite:///a.db",
    "token": "a token of 16 letters",
    "jwt_secret": "a secret of 16 letters",
    "vision": "true",
    "image_urls": "false",
}


def a_value(name: str, default: object) -> object:
    if name in GIVEN:
        return GIVEN[name]
    return default if isinstance(default, (bool, int, float)) else str(default) if default is not None else "x"


def defaults() -> dict[str, object]:
    return {name: getattr(ServerSettings(), name) for name in NAMES}


def test_C2_names_people_use_are_taken_from_the_environment():
    for name, default in defaults().items():
        load_settings({}, {f"RECTO_{name.upper()}": str(a_value(name, default))}, None)


def test_C2_names_people_use_are_taken_from_a_file(tmp_path: Path):
    file = tmp_path / "recto.toml"
    for name, default in defaults().items():
        value = a_value(name, default)
        shown = str(value).lower() if isinstance(value, bool) else repr(value)
        file.write_text(f"[server]\n{name} = {shown}\n", encoding="utf-8")
        load_settings({}, {}, file)


def test_C1_flags_people_use_are_taken(tmp_path: Path):
    flags = ["--host", "::1", "--port", "1", "--data", "d", "--agents", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "recto", "serve", "--check", *flags],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("RECTO_")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = [f"host = {'::1'!r}", "port = 1", "data = 'd'", f"agents = {str(tmp_path)!r}"]
    assert [line for line in shown if line not in done.stdout.splitlines()] == []
