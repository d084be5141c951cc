"""The description of the API, held against itself: references and examples."""

import re
from typing import cast

import pytest
from pydantic import TypeAdapter

from recto.api.description import describe, example_of
from recto.api.route import Route
from recto.api.server import ROUTES
from recto.conversation.json import Json, dump


def test_every_reference_leads_somewhere_and_every_shape_is_described_once():
    description = describe(ROUTES)
    text = dump(description).decode()
    assert len(text) < 300_000
    for reference in set(re.findall(r'"\$ref":"#/([^"]+)"', text)):
        value: Json = description
        for step in reference.split("/"):
            assert isinstance(value, dict), reference
            assert step in value, reference
            value = value[step]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_example_matches_its_shape(route: Route):
    for shape in filter(None, (route.answer, route.body)):
        schema = TypeAdapter(shape).json_schema()
        schemas = cast("dict[str, Json]", schema.get("$defs", {})) | {shape.__name__: schema}
        example = example_of({"$ref": f"#/{shape.__name__}"}, schemas)
        assert TypeAdapter(shape).validate_python(example, strict=True) is not None
