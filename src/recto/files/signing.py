"""Signed URLs of files, and the keys that sign them. Anyone with such a URL can read its file until it expires."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from urllib.parse import quote

from recto.errors import SettingsError
from recto.files.file_names import safe_name, shorten

FILES = "/api/v1/agent/files/"
NAME_CHARACTERS = 100
# 192 bits cannot be guessed. They fill whole base64 characters, so that a signature has only one encoding.
SIGNATURE_BYTES = 24
# The signed text starts with its purpose: a signature for another purpose with the same key is invalid here.
PURPOSE = b"recto file url\n"

_TARGET = re.compile(
    re.escape(FILES).encode() + rb"(?P<id>[0-9A-Za-z_-]{1,64})/(?P<name>[0-9A-Za-z._~%-]{1,2000})"
    rb"\?signature=(?P<expires>[0-9]{1,12})\.(?P<key>[0-9A-Za-z_-]{1,64})\.[0-9A-Za-z_-]{32}"
)


@dataclass(frozen=True, kw_only=True)
class SigningKey:
    """A secret that signs URLs. `id` is part of the URL, so that an old key can still verify."""

    id: str
    secret: bytes = field(repr=False)


class Signer:
    """A maker and verifier of signed URLs. The first key signs, all verify. `base` returns the URL of this server."""

    def __init__(self, keys: Sequence[SigningKey], base: Callable[[], str]) -> None:
        if not keys:
            raise ValueError("Nothing can be signed without a key. Give one.")
        self._signing = keys[0]
        self._keys = {key.id: key for key in reversed(keys)}
        self._base = base

    def url(self, id: str, name: str, expires: datetime) -> str:
        """Return a URL of an attachment that is valid until `expires`. The same arguments give the same URL."""
        quoted_name = quote(shorten(safe_name(name), NAME_CHARACTERS), safe="")
        return self._root() + _target(self._signing, id, quoted_name, int(expires.timestamp()))

    def page_url(self, id: str, name: str, at: datetime) -> str:
        """Return the URL for a page: constant for the UTC day of `at`, valid to the end of the next day (P10)."""
        day = at.astimezone(UTC).date() + timedelta(days=2)
        return self.url(id, name, datetime.combine(day, time(), UTC))

    def read_url(self, url: str, now: datetime) -> str | None:
        """Return the attachment id in a complete URL of this server; None if the URL is invalid or expired."""
        data, root = url.encode("utf-8", "surrogatepass"), self._root().encode()
        return self._read(data, root, now)

    def read_target(self, target: bytes, now: datetime) -> str | None:
        """Return the attachment id in a request's path and query, as sent; None if they are invalid or expired."""
        return self._read(target, b"", now)

    def _read(self, data: bytes, root: bytes, now: datetime) -> str | None:
        match = _TARGET.fullmatch(data, len(root))
        key = self._keys.get(match["key"].decode()) if match else None
        if not match or not key:
            return None
        id, expires = match["id"].decode(), int(match["expires"])
        whole = root + _target(key, id, match["name"].decode(), expires).encode()
        if not hmac.compare_digest(whole, data) or now.timestamp() >= expires:
            return None
        return id

    def _root(self) -> str:
        return self._base().rstrip("/")


def expiry(signature: str) -> int:
    """Return the expiry of a verified URL in seconds since 1970, from the signature in its query."""
    return int(signature.partition(".")[0])


def _target(key: SigningKey, id: str, name: str, expires: int) -> str:
    """Return a signed path and query. They need no escaping in a reminder (F3), so a model can copy them unchanged."""
    text = f"{FILES}{id}/{name}?signature={expires}.{key.id}"
    digest = hmac.new(key.secret, PURPOSE + text.encode(), hashlib.sha256).digest()[:SIGNATURE_BYTES]
    return f"{text}.{base64.urlsafe_b64encode(digest).decode()}"


FILE = "signing-keys"
SETTING = "RECTO_SIGNING_KEYS"
PRIVATE = 0o600
SECRET_CHARACTERS = 16
# The stored keys are the current one and the previous one: a URL signed just before a rotation stays valid until it
# expires.
KEY_COUNT = 2
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


def parse_keys(text: str) -> tuple[SigningKey, ...]:
    """Parse keys of the form `id:secret,id:secret`. The first signs, all verify. No error shows a secret."""
    keys = list[SigningKey]()
    for key in filter(None, map(str.strip, text.split(","))):
        id, colon, secret = key.partition(":")
        if not colon or not _ID.fullmatch(id):
            raise _wrong("a key is id:secret, its id of letters, digits, - and _. Write id:secret,id:secret")
        if len(secret) < SECRET_CHARACTERS:
            raise _wrong(f"the secret of key {id!r} is too short. Give it {SECRET_CHARACTERS} characters or more")
        keys.append(SigningKey(id=id, secret=secret.encode("utf-8", "surrogateescape")))
    if not keys:
        raise _wrong("it names no key. Write id:secret,id:secret")
    if len({key.id for key in keys}) < len(keys):
        raise _wrong("two keys have the same id. Give each its own")
    return tuple(keys)


def load_keys(folder: Path) -> tuple[SigningKey, ...]:
    """Return the keys of a data folder; create them on first use.

    Servers that create them at the same time get the same.
    """
    file = folder / FILE
    try:
        if not file.exists():
            draft = _draft(file, (_new_key(),))
            try:
                # Unlike a rename, a link never replaces a file that another process made meanwhile.
                os.link(draft, file)
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        return _read_keys(file)
    except OSError as error:
        raise _unusable(file, error) from error


def rotate_keys(folder: Path) -> str:
    """Sign with a new key from now on, and still accept the previous one. Return the id of the new key."""
    file = folder / FILE
    new = _new_key()
    try:
        before = _read_keys(file) if file.exists() else ()
        draft = _draft(file, (new, *before[: KEY_COUNT - 1]))
        draft.replace(file)
    except OSError as error:
        raise _unusable(file, error) from error
    return new.id


def _wrong(problem: str) -> SettingsError:
    return SettingsError(name=SETTING, value="(hidden)", allowed=problem)


def _unusable(file: Path, error: OSError) -> SettingsError:
    allowed = f"its keys cannot be read or kept ({error.strerror}). Make it readable and writable for its owner"
    return SettingsError(name="data", value=str(file), allowed=allowed)


def _read_keys(file: Path) -> tuple[SigningKey, ...]:
    try:
        return parse_keys(file.read_text(encoding="utf-8").replace("\n", ","))
    except (SettingsError, UnicodeDecodeError):
        allowed = "it holds no keys: a line of id:secret for each. Delete it, and a new key is made"
        raise SettingsError(name="data", value=str(file), allowed=allowed) from None


def _draft(file: Path, keys: tuple[SigningKey, ...]) -> Path:
    """Write the keys to a private, synced file that has no final name yet."""
    draft = file.with_name(f"{FILE}.{secrets.token_hex(8)}.new")
    lines = "".join(f"{key.id}:{key.secret.decode()}\n" for key in keys)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w", encoding="utf-8") as out:
        out.write(lines)
        out.flush()
        os.fsync(out.fileno())
    return draft


def _new_key() -> SigningKey:
    return SigningKey(id=secrets.token_hex(4), secret=secrets.token_urlsafe(32).encode())
