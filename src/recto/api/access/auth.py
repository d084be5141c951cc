"""Credentials (C3): the local token, API keys and JWTs. Each maps to one user."""

from __future__ import annotations

import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING

from recto.api.backend import LOCAL, AuthResult, Denied, User, is_name
from recto.config.access_settings import AuthSettings
from recto.errors import NOT_SHOWN, SettingsError
from recto.http.network import Network, is_loopback

if TYPE_CHECKING:
    from recto.api.access.jwt import JwtReader

LOGGER = logging.getLogger("recto.auth")
MOST_CHARACTERS = 8_192
BEARER = re.compile(r"bearer +([\x21-\x7e]+) *", re.IGNORECASE)
KEYS_SETTING = "RECTO_API_KEYS"
READ = "read"
LEAST_CHARACTERS = 16
KEY = re.compile(rf"[\x21-\x7e]{{{LEAST_CHARACTERS},}}")
FILE_NAME = "token"
TOKEN_BYTES = 32
MOST_FILE_BYTES = 4_096
PRIVATE = 0o600
OTHERS = 0o077
# Prefix and hash length of the user name of a provider key. No other user name has this prefix.
CALLER, CALLER_CHARACTERS = "key:", 32
# Do not follow links, because a link could lead to a file elsewhere. Windows has no such flag.
NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, kw_only=True)
class ApiKey:
    """A key of one user. Only its hash is stored, so a repr shows no secret."""

    user: User
    digest: bytes = field(repr=False)


