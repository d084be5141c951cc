"""The API's description: as OpenAPI, and as a page for people. Static words, no scripts; tells nothing of anybody."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from importlib.metadata import version
from typing import TypeAlias, cast

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from recto.conversation.json import Json, dump

ABOUT = """\
Recto keeps the whole conversation in a log that is never edited, and for every model call sets a fresh page from it.

Send `Authorization: Bearer` with the server's token, an API key or a JWT. Whatever is refused is
`application/problem+json` with `type`, `title`, `status`, `detail`, `code` and `errors`. Streams are server-sent events
of AG-UI, numbered 1, 2, 3 ...; `Last-Event-ID` goes on from any of them."""
STYLE = """\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
h2{margin-top:2.5rem;border-bottom:1px solid #ddd}code,pre{font-family:ui-monospace,monospace;font-size:.9em}
pre{background:#f5f5f3;padding:.8rem;overflow:auto;white-space:pre-wrap}td{padding:.1rem 1rem .1rem 0}
summary{cursor:pointer;padding:.3rem 0}b{display:inline-block;min-width:4.5rem}
@media(prefers-color-scheme:dark){body{color:#eee;background:#181818}pre{background:#242424}h2{border-color:#444}}"""
POLICY = "default-src 'none'; frame-ancestors 'none'; style-src 'sha256-{hash}'"
SCHEME = "bearer"
METHODS = ("get", "post", "put", "patch", "delete")
NOT_OURS = {"$ref": "#/components/schemas/HTTPValidationError"}
Paths: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Json]]]


def describe(api: FastAPI) -> Callable[[], dict[str, object]]:
    """What describes an application: made once, when it is first asked for."""

    def openapi() -> dict[str, object]:
        if api.openapi_schema is None:
            found = get_openapi(title=api.title, version=version("recto"), description=ABOUT, routes=api.routes)
            # What FastAPI has among its parts belongs to the answers taken out here.
            paths = _as_answered(found["paths"])
            parts: Json = {"securitySchemes": {SCHEME: {"type": "http", "scheme": "bearer"}}}
            rest: Mapping[str, Json] = {"paths": paths, "components": parts, "security": [{SCHEME: []}]}
            api.openapi_schema = {**found, **rest}
        return cast("dict[str, object]", api.openapi_schema)

    return openapi


def _as_answered(paths: Paths) -> dict[str, dict[str, dict[str, Json]]]:
    """Routes without the answers FastAPI takes for granted and nobody here gives: JSON of no shape, its own 422."""
    return {
        path: {method: {**route, "responses": _answers(route)} for method, route in methods.items()}
        for path, methods in paths.items()
    }


def _answers(route: Mapping[str, Json]) -> dict[str, Json]:
    kept: dict[str, Json] = {}
    for status, answer in cast("Mapping[str, Mapping[str, Json]]", route["responses"]).items():
        given = cast("Mapping[str, Mapping[str, Json]]", answer.get("content", {}))
        content = {media: shape for media, shape in given.items() if shape.get("schema") not in ({}, NOT_OURS)}
        if content or not given:
            kept[status] = {**answer, "content": content}
    return kept


async def get_description(request: Request) -> Response:
    """The API, as OpenAPI."""
    return Response(dump(request.app.openapi()), media_type="application/json")


async def get_docs(request: Request) -> Response:
    """The API, for people."""
    hash = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    page = _page(cast("Mapping[str, Json]", request.app.openapi()))
    return HTMLResponse(page, headers={"content-security-policy": POLICY.format(hash=hash)})


def _page(description: Mapping[str, Json]) -> str:
    paths = cast("Paths", description["paths"])
    tags = dict.fromkeys(tag for methods in paths.values() for one in methods.values() for tag in _tags(one))
    sections = "".join(f"<h2>{escape(tag)}</h2>{''.join(_routes(paths, tag))}" for tag in tags)
    about = "".join(f"<p>{escape(part)}</p>" for part in ABOUT.split("\n\n"))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Recto API</title>'
        f"<style>{STYLE}</style></head>"
        f'<body><h1>Recto API</h1>{about}<p><a href="/openapi.json">OpenAPI</a></p>{sections}</body></html>'
    )


def _tags(route: Mapping[str, Json]) -> Sequence[str]:
    return cast("Sequence[str]", route.get("tags", ()))


def _routes(paths: Paths, tag: str) -> Iterator[str]:
    for path, methods in paths.items():
        for method in METHODS:
            if method in methods and tag in _tags(methods[method]):
                yield _route(path, method, methods[method])


def _route(path: str, method: str, route: Mapping[str, Json]) -> str:
    about = escape(str(route.get("description", "")))
    names = "".join(_parameter(one) for one in cast("Sequence[Mapping[str, Json]]", route.get("parameters", ())))
    taken = f"<table>{names}</table>" if names else ""
    head = f"<summary><b>{method.upper()}</b><code>{escape(path)}</code></summary>"
    return f"<details>{head}<p>{about}</p>{taken}{''.join(_examples(route))}</details>"


def _parameter(one: Mapping[str, Json]) -> str:
    name, where, about = (escape(str(one.get(field, ""))) for field in ("name", "in", "description"))
    return f"<tr><td><code>{name}</code></td><td>{where}</td><td>{about}</td></tr>"


def _examples(route: Mapping[str, Json]) -> Iterator[str]:
    body = cast("Mapping[str, Json]", route.get("requestBody") or {})
    if body:
        yield "<p>Body</p>" + _shown(cast("Mapping[str, Mapping[str, Json]]", body.get("content", {})))
    for status, answer in cast("Mapping[str, Mapping[str, Json]]", route.get("responses", {})).items():
        content = cast("Mapping[str, Mapping[str, Json]]", answer.get("content", {}))
        heading = f"<p><code>{escape(status)}</code> {escape(str(answer.get('description', '')))}</p>"
        yield heading + _shown(content)


def _shown(content: Mapping[str, Mapping[str, Json]]) -> str:
    examples = [media["example"] for media in content.values() if "example" in media]
    return "".join(f"<pre>{escape(one if isinstance(one, str) else dump(one).decode())}</pre>" for one in examples)
