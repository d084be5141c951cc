"""Keys that sign URLs: configured, or generated and stored; never shown (P9)."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recto.errors import SettingsError
from recto.files.signing import FILE, load_keys, parse_keys, rotate_keys

SECRET = "0123456789abcdef"


def test_P9_keys_are_given_in_order():
    keys = parse_keys(f"new:{SECRET}x, old:{SECRET}:with:colons")
    assert [key.id for key in keys] == ["new", "old"]
    assert [key.secret for key in keys] == [f"{SECRET}x".encode(), f"{SECRET}:with:colons".encode()]


@pytest.mark.parametrize(
    "text",
    [
        *("", " , ", SECRET, f":{SECRET}", "a:short-secret", f"a b:{SECRET}", f"a&b:{SECRET}"),
        *(f"a:{SECRET},a:{SECRET}", f"{'x' * 65}:{SECRET}"),
    ],
)
def test_P9_keys_that_cannot_be_used_are_refused_without_showing_them(text: str):
    with pytest.raises(SettingsError) as error:
        parse_keys(text)
    assert "RECTO_SIGNING_KEYS" in str(error.value)
    assert SECRET not in str(error.value)
    assert "short-secret" not in str(error.value)


def test_P9_keys_are_made_once_for_processes_that_start_at_once_and_kept_for_their_owner_alone(tmp_path: Path):
    with ThreadPoolExecutor(8) as pool:
        (keys,) = set(pool.map(load_keys, [tmp_path] * 32))
    assert [len(key.secret) >= 32 for key in keys] == [True]
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_P9_rotation_puts_a_new_key_first_keeps_the_one_before_and_drops_older_ones(tmp_path: Path):
    # Without a key, rotation makes the first.
    assert rotate_keys(tmp_path) == load_keys(tmp_path)[0].id
    (first,) = load_keys(tmp_path)
    second = rotate_keys(tmp_path)
    assert [key.id for key in load_keys(tmp_path)] == [second, first.id]
    assert load_keys(tmp_path)[1] == first
    third = rotate_keys(tmp_path)
    assert [key.id for key in load_keys(tmp_path)] == [third, second]
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"a:tooshort\n", b"\xff\xfe\x00"])
def test_P9_a_broken_file_of_keys_is_refused_by_its_name_and_not_shown(tmp_path: Path, content: bytes):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(SettingsError, match=FILE) as error:
        load_keys(tmp_path)
    assert "tooshort" not in str(error.value)


def test_P9_keys_that_cannot_be_kept_are_refused(tmp_path: Path):
    with pytest.raises(SettingsError, match="cannot be read or kept"):
        load_keys(tmp_path / "nowhere")
    with pytest.raises(SettingsError, match="cannot be read or kept"):
        rotate_keys(tmp_path / "nowhere")
