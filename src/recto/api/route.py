"""A route and its description: what it takes, what it answers, with an example of each. Refuses to handle anything.

An answer is described by the type its handler writes it as, so that a row of another shape does not pass pyright.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from typing import Literal, NotRequired, cast
from urllib.parse import quote, unquote, unquote_to_bytes

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope
from typing_extensions import TypedDict

from recto.conversation.json import Json

JSON_MEDIA, MERGE_MEDIA = "application/json", "application/merge-patch+json"
FORM_MEDIA, STREAM_MEDIA = "multipart/form-data", "text/event-stream"
PROBLEM_MEDIA = "application/problem+json"
STREAM_STATUS = 200
# What a stream is made of, and what it may look like, for the description.
STREAM_ITEM: dict[str, Json] = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "data": {"type": "string", "contentMediaType": JSON_MEDIA}},
    "required": ["id", "data"],
}
STREAM_EXAMPLE = 'id: 1\ndata: {"type":"RUN_STARTED","threadId":"...","runId":"run-1"}\n\n'
# What examples of bodies name.
TASK = "01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e11"
THREAD = "550e8400-e29b-41d4-a716-446655440000"
TIME = "2026-05-14T12:00:00.000Z"


@dataclass(frozen=True, kw_only=True)
class Route:
    """One method of one path. `refusals` are the statuses it may refuse with, beside those any route may.

    `body` is what it takes, as `media` or one of `more_media`, and whether it needs one; `answer` what it gives with
    `status`; `streams` says that it can answer with events, `text` is the media type of an answer that is neither. One
    that `is_open` needs no credentials.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    handler: Callable[..., Awaitable[Response]]
    tag: str
    answer: type[object] | None = None
    status: int = 200
    body: type[BaseModel] | None = None
    needs_body: bool = True
    media: str = JSON_MEDIA
    more_media: tuple[str, ...] = ()
    refusals: tuple[int, ...] = ()
    streams: bool = False
    is_open: bool = False
    text: str | None = None
    examples: Mapping[str, object] = field(default_factory=dict[str, object])


class Problem(TypedDict):
    """A refusal, as `application/problem+json`."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: NotRequired[Sequence[Mapping[str, str]]]


class _RawRoute(APIRoute):
    """A route that is found by the path as it was sent: %2F is part of a name there, and no slash."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw: bytes = scope.get("raw_path") or b""
        if b"%" not in raw:
            return super().matches(scope)
        path = "/".join([quote(unquote_to_bytes(part), safe="") for part in raw.split(b"/")])
        match, found = super().matches({**scope, "path": path})
        names: Mapping[str, str] = found.get("path_params", {})
        return match, {**found, "path_params": {name: unquote(value) for name, value in names.items()}}


def add(api: FastAPI, route: Route) -> None:
    """Have an application answer a route, and say so in its description."""
    api.router.add_api_route(
        route.path,
        route.handler,
        methods=[route.method],
        response_model=None,
        status_code=route.status,
        tags=[route.tag],
        responses=_answers(route),
        openapi_extra=_body(route),
        operation_id=route.handler.__name__,
        route_class_override=_RawRoute,
    )
    if route.method == "GET" and (route.is_open or route.answer):
        # Whoever only looks whether something is there asks for no more than this.
        api.router.add_api_route(
            route.path,
            route.handler,
            methods=["HEAD"],
            response_model=None,
            include_in_schema=False,
            route_class_override=_RawRoute,
        )


def _answers(route: Route) -> dict[int | str, dict[str, object]]:
    content: dict[str, object] = {}
    if route.answer:
        content[JSON_MEDIA] = {"schema": _schema(route.answer), **_example(route.examples.get("answer"))}
    if route.text:
        content[route.text] = {"schema": {"type": "string"}}
    given = {route.status: content}
    if route.streams:
        stream = {STREAM_MEDIA: {"itemSchema": STREAM_ITEM, "example": STREAM_EXAMPLE}}
        given[STREAM_STATUS] = {**given.get(STREAM_STATUS, {}), **stream}
    answers: dict[int | str, dict[str, object]] = {
        status: {"description": HTTPStatus(status).phrase, "content": content} for status, content in given.items()
    }
    common = {400, 408, 421, 429, 431, 503} | (set[int]() if route.is_open else {401, 403})
    of_bodies = {415} if route.method != "GET" else set[int]()
    for status in sorted({*route.refusals, *common, *of_bodies}):
        refused = {PROBLEM_MEDIA: {"schema": _schema(Problem)}}
        answers[status] = {"description": HTTPStatus(status).phrase, "content": refused}
    return answers


def _body(route: Route) -> dict[str, object]:
    security: dict[str, object] = {"security": []} if route.is_open else {}
    if route.body is None:
        return security
    content: dict[str, object] = {media: {"schema": _schema(route.body)} for media in (route.media, *route.more_media)}
    content[route.media] = {"schema": _schema(route.body), **_example(route.examples.get("body"))}
    return {**security, "requestBody": {"required": route.needs_body, "content": content}}


@cache
def _schema(shape: type[object]) -> Json:
    """The shape of a body, whole: in the description, references to its parts would lead nowhere."""
    schema = cast("dict[str, Json]", TypeAdapter(shape).json_schema())
    return _inlined(schema, cast("Mapping[str, Json]", schema.pop("$defs", {})))


def _inlined(schema: Json, parts: Mapping[str, Json]) -> Json:
    match schema:
        case {"$ref": str(name)}:
            return _inlined(parts[name.removeprefix("#/$defs/")], parts)
        case dict():
            return {name: _inlined(inner, parts) for name, inner in schema.items()}
        case list():
            return [_inlined(inner, parts) for inner in schema]
        case _:
            return schema


def _example(value: object) -> dict[str, object]:
    return {} if value is None else {"example": value}


def with_examples(description: dict[str, Json], routes: Sequence[Route]) -> dict[str, Json]:
    """A description with its examples whole: FastAPI leaves nulls out, and null is what forgets, or is answered."""
    for route in routes:
        for steps, example in _places(route):
            description = _with(description, ("paths", route.path, route.method.lower(), *steps, "example"), example)
    return description


def _places(route: Route) -> Iterator[tuple[tuple[str, ...], Json]]:
    """The examples of a route, each with where it stands in what describes it."""
    examples = cast("Mapping[str, Json]", route.examples)
    if (body := examples.get("body")) is not None:
        yield ("requestBody", "content", route.media), body
    if (answer := examples.get("answer")) is not None:
        yield ("responses", str(route.status), "content", JSON_MEDIA), answer


def _with(value: Json, steps: Sequence[str], leaf: Json) -> dict[str, Json]:
    """An object with another value at the end of these steps. It is not changed."""
    known: Mapping[str, Json] = value if isinstance(value, Mapping) else {}
    first, *rest = steps
    return {**known, first: _with(known.get(first), rest, leaf) if rest else leaf}
