"""The API description as OpenAPI and as an HTML page without scripts."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TypeAlias, cast

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from recto.api.description import ABOUT
from recto.conversation.json import Json, dump

STYLE = """\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
h2{margin-top:2.5rem;border-bottom:1px solid #ddd}code,pre{font-family:ui-monospace,monospace;font-size:.9em}
pre{background:#f5f5f3;padding:.8rem;overflow:auto;white-space:pre-wrap}td{padding:.1rem 1rem .1rem 0}
summary{cursor:pointer;padding:.3rem 0}b{display:inline-block;min-width:4.5rem}
@media(prefers-color-scheme:dark){body{color:#eee;background:#181818}pre{background:#242424}h2{border-color:#444}}"""
POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src '{style}'"
METHODS = ("get", "post", "put", "patch", "delete")
Paths: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Json]]]


async def get_description(request: Request) -> Response:
    """Return the API description as OpenAPI."""
    return Response(dump(request.app.state.describe()), media_type="application/json")


async def get_docs(request: Request) -> Response:
    """Return the API description as a page."""
    page = _page(request.app.state.describe())
    return HTMLResponse(page, headers={"content-security-policy": content_policy()})


def content_policy(*, script: str = "") -> str:
    """Return the content security policy of a page: the style, and one inline script."""
    return POLICY.format(style=_digest(STYLE)) + (f"; script-src '{_digest(script)}'" if script else "")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _page(description: Mapping[str, Json]) -> str:
    paths = cast("Paths", description["paths"])
    tags = dict.fromkeys(tag for methods in paths.values() for one in methods.values() for tag in _tags(one))
    sections = "".join(f"<h2>{escape(tag)}</h2>{''.join(_routes(paths, tag))}" for tag in tags)
    about = "".join(f"<p>{escape(part)}</p>" for part in ABOUT.split("\n\n"))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Recto API</title>'
        f"<style>{STYLE}</style></head>"
        f'<body><h1>Recto API</h1>{about}<p><a href="/openapi.json">OpenAPI</a></p>{sections}'
        f"{_refusals(description)}</body></html>"
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
    answers = cast("Mapping[str, Mapping[str, Json]]", route.get("responses", {}))
    for status, answer in answers.items():
        if "$ref" not in answer:
            yield _answer(status, answer)
    refusals = [f"<code>{escape(status)}</code>" for status, answer in answers.items() if "$ref" in answer]
    yield f"<p>Refused with {', '.join(refusals)}</p>" if refusals else ""


def _answer(status: str, answer: Mapping[str, Json]) -> str:
    heading = f"<p><code>{escape(status)}</code> {escape(str(answer.get('description', '')))}</p>"
    return heading + _shown(cast("Mapping[str, Mapping[str, Json]]", answer.get("content", {})))


def _refusals(description: Mapping[str, Json]) -> str:
    """Return the section of problems, once for all routes."""
    components = cast("Mapping[str, Mapping[str, Mapping[str, Json]]]", description["components"])
    shown = [
        f"<details><summary>{escape(str(one['description']))}</summary>{_answer('', one)}</details>"
        for one in components["responses"].values()
    ]
    return f"<h2>refusals</h2>{''.join(shown)}"


def _shown(content: Mapping[str, Mapping[str, Json]]) -> str:
    examples = [media["example"] for media in content.values() if "example" in media]
    texts = dict.fromkeys(one if isinstance(one, str) else dump(one).decode() for one in examples)
    return "".join(f"<pre>{escape(text)}</pre>" for text in texts)
