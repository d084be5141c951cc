"""The ASGI application: routing by path and method."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from urllib.parse import quote, unquote, unquote_to_bytes

from starlette.datastructures import URL, State
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from recto.api.codings import pack
from recto.api.problems import adapt_to_sdk, error_problem, http_problem, methods_response
from recto.api.route import JSON_MEDIA, Route, read_parameters
from recto.conversation.json import dump
from recto.errors import RectoError

# A path parameter.
NAME = re.compile(r"{(\w+)}")


@dataclass(frozen=True, kw_only=True)
class RoutedPath:
    """A path pattern and the routes of its methods."""

    pattern: re.Pattern[str]
    methods: dict[str, Route]


class Api:
    """Routes behind a gate. `state` lives for the duration of `lifespan`."""

    def __init__(
        self,
        routes: Sequence[Route],
        *,
        gate: Callable[[ASGIApp], ASGIApp] = lambda app: app,
        lifespan: Callable[[Api], AbstractAsyncContextManager[None]] = lambda _api: nullcontext(),
    ) -> None:
        self.state = State()
        self.lifespan = lifespan
        self._fixed = dict[str, RoutedPath]()
        self._patterns = dict[str, RoutedPath]()
        for route in routes:
            pattern = re.compile(NAME.sub(r"(?P<\1>[^/]+)", route.path))
            paths = self._patterns if pattern.groups else self._fixed
            methods = paths.setdefault(route.path, RoutedPath(pattern=pattern, methods={})).methods
            methods[route.method] = route
            if route.method == "GET" and (route.is_open or route.answer):
                # Clients use HEAD to check that a resource exists.
                methods["HEAD"] = route
        self._entrance = gate(self._answer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the lifespan of the server."""
        scope["app"] = self
        await (self._live(receive, send) if scope["type"] == "lifespan" else self._entrance(scope, receive, send))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = await self.ask(request)
        except RectoError as error:
            answer = error_problem(request, error)
        except HTTPException as error:
            answer = http_problem(error)
        await pack(scope, adapt_to_sdk(answer, scope["path"], request.headers))(scope, receive, send)

    async def ask(self, request: Request) -> Response:
        """Return the response of the matching route. Raises if there is none, or if the route rejects the request."""
        path, raw = request.scope["path"], request.scope.get("raw_path") or b""
        if b"%" in raw:
            # Use the path as sent, in which %2F is part of a name and not a slash.
            path = "/".join([quote(unquote_to_bytes(part), safe="") for part in raw.split(b"/")])
        match = self._find(path)
        if match is None:
            # Redirect to the path with or without a trailing slash, if that path exists.
            other = path.rstrip("/") if path.endswith("/") else f"{path}/"
            if self._find(other) is None:
                raise HTTPException(404)
            return RedirectResponse(str(URL(scope={**request.scope, "path": other})))
        routed, request.scope["path_params"] = match
        route = routed.methods.get(request.method)
        if route is None:
            return methods_response(request.method, routed.methods)
        values = read_parameters(request, route.parameters)
        result = await route.handler(request, **values)
        if isinstance(result, Response):
            return result
        return Response(dump(result), route.status, media_type=JSON_MEDIA)

    def _find(self, path: str) -> tuple[RoutedPath, Mapping[str, str]] | None:
        """Return the routes of a path, and its path parameters."""
        fixed = self._fixed.get(path)
        if fixed is not None:
            return fixed, {}
        for routed in self._patterns.values():
            if match := routed.pattern.fullmatch(path):
                return routed, {name: unquote(value) for name, value in match.groupdict().items()}
        return None

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        step = "startup"
        try:
            async with self.lifespan(self):
                await send({"type": "lifespan.startup.complete"})
                step = "shutdown"
                await receive()
        except BaseException:
            await send({"type": f"lifespan.{step}.failed"})
            raise
        await send({"type": "lifespan.shutdown.complete"})
