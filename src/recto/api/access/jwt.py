"""JWT verification: keys, signatures and claims. A key accepts one algorithm only."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, cast

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt.types import Options

from recto.api.backend import AuthResult, Delayed, Denied, User, is_name
from recto.conversation.json import load_object
from recto.errors import NOT_SHOWN, SettingsError

SHAPE = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
SECRET_BYTES = 32
RSA_BITS = 2048
PEM = "-----BEGIN "
PEM_BYTES = 64 * 1024
Algorithm: TypeAlias = Literal["HS256", "RS256", "ES256"]
# PyJWT checks the signature only; the claims are checked here, by the given clock.
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
FORGED = Denied(reason="jwt_signature", detail="The JWT is not taken: it was not signed with a key this server knows.")
BROKEN = Denied(reason="jwt_form", detail="The JWT is not taken: it cannot be read.")
# Keys are not fetched again any sooner.
RETRY_SECONDS = 5.0
UNKNOWN = Delayed(detail="The keys that JWTs are checked with cannot be fetched at present.", retry=RETRY_SECONDS)
# Clocks of two machines differ: a new token may seem to come from the future.
LEEWAY_SECONDS = 30.0
READ_SCOPE, WRITE_SCOPE = "recto:read", "recto:write"


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
    """The one configured key, whatever `kid` a token names."""

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
        header = _header(token)
        if header is None:
            return BROKEN
        id, algorithm = header.get("kid"), header.get("alg")
        keys = await self._keys.find(id if isinstance(id, str) else None)
        if keys is None:
            return UNKNOWN
        for key in [key for key in keys if key.algorithm == algorithm]:
            claims = _claims(token, key)
            if claims is not None:
                return read_claims(claims, self._rules, self._clock())
        return FORGED


def _header(token: str) -> Mapping[str, object] | None:
    """Return the unverified header of a token."""
    text = token.partition(".")[0]
    try:
        return load_object(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        return None


def _claims(token: str, key: VerifyKey) -> Mapping[str, object] | None:
    try:
        return jwt.decode(token, key.key, algorithms=[key.algorithm], options=OPTIONS)
    except jwt.PyJWTError:
        return None


def read_claims(claims: Mapping[str, object], rules: ClaimRules, now: float) -> User | Denied:
    """Return the user that the claims name, or the reason to reject them. `now` is in seconds since 1970."""
    problem = _wrong_time(claims, now) or _wrong_place(claims, rules)
    if problem:
        return problem
    name, scope = claims.get("sub"), claims.get("scope", "")
    if not isinstance(name, str) or not is_name(name):
        return _denied("jwt_sub", "its sub is missing, empty, longer than 255 characters or cannot be printed")
    if name in rules.reserved:
        return _denied("jwt_sub", "its sub is a name that an API key or the local token has here")
    if not isinstance(scope, str):
        return _denied("jwt_scope", "its scope is no text")
    scopes = scope.split()
    return User(name=name, can_write=READ_SCOPE not in scopes or WRITE_SCOPE in scopes)


def _wrong_time(claims: Mapping[str, object], now: float) -> Denied | None:
    end = _number(claims.get("exp"))
    if end is None:
        return _denied("jwt_exp", "it has no exp, or one that is no number")
    # The comparison also rejects NaN.
    if not end > now:
        return _denied("jwt_expired", "it has expired. Get a new one")
    for name in ("nbf", "iat"):
        begin = _number(claims.get(name, 0))
        if begin is None or not begin <= now + LEEWAY_SECONDS:
            return _denied(f"jwt_{name}", f"its {name} is in the future, or no number")
    return None


def _wrong_place(claims: Mapping[str, object], rules: ClaimRules) -> Denied | None:
    audience = claims.get("aud")
    named = cast("list[object]", audience) if isinstance(audience, list) else [audience]
    if rules.audience is None and "aud" in claims:
        return _denied("jwt_aud", "it is for an audience, and this server has no RECTO_JWT_AUDIENCE to compare with")
    if rules.audience is not None and rules.audience not in named:
        return _denied("jwt_aud", "it is for another audience than this server's")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        return _denied("jwt_iss", "it is from another issuer than this server's")
    return None


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _denied(reason: str, problem: str) -> Denied:
    return Denied(reason=reason, detail=f"The JWT is not taken: {problem}.")


def secret_key(secret: str) -> VerifyKey:
    """Return the key of RECTO_JWT_SECRET."""
    if len(secret.encode()) < SECRET_BYTES or PEM in secret:
        allowed = f"it is a text of at least {SECRET_BYTES} bytes that only you and the issuer know, and no PEM"
        raise SettingsError(name="RECTO_JWT_SECRET", value=NOT_SHOWN, allowed=allowed)
    return VerifyKey(algorithm="HS256", key=secret)


def public_key(text: str) -> VerifyKey:
    """Return the key of RECTO_JWT_PUBLIC_KEY: a PEM, or the path of one."""
    # Environment variables often contain a PEM as one line with escaped line ends.
    pem = text.replace("\\n", "\n").encode() if PEM in text else _read(text)
    try:
        found = key_of(load_pem_public_key(pem))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _no_public_key("it holds no public key as PEM (-----BEGIN PUBLIC KEY-----)") from error
    if found is None:
        raise _no_public_key(f"it is an RSA key of at least {RSA_BITS} bits (RS256) or an EC key on P-256 (ES256)")
    return found


def key_of(key: object, id: str | None = None) -> VerifyKey | None:
    """Return a public key with its algorithm; None for unsupported keys."""
    match key:
        case RSAPublicKey() if key.key_size >= RSA_BITS:
            return VerifyKey(algorithm="RS256", key=key, id=id)
        case EllipticCurvePublicKey() if isinstance(key.curve, SECP256R1):
            return VerifyKey(algorithm="ES256", key=key, id=id)
        case _:
            return None


def _read(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(PEM_BYTES)
    except (OSError, ValueError) as error:
        raise _no_public_key("it is neither a PEM nor the path of a file that can be read") from error


def _no_public_key(allowed: str) -> SettingsError:
    return SettingsError(name="RECTO_JWT_PUBLIC_KEY", value=NOT_SHOWN, allowed=allowed)