class Authenticator:
    """Maps credentials to users. Invalid settings raise SettingsError on creation."""

    def __init__(
        self,
        settings: AuthSettings,
        *,
        has_callers: bool = False,
        network: Network | None = None,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._has_callers = has_callers
        self._keys = _keys(settings)
        self._jwt = _jwt(settings, self._keys, clock, ticks, network)
        own = "the token (RECTO_TOKEN, else printed at startup and stored in the file `token` of the data folder)"
        ways = [
            *([own] if settings.token else []),
            *(["an API key"] if settings.api_keys else []),
            *(["a JWT"] if settings.has_jwt else []),
        ]
        advice = f"Send `Authorization: Bearer X`, where X is {' or '.join(ways)}."
        self._missing = Denied(reason="no_credential", detail=f"The request has no credential. {advice}")
        malformed = f"The Authorization header is malformed. {advice}"
        self._malformed = Denied(reason="malformed_credential", detail=malformed)
        self.wrong = Denied(reason="wrong_credential", detail=f"The credential is unknown. {advice}")

    def recognise(self, headers: Sequence[str]) -> User | None:
        """Return the user of the local token or of an API key. JWTs are not checked."""
        credential = _bearer(headers)
        return _find_user(self._keys, credential) if credential is not None else None

    async def admit(self, headers: Sequence[str]) -> AuthResult:
        """Authenticate the `Authorization` headers. More than one is rejected."""
        if not headers:
            return self._missing
        credential = _bearer(headers)
        if credential is None:
            return self._malformed
        user = _find_user(self._keys, credential)
        if user is not None:
            return user
        # A credential without dots is a mistyped key or token, not a JWT.
        if self._jwt is None or "." not in credential:
            if not self._has_callers:
                return self.wrong
            name = f"{CALLER}{_digest(credential).hex()[:CALLER_CHARACTERS]}"
            return User(name=name, can_write=False, is_caller=True)
        result = await self._jwt.read(credential)
        return self.wrong if isinstance(result, User) and result.name.startswith(CALLER) else result


def check_binding(host: str, has_accounts: bool) -> None:
    """Raise SettingsError if others can reach the server and no accounts are configured."""
    if has_accounts or is_loopback(host):
        return
    allowed = (
        "other machines can reach this address, so configure accounts: set RECTO_API_KEYS (user:key,...), or one of "
        "RECTO_JWT_SECRET, RECTO_JWT_PUBLIC_KEY and RECTO_JWT_JWKS_URL. Without accounts, use 127.0.0.1 or ::1"
    )
    raise SettingsError(name="host", value=host, allowed=allowed)


def _bearer(headers: Sequence[str]) -> str | None:
    if len(headers) != 1 or len(headers[0]) > MOST_CHARACTERS:
        return None
    match = BEARER.fullmatch(headers[0])
    return match[1] if match else None


def _keys(settings: AuthSettings) -> tuple[ApiKey, ...]:
    keys = list[ApiKey]()
    if settings.token is not None:
        if not KEY.fullmatch(settings.token):
            allowed = f"a token or key needs at least {LEAST_CHARACTERS} visible ASCII characters"
            raise SettingsError(name="RECTO_TOKEN", value=NOT_SHOWN, allowed=allowed)
        keys.append(ApiKey(user=User(name=LOCAL), digest=_digest(settings.token)))
    # A user may have several keys.
    entries = settings.api_keys.split(",") if settings.api_keys else ()
    keys += [_parse_key(entry.strip(), number) for number, entry in enumerate(entries, 1)]
    if len({key.digest for key in keys}) < len(keys):
        allowed = "a key occurs twice, or equals RECTO_TOKEN. Give each user a different key"
        raise SettingsError(name=KEYS_SETTING, value=NOT_SHOWN, allowed=allowed)
    return tuple(keys)


def _jwt(
    settings: AuthSettings,
    keys: Sequence[ApiKey],
    clock: Callable[[], float],
    ticks: Callable[[], float],
    network: Network | None,
) -> JwtReader | None:
    ways = (settings.jwt_secret, settings.jwt_public_key, settings.jwt_jwks_url)
    if sum(way is not None for way in ways) > 1:
        allowed = "only one of RECTO_JWT_SECRET, RECTO_JWT_PUBLIC_KEY and RECTO_JWT_JWKS_URL can be set"
        raise SettingsError(name="RECTO_JWT_SECRET", value=NOT_SHOWN, allowed=allowed)
    if ways == (None, None, None):
        return None
    try:
        # Imported here: cryptography costs time and ten megabytes of memory.
        from recto.api.access.jwt import ClaimRules, FixedKey, JwksKeys, JwtReader, public_key, secret_key
    except ModuleNotFoundError as error:
        allowed = f"JWTs need the package {error.name}: install recto[jwt]"
        names = ("RECTO_JWT_SECRET", "RECTO_JWT_PUBLIC_KEY", "RECTO_JWT_JWKS_URL")
        (name,) = [name for name, way in zip(names, ways, strict=True) if way is not None]
        raise SettingsError(name=name, value=NOT_SHOWN, allowed=allowed) from error
    match ways:
        case (str(secret), _, _):
            source = FixedKey(secret_key(secret))
        case (_, str(key), _):
            source = FixedKey(public_key(key))
        case (_, _, url):
            source = JwksKeys(url or "", cache_seconds=settings.jwt_cache_seconds, ticks=ticks, network=network)
    # A name shared by two credentials would merge two people into one user.
    reserved = frozenset({LOCAL, *[key.user.name for key in keys]})
    rules = ClaimRules(audience=settings.jwt_audience, issuer=settings.jwt_issuer, reserved=reserved)
    return JwtReader(source, rules, clock)


def _parse_key(entry: str, number: int) -> ApiKey:
    match entry.split(":"):
        case [name, secret]:
            user = User(name=name)
        case [name, secret, "read"]:
            user = User(name=name, can_write=False)
        case _:
            raise _wrong_entry(number, f"must be user:key or user:key:{READ}")
    if not is_name(name):
        raise _wrong_entry(number, "has a user name that is empty, too long or unprintable")
    if name == LOCAL:
        raise _wrong_entry(number, f"uses the name {LOCAL!r}, which is reserved for RECTO_TOKEN. Choose another name")
    if not KEY.fullmatch(secret):
        raise _wrong_entry(
            number, f"has an invalid key. Use at least {LEAST_CHARACTERS} visible ASCII characters, no ':' or ','"
        )
    return ApiKey(user=user, digest=_digest(secret))


def _wrong_entry(number: int, problem: str) -> SettingsError:
    return SettingsError(name=KEYS_SETTING, value=NOT_SHOWN, allowed=f"entry {number} {problem}")


def _find_user(keys: Sequence[ApiKey], secret: str) -> User | None:
    """Return the user of a token or key. The time taken reveals nothing about stored keys."""
    digest, user = _digest(secret), None
    for key in keys:
        if compare_digest(key.digest, digest):
            user = key.user
    return user


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()


def local_token(folder: Path, token: str | None) -> str:
    """Return `token`, or else the token stored in the folder. If there is none, store a new one."""
    if token is not None:
        return token
    file = folder / FILE_NAME
    try:
        if not file.exists() and not file.is_symlink():
            # Written atomically, and never readable by others.
            draft = file.with_name(f"{file.name}.new")
            draft.unlink(missing_ok=True)
            number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, PRIVATE)
            with os.fdopen(number, "w", encoding="ascii") as stream:
                stream.write(secrets.token_urlsafe(TOKEN_BYTES) + "\n")
                stream.flush()
                os.fsync(number)
            draft.replace(file)
        token = _read_token(file)
    except OSError as error:
        raise _unusable(file, f"it cannot be used ({error.strerror}). Remove it, or set RECTO_TOKEN") from error
    if not KEY.fullmatch(token):
        raise _unusable(file, "it contains no token. Remove it; the next start creates a new one")
    return token


def _read_token(file: Path) -> str:
    number = os.open(file, os.O_RDONLY | NO_LINK)
    with os.fdopen(number, "rb") as stream:
        mode = os.fstat(number).st_mode
        if os.name == "posix" and stat.S_IMODE(mode) & OTHERS:
            os.fchmod(number, PRIVATE)
            LOGGER.warning("Other users could read %s; now only you can. To replace the token, remove the file.", file)
        return stream.read(MOST_FILE_BYTES).decode("utf-8", "replace").strip()


def _unusable(file: Path, allowed: str) -> SettingsError:
    return SettingsError(name="RECTO_TOKEN", value=NOT_SHOWN, allowed=f"the file is {file}, and {allowed}")
