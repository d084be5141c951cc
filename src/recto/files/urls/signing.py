"""Signed urls of files: who has one may read that file until it expires. Refuses a url that differs in one byte."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from urllib.parse import quote

from recto.files.types.names import safe_name, shorten

FILES = "/api/v1/agent/files/"
NAME_CHARACTERS = 100
# 192 bits are beyond guessing, and end on a whole letter of base64: no two texts stand for the same signature.
SIGNATURE_BYTES = 24
# What is signed begins with its purpose: a signature made for something else under the same key is none here.
PURPOSE = b"recto file url\n"

_TARGET = re.compile(
    re.escape(FILES).encode() + rb"(?P<id>[0-9A-Za-z_-]{1,64})/(?P<name>[0-9A-Za-z._~%-]{1,2000})"
    rb"\?signature=(?P<expires>[0-9]{1,12})\.(?P<key>[0-9A-Za-z_-]{1,64})\.[0-9A-Za-z_-]{32}"
)


@dataclass(frozen=True, kw_only=True)
class SigningKey:
    """A secret urls are signed with. `id` stands in the url, so that an old key is known while it is kept."""

    id: str
    secret: bytes = field(repr=False)


class Signer:
    """Makes and reads signed urls. The first key signs, all verify. `base` is where this server is reached."""

    def __init__(self, keys: Sequence[SigningKey], base: Callable[[], str]) -> None:
        if not keys:
            raise ValueError("Nothing can be signed without a key. Give one.")
        self._signing = keys[0]
        self._keys = {key.id: key for key in reversed(keys)}
        self._base = base

    def url(self, id: str, name: str, expires: datetime) -> str:
        """The url under which an attachment can be read until it expires. Same arguments, same url."""
        shown = quote(shorten(safe_name(name), NAME_CHARACTERS), safe="")
        return self._root() + _target(self._signing, id, shown, int(expires.timestamp()))

    def page_url(self, id: str, name: str, at: datetime) -> str:
        """The url for a page: the same for the whole UTC day of `at`, valid to the end of the day after (P10)."""
        day = at.astimezone(UTC).date() + timedelta(days=2)
        return self.url(id, name, datetime.combine(day, time(), UTC))

    def read_url(self, url: str, now: datetime) -> str | None:
        """The attachment a whole url of ours stands for; None for any other, or one that has expired."""
        given, root = url.encode("utf-8", "surrogatepass"), self._root().encode()
        return self._read(given, root, now)

    def read_target(self, target: bytes, now: datetime) -> str | None:
        """The attachment a request asks for, by its path and query as they were sent; None if it may not."""
        return self._read(target, b"", now)

    def _read(self, given: bytes, root: bytes, now: datetime) -> str | None:
        found = _TARGET.fullmatch(given, len(root))
        key = self._keys.get(found["key"].decode()) if found else None
        if not found or not key:
            return None
        id, expires = found["id"].decode(), int(found["expires"])
        whole = root + _target(key, id, found["name"].decode(), expires).encode()
        if not hmac.compare_digest(whole, given) or now.timestamp() >= expires:
            return None
        return id

    def _root(self) -> str:
        return self._base().rstrip("/")


def expiry(signature: str) -> int:
    """When a url ends, in seconds since 1970, by the signature in its query. For a url that has been verified."""
    return int(signature.partition(".")[0])


def _target(key: SigningKey, id: str, name: str, expires: int) -> str:
    """Path and query with their signature. All that is in it is signed, so no byte of it can be another.

    There is no `&` in it, nor anything else that a reminder escapes (F3): a model may copy it as it reads it.
    """
    text = f"{FILES}{id}/{name}?signature={expires}.{key.id}"
    digest = hmac.new(key.secret, PURPOSE + text.encode(), hashlib.sha256).digest()[:SIGNATURE_BYTES]
    return f"{text}.{base64.urlsafe_b64encode(digest).decode()}"
