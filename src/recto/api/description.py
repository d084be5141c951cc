"""OpenAPI description, generated from the routes on request."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from importlib.metadata import version
from typing import cast

from pydantic import TypeAdapter

from recto.api.parameters import HandlerParameter, parameters_of
from recto.api.route import JSON_MEDIA, PROBLEM_MEDIA, STREAM_MEDIA, Problem, Route
from recto.conversation.json import Json

ABOUT = """\
Recto keeps the whole conversation in a log that is never edited, and for every model call sets a fresh page from it.

Send `Authorization: Bearer` with the server's token, an API key or a JWT. Whatever is refused is
`application/problem+json` with `type`, `title`, `status`, `detail`, `message` (the same), `code` and `errors`; a client
that accepts `application/json` or streams only gets the same under that name. Streams are server-sent events of AG-UI,
numbered 1, 2, 3 ...; `Last-Event-ID` goes on from any of them."""
SCHEME = "bearer"
PLACE, REFUSAL = "#/components/schemas/{model}", "#/components/responses/{}"
STREAM_STATUS = 200
# The items of a stream, and an example. A repeated event has no number.
STREAM_ITEM: dict[str, Json] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "data": {"type": "string", "contentMediaType": JSON_MEDIA}},
    "required": ["data"],
}
STREAM_EXAMPLE = 'id: 1\ndata: {"type":"RUN_STARTED","threadId":"...","runId":"run-1"}\n\n'


def describe(routes: Sequence[Route]) -> dict[str, Json]:
    """Return the OpenAPI description of the routes."""
    paths: dict[str, dict[str, Json]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Recto", "description": ABOUT, "version": version("recto")},
        "paths": cast("dict[str, Json]", paths),
        "components": {
            "securitySchemes": {SCHEME: {"type": "http", "scheme": "bearer"}},
            "schemas": _shapes(routes),
            "responses": _refusals(routes),
        },
        "security": [{SCHEME: []}],
    }


def _operation(route: Route) -> dict[str, Json]:
    name = route.handler.__name__
    parameters: list[Json] = [_parameter(one) for one in parameters_of(route.handler)]
    return {
        "tags": [route.tag],
        "summary": name.replace("_", " ").title(),
        "description": inspect.cleandoc(route.handler.__doc__ or ""),
        "operationId": name,
        **({"parameters": parameters} if parameters else {}),
        **_body(route),
        "responses": _answers(route),
    }


def _parameter(one: HandlerParameter) -> Json:
    return {
        "name": one.name,
        "in": one.declared.place,
        "required": one.is_required,
        "schema": _without_null(one.schema()),
        "description": one.declared.description,
    }


def _answers(route: Route) -> dict[str, Json]:
    content: dict[str, Json] = {}
    if route.answer:
        content[JSON_MEDIA] = {"schema": _schema(route.answer), **_example(route, "answer")}
    if route.text:
        content[route.text] = {"schema": {"type": "string"}}
    given = {route.status: content}
    if route.streams:
        stream: Json = {"itemSchema": STREAM_ITEM, "example": STREAM_EXAMPLE}
        given[STREAM_STATUS] = {**given.get(STREAM_STATUS, {}), STREAM_MEDIA: stream}
    told: dict[str, Json] = {
        str(status): {"description": HTTPStatus(status).phrase, "content": content} for status, content in given.items()
    }
    return told | {str(status): {"$ref": REFUSAL.format(_code(status))} for status in _refused(route)}


def _refused(route: Route) -> list[int]:
    """Return the statuses of a route's problems."""
    common = {400, 408, 421, 429, 431, 503} | (set[int]() if route.is_open else {401, 403})
    of_bodies = {415} if route.method != "GET" else set[int]()
    return sorted({*route.refusals, *common, *of_bodies})


def _refusals(routes: Sequence[Route]) -> dict[str, Json]:
    """Return the problems of all routes, one per status."""
    return {_code(status): _refusal(status) for status in sorted({one for route in routes for one in _refused(route)})}


def _refusal(status: int) -> Json:
    problem: Json = {"schema": _schema(Problem), "example": _problem(status)}
    return {"description": HTTPStatus(status).phrase, "content": dict.fromkeys((PROBLEM_MEDIA, JSON_MEDIA), problem)}


def _code(status: int) -> str:
    return "_".join(HTTPStatus(status).phrase.lower().replace("-", " ").split())


def _body(route: Route) -> dict[str, Json]:
    security: dict[str, Json] = {"security": []} if route.is_open else {}
    if route.body is None:
        return security
    content: dict[str, Json] = {media: {"schema": _schema(route.body)} for media in (route.media, *route.more_media)}
    content[route.media] = {"schema": _schema(route.body), **_example(route, "body")}
    return {**security, "requestBody": {"required": route.needs_body, "content": content}}


def _schema(shape: type[object]) -> Json:
    """Return a reference to the shape of a body."""
    return {"$ref": PLACE.format(model=shape.__name__)}


def _shapes(routes: Sequence[Route]) -> dict[str, Json]:
    """Return the shapes of all bodies and their parts by name."""
    shapes = [shape for route in routes for shape in (route.body, route.answer) if shape]
    found: dict[str, Json] = {}
    for shape in dict.fromkeys([Problem, *shapes]):
        schema = cast("dict[str, Json]", TypeAdapter(shape).json_schema(ref_template=PLACE))
        parts = cast("Mapping[str, Json]", schema.pop("$defs", {}))
        # A recursive shape is in its own `$defs`.
        found |= {name: _without_null(part) for name, part in {shape.__name__: schema, **parts}.items()}
    return dict(sorted(found.items()))


def _without_null(schema: Json) -> Json:
    """Return the schema without null defaults."""
    match schema:
        case dict():
            kept = {name: inner for name, inner in schema.items() if (name, inner) != ("default", None)}
            return {name: _without_null(inner) for name, inner in kept.items()}
        case list():
            return [_without_null(inner) for inner in schema]
        case _:
            return schema


def _problem(status: int) -> Json:
    """Return an example problem with this status."""
    phrase = HTTPStatus(status).phrase
    words = f"What was wrong, and what to do: {phrase}."
    problem = {"type": "about:blank", "title": phrase, "status": status, "detail": words, "message": words}
    return {**problem, "code": _code(status), "errors": []}


def _example(route: Route, what: str) -> dict[str, Json]:
    return {"example": cast("Json", route.examples[what])} if what in route.examples else {}
