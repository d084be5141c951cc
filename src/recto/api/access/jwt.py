"""JWT verification: keys, signatures and claims. A key accepts one algorithm only."""

from __future__ import annotations

import asyncio
import logging
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, cast
from urllib.parse import urlsplit

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from jwt.types import Options

from recto.api.backend import AuthResult, Delayed, Denied, User, is_name
from recto.config.run_settings import Timeouts
from recto.conversation.json import load_object
from recto.errors import NOT_SHOWN, SettingsError
from recto.http.client import HttpClient
from recto.http.network import Network, is_loopback

LOGGER = logging.getLogger("recto.auth")
SHAPE = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
SECRET_BYTES = 32
RSA_BITS = 2048
PEM = "-----BEGIN "
PEM_BYTES = 64 * 1024
Algorithm: TypeAlias = Literal["HS256", "RS256", "ES256"]
# PyJWT checks only the signature. `read_claims` checks the claims, with the given clock.
OPTIONS: Options = {
    "enforce_minimum_key_length": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}
FORGED = Denied(reason="jwt_signature", detail="The JWT is invalid: it is not signed with a key of this server.")
BROKEN = Denied(reason="jwt_form", detail="The JWT is invalid: it cannot be parsed.")
# Minimum interval between two fetches of keys.
RETRY_SECONDS = 5.0
UNKNOWN = Delayed(detail="The server cannot fetch the keys to verify JWTs at present.", retry=RETRY_SECONDS)
# Tolerance for `nbf` and `iat`, because the clocks of two machines may differ.
LEEWAY_SECONDS = 30.0
READ_SCOPE, WRITE_SCOPE = "recto:read", "recto:write"
FETCH_SECONDS = 3.0
MOST_BYTES = 256 * 1024
MOST_KEYS = 64
OK = 200
# How long keys stay valid while the issuer is unreachable. A longer time risks accepting revoked keys.
KEEP_SECONDS = 86_400.0


@dataclass(frozen=True, kw_only=True)
class VerifyKey:
    """A key and its only algorithm. `id` is its `kid`, if any."""

    algorithm: Algorithm
    key: str | RSAPublicKey | EllipticCurvePublicKey = field(repr=False)
    id: str | None = None


class KeySource(Protocol):
    """A source of verification keys."""

    async def find(self, id: str | None) -> Sequence[VerifyKey] | None:
        """Return the keys that match an id; None if they cannot be fetched at present."""
        ...


class FixedKey:
    """Source with one configured key, which ignores the `kid` of tokens."""

    def __init__(self, key: VerifyKey) -> None:
        self._keys = (key,)

    async def find(self, id: str | None) -> Sequence[VerifyKey]:  # noqa: ARG002 - the port has it
        """Return the key."""
        return self._keys


@dataclass(frozen=True, kw_only=True)
class ClaimRules:
    """Required claims. `reserved` are the user names of other credentials."""

    audience: str | None = None
    issuer: str | None = None
    reserved: frozenset[str] = field(default_factory=frozenset[str])


