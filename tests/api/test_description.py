"""The description of the API, held against itself: references, examples, and the answers that are there."""

from collections.abc import Generator, Iterator, Mapping
from typing import cast

import jsonschema
import pytest
from pydantic import TypeAdapter

from recto.api.route import Route
from recto.api.server import ROUTES
from recto.conversation.json import Json, dump
from recto.testing.client import request
from recto.testing.process import ServerProcess
from tests.api.described import Operation, operations

MEDIA = "application/json"
Content = Mapping[str, Mapping[str, Json]]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with ServerProcess.serve(
        tmp_path_factory.mktemp("described"), {"RECTO_MODEL": "demo", "RECTO_AGENT": "chat"}
    ) as server:
        yield server.url


def contents(operation: Operation) -> Iterator[tuple[str, Content]]:
    """What an operation takes and gives: by status, or as its body."""
    for status, answer in cast("Mapping[str, Mapping[str, Content]]", operation.route["responses"]).items():
        yield status, answer.get("content", {})
    if operation.has_body:
        yield "body", cast("Mapping[str, Content]", operation.route["requestBody"])["content"]


def references(value: Json) -> Iterator[str]:
    match value:
        case dict():
            yield from [str(value["$ref"])] if "$ref" in value else []
            for inner in value.values():
                yield from references(inner)
        case list():
            for inner in value:
                yield from references(inner)
        case _:
            pass


def test_every_reference_leads_somewhere_and_every_shape_is_described_once(url: str):
    description = request(url, "GET", "/openapi.json").json
    assert len(dump(description)) < 300_000
    for reference in references(dict(description)):
        found: Json = dict(description)
        for step in reference.removeprefix("#/").split("/"):
            assert isinstance(found, dict), reference
            assert step in found, reference
            found = found[step]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_example_is_of_the_shape_it_stands_for(route: Route):
    shapes = {"answer": route.answer, "body": route.body}
    for name, example in route.examples.items():
        shape = shapes[name]
        assert shape is not None
        TypeAdapter(shape).validate_python(example, strict=True)


def test_P1_a_stream_is_described_under_the_status_it_is_answered_with(url: str):
    found = {operation.name: dict(contents(operation)) for operation in operations(url)}
    run = found["POST /api/v1/agent/runs"]
    assert (list(run["202"]), list(run["200"])) == ([MEDIA], ["text/event-stream"])
    assert list(found["GET /api/v1/agent/runs/{id}/events"]["200"]) == ["text/event-stream"]


def test_X1_a_call_is_described_with_its_page_and_as_its_page_alone(url: str):
    found = {operation.name: dict(contents(operation)) for operation in operations(url)}
    schema = cast("dict[str, Json]", found["GET /api/v1/agent/runs/{id}/calls/{n}"]["200"][MEDIA]["schema"])
    schema |= {"components": request(url, "GET", "/openapi.json").json["components"]}
    jsonschema.validate({"model": "x", "messages": [], "stream": True}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"n": 1}, schema)
