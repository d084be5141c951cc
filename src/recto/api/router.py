"""The application: finds who answers a request, by its path and its method. Knows nothing of what any route does."""

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

from recto.api.access.sdk_refusals import in_form_asked_for
from recto.api.codings import packed
from recto.api.parameters import Handler, HandlerParameter, parameters_of, read_parameters
from recto.api.problems import refuse, refuse_http, tell_methods
from recto.api.route import Route
from recto.errors import RectoError

# A part of a path that may be anything.
NAME = re.compile(r"{(\w+)}")


@dataclass(frozen=True, kw_only=True)
class MethodHandler:
    """A handler, and what it takes beside the request."""

    handler: Handler
    parameters: tuple[HandlerParameter, ...]


@dataclass(frozen=True, kw_only=True)
class RoutedPath:
    """A path, with a pattern where parts of it may be anything, and who answers each of its methods."""

    pattern: re.Pattern[str]
    methods: dict[str, MethodHandler]


class Api:
    """Routes behind a gate. `state` is what lives as long as it does, between the begin and end of `lifespan`."""

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
            self._add(route)
        self._entrance = gate(self._answer)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the whole life of the server."""
        scope["app"] = self
        await (self._live(receive, send) if scope["type"] == "lifespan" else self._entrance(scope, receive, send))

    def _add(self, route: Route) -> None:
        pattern = re.compile(NAME.sub(r"(?P<\1>[^/]+)", route.path))
        paths = self._patterns if pattern.groups else self._fixed
        methods = paths.setdefault(route.path, RoutedPath(pattern=pattern, methods={})).methods
        answering = MethodHandler(handler=route.handler, parameters=parameters_of(route.handler))
        methods[route.method] = answering
        if route.method == "GET" and (route.is_open or route.answer):
            # Whoever only looks whether something is there asks for no more than this.
            methods["HEAD"] = answering

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            answer = await self.ask(request)
        except RectoError as error:
            answer = refuse(request, error)
        except HTTPException as error:
            answer = refuse_http(error)
        told = in_form_asked_for(answer, scope["path"], request.headers)
        await packed(scope, told)(scope, receive, send)

    async def ask(self, request: Request) -> Response:
        """What the route of a request answers. Where there is none, or it refuses, that is raised."""
        path = _path(request.scope)
        found = self._find(path)
        if found is None:
            return self._elsewhere(request, path)
        known, request.scope["path_params"] = found
        answering = known.methods.get(request.method)
        if answering is None:
            return tell_methods(request.method, known.methods)
        if not answering.parameters:
            return await answering.handler(request)
        return await answering.handler(request, **read_parameters(request, answering.parameters))

    def _find(self, path: str) -> tuple[RoutedPath, Mapping[str, str]] | None:
        """What is known by a path, and what those parts of it are that may be anything."""
        fixed = self._fixed.get(path)
        if fixed is not None:
            return fixed, {}
        for known in self._patterns.values():
            if found := known.pattern.fullmatch(path):
                return known, {name: unquote(value) for name, value in found.groupdict().items()}
        return None

    def _elsewhere(self, request: Request, path: str) -> Response:
        """Where there is nothing: on to the address that differs by the slash at its end, if there is one."""
        other = path.rstrip("/") if path.endswith("/") else f"{path}/"
        if self._find(other) is None:
            raise HTTPException(404)
        return RedirectResponse(str(URL(scope={**request.scope, "path": other})))

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


def _path(scope: Scope) -> str:
    """The path as it was sent: %2F is part of a name there, and no slash."""
    raw: bytes = scope.get("raw_path") or b""
    if b"%" not in raw:
        path: str = scope["path"]
        return path
    return "/".join([quote(unquote_to_bytes(part), safe="") for part in raw.split(b"/")])