class JwtReader:
    """JWT reader with the keys of one source."""

    def __init__(self, keys: KeySource, rules: ClaimRules, clock: Callable[[], float]) -> None:
        self._keys = keys
        self._rules = rules
        self._clock = clock

    async def read(self, token: str) -> AuthResult:
        """Return the user of a token. The key determines the algorithm, never the token."""
        if not SHAPE.fullmatch(token):
            return BROKEN
        text = token.partition(".")[0]
        try:
            header = load_object(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except ValueError:
            header = None
        if header is None:
            return BROKEN
        id, algorithm = header.get("kid"), header.get("alg")
        keys = await self._keys.find(id if isinstance(id, str) else None)
        if keys is None:
            return UNKNOWN
        for key in [key for key in keys if key.algorithm == algorithm]:
            with suppress(jwt.PyJWTError):
                claims = jwt.decode(token, key.key, algorithms=[key.algorithm], options=OPTIONS)
                return read_claims(claims, self._rules, self._clock())
        return FORGED


def read_claims(claims: Mapping[str, object], rules: ClaimRules, now: float) -> User | Denied:
    """Return the user that the claims name, or the reason to reject them. `now` is in seconds since 1970."""
    if problem := _check_time_and_place(claims, rules, now):
        return problem
    name, scope = claims.get("sub"), claims.get("scope", "")
    if not isinstance(name, str) or not is_name(name):
        return _denied("jwt_sub", "its sub is missing, empty, unprintable or longer than 255 characters")
    if name in rules.reserved:
        return _denied("jwt_sub", "its sub is the user name of an API key or of the local token")
    if not isinstance(scope, str):
        return _denied("jwt_scope", "its scope is not a string")
    scopes = scope.split()
    return User(name=name, can_write=READ_SCOPE not in scopes or WRITE_SCOPE in scopes)


def _check_time_and_place(claims: Mapping[str, object], rules: ClaimRules, now: float) -> Denied | None:
    """Return the reason to reject a token: not valid now, or made for another server."""
    end = _number(claims.get("exp"))
    if end is None:
        return _denied("jwt_exp", "its exp is missing or not a number")
    # The comparison also rejects NaN.
    if not end > now:
        return _denied("jwt_expired", "it has expired. Get a new one")
    for name in ("nbf", "iat"):
        begin = _number(claims.get(name, 0))
        if begin is None or not begin <= now + LEEWAY_SECONDS:
            return _denied(f"jwt_{name}", f"its {name} is in the future or not a number")
    audience = claims.get("aud")
    audiences = cast("list[object]", audience) if isinstance(audience, list) else [audience]
    if rules.audience is None and "aud" in claims:
        return _denied("jwt_aud", "it has an audience, but this server has no RECTO_JWT_AUDIENCE")
    if rules.audience is not None and rules.audience not in audiences:
        return _denied("jwt_aud", "it is for another audience")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        return _denied("jwt_iss", "it is from another issuer")
    return None


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _denied(reason: str, problem: str) -> Denied:
    return Denied(reason=reason, detail=f"The JWT is invalid: {problem}.")


def secret_key(secret: str) -> VerifyKey:
    """Return the key of RECTO_JWT_SECRET."""
    if len(secret.encode()) < SECRET_BYTES or PEM in secret:
        allowed = f"it must have at least {SECRET_BYTES} bytes and not be a PEM"
        raise SettingsError(name="RECTO_JWT_SECRET", value=NOT_SHOWN, allowed=allowed)
    return VerifyKey(algorithm="HS256", key=secret)


def public_key(text: str) -> VerifyKey:
    """Return the key of RECTO_JWT_PUBLIC_KEY: a PEM, or the path of one."""
    # Environment variables often contain a PEM as one line with escaped line ends.
    pem = text.replace("\\n", "\n").encode()
    if PEM not in text:
        try:
            with Path(text).open("rb") as file:
                pem = file.read(PEM_BYTES)
        except (OSError, ValueError) as error:
            raise _no_public_key("it is neither a PEM nor the path of a readable file") from error
    try:
        key = key_of(load_pem_public_key(pem))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _no_public_key("it contains no public key as PEM (-----BEGIN PUBLIC KEY-----)") from error
    if key is None:
        raise _no_public_key(f"it must be an RSA key of at least {RSA_BITS} bits (RS256) or an EC key on P-256 (ES256)")
    return key


def key_of(key: object, id: str | None = None) -> VerifyKey | None:
    """Return a public key with its algorithm; None for unsupported keys."""
    match key:
        case RSAPublicKey() if key.key_size >= RSA_BITS:
            return VerifyKey(algorithm="RS256", key=key, id=id)
        case EllipticCurvePublicKey() if isinstance(key.curve, SECP256R1):
            return VerifyKey(algorithm="ES256", key=key, id=id)
        case _:
            return None


def _no_public_key(allowed: str) -> SettingsError:
    return SettingsError(name="RECTO_JWT_PUBLIC_KEY", value=NOT_SHOWN, allowed=allowed)


class JwksKeys:
    """Cached keys of an issuer's JWKS url. An unknown key id triggers a fetch. `ticks` is a monotonic clock.

    If the url fails, the previous keys stay valid for at most a day.
    """

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
        self._is_reachable = False
        self._fetching = asyncio.Lock()

    async def find(self, id: str | None) -> Sequence[VerifyKey] | None:
        """Return the keys that match an id. An unknown id triggers a fetch, at a limited rate."""
        if self._is_due(id):
            async with self._fetching:
                # Another request may have fetched the keys while this one waited for the lock.
                if self._is_due(id):
                    await self._refresh()
        keys = self._matching(id)
        return keys if keys or self._is_reachable else None

    def _is_due(self, id: str | None) -> bool:
        now = self._ticks()
        is_old = now - self._fetched >= self._cache_seconds
        return now >= self._next_try and (is_old or not self._matching(id))

    def _matching(self, id: str | None) -> tuple[VerifyKey, ...]:
        return tuple(key for key in self._keys if id is None or key.id in (None, id))

    async def _refresh(self) -> None:
        try:
            self._keys = parse_jwks(await self._fetch())
            self._fetched = self._ticks()
            self._is_reachable = True
        except (OSError, ValueError) as error:
            self._is_reachable = False
            # Log the error without the url, which may contain a password.
            LOGGER.warning(
                "Cannot fetch the keys of RECTO_JWT_JWKS_URL (%s): %s",
                urlsplit(self._url).hostname,
                str(error) if type(error) is ValueError else type(error).__name__,
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
                    raise ValueError(f"it responded with {answer.status}")
                body = b""
                while piece := await answer.read():
                    body += piece
                    if len(body) > MOST_BYTES:
                        raise ValueError(f"it sent more than {MOST_BYTES} bytes")
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
        allowed = "it must be the https URL of an issuer's keys; http is allowed on this machine only"
        raise SettingsError(name="RECTO_JWT_JWKS_URL", value=NOT_SHOWN, allowed=allowed)
    return url


def parse_jwks(body: bytes) -> tuple[VerifyKey, ...]:
    """Return the supported keys of a JWK set. Raises ValueError if it is invalid or has no supported key."""
    rows = (load_object(body) or {}).get("keys")
    rows = rows[:MOST_KEYS] if isinstance(rows, list) else []
    keys = list[VerifyKey]()
    for row in rows:
        if not isinstance(row, Mapping) or row.get("use", "sig") != "sig":
            continue
        # Read only the public fields, in case the set contains a private key.
        public, id = {name: row[name] for name in ("kty", "n", "e", "crv", "x", "y") if name in row}, row.get("kid")
        with suppress(jwt.PyJWTError, ValueError, TypeError, KeyError):
            kind = {"RSA": RSAAlgorithm, "EC": ECAlgorithm}[str(row.get("kty"))]
            key = key_of(kind.from_jwk(public), id if isinstance(id, str) else None)
            if key and row.get("alg", key.algorithm) == key.algorithm:
                keys.append(key)
    if not keys:
        raise ValueError("it contains no key for RS256 or ES256")
    return tuple(keys)
