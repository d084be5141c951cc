"""The API description, generated from the routes: as OpenAPI, and as an HTML page without scripts."""

from __future__ import annotations

import base64
import hashlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from http import HTTPStatus
from importlib.metadata import version
from typing import TypeAlias, cast

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from recto.api.route import JSON_MEDIA, PROBLEM_MEDIA, STREAM_MEDIA, TASK, THREAD, Problem, Route
from recto.conversation.json import Json, dump

ABOUT = """\
Recto keeps the whole conversation in a log that is never edited, and builds a fresh page from it for every model call.

Send `Authorization: Bearer` with the server's token, an API key or a JWT. Errors are `application/problem+json` with
`type`, `title`, `status`, `detail`, `message` (the same as `detail`), `code` and `errors`. Clients that accept only
`application/json` or event streams get the same body as `application/json`. Streams are server-sent events of AG-UI,
numbered 1, 2, 3 ...; to resume one, send the number of your last event as `Last-Event-ID`."""
SCHEME = "bearer"
SCHEMA_PATH, PROBLEM_PATH = "#/components/schemas/{model}", "#/components/responses/{}"
STREAM_STATUS = 200
# Schema of an event in a stream. Events that repeat the conversation so far have no `id`.
STREAM_ITEM: dict[str, Json] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "data": {"type": "string", "contentMediaType": JSON_MEDIA}},
    "required": ["data"],
}
STREAM_EXAMPLE = 'id: 1\ndata: {"type":"RUN_STARTED","threadId":"...","runId":"run-1"}\n\n'
# Example values by field name. A field that is not listed gets null if allowed, otherwise a default of its type.
TIME, DIGEST = "2026-05-14T12:00:00.000Z", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
TIMES = ("created", "createdAt", "ended", "expiresAt", "firstToken", "lastRunAt", "started", "timestamp", "updated")
EXAMPLES: Mapping[str, Json] = {
    **dict.fromkeys((*TIMES, "updatedAt"), TIME),
    **dict.fromkeys(("id", "taskId", "run", "stopped", "interruptId"), TASK),
    **dict.fromkeys(("agent", "agentId"), "chat"),
    **dict.fromkeys(("createdById", "owner", "user"), "anna"),
    **dict.fromkeys(("path", "paths", "restored"), "src/app.py"),
    **dict.fromkeys(("messageId", "messageIds", "before"), "msg-001"),
    **dict.fromkeys(("content", "message"), "What is 12*7?"),
    **dict.fromkeys(("name", "tool", "tools", "agreed"), "calculator"),
    "arguments": '{"expression": "12*7"}',
    "currency": "USD",
    "day": "2026-05-14",
    "digest": DIGEST,
    "events": {"type": "RUN_STARTED", "threadId": THREAD, "runId": "run-001"},
    "locale": "en",
    "messages": {"id": "msg-001", "role": "user", "content": "What is 12*7?"},
    "mimeType": "application/pdf",
    "model": "demo",
    "outcome": "done",
    "protocols": "1.0",
    "purpose": "reply",
    "runId": "run-001",
    "sharedWith": "bob",
    "since": "2026-10-20",
    "status": "ok",
    "threadId": THREAD,
    "tier": "free",
    "title": "Plan my week",
    "tokens": 321,
    "toolCallId": "c1",
    "until": "2026-11-18",
    "url": f"https://recto.example/api/v1/agent/files/{TASK}/report.pdf?signature=1778846400.k1.kq3vT0m8Yx5Zr1Wc7Nf2",
    "usage": {"inputTokens": 321, "outputTokens": 12, "totalTokens": 333},
    "version": "1.0.0",
    "window": 128_000,
}
DEFAULTS: Mapping[str, Json] = {"boolean": True, "integer": 1, "number": 1, "string": "text", "object": {}}
STYLE = """\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
h2{margin-top:2.5rem;border-bottom:1px solid #ddd}code,pre{font-family:ui-monospace,monospace;font-size:.9em}
pre{background:#f5f5f3;padding:.8rem;overflow:auto;white-space:pre-wrap}td{padding:.1rem 1rem .1rem 0}
summary{cursor:pointer;padding:.3rem 0}b{display:inline-block;min-width:4.5rem}
@media(prefers-color-scheme:dark){body{color:#eee;background:#181818}pre{background:#242424}h2{border-color:#444}}"""
POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src '{style}'"
METHODS = ("get", "post", "put", "patch", "delete")
Paths: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Json]]]
SchemaTable: TypeAlias = Mapping[str, Json]


