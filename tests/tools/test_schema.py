"""Validation of arguments against plain JSON Schemas."""

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.config.run_settings import SchemaLimits
from recto.conversation.json import Json
from recto.conversation.messages import ToolOffer
from recto.errors import WireError
from recto.tools.client_schema import LONGEST_ARGUMENTS, Schemas

PLACE = """{"type": "object", "required": ["place"], "additionalProperties": false, "properties": {
    "place": {"type": "string"}, "days": {"type": "integer", "minimum": 1},
    "stops": {"type": "array", "items": {"type": "object", "properties": {"at": {"type": "string"}}}}}}"""
TREE = json.dumps({"properties": {"children": {"type": "array", "items": {"$ref": "#"}}, "name": {"type": "string"}}})
SCHEMAS = Schemas()


def check(arguments: str, schema: str) -> str | None:
    return SCHEMAS.check_now(arguments, schema)


def offer(name: str, parameters: str = "{}") -> ToolOffer:
    return ToolOffer(name=name, description="", parameters=parameters)


def rejection(*schemas: Json, limits: SchemaLimits | None = None) -> WireError | None:
    """Return the error of a request with tools of these schemas, or None."""
    tools = [offer(f"t{place}", json.dumps(one)) for place, one in enumerate(schemas)]
    try:
        Schemas(limits).admit_now(tools)
    except WireError as error:
        return error
    return None


def nested(levels: int, value: str = "1") -> str:
    return '{"x":' * levels + value + "}" * levels


def test_wrong_arguments_name_the_path_and_what_is_wrong():
    assert check('{"place": "Ulm", "days": 2, "stops": [{"at": "x"}, {}]}', PLACE) is None
    assert check('{"days": 0, "stops": [{}, {"at": 1}], "q": 1}', PLACE) == (
        "The arguments do not match the tool's schema:\n"
        "- days: 0 is less than the minimum of 1\n"
        '- stops.1.at: 1 is not of type "string"\n'
        "- arguments: Additional properties are not allowed ('q' was unexpected)\n"
        '- arguments: "place" is a required property\n'
        "Call the tool again with arguments that match its schema."
    )


def test_what_is_no_json_object_is_told_and_no_arguments_are_an_empty_one():
    assert all("JSON" in (check(arguments, "{}") or "") for arguments in ("{", "[1]", "null", "\ud800"))
    assert check(" \n", "{}") is None
    assert "required" in (check("", PLACE) or "")


def test_a_schema_that_refers_to_itself_is_followed_once():
    assert check('{"children": [{"children": [{"name": 1}]}]}', TREE) is None
    assert "children.0.name: 1 is not of type" in (check('{"children": [{"name": 1}]}', TREE) or "")


SHARED: Json = {
    "$defs": {"id": {"type": "string", "pattern": "^[a-z]$"}, "point": {"required": ["x"], "properties": {"x": {}}}},
    "properties": {
        "at": {"$ref": "#/$defs/point", "maxProperties": 2},
        "one": {"oneOf": [{"$ref": "#/$defs/id"}, {"type": "string", "pattern": "^[0-9]$"}]},
        "no": {"not": {"$ref": "#/$defs/id"}},
        "odd": {"not": {"type": "string"}},
        "any": {"$ref": "#/properties/any"},
        "when": {"if": {"pattern": "^a"}, "then": False, "else": False},
        "loose": {"patternProperties": {"^x": False}, "additionalProperties": False},
        "half": {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
    },
}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"at": {"y": 1}}, 'at: "x" is a required property'),
        ({"at": {"x": 1, "y": 1, "z": 1}}, "at: "),
        ({"at": {"x": 1}}, None),
        ({"one": "A"}, None),
        ({"one": 1}, "one: 1 is not valid under any of the schemas"),
        ({"no": "a"}, None),
        ({"odd": "a"}, "odd: "),
        ({"any": 1}, None),
        ({"when": "a"}, None),
        ({"loose": {"x": 1, "y": 2}}, None),
        ({"half": {"b": 1}}, None),
    ],
)
def test_P11_references_are_checked_and_slow_keywords_accept_any_value(arguments: Json, problem: str | None):
    advice = check(json.dumps(arguments), json.dumps(SHARED))
    assert (advice is None) if problem is None else problem in (advice or "")


def test_in_old_drafts_a_reference_replaces_the_keywords_beside_it():
    part = {"definitions": {"a": {"type": "integer"}}, "properties": {"x": {"$ref": "#/definitions/a", "minimum": 5}}}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", **part}
    assert check('{"x": 1}', json.dumps(old)) is None
    assert "x: 1 is less than" in (check('{"x": 1}', json.dumps(part)) or "")
    assert "x: " in (check('{"x": "a"}', json.dumps(old)) or "")


@pytest.mark.parametrize("schema", ["", "{", "3", "[]", '{"type": 12}', '{"$ref": "#/nowhere"}', " " * 262_144 + "{}"])
def test_an_invalid_schema_accepts_everything_and_is_logged(schema: str, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, logger="recto.tools"):
        assert check("{}", schema) is None
    assert len(caplog.records) == 1


@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/a.json", "file:///etc/hostname", "other.json"])
def test_P11_nothing_is_fetched_for_a_schema_that_refers_elsewhere(reference: str):
    problem = f"tools[1].parameters: the schema of tool 't1' is no JSON Schema: Resource '{reference}' is not present"
    assert str(rejection({}, {"$ref": reference})).startswith(problem)


