"""The local token and API keys: what is taken, what stops the start, and that no secret is ever shown."""

import logging
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.api.access.auth import Authenticator, check_binding, local_token
from recto.api.backend import AuthResult, Delayed, Denied, User
from recto.config.access_settings import AuthSettings
from recto.errors import SettingsError
from recto.http.network import is_loopback

TOKEN = "local-token-of-a-test"
ANNA, BERT, CARL = "anna-key-0123456789", "bert-key-0123456789", "carl-key-0123456789"
KEYS = f"anna:{ANNA}, bert:{BERT}:read,anna:{CARL}"
VISIBLE = st.characters(min_codepoint=0x21, max_codepoint=0x7E)


def make_authenticator(token: str | None = TOKEN, api_keys: str | None = KEYS) -> Authenticator:
    return Authenticator(AuthSettings(token=token, api_keys=api_keys))


async def come(auth: Authenticator, *headers: str) -> AuthResult:
    return await auth.admit(headers)


@pytest.mark.parametrize(
    ("credential", "user"),
    [
        (TOKEN, User(name="local")),
        (ANNA, User(name="anna")),
        (BERT, User(name="bert", can_write=False)),
        (CARL, User(name="anna")),
    ],
)
async def test_C3_the_token_and_each_key_stand_for_their_user(credential: str, user: User):
    assert await come(make_authenticator(), f"Bearer {credential}") == user
    assert await come(make_authenticator(), f"bearer   {credential} ") == user


MALFORMED = [
    *[("",), ("Bearer",), ("Bearer ",), (TOKEN,), (f"Bearer {TOKEN} more",), ("Bearer " + "x" * 9000,)],
    (f"Bearer {TOKEN}", f"Bearer {TOKEN}"),
]
WRONG = [(f"Bearer {one}",) for one in (f"{TOKEN},{ANNA}", f"anna:{ANNA}", "a.b.c")]


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ((), "no_credential"),
        *[(headers, "malformed_credential") for headers in MALFORMED],
        *[(headers, "wrong_credential") for headers in WRONG],
    ],
)
async def test_C3_anything_else_is_denied_with_its_reason_and_what_to_send(headers: tuple[str, ...], reason: str):
    result = await come(make_authenticator(), *headers)
    assert isinstance(result, Denied)
    assert result.reason == reason
    assert "Authorization: Bearer X" in result.detail
    assert "the file `token` of the data folder" in result.detail
    assert "an API key" in result.detail
    assert TOKEN not in result.detail


@given(st.integers(0, len(ANNA) - 1), VISIBLE)
async def test_C3_every_single_character_of_a_key_counts(at: int, character: str):
    changed = ANNA[:at] + character + ANNA[at + 1 :]
    result = await come(make_authenticator(), f"Bearer {changed}")
    assert isinstance(result, User) == (changed == ANNA)


@given(st.lists(st.text(), max_size=3))
async def test_C3_no_header_whatever_brings_it_down(headers: list[str]):
    assert isinstance(await come(make_authenticator(), *headers), Denied | Delayed)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("anna", "entry 1 must be user:key"),
        (f"anna:{ANNA},", "entry 2 must be user:key"),
        (f"anna:{ANNA}:write", "entry 1 must be user:key or user:key:read"),
        (f"anna:{ANNA}:read:x", "entry 1 must be user:key"),
        (f":{ANNA}", "entry 1 has a user name that is empty"),
        (f"an\x07na:{ANNA}", "unprintable"),
        (f"{'a' * 256}:{ANNA}", "too long"),
        (f"local:{ANNA}", "entry 1 uses the name 'local', which is reserved"),
        (f"anna:{ANNA},bert:{ANNA[:15]}", "entry 2 has an invalid key. Use at least 16 visible ASCII characters"),
        (f"anna:{ANNA} {ANNA}", "visible ASCII characters"),
        (f"anna:{ANNA},bert:{ANNA}", "a key occurs twice"),
        (f"anna:{ANNA},anna:{ANNA}:read", "a key occurs twice"),
        (f"anna:{TOKEN}", "equals RECTO_TOKEN"),
    ],
)
def test_C2_malformed_keys_stop_the_start_with_one_line_that_shows_no_key(keys: str, problem: str):
    with pytest.raises(SettingsError) as raised:
        make_authenticator(api_keys=keys)
    detail = str(raised.value)
    assert problem in detail
    assert "RECTO_API_KEYS is '(not shown)'" in detail
    assert "\n" not in detail
    assert ANNA[:15] not in detail
    assert TOKEN not in detail