def describe(routes: Sequence[Route]) -> dict[str, Json]:
    """Return the OpenAPI description of the routes."""
    shapes = [shape for route in routes for shape in (route.body, route.answer) if shape]
    schemas, paths = dict[str, Json](), dict[str, dict[str, Json]]()
    for shape in dict.fromkeys([Problem, *shapes]):
        schema = cast("dict[str, Json]", TypeAdapter(shape).json_schema(ref_template=SCHEMA_PATH))
        parts = cast("Mapping[str, Json]", schema.pop("$defs", {}))
        # `parts` comes last, because a recursive shape is defined in its own `$defs`.
        schemas |= {name: _without_null(part) for name, part in {shape.__name__: schema, **parts}.items()}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    statuses = sorted({status for route in routes for status in _error_statuses(route)})
    return {
        "openapi": "3.1.0",
        "info": {"title": "Recto", "description": ABOUT, "version": version("recto")},
        "paths": cast("dict[str, Json]", paths),
        "components": {
            "securitySchemes": {SCHEME: {"type": "http", "scheme": "bearer"}},
            "schemas": dict(sorted(schemas.items())),
            "responses": {_code(status): _problem(status) for status in statuses},
        },
        "security": [{SCHEME: []}],
    }


def _operation(route: Route, schemas: SchemaTable) -> dict[str, Json]:
    name = route.handler.__name__
    parameters: list[Json] = [
        {
            "name": one.name,
            "in": one.declaration.place,
            "required": one.is_required,
            "schema": _without_null(one.schema()),
            "description": one.declaration.description,
        }
        for one in route.parameters
    ]
    content: dict[str, Json] = {}
    if route.body is not None:
        schema = _reference(route.body)
        content = {media: {"schema": schema} for media in (route.media, *route.more_media)}
        # A form has no example, because it is not JSON.
        if route.media == JSON_MEDIA:
            content[JSON_MEDIA] = {"schema": schema, "example": example_of(schema, schemas)}
    return {
        "tags": [route.tag],
        "summary": name.replace("_", " ").title(),
        "description": inspect.cleandoc(route.handler.__doc__ or ""),
        "operationId": name,
        **({"parameters": parameters} if parameters else {}),
        **({"security": []} if route.is_open else {}),
        **({"requestBody": {"required": route.needs_body, "content": content}} if content else {}),
        "responses": _responses(route, schemas),
    }


def _responses(route: Route, schemas: SchemaTable) -> dict[str, Json]:
    content: dict[str, Json] = {}
    if route.answer:
        schema = _reference(route.answer)
        content[JSON_MEDIA] = {"schema": schema, "example": example_of(schema, schemas)}
    if route.text:
        content[route.text] = {"schema": {"type": "string"}}
    contents = {route.status: content}
    if route.streams:
        stream: Json = {"itemSchema": STREAM_ITEM, "example": STREAM_EXAMPLE}
        contents[STREAM_STATUS] = {**contents.get(STREAM_STATUS, {}), STREAM_MEDIA: stream}
    responses: dict[str, Json] = {
        str(status): {"description": HTTPStatus(status).phrase, "content": content}
        for status, content in contents.items()
    }
    return responses | {str(status): {"$ref": PROBLEM_PATH.format(_code(status))} for status in _error_statuses(route)}


def _error_statuses(route: Route) -> list[int]:
    common = {400, 408, 421, 429, 431, 503} | (set[int]() if route.is_open else {401, 403})
    of_bodies = {415} if route.method != "GET" else set[int]()
    return sorted({*route.errors, *common, *of_bodies})


def _problem(status: int) -> Json:
    phrase = HTTPStatus(status).phrase
    text = f"What was wrong, and what to do: {phrase}."
    example: Json = {
        "type": "about:blank",
        "title": phrase,
        "status": status,
        "detail": text,
        "message": text,
        "code": _code(status),
        "errors": [],
    }
    content: Json = {"schema": _reference(Problem), "example": example}
    return {"description": phrase, "content": dict.fromkeys((PROBLEM_MEDIA, JSON_MEDIA), content)}


def _code(status: int) -> str:
    return "_".join(HTTPStatus(status).phrase.lower().replace("-", " ").split())


def _reference(shape: type[object]) -> Json:
    return {"$ref": SCHEMA_PATH.format(model=shape.__name__)}


def _without_null(schema: Json) -> Json:
    """Return the schema without null defaults."""
    match schema:
        case dict():
            fields = {name: inner for name, inner in schema.items() if (name, inner) != ("default", None)}
            return {name: _without_null(inner) for name, inner in fields.items()}
        case list():
            return [_without_null(inner) for inner in schema]
        case _:
            return schema


