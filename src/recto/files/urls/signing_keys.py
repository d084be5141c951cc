"""Keys that sign urls: given by a setting, or made and kept in the data folder. Refuses short ones, and shows none."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from recto.errors import SettingsError
from recto.files.urls.signing import SigningKey

FILE = "signing-keys"
SETTING = "RECTO_SIGNING_KEYS"
PRIVATE = 0o600
SECRET_CHARACTERS = 16
# The one that signs, and the one before it: a url signed just before a change lives on until it expires.
KEPT = 2
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


def parse_keys(text: str) -> tuple[SigningKey, ...]:
    """Keys as `id:secret,id:secret`. The first signs, all verify. Their secrets are in no error."""
    keys = tuple([_parse_key(one.strip()) for one in text.split(",") if one.strip()])
    if not keys:
        raise _wrong("it names no key. Write id:secret,id:secret")
    if len({key.id for key in keys}) < len(keys):
        raise _wrong("two keys have the same id. Give each its own")
    return keys


def load_keys(folder: Path) -> tuple[SigningKey, ...]:
    """The keys of a data folder, made at first use. Two that make them at once agree on one of theirs."""
    file = folder / FILE
    try:
        if not file.exists():
            _make(file)
        return _read(file)
    except OSError as error:
        raise _unusable(file, error) from error


def rotate_keys(folder: Path) -> str:
    """Sign with a new key from now on, and still take what the one before signed. Returns the new key's id."""
    file = folder / FILE
    new = _new_key()
    try:
        before = _read(file) if file.exists() else ()
        draft = _draft(file, (new, *before[: KEPT - 1]))
        draft.replace(file)
    except OSError as error:
        raise _unusable(file, error) from error
    return new.id


def _parse_key(text: str) -> SigningKey:
    id, colon, secret = text.partition(":")
    if not colon or not _ID.fullmatch(id):
        raise _wrong("a key is id:secret, its id of letters, digits, - and _. Write id:secret,id:secret")
    if len(secret) < SECRET_CHARACTERS:
        raise _wrong(f"the secret of key {id!r} is too short. Give it {SECRET_CHARACTERS} characters or more")
    return SigningKey(id=id, secret=secret.encode("utf-8", "surrogateescape"))


def _wrong(problem: str) -> SettingsError:
    return SettingsError(name=SETTING, value="(hidden)", allowed=problem)


def _unusable(file: Path, error: OSError) -> SettingsError:
    allowed = f"its keys cannot be read or kept ({error.strerror}). Make it readable and writable for its owner"
    return SettingsError(name="data", value=str(file), allowed=allowed)


def _read(file: Path) -> tuple[SigningKey, ...]:
    try:
        return parse_keys(file.read_text(encoding="utf-8").replace("\n", ","))
    except (SettingsError, UnicodeDecodeError):
        allowed = "it holds no keys: a line of id:secret for each. Delete it, and a new key is made"
        raise SettingsError(name="data", value=str(file), allowed=allowed) from None


def _make(file: Path) -> None:
    draft = _draft(file, (_new_key(),))
    try:
        # Unlike a rename this never takes the place of a file somebody made in between.
        os.link(draft, file)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _draft(file: Path, keys: tuple[SigningKey, ...]) -> Path:
    """The keys in a file that is whole, on the disk and ours alone before it gets its name."""
    draft = file.with_name(f"{FILE}.{secrets.token_hex(8)}.new")
    lines = "".join(f"{key.id}:{key.secret.decode()}\n" for key in keys)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w", encoding="utf-8") as out:
        out.write(lines)
        out.flush()
        os.fsync(out.fileno())
    return draft


def _new_key() -> SigningKey:
    return SigningKey(id=secrets.token_hex(4), secret=secrets.token_urlsafe(32).encode())