@pytest.mark.parametrize("token", ["short", "with spaces in its middle", "mit-Umlauten-äöü-drin", ""])
def test_C2_a_token_no_header_could_carry_stops_the_start(token: str):
    with pytest.raises(SettingsError, match="RECTO_TOKEN is '\\(not shown\\)'"):
        make_authenticator(token=token)


async def test_C3_with_keys_and_no_token_of_its_own_a_server_has_no_local_user():
    result = await come(make_authenticator(token=None), f"Bearer {TOKEN}")
    assert isinstance(result, Denied)
    assert "token" not in result.detail.partition("where X is")[2]


# Where it may listen


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost", "LOCALHOST"])
def test_C2_this_machine_needs_no_accounts(host: str):
    assert is_loopback(host)
    check_binding(host, has_accounts=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "localhost.example.org", ""])
def test_C2_an_address_others_can_reach_needs_accounts(host: str):
    check_binding(host, has_accounts=True)
    with pytest.raises(SettingsError, match=r"RECTO_API_KEYS.*RECTO_JWT_SECRET") as raised:
        check_binding(host, has_accounts=False)
    assert repr(host) in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "has"),
    [
        (AuthSettings(token=TOKEN), False),
        (AuthSettings(api_keys=KEYS), True),
        (AuthSettings(jwt_secret="s" * 32), True),
        (AuthSettings(jwt_public_key="x"), True),
        (AuthSettings(jwt_jwks_url="https://x"), True),
        (AuthSettings(api_keys="", jwt_audience="a"), False),
    ],
)
def test_C2_the_local_token_alone_is_no_account(settings: AuthSettings, has: bool):
    assert settings.has_accounts is has


# The file of the token


def test_C2_a_token_is_made_once_for_its_owner_alone(tmp_path: Path):
    token = local_token(tmp_path, None)
    assert len(token) >= 43
    assert local_token(tmp_path, None) == token
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["token"]
    make_authenticator(token=token)


def test_C2_a_token_that_is_given_wins_and_nothing_is_written(tmp_path: Path):
    assert local_token(tmp_path, TOKEN) == TOKEN
    assert not list(tmp_path.iterdir())


def test_C2_a_file_others_can_read_is_closed_to_them_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    token = local_token(tmp_path, None)
    (tmp_path / "token").chmod(0o644)
    with caplog.at_level(logging.WARNING, "recto.auth"):
        assert local_token(tmp_path, None) == token
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert "Other users could read" in caplog.text
    assert token not in caplog.text


@pytest.mark.parametrize("content", [b"", b"short\n", b"two words and more of them", b"\xff" * 40])
def test_C2_a_file_without_a_token_is_refused_and_not_shown(tmp_path: Path, content: bytes):
    (tmp_path / "token").write_bytes(content)
    (tmp_path / "token").chmod(0o600)
    with pytest.raises(SettingsError, match=r"not shown.*it contains no token. Remove it"):
        local_token(tmp_path, None)


def test_C2_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path):
    (tmp_path / "elsewhere").write_text("x" * 40)
    (tmp_path / "token").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SettingsError, match="it cannot be used"):
        local_token(tmp_path, None)


def test_C2_a_start_that_was_cut_off_leaves_nothing_in_the_way(tmp_path: Path):
    (tmp_path / "token.new").write_text("half")
    (tmp_path / "token.new").chmod(0o644)
    assert local_token(tmp_path, None) != "half"
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
