"""Who is let in (C3): the local token, API keys, JWTs. Every credential becomes one user, or none."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from recto.api.auth_claims import ClaimRules
from recto.api.auth_jwks import JwksKeys
from recto.api.auth_jwt import FixedKey, JwtReader, KeySource, public_key, secret_key
from recto.api.auth_keys import Key, check_distinct, find_user, make_key, parse_keys
from recto.api.auth_verdict import Denied, Verdict
from recto.api.backend import LOCAL, User
from recto.errors import NOT_SHOWN, SettingsError

MOST_CHARACTERS = 8_192
BEARER = re.compile(r"bearer +([\x21-\x7e]+) *", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class AuthSettings:
    """The credentials a server takes, as its settings name them. At most one of the three ways to check a JWT."""

    token: str | None = field(default=None, repr=False)
    api_keys: str | None = field(default=None, repr=False)
    jwt_secret: str | None = field(default=None, repr=False)
    jwt_public_key: str | None = field(default=None, repr=False)
    jwt_jwks_url: str | None = field(default=None, repr=False)
    jwt_audience: str | None = None
    jwt_issuer: str | None = None
    jwt_cache_seconds: float = 600.0

    @property
    def has_accounts(self) -> bool:
        """Whether there are users beside the local one."""
        return bool(self.api_keys or self.jwt_secret or self.jwt_public_key or self.jwt_jwks_url)


class Doorman:
    """Knows who comes with which credential. What its settings get wrong is raised at once, as SettingsError."""

    def __init__(
        self,
        settings: AuthSettings,
        *,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys = _keys(settings)
        self._jwt = _jwt(settings, self._keys, clock, ticks)
        self._missing = Denied(reason="no_credential", told=f"No credential came with the request. {_how(settings)}")
        self._malformed = Denied(
            reason="malformed_credential", told=f"The Authorization header cannot be read. {_how(settings)}"
        )
        self._wrong = Denied(
            reason="wrong_credential", told=f"The credential is not one of this server's. {_how(settings)}"
        )

    def recognise(self, headers: Sequence[str]) -> User | None:
        """Whose token or key comes with these headers: a digest, compared. JWTs are not looked at."""
        credential = _bearer(headers)
        return find_user(self._keys, credential) if credential is not None else None

    async def admit(self, headers: Sequence[str]) -> Verdict:
        """Who comes with these `Authorization` headers. Only one is understood."""
        if not headers:
            return self._missing
        credential = _bearer(headers)
        if credential is None:
            return self._malformed
        user = find_user(self._keys, credential)
        if user is not None:
            return user
        # What has no dots was no JWT but a key or the token, mistyped: it is told so.
        if self._jwt is None or "." not in credential:
            return self._wrong
        return await self._jwt.read(credential)


def _bearer(headers: Sequence[str]) -> str | None:
    if len(headers) != 1 or len(headers[0]) > MOST_CHARACTERS:
        return None
    found = BEARER.fullmatch(headers[0])
    return found[1] if found else None


def _keys(settings: AuthSettings) -> tuple[Key, ...]:
    own = () if settings.token is None else (make_key(User(name=LOCAL), settings.token, setting="RECTO_TOKEN"),)
    keys = (*own, *parse_keys(settings.api_keys or ""))
    check_distinct(keys)
    return keys


def _jwt(
    settings: AuthSettings, keys: Sequence[Key], clock: Callable[[], float], ticks: Callable[[], float]
) -> JwtReader | None:
    source = _source(settings, ticks)
    if source is None:
        return None
    # Two credentials of one name would be one user, though nobody said that they are one person.
    reserved = frozenset({LOCAL, *[key.user.name for key in keys]})
    rules = ClaimRules(audience=settings.jwt_audience, issuer=settings.jwt_issuer, reserved=reserved)
    return JwtReader(source, rules, clock)


def _source(settings: AuthSettings, ticks: Callable[[], float]) -> KeySource | None:
    ways = (settings.jwt_secret, settings.jwt_public_key, settings.jwt_jwks_url)
    if sum(way is not None for way in ways) > 1:
        allowed = "only one of RECTO_JWT_SECRET, RECTO_JWT_PUBLIC_KEY and RECTO_JWT_JWKS_URL can be set"
        raise SettingsError(name="RECTO_JWT_SECRET", value=NOT_SHOWN, allowed=allowed)
    match ways:
        case (str(secret), _, _):
            return FixedKey(secret_key(secret))
        case (_, str(key), _):
            return FixedKey(public_key(key))
        case (_, _, str(url)):
            return JwksKeys(url, cache_seconds=settings.jwt_cache_seconds, ticks=ticks)
        case _:
            return None


def _how(settings: AuthSettings) -> str:
    own = "the token (RECTO_TOKEN, else printed at the start and kept in the file `token` of the data folder)"
    ways = [
        *([own] if settings.token else []),
        *(["an API key"] if settings.api_keys else []),
        *(["a JWT"] if _has_jwt(settings) else []),
    ]
    return f"Send `Authorization: Bearer X`, where X is {' or '.join(ways)}."


def _has_jwt(settings: AuthSettings) -> bool:
    return bool(settings.jwt_secret or settings.jwt_public_key or settings.jwt_jwks_url)
