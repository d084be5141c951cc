"""Who may come in while there are no accounts: programs of this machine. Refuses what a page in a browser could send.

Any page may post a form to 127.0.0.1, and any name may lead there. A browser asks first before it sends JSON for a
page, and is never given leave; the names in Host and Origin it writes itself.
"""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from recto.api.backend import LOCAL, User
from recto.api.problems import problem

JSON = "application/json"
HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?", re.IGNORECASE)
ORIGIN = re.compile(rf"https?://{HOST.pattern}", re.IGNORECASE)
FOREIGN, UNSUPPORTED, MISDIRECTED = 403, 415, 421


class Gate:
    """Lets a request through, or answers it with a refusal."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Look at the headers; the body is not read."""
        refusal = _refusal(scope["method"], Headers(scope=scope)) if scope["type"] == "http" else None
        scope.setdefault("state", {})["user"] = User(name=LOCAL)
        await (refusal or self._app)(scope, receive, send)


def _refusal(method: str, headers: Headers) -> Response | None:
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not HOST.fullmatch(hosts[0]):
        told = f"The Host header is {', '.join(hosts)[:64]!r}; this server is only reached as 127.0.0.1 or localhost."
        return problem(MISDIRECTED, "wrong_host", told)
    if method != "POST":
        return None
    origin = headers.get("origin")
    if origin is not None and not ORIGIN.fullmatch(origin):
        return problem(
            FOREIGN, "wrong_origin", f"A page of {origin[:64]!r} may not post here; one of this machine may."
        )
    kind = headers.get("content-type", "")
    if _has_body(headers) and kind.partition(";")[0].strip().lower() != JSON:
        return problem(UNSUPPORTED, "wrong_media", f"The content-type is {kind[:64]!r}; send the body as {JSON}.")
    return None


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
