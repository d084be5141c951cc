"""API keys: `user:key` or `user:key:read`, by commas. Refuses weak and doubled keys, and never shows one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest

from recto.api.auth_verdict import is_name
from recto.api.backend import LOCAL, User
from recto.errors import NOT_SHOWN, SettingsError

SETTING = "RECTO_API_KEYS"
READ = "read"
LEAST = 16
KEY = re.compile(rf"[\x21-\x7e]{{{LEAST},}}")


@dataclass(frozen=True, kw_only=True)
class Key:
    """What opens the door for one user. Only its hash is kept: an object that is shown shows no secret."""

    user: User
    digest: bytes = field(repr=False)


def make_key(user: User, secret: str, *, setting: str) -> Key:
    """A key. One that is short, or that no header could carry, raises SettingsError."""
    if not KEY.fullmatch(secret):
        allowed = f"a token or key has at least {LEAST} characters, visible ones of ASCII"
        raise SettingsError(name=setting, value=NOT_SHOWN, allowed=allowed)
    return Key(user=user, digest=_digest(secret))


def parse_keys(text: str) -> tuple[Key, ...]:
    """The keys a setting names. One user may have several; no key may have several users."""
    return tuple(_parse(entry.strip(), number) for number, entry in enumerate(text.split(","), 1)) if text else ()


def check_distinct(keys: Sequence[Key]) -> None:
    """Raise where one secret would stand for two users, or for two rights of one."""
    owners: Mapping[bytes, User] = {key.digest: key.user for key in keys}
    if len(owners) < len(keys):
        allowed = "the same key stands there twice, or is RECTO_TOKEN too. Give each its own"
        raise SettingsError(name=SETTING, value=NOT_SHOWN, allowed=allowed)


def find_user(keys: Sequence[Key], secret: str) -> User | None:
    """Whose key it is. Takes as long for a wrong one as for a right one."""
    digest, found = _digest(secret), None
    for key in keys:
        if compare_digest(key.digest, digest):
            found = key.user
    return found


def _parse(entry: str, number: int) -> Key:
    match entry.split(":"):
        case [name, secret]:
            user = User(name=name)
        case [name, secret, "read"]:
            user = User(name=name, can_write=False)
        case _:
            raise _wrong(number, f"is not written as user:key or user:key:{READ}")
    if not is_name(name):
        raise _wrong(number, "has no name, or one that is too long or cannot be printed")
    if name == LOCAL:
        raise _wrong(number, f"is for a user {LOCAL!r}; that is who comes with RECTO_TOKEN. Choose another name")
    if not KEY.fullmatch(secret):
        raise _wrong(
            number, f"has a key that is too short: at least {LEAST} visible characters of ASCII, no ':' or ','"
        )
    return Key(user=user, digest=_digest(secret))


def _wrong(number: int, problem: str) -> SettingsError:
    return SettingsError(name=SETTING, value=NOT_SHOWN, allowed=f"entry {number} {problem}")


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()
