"""Response headers for browsers: CORS and security. Headers that a handler sets take precedence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Message, Send

from recto.api.problems import problem_media
from recto.api.route import PROBLEM_MEDIA
from recto.errors import SettingsError

Field: TypeAlias = tuple[bytes, bytes]
SETTING = "RECTO_CORS_ORIGINS"
ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:\d{1,5})?")
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
# Request headers of Recto's clients, and the header that CopilotKit sends if an app has a CopilotCloud key.
ALLOWED = ("Authorization", "Content-Type", "Last-Event-ID", "X-CopilotCloud-Public-Api-Key")
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
EXPOSED = b"Retry-After, recto-task-id"
VARY: Field = (b"vary", b"Origin")
NO_CONTENT = 204
# Lifetime of a preflight response.
PREFLIGHT_SECONDS = "600"
ALWAYS: tuple[Field, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
)
SAME_ORIGIN: Field = (b"cross-origin-resource-policy", b"same-origin")
# One year, the usual value. Browsers ignore this header in http responses.
ONLY_HTTPS: Field = (b"strict-transport-security", b"max-age=31536000")
# Policy of data: a browser that displays it anyway loads nothing and allows no frame.
NO_PAGE: Field = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
HTML = b"text/html"
PROBLEM: Field = (b"content-type", PROBLEM_MEDIA.encode())


def parse_origins(text: str) -> frozenset[str]:
    """Parse the comma-separated origins of the setting, each as a browser writes it."""
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    for name in names:
        if name == "*":
            allowed = "any web page could then use a stolen credential. Name each origin"
            raise SettingsError(name=SETTING, value=name, allowed=allowed)
        if not ORIGIN.fullmatch(name):
            allowed = "an origin looks like https://app.example or http://localhost:3000: lower case, no path"
            raise SettingsError(name=SETTING, value=name, allowed=allowed)
    return frozenset(names)


def parse_headers(text: str) -> tuple[str, ...]:
    """Parse the comma-separated additional request headers of the setting."""
    names = tuple(name.strip() for name in text.split(",")) if text.strip() else ()
    for name in names:
        if name == "*" or not HEADER_NAME.fullmatch(name):
            allowed = "name each header, separated by commas, such as X-Tenant,X-Request-Id"
            raise SettingsError(name="RECTO_CORS_HEADERS", value=name, allowed=allowed)
    return names


class Cors:
    """CORS headers, built once per origin. `headers` are additional request headers; `credentials` allows cookies.

    Recto uses no cookies. A page that sends cookies needs this permission, or the browser hides the response.
    """

    def __init__(self, origins: frozenset[str], headers: Sequence[str] = (), *, credentials: bool = False) -> None:
        self.is_on = bool(origins)
        self._fields = {origin: _fields(origin, credentials=credentials) for origin in origins}
        self._others = (VARY,) if origins else ()
        self._allowed = ", ".join((*ALLOWED, *headers))

    def allows(self, origin: str) -> bool:
        """Return True if pages of the origin may use this server."""
        return origin in self._fields

    def fields(self, headers: Headers) -> Sequence[Field]:
        """Return the CORS headers of a response."""
        return self._fields.get(headers.get("origin", ""), self._others)

    def preflight(self) -> Response:
        """Return the response to a preflight request. The headers of every response allow the origin."""
        allowed = {
            "access-control-allow-methods": METHODS,
            "access-control-allow-headers": self._allowed,
            "access-control-max-age": PREFLIGHT_SECONDS,
        }
        return Response(status_code=NO_CONTENT, headers=allowed)


def _fields(origin: str, *, credentials: bool) -> tuple[Field, ...]:
    return (
        VARY,
        (b"access-control-allow-origin", origin.encode()),
        (b"access-control-expose-headers", EXPOSED),
        *(((b"access-control-allow-credentials", b"true"),) if credentials else ()),
    )


def is_preflight(method: str, headers: Headers) -> bool:
    """Return True for a CORS preflight request."""
    return method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


class SecurityHeaders:
    """The security headers of one server, built once."""

    def __init__(self, *, is_https: bool, is_shared: bool) -> None:
        common = (*ALWAYS, *([ONLY_HTTPS] if is_https else []), *([] if is_shared else [SAME_ORIGIN]))
        self._page = common
        self._data = (*common, NO_PAGE)

    def fields(self, fields: Sequence[Field], more: Sequence[Field]) -> list[Field]:
        """Return `fields`, the security headers that `fields` lacks, and `more`."""
        own = dict(fields)
        common = self._page if own.get(b"content-type", b"").lower().startswith(HTML) else self._data
        return [*fields, *[field for field in common if field[0] not in own], *more]


class HeaderSender:
    """ASGI `send` of one response. Adds security headers and `more`, and records whether the response has begun.

    `accept` is the client's Accept header.
    """

    __slots__ = ("_accept", "_headers", "_more", "_send", "has_begun")

    def __init__(self, headers: SecurityHeaders, send: Send, more: Sequence[Field], accept: str) -> None:
        self._accept = accept
        self._headers = headers
        self._send = send
        self._more = more
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        """Send a message."""
        if message["type"] == "http.response.start":
            self.has_begun = True
            problem = (PROBLEM[0], problem_media(self._accept).encode())
            fields = [problem if field == PROBLEM else field for field in message.get("headers", ())]
            message = {**message, "headers": self._headers.fields(fields, self._more)}
        await self._send(message)
