"""Arguments against a bare JSON Schema."""

import json
import logging
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.page.canonical import Json
from recto.tools.schema import LONGEST_ARGUMENTS, LONGEST_SCHEMA, check_arguments

PLACE = json.dumps(
    {
        "type": "object",
        "properties": {
            "place": {"type": "string"},
            "days": {"type": "integer", "minimum": 1},
            "stops": {"type": "array", "items": {"type": "object", "properties": {"at": {"type": "string"}}}},
        },
        "required": ["place"],
        "additionalProperties": False,
    }
)
TREE = json.dumps({"properties": {"children": {"type": "array", "items": {"$ref": "#"}}, "name": {"type": "string"}}})


def nested(levels: int, value: str = "1") -> str:
    return '{"x":' * levels + value + "}" * levels


@pytest.mark.parametrize("arguments", ['{"place": "Ulm"}', '{"place": "Ulm", "days": 2, "stops": [{"at": "x"}, {}]}'])
def test_arguments_that_match_are_fine(arguments: str):
    assert check_arguments(arguments, PLACE) is None


def test_wrong_arguments_name_the_path_and_what_is_wrong():
    assert check_arguments('{"days": 0, "stops": [{}, {"at": 1}], "q": 1}', PLACE) == (
        "The arguments do not match the tool's schema:\n"
        "- days: 0 is less than the minimum of 1\n"
        '- stops.1.at: 1 is not of type "string"\n'
        "- arguments: Additional properties are not allowed ('q' was unexpected)\n"
        '- arguments: "place" is a required property\n'
        "Call the tool again with arguments that match its schema."
    )


@pytest.mark.parametrize("arguments", ["{", "nonsense", "[1]", "null", '"x"', "\ud800"])
def test_what_is_no_json_object_is_told(arguments: str):
    assert "JSON" in (check_arguments(arguments, "{}") or "")


@pytest.mark.parametrize("arguments", ["", " \n"])
def test_no_arguments_are_an_empty_object(arguments: str):
    assert check_arguments(arguments, "{}") is None
    assert "required" in (check_arguments(arguments, PLACE) or "")


def test_a_schema_that_refers_to_itself_is_followed():
    assert check_arguments('{"children": [{"name": "a", "children": [{}]}]}', TREE) is None
    assert "children.0.name" in (check_arguments('{"children": [{"name": 1}]}', TREE) or "")


@pytest.mark.parametrize(
    "schema",
    ["", "{", "3", "[]", '{"type": 12}', '{"$ref": "#/nowhere"}', '{"pattern": "("}', " " * LONGEST_SCHEMA + "{}"],
)
def test_a_schema_that_is_none_lets_everything_pass_and_is_logged(schema: str, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, logger="recto.tools"):
        # A schema is read and logged once, so this one is written as in no other test.
        assert check_arguments("{}", schema + "\n\t\n\t ") is None
    assert len(caplog.records) == 1


@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/a.json", "file:///etc/hostname", "other.json"])
def test_nothing_is_fetched(reference: str):
    start = time.perf_counter()
    assert check_arguments("{}", json.dumps({"$ref": reference})) is None
    assert time.perf_counter() - start < 0.5


def test_a_long_value_is_not_repeated_in_full():
    told = check_arguments(json.dumps({"place": ["x" * 10_000]}), PLACE) or ""
    assert "- place: " in told
    assert len(told) < 1000


def test_too_long_and_too_deep_arguments_are_told():
    assert "Send less" in (check_arguments(json.dumps({"a": "x" * LONGEST_ARGUMENTS}), "{}") or "")
    assert "Nest them less" in (check_arguments(nested(65), "{}") or "")


def doubling() -> dict[str, Json]:
    links: dict[str, Json] = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
    return {"$ref": "#/$defs/a0", "$defs": links | {"a40": {"type": "object"}}}


def named_like_a_keyword() -> dict[str, Json]:
    twice: Json = {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}
    return {"properties": {"default": twice, "x": {"$ref": "#/properties/default"}}, "not": {"required": ["z"]}}


@pytest.mark.parametrize(
    "schema",
    [
        doubling(),
        named_like_a_keyword(),
        {"properties": {"x": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "not": {"required": ["z"]}},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"properties": {"x": {"pattern": "^(a+)+(?=b)$"}}},
        {"$id": "urn:a", "$dynamicAnchor": "n", "properties": {"x": {"anyOf": [{"$dynamicRef": "#n"}] * 2}}},
    ],
)
@pytest.mark.parametrize("arguments", [nested(40, '{"z": 1}'), json.dumps({"x": "a" * 5000})])
def test_no_schema_takes_long(schema: dict[str, Json], arguments: str):
    start = time.perf_counter()
    told = check_arguments(arguments, json.dumps(schema))
    assert time.perf_counter() - start < 1
    assert told is None or told.startswith("The arguments do not match")


@given(arguments=st.text(), schema=st.text())
def test_no_text_makes_it_fail(arguments: str, schema: str):
    assert check_arguments(arguments, schema) != ""
