"""What the claims of a JWT say of whoever sent it (C3). Pure; the signature was checked before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from recto.api.auth_verdict import READ_SCOPE, WRITE_SCOPE, Denied, is_name
from recto.api.backend import User

# Clocks of two machines differ a little: a token made just now may seem to come from the future.
LEEWAY_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class ClaimRules:
    """What claims have to say. `reserved` are names that other credentials stand for."""

    audience: str | None = None
    issuer: str | None = None
    reserved: frozenset[str] = field(default_factory=frozenset[str])


def read_claims(claims: Mapping[str, object], rules: ClaimRules, now: float) -> User | Denied:
    """The user the claims name, or why they name none. `now` is in seconds since 1970."""
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
    # Asked this way round a NaN is refused as well.
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
    return Denied(reason=reason, told=f"The JWT is not taken: {problem}.")
