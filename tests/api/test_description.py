"""The description of the API, held against itself: references and examples."""

import re

import pytest
from pydantic import TypeAdapter

from recto.api.description import describe
from recto.api.route import Route
from recto.api.server import ROUTES
from recto.conversation.json import Json, dump


def test_every_reference_leads_somewhere_and_every_shape_is_described_once():
    description = describe(ROUTES)
    text = dump(description).decode()
    assert len(text) < 300_000
    for reference in set(re.findall(r'"\$ref":"#/([^"]+)"', text)):
        found: Json = description
        for step in reference.split("/"):
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