def example_of(schema: Json, schemas: SchemaTable, name: str = "") -> Json:
    """Return the example in a schema, or build one from its parts. `name` is the field that has the schema."""
    match schema:
        case {"example": example} | {"examples": [example, *_]} | {"const": example} | {"enum": [example, *_]}:
            return example
        case {"$ref": str(reference)}:
            return example_of(schemas[reference.rpartition("/")[2]], schemas, name)
        case {"anyOf": [*kinds]}:
            return None if {"type": "null"} in kinds and name not in EXAMPLES else example_of(kinds[0], schemas, name)
        case {"properties": dict(fields)}:
            return {field: example_of(part, schemas, field) for field, part in fields.items()}
        case {"type": "array", "items": items}:
            item = example_of(items, schemas, name)
            return [] if item == DEFAULTS["string"] else [item]
        case {"type": str(kind)}:
            default = DEFAULTS.get(kind)
            value = EXAMPLES.get(name)
            return value if type(value) is type(default) else default
        case _:
            return None


async def get_description(request: Request) -> Response:
    """Return the API description as OpenAPI."""
    return Response(dump(request.app.state.describe()), media_type=JSON_MEDIA)


async def get_docs(request: Request) -> Response:
    """Return the API description as a page."""
    return HTMLResponse(_page(request.app.state.describe()), headers={"content-security-policy": content_policy()})


def content_policy(*, script: str = "") -> str:
    """Return a content security policy that allows the page style and, if given, one inline script."""
    return POLICY.format(style=_digest(STYLE)) + (f"; script-src '{_digest(script)}'" if script else "")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _page(description: Mapping[str, Json]) -> str:
    paths = cast("Paths", description["paths"])
    components = cast("Mapping[str, Mapping[str, Mapping[str, Json]]]", description["components"])
    tags = dict.fromkeys(tag for methods in paths.values() for one in methods.values() for tag in _tags(one))
    sections = "".join(f"<h2>{escape(tag)}</h2>{''.join(_routes(paths, tag))}" for tag in tags)
    about = "".join(f"<p>{escape(part)}</p>" for part in ABOUT.split("\n\n"))
    problems = "".join(
        f"<details><summary>{escape(str(one['description']))}</summary>{_response('', one)}</details>"
        for one in components["responses"].values()
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Recto API</title>'
        f"<style>{STYLE}</style></head>"
        f'<body><h1>Recto API</h1>{about}<p><a href="/openapi.json">OpenAPI</a></p>{sections}'
        f"<h2>errors</h2>{problems}</body></html>"
    )


def _tags(route: Mapping[str, Json]) -> Sequence[str]:
    return cast("Sequence[str]", route.get("tags", ()))


def _routes(paths: Paths, tag: str) -> Iterator[str]:
    for path, methods in paths.items():
        for method in METHODS:
            if method in methods and tag in _tags(methods[method]):
                route = methods[method]
                about = escape(str(route.get("description", "")))
                rows = ""
                for one in cast("Sequence[Mapping[str, Json]]", route.get("parameters", ())):
                    name, place, text = (escape(str(one.get(field, ""))) for field in ("name", "in", "description"))
                    rows += f"<tr><td><code>{name}</code></td><td>{place}</td><td>{text}</td></tr>"
                table = f"<table>{rows}</table>" if rows else ""
                head = f"<summary><b>{method.upper()}</b><code>{escape(path)}</code></summary>"
                examples, responses = "", cast("Mapping[str, Mapping[str, Json]]", route.get("responses", {}))
                if body := cast("Mapping[str, Json]", route.get("requestBody") or {}):
                    examples = "<p>Body</p>" + _content(body)
                examples += "".join(_response(status, one) for status, one in responses.items() if "$ref" not in one)
                errors = [f"<code>{escape(status)}</code>" for status, one in responses.items() if "$ref" in one]
                examples += f"<p>Errors: {', '.join(errors)}</p>" if errors else ""
                yield f"<details>{head}<p>{about}</p>{table}{examples}</details>"


def _response(status: str, response: Mapping[str, Json]) -> str:
    heading = f"<p><code>{escape(status)}</code> {escape(str(response.get('description', '')))}</p>"
    return heading + _content(response)


def _content(body: Mapping[str, Json]) -> str:
    media = cast("Mapping[str, Mapping[str, Json]]", body.get("content", {})).values()
    examples = [one["example"] for one in media if "example" in one]
    texts = dict.fromkeys(one if isinstance(one, str) else dump(one).decode() for one in examples)
    return "".join(f"<pre>{escape(text)}</pre>" for text in texts)
