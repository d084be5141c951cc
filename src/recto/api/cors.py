"""Pages of other origins (CORS): those named, and no others. Off where none is named."""

from __future__ import annotations

import re
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.responses import Response

from recto.api.headers import Field
from recto.errors import SettingsError

SETTING = "RECTO_CORS_ORIGINS"
ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:\d{1,5})?")
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
ALLOWED = "Authorization, Content-Type, Last-Event-ID"
EXPOSED = b"Retry-After, recto-task-id"
VARY: Field = (b"vary", b"Origin")
NO_CONTENT = 204
# How long a browser need not ask again.
ASKED_SECONDS = "600"


def parse_origins(text: str) -> frozenset[str]:
    """The origins a setting names, by commas, each as a browser writes it."""
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    for name in names:
        if name == "*":
            allowed = "every page on the web could then use a credential it gets hold of. Name each origin"
            raise SettingsError(name=SETTING, value=name, allowed=allowed)
        if not ORIGIN.fullmatch(name):
            allowed = "an origin is written as https://app.example or http://localhost:3000: no path, in small letters"
            raise SettingsError(name=SETTING, value=name, allowed=allowed)
    return frozenset(names)


class Cors:
    """What is told to browsers, made once for each origin."""

    def __init__(self, origins: frozenset[str]) -> None:
        self.is_on = bool(origins)
        self._fields = {origin: _fields(origin) for origin in origins}
        self._others = (VARY,) if origins else ()

    def allows(self, origin: str) -> bool:
        """Whether pages of an origin may use this server."""
        return origin in self._fields

    def fields(self, headers: Headers) -> Sequence[Field]:
        """What an answer has to say beside its own headers."""
        return self._fields.get(headers.get("origin", ""), self._others)


def is_preflight(method: str, headers: Headers) -> bool:
    """Whether a browser asks what a page may send."""
    return method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def preflight() -> Response:
    """What a page may send. That it is a page of ours is said by the fields of every answer."""
    told = {
        "access-control-allow-methods": METHODS,
        "access-control-allow-headers": ALLOWED,
        "access-control-max-age": ASKED_SECONDS,
    }
    return Response(status_code=NO_CONTENT, headers=told)


def _fields(origin: str) -> tuple[Field, ...]:
    return (
        VARY,
        (b"access-control-allow-origin", origin.encode()),
        (b"access-control-expose-headers", EXPOSED),
    )
