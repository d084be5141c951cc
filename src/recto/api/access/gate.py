"""The gate of every request (C3): host, origin, media type, credential and rate.

Any page may post a form to 127.0.0.1, and any name may resolve to it. A server on this machine therefore checks Host
and Origin, which browsers set themselves. A reachable server relies on the credential, which no page can guess.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from recto.api.access.audit import RareLines, audit, peer_of
from recto.api.access.auth import Authenticator
from recto.api.access.browsers import Cors, HeaderSender, SecurityHeaders, is_preflight, parse_headers, parse_origins
from recto.api.access.rate import Buckets, neighbourhood
from recto.api.backend import AuthResult, Delayed, Denied, User, backend_of
from recto.api.codings import CODINGS, coding_of, is_supported
from recto.api.problems import DOWN, GATEWAY, RETRY_SECONDS, problem, requested_sdk, sdk_problem
from recto.api.route import FORM_MEDIA, JSON_MEDIA, MERGE_MEDIA
from recto.config.access_settings import GateSettings
from recto.errors import RectoError, SettingsError, StoreBusy, StoreDown

LOGGER = logging.getLogger("recto.api")
HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?", re.IGNORECASE)
ORIGIN = re.compile(rf"https?://{HOST.pattern}", re.IGNORECASE)
OPEN_PATHS = frozenset({"/", "/icon.svg", "/healthz", "/readyz", "/version", "/docs", "/openapi.json"})
READS = frozenset({"GET", "HEAD", "OPTIONS"})
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
PUBLIC = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:]+\])(:\d{1,5})?(/[^?#]*)?")
PORTS = {"http": ":80", "https": ":443"}
# Paths open to provider keys: conversations that went through the gateway.
CALLER_PATHS = ("/api/v1/agent/threads", "/api/v1/agent/runs", "/api/v1/agent/savings")
# Wrong credentials per address and minute before credentials from it are no longer checked.
WRONG_PER_MINUTE = 60
POLICY_VIOLATION = 1008


@dataclass(frozen=True, kw_only=True)
class GateRules(GateSettings):
    """Rules of a gate. Invalid values raise SettingsError.

    Everybody may GET `open_paths` and paths that begin with one of `open_prefixes`. `multipart_paths` accept forms.
    `user_requests` is the limit per minute of each user and, without credentials, of each address.
    """

    is_loopback: bool = True
    open_paths: frozenset[str] = OPEN_PATHS
    open_prefixes: tuple[str, ...] = ()
    multipart_paths: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        parse_origins(self.cors_origins)
        parse_headers(self.cors_headers)
        _public_hosts(self.public_url)

    @property
    def is_https(self) -> bool:
        """True if clients connect over https, through a proxy."""
        return (self.public_url or "").lower().startswith("https:")


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """A rejected request: status, code of the body, and reason in the audit log."""

    status: int
    code: str
    detail: str
    reason: str = ""
    retry: float | None = None
    codings: str | None = None


class Gate:
    """Authenticates and checks requests by their headers, and passes them on or rejects them."""

    def __init__(
        self, app: ASGIApp, authenticator: Authenticator, rules: GateRules, ticks: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._rules = rules
        self._hosts = _public_hosts(rules.public_url)
        self._origins = {f"{'https' if rules.is_https else 'http'}://{host}" for host in self._hosts}
        more_headers = parse_headers(rules.cors_headers)
        self._cors = Cors(parse_origins(rules.cors_origins), more_headers, credentials=rules.cors_credentials)
        self._headers = SecurityHeaders(is_https=rules.is_https, is_shared=self._cors.is_on)
        self._users = Buckets(rules.user_requests, ticks)
        self._anonymous = Buckets(rules.user_requests, ticks)
        self._wrong = Buckets(WRONG_PER_MINUTE, ticks)
        self._lines = RareLines(LOGGER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the headers, then reject the request or pass it on."""
        if scope["type"] == "websocket":
            audit(HTTPConnection(scope), "websocket", status=403)
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        sender = HeaderSender(
            self._headers, send, self._cors.fields(request.headers), request.headers.get("accept", "")
        )
        app: ASGIApp = await self._own_answer(request) or self._app
        try:
            await app(scope, receive, sender)
        except ClientDisconnect:
            return
        except Exception as error:
            if sender.has_begun and isinstance(error, RectoError):
                # Too late for an error response: the client sees the stream break off. Limit the log lines, because all
                # streams may break off at once.
                self._lines.log(f"responses broke off: {error}")
                return
            # Send the error response here, so that it has all headers. Raise the error again, so that uvicorn logs it.
            if not sender.has_begun:
                detail = "Internal server error. The server's log has the details; report it to the operator."
                await _answer_of(request, Rejection(status=500, code="internal", detail=detail))(scope, receive, sender)
            raise

    async def _own_answer(self, request: HTTPConnection) -> Response | None:
        rejection = self._check_headers(request)
        if not rejection and self._is_preflight(request):
            return self._cors.preflight()
        rejection = rejection or await self._authenticate(request) or self._check_permission(request)
        if not rejection:
            return None
        audit(request, rejection.reason or rejection.code, status=rejection.status)
        answer = _answer_of(request, rejection)
        if rejection.status == 401:  # noqa: PLR2004 - the one status that names a way to come in
            answer.headers["www-authenticate"] = "Bearer"
        if rejection.codings:
            answer.headers["accept-encoding"] = rejection.codings
        return answer

    def _check_headers(self, request: HTTPConnection) -> Rejection | None:
        """Check host, origin and body headers, before the user is known. Return None if they are valid."""
        method, headers = request.scope["method"], request.headers
        hosts, origin = headers.getlist("host"), headers.get("origin")
        if self._rules.is_loopback and not (
            len(hosts) == 1 and (HOST.fullmatch(hosts[0]) is not None or hosts[0].lower() in self._hosts)
        ):
            host = f"{', '.join(hosts)[:64]!r}"
            detail = f"The Host header is {host}; use 127.0.0.1, localhost or RECTO_PUBLIC_URL."
            return Rejection(status=421, code="wrong_host", detail=detail)
        is_for_preflight = self._is_preflight(request)
        if origin is not None and (is_for_preflight or method in WRITES) and not self._cors.allows(origin):
            is_local = ORIGIN.fullmatch(origin) is not None or origin.lower() in self._origins
            if is_for_preflight or (self._rules.is_loopback and not is_local):
                detail = f"The origin {origin[:64]!r} is not allowed. Add it to RECTO_CORS_ORIGINS."
                return Rejection(status=403, code="wrong_origin", detail=detail)
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        return self._check_body(request) if method in WRITES and has_body else None

    def _check_body(self, request: HTTPConnection) -> Rejection | None:
        """Check the content type and encoding of a body. Return None if they are valid."""
        kind = request.headers.get("content-type", "")
        patches = (MERGE_MEDIA,) if request.scope["method"] == "PATCH" else ()
        forms = (FORM_MEDIA,) if request.scope["path"] in self._rules.multipart_paths else ()
        allowed = (JSON_MEDIA, *patches, *forms)
        media, coding = kind.partition(";")[0].strip().lower(), coding_of(request.headers)
        if media not in allowed:
            detail = f"The content-type is {kind[:64]!r}; send the body as {' or '.join(allowed)}."
            return Rejection(status=415, code="wrong_media", detail=detail)
        codings = "identity" if media == FORM_MEDIA else CODINGS
        if coding and (media == FORM_MEDIA or not is_supported(coding)):
            detail = f"The content-encoding is {coding[:64]!r}; send the body unencoded, or as one of: {codings}."
            return Rejection(status=415, code="wrong_media", detail=detail, codings=codings)
        return None

    def _is_preflight(self, request: HTTPConnection) -> bool:
        return self._cors.is_on and is_preflight(request.scope["method"], request.headers)

    async def _authenticate(self, request: HTTPConnection) -> Rejection | None:
        """Authenticate the request. Limit requests without credentials, and those to open paths, by address."""
        state, path = request.scope.setdefault("state", {}), request.scope["path"]
        credentials = request.headers.getlist("authorization")
        if path.startswith(GATEWAY):
            credentials += [f"Bearer {key}" for key in request.headers.getlist("x-api-key")]
        is_open_path = path in self._rules.open_paths or path.startswith(self._rules.open_prefixes)
        peer, is_open = peer_of(request), (is_open_path and request.scope["method"] in READS)
        if (is_open or not credentials) and (wait := self._anonymous.take(neighbourhood(peer))):
            return _too_many("requests without a credential from this address", wait)
        if is_open:
            return None
        result: AuthResult
        if not self._wrong.is_empty and (wait := self._wrong.wait(neighbourhood(peer))):
            # Still accept a valid token or key, because other users may share the address.
            user = self._authenticator.recognise(credentials)
            if user is None:
                return _too_many("wrong credentials from this address", wait)
            result = user
        else:
            result = await self._find_user(request, credentials)
        match result:
            case User():
                if result.is_caller and (wait := self._anonymous.take(neighbourhood(peer))):
                    return _too_many("requests with provider keys from this address", wait)
                state["user"] = result
                return None
            case Delayed():
                return Rejection(status=503, code="auth_unavailable", detail=result.detail, retry=result.retry)
            case Denied():
                # Count only wrong credentials: any web page can make its visitor's browser send requests without
                # credentials, and these must not lock the visitor out.
                if credentials:
                    self._wrong.take(neighbourhood(peer))
                return Rejection(status=401, code="unauthorized", detail=result.detail, reason=result.reason)

    async def _find_user(self, request: HTTPConnection, credentials: Sequence[str]) -> AuthResult:
        """Return the user. Outside the gateway, a provider key is valid only if its gateway history exists."""
        result = await self._authenticator.admit(credentials)
        if not isinstance(result, User) or not result.is_caller or request.scope["path"].startswith(GATEWAY):
            return result
        from recto.store.threads.threads import ThreadsQuery  # a check of settings needs no database

        try:
            page = await backend_of(request).store.threads.list_page(result.name, ThreadsQuery(limit=1))
        except (StoreBusy, StoreDown):
            return Delayed(detail=DOWN[StoreDown], retry=RETRY_SECONDS)
        return result if page.threads else self._authenticator.wrong

    def _check_permission(self, request: HTTPConnection) -> Rejection | None:
        """Check the permissions and the rate limit of the user. Return None if the request is allowed."""
        user: User | None = request.scope["state"].get("user")
        if user is None:
            return None
        method, path = request.scope["method"], request.scope["path"]
        if user.is_caller and not path.startswith((GATEWAY, *CALLER_PATHS)):
            detail = "A provider key gives access only to the gateway and its conversations."
            return Rejection(status=403, code="caller", detail=detail)
        is_relayed = user.is_caller and path.startswith(GATEWAY)
        if not user.can_write and method not in READS and not is_relayed:
            detail = f"This credential may only read, not {method[:16]}. Use one that may write."
            return Rejection(status=403, code="read_only", detail=detail)
        if wait := self._users.take(user.name):
            return _too_many("requests of this user", wait)
        return None


def _answer_of(request: HTTPConnection, rejection: Rejection) -> Response:
    sdk = requested_sdk(request.scope["path"], request.headers)
    if sdk:
        return sdk_problem(sdk, rejection.status, rejection.code, rejection.detail, retry=rejection.retry)
    return problem(rejection.status, rejection.code, rejection.detail, retry=rejection.retry)


def _too_many(what: str, wait: float) -> Rejection:
    detail = f"Too many {what} within a minute. Try again in {max(1, round(wait))} s."
    return Rejection(status=429, code="limit_reached", detail=detail, retry=wait)


def _public_hosts(url: str | None) -> frozenset[str]:
    """Return the Host values of the public address, with the default port and without."""
    if url is None:
        return frozenset()
    match = PUBLIC.fullmatch(url.lower())
    if not match:
        allowed = "it is the URL of this server for its clients, such as https://recto.example"
        raise SettingsError(name="RECTO_PUBLIC_URL", value=url, allowed=allowed)
    scheme, host, port = match[1], match[2], match[3] or PORTS[match[1]]
    return frozenset({host + port, *([host] if port == PORTS[scheme] else [])})
