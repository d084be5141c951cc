"""C2: server settings: one tree, stable names in the environment and in `recto.toml`, ranges and secrets."""

import re
from pathlib import Path

import pytest

from recto.cli.server_settings import load_settings
from recto.config.run_settings import DispatchSettings
from recto.config.setting import Setting, make_tree, settings_of, values_of
from recto.config.settings import Limits, ServerSettings
from recto.errors import SettingsError
from scripts.settings_table import with_tables
from tests.test_docs import read

# Users have these in files and environments: names may be added, never changed or removed.
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
# Valid values of settings without a default value.
VALUES = {
    "timezone": "Asia/Shanghai",
    "database_url": "sqlite:///a.db",
    "token": "a token of 16 letters",
    "jwt_secret": "a secret of 16 letters",
    "vision": "true",
    "image_urls": "false",
}


def a_value(name: str, default: object) -> object:
    if name in VALUES:
        return VALUES[name]
    return default if isinstance(default, (bool, int, float)) else str(default) if default is not None else "x"


@pytest.mark.parametrize("is_in_file", [False, True])
def test_C2_stable_names_are_read_from_the_environment_and_from_a_file(tmp_path: Path, is_in_file: bool):
    defaults, file = values_of(ServerSettings()), tmp_path / "recto.toml" if is_in_file else None
    for name in NAMES:
        value = a_value(name, defaults[name])
        if file:
            toml = str(value).lower() if isinstance(value, bool) else repr(value)
            file.write_text(f"[server]\n{name} = {toml}\n", encoding="utf-8")
        settings = load_settings({}, {} if file else {f"RECTO_{name.upper()}": str(value)}, file)
        assert str(values_of(settings)[name]).lower() == str(value).lower()


TREE = tuple(settings_of(ServerSettings))
NUMBERS = [one for one in TREE if one.kind is int or one.kind is float]


def test_C2_every_setting_has_one_name_a_sentence_and_bounds():
    names = [one.name for one in TREE]
    assert names == list(values_of(ServerSettings()))
    assert set(NAMES) <= set(names)
    assert len(names) == len(set(names))
    secrets = {"database_url", "storage_url", "signing_keys", "token", "api_keys"}
    assert {one.name for one in TREE if one.secrecy} >= secrets | {"jwt_secret", "jwt_public_key", "jwt_jwks_url"}
    assert [one.name for one in TREE if not re.fullmatch(r"[`\[A-Z].*\.", one.doc)] == []
    assert [one.name for one in NUMBERS if not one.range or (one.range.least, one.range.above) == (None, None)] == []


def test_C2_internal_settings_have_no_name():
    assert ServerSettings().uploads.form_seconds == 3_600
    with pytest.raises(SettingsError, match=r"^Setting RECTO_FORM_SECONDS is .* there is no such setting"):
        load_settings({}, {"RECTO_FORM_SECONDS": "1"}, None)


def test_C2_a_tree_has_the_values_and_defaults():
    values = {"parse_seconds": 3.0, "port": 1, "user_bytes": 7}
    tree = make_tree(ServerSettings, values)
    assert (tree.documents.limits.seconds, tree.port, tree.uploads.user_bytes) == (3.0, 1, 7)
    assert values_of(tree) == values_of(ServerSettings()) | values
    assert make_tree(ServerSettings, {}) == ServerSettings()


def test_C2_the_page_of_the_server_has_every_setting_with_its_default_and_its_sentence():
    page = read("docs/server.md")
    assert with_tables(page) == page, "The table of settings differs: make settings"
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*) \|$", page, re.MULTILINE)
    table = {name: (default, doc) for name, default, _, doc in rows}
    for one in TREE:
        assert table[one.name][1] == one.doc
        assert (table[one.name][0] == "") == (one.default is None)
    assert [name for name, *_ in rows] == [*[one.name for one in TREE], *Limits.model_fields]
    assert all(field.description for field in Limits.model_fields.values())


@pytest.mark.parametrize("one", [one for one in TREE if one.secrecy], ids=lambda one: one.name)
def test_C2_no_value_of_a_secret_is_shown(one: Setting, tmp_path: Path):
    value = {"whole": "kept-secret-of-16", "pairs": "a:kept-secret-of-16", "url": "x://a:kept-secret@host"}[
        str(one.secrecy)
    ]
    assert "kept-secret" not in repr(make_tree(ServerSettings, {one.name: value}))
    file = tmp_path / "recto.toml"
    file.write_text(f"[server]\n{one.name} = ['kept-secret']\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=rf"Setting server\.{one.name} is '\(not shown\)'") as error:
        load_settings({}, {}, file)
    assert "kept-secret" not in str(error.value)


# One of each kind of number, by its type and its bounds.
KINDS = {(one.kind, one.range): one for one in NUMBERS}


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "", "x", "1e400"])
def test_C2_an_invalid_number_is_rejected_by_its_name(value: str):
    assert KINDS
    for one in KINDS.values():
        with pytest.raises(SettingsError, match=f"^Setting RECTO_{one.name.upper()} is {value!r}; "):
            load_settings({}, {f"RECTO_{one.name.upper()}": value}, None)


@pytest.mark.parametrize(("slots", "share", "of_user"), [(200, 0, 50), (4, 0, 1), (3, 0, 1), (0, 0, 1), (8, 5, 5)])
def test_P6_a_user_has_a_quarter_of_the_runs_by_default(slots: int, share: int, of_user: int):
    assert DispatchSettings(slots=slots, share=share).slots_of_user == of_user
    assert DispatchSettings().share == 0
