"""Keys of an issuer from its JWKS url, cached, and fetched again for an unknown id.

If the url fails, the previous keys stay valid for at most a day.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from urllib.parse import urlsplit

import jwt
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from recto.api.access.jwt import RETRY_SECONDS, VerifyKey, key_of
from recto.api.access.rate import is_loopback
from recto.config.run_settings import Timeouts
from recto.conversation.json import load_object
from recto.errors import NOT_SHOWN, SettingsError
from recto.http.client import HttpClient
from recto.http.network import Network

LOGGER = logging.getLogger("recto.auth")
FETCH_SECONDS = 3.0
MOST_BYTES = 256 * 1024
MOST_KEYS = 64
OK = 200
# After a day without contact, the risk of using a revoked key is the greater one.
KEEP_SECONDS = 86_400.0


class JwksKeys:
    """The keys of a url. `ticks` is a monotonic clock."""

    def __init__(
        self,
        url: str,
        *,
        cache_seconds: float,
        ticks: Callable[[], float],
        fetch_seconds: float = FETCH_SECONDS,
        network: Network | None = None,
    ) -> None:
        self._url = check_jwks_url(url)
        self._cache_seconds = cache_seconds
        self._fetch_seconds = fetch_seconds
        self._network = network
        self._ticks = ticks
        self._keys: tuple[VerifyKey, ...] = ()
        self._fetched = float("-inf")
        self._next_try = float("-inf")
        self._is_well = False
        self._fetching = asyncio.Lock()

    async def find(self, id: str | None) -> Sequence[VerifyKey] | None:
        """Return the keys that match an id. An unknown id triggers a fetch, at a limited rate."""
        if self._is_due(id):
            async with self._fetching:
                # Another request may have fetched them while this one waited.
                if self._is_due(id):
                    await self._refresh()
        found = self._named(id)
        return found if found or self._is_well else None

    def _is_due(self, id: str | None) -> bool:
        now = self._ticks()
        is_old = now - self._fetched >= self._cache_seconds
        return now >= self._next_try and (is_old or not self._named(id))

    def _named(self, id: str | None) -> tuple[VerifyKey, ...]:
        return tuple(key for key in self._keys if id is None or key.id in (None, id))

    async def _refresh(self) -> None:
        try:
            self._keys = parse_jwks(await self._fetch())
            self._fetched = self._ticks()
            self._is_well = True
        except (OSError, ValueError) as error:
            self._is_well = False
            LOGGER.warning(
                "The keys of RECTO_JWT_JWKS_URL (%s) cannot be fetched: %s", urlsplit(self._url).hostname, _kind(error)
            )
            if self._ticks() - self._fetched >= KEEP_SECONDS:
                self._keys = ()
        self._next_try = self._ticks() + RETRY_SECONDS

    async def _fetch(self) -> bytes:
        headers, seconds = {"Accept": "application/json", "Connection": "close"}, self._fetch_seconds
        timeouts = Timeouts(connect=seconds, first_byte=seconds, between_bytes=seconds)
        with closing(HttpClient(self._url, {}, network=self._network)) as client:
            async with asyncio.timeout(seconds):
                answer = await client.send("GET", self._url, headers, b"", timeouts)
                if answer.status != OK:
                    raise ValueError(f"it answered with {answer.status}")
                body = b""
                while piece := await answer.read():
                    body += piece
                    if len(body) > MOST_BYTES:
                        raise ValueError(f"it gave more than {MOST_BYTES} bytes")
                return body


def check_jwks_url(url: str) -> str:
    """Return the url if it is https or on this machine. Raises SettingsError otherwise."""
    try:
        address = urlsplit(url)
        host = address.hostname or ""
        is_safe = address.scheme == "https" or (address.scheme == "http" and is_loopback(host))
        _port = address.port
    except ValueError:
        host, is_safe = "", False
    if not host or not is_safe:
        allowed = "it is the https address of an issuer's keys; http is only taken on this machine"
        raise SettingsError(name="RECTO_JWT_JWKS_URL", value=NOT_SHOWN, allowed=allowed)
    return url


def parse_jwks(body: bytes) -> tuple[VerifyKey, ...]:
    """Return the supported keys of a set. Raises ValueError for an invalid set or one without any."""
    listed = (load_object(body) or {}).get("keys")
    rows = listed[:MOST_KEYS] if isinstance(listed, list) else []
    found = tuple(key for row in rows if isinstance(row, Mapping) and (key := _parse(row)))
    if not found:
        raise ValueError("it gave no key for RS256 or ES256")
    return found


def _parse(row: Mapping[str, object]) -> VerifyKey | None:
    if row.get("use", "sig") != "sig":
        return None
    # Only public fields: if a set leaks a private key, only its public half is used.
    public = {name: row[name] for name in ("kty", "n", "e", "crv", "x", "y") if name in row}
    id = row.get("kid")
    try:
        kind = {"RSA": RSAAlgorithm, "EC": ECAlgorithm}[str(row.get("kty"))]
        key = key_of(kind.from_jwk(public), id if isinstance(id, str) else None)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    return key if key and row.get("alg", key.algorithm) == key.algorithm else None


def _kind(error: Exception) -> str:
    """Describe an error without the url, which may contain a password."""
    return str(error) if type(error) is ValueError else type(error).__name__