def test_long_values_are_not_repeated_in_full_and_too_long_or_too_deep_arguments_are_told():
    advice = check(json.dumps({"place": ["x" * 10_000]}), PLACE) or ""
    assert ("- place: " in advice, len(advice) < 1000) == (True, True)
    assert "Send less" in (check(json.dumps({"a": "x" * LONGEST_ARGUMENTS}), "{}") or "")
    assert "Nest them less" in (check(nested(65), "{}") or "")


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
    advice = check(arguments, json.dumps(schema))
    assert advice is None or advice.startswith("The arguments do not match")


# What is admitted


EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"properties": {"at": {"pattern": r"^\d{4}-\d{2}-\d{2}$"}, "name": {"pattern": "^.{1,255}$"}}},
        {"properties": {"to": {"pattern": EMAIL}, "const": {"pattern": EMAIL}}},
        {"patternProperties": {"^(?!x-)": {"type": "string"}}, "additionalProperties": False},
        {"properties": {"pattern": {"type": "string"}}, "examples": [{"pattern": "*.py"}], "const": {"pattern": "("}},
        {"properties": {f"p{n}": {"pattern": rf"\p{{L}}{{{n}}}(?=a)"} for n in range(1000)}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}, "$ref": "#/definitions/a"},
    ],
)
def test_P11_schemas_that_people_write_are_taken(schema: Json):
    assert rejection(schema) is None


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"minLength": "x"}, 'is no JSON Schema at minLength: "x" is not of type "integer"; mend it'),
        ({"patternProperties": {"^a": {"minLength": "x"}}}, 'is no JSON Schema at patternProperties.0.minLength: "x"'),
        ({"$ref": "#/nowhere"}, "is no JSON Schema: Pointer '/nowhere' does not exist; mend it"),
        (json.loads(nested(65, "{}")), "takes the tools beyond 64 levels, which is the limit; send less"),
        ({"enum": ["x" * 262_144]}, "takes the tools beyond 262144 bytes, which is the limit; send less"),
    ],
)
def test_P11_an_invalid_or_too_large_schema_is_rejected_with_the_reason(schema: Json, problem: str):
    assert str(rejection({}, schema)).startswith(f"tools[1].parameters: the schema of tool 't1' {problem}")


def test_P11_the_schemas_of_one_request_share_the_limit_of_bytes():
    name: Json = {"title": "a name of 40 bytes"}
    limits = SchemaLimits(schema_bytes=40)
    assert rejection(name, limits=limits) is None
    assert "beyond 40 bytes" in str(rejection(name, name, limits=limits))


@pytest.mark.parametrize("name", ["", "get weather", "天气", "x" * 65, "a\n"])
async def test_P11_a_tool_name_that_providers_refuse_and_more_tools_than_may_be_are_refused(name: str):
    with pytest.raises(WireError, match=r"^tools\[1\]\.name: .* is no name of a tool; write 1 to 64 letters, digits"):
        await Schemas().admit([offer("get-weather_2"), offer(name)])
    tools = [offer(f"t{number}") for number in range(3)]
    with pytest.raises(WireError, match=r"^tools: are 3, 2 are allowed; send fewer$"):
        await Schemas(SchemaLimits(client_tools=2)).admit(tools)


# What is checked within bounds


ANY = {"anyOf": [{"type": "integer"}] * 1000}
ENUM: list[Json] = [{"a": n} for n in range(500)]
PATTERNS: list[Json] = [{"pattern": f"[ab]*a[ab]{{400}}c{n}"} for n in range(20)]
MULTIPLES = {"items": {"allOf": [{"multipleOf": 0.01}] * 100}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"x": ANY}}, {"x": "x" * 900_000}),
        ({"properties": {"x": {"items": {"type": "integer"}}}}, {"x": ["a"] * 100_000}),
        ({"propertyNames": {"maxLength": 1}}, {f"aa{n}": 1 for n in range(50_000)}),
        ({"properties": {"x": MULTIPLES}}, {"x": [1.23] * 10_000}),
        ({"properties": {"x": {"items": {"not": {"enum": ENUM}}}}}, {"x": [{"a": 0.5}] * 500}),
        ({"properties": {"x": {"allOf": PATTERNS}}}, {"x": "ab" * 9000}),
        ({"properties": {"x": {"allOf": [{"uniqueItems": True}] * 20}}}, {"x": [str(n) for n in range(50_000)]}),
    ],
)
def test_P11_no_arguments_take_long_to_check(schema: Json, value: Json):
    schema_text, value_text = json.dumps(schema), json.dumps(value)
    check("{}", schema_text)
    check(value_text, schema_text)


async def test_compiled_schemas_are_kept_within_their_bytes_until_they_are_forgotten():
    schemas = Schemas(SchemaLimits(schema_cache_bytes=500_000))
    for number in range(100):
        assert schemas.check_now('{"x": 1}', json.dumps({"required": ["x"], "title": "t" * 100 + str(number)})) is None
    assert 0 < schemas.cached_bytes <= 500_000
    await schemas.clear()
    assert (schemas.cached_bytes, schemas.check_now('{"x": 1}', '{"required": ["x"]}')) == (0, None)


@given(arguments=st.text(), schema=st.text())
def test_no_text_makes_it_fail(arguments: str, schema: str):
    assert check(arguments, schema) != ""
