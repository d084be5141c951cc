"""Names, secrets and schemas of external tools."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json
from recto.conversation.messages import ToolOffer
from recto.errors import SettingsError
from recto.tools.client_schema import Schemas
from recto.tools.external.services import SecretValues
from recto.tools.external.tool_offers import CannotOffer, normalise_offer, normalise_schema, shorten_text, tool_names

HASH = "[0-9a-f]{8}"
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@pytest.mark.parametrize(
    ("own", "accepted", "expected"),
    [
        (["read", "a.b"], (), ["files__read", "files__a_b"]),
        # Two that would be one: the one that is spelled so keeps its name.
        (["a_b", "a.b"], (), ["files__a_b", f"files__a_b_{HASH}"]),
        (["read"], ("files__read",), [f"files__read_{HASH}"]),
        (["x" * 80], (), [f"files__{'x' * 48}_{HASH}"]),
    ],
)
def test_names_are_such_as_providers_take(own: list[str], accepted: tuple[str, ...], expected: list[str]):
    names = list(tool_names("files", own, accepted).values())
    assert [bool(re.fullmatch(form, one)) for form, one in zip(expected, names, strict=True)] == [True] * len(own)


@given(st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=12))
def test_names_are_valid_unique_and_the_same_in_any_order(own: list[str]):
    names = tool_names("files", own, ("files__read",))
    shuffled = sorted(own, key=hash)
    assert dict(tool_names("files", shuffled, ("files__read",))) == dict(names)
    assert len({*names.values(), "files__read"}) == len(own) + 1
    assert all(NAME.fullmatch(name) for name in names.values())


def test_secrets_are_put_in_and_hidden_in_every_form():
    secrets = SecretValues({"RECTO_SECRET_KEY": 'a "b"/c d', "RECTO_SECRET_SHORT": "ab"})
    assert secrets.fill_in({"A": "Bearer secret:KEY", "B": "secret:SHORT."}) == {"A": 'Bearer a "b"/c d', "B": "ab."}
    for form in ('a "b"/c d', 'a \\"b\\"/c d', "a%20%22b%22%2Fc%20d"):
        assert secrets.hide(f"x {form} y") == "x (hidden) y"
    assert secrets.hide("ab cabs") == "ab cabs"
    with pytest.raises(SettingsError, match="set RECTO_SECRET_OTHER for the server"):
        secrets.fill_in({"A": "secret:OTHER"})


MENDED: list[tuple[Json, Json]] = [
    ({}, {"type": "object", "properties": {}}),
    ({"type": ["object", "null"]}, {"type": "object", "properties": {}}),
    (
        {"$schema": "x", "anyOf": [{}], "properties": {"a": {"anyOf": [{}]}}, "required": ["a"]},
        {"properties": {"a": {"anyOf": [{}]}}, "required": ["a"], "type": "object"},
    ),
    (
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"b": {}}}}},
        {"$defs": {"A": {"type": "object", "properties": {"b": {}}}}, "type": "object", "properties": {"b": {}}},
    ),
]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("no", "its schema is no object"),
        ({"type": "string"}, "its arguments are of type string"),
        ({"properties": {"a b": {}}}, "it has an argument 'a b'"),
        ({"$ref": "#/$defs/A"}, "refers to '#/\\$defs/A'"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "refers to '#/\\$defs/A'"),
        ({"properties": {"a": {"type": "never"}}}, "is no JSON Schema"),
        ({"properties": {"a": {"$ref": "https://example.com/a.json"}}}, "is no JSON Schema"),
    ],
)
async def test_a_schema_that_no_provider_takes_is_a_reason_to_leave_the_tool_out(schema: Json, reason: str):
    with pytest.raises(CannotOffer, match=reason):
        await normalise_offer(ToolOffer(name="a", description="", parameters=""), schema, 100, Schemas())


async def test_schemas_are_mended_and_descriptions_bounded():
    for schema, expected in MENDED:
        assert normalise_schema(schema) == expected
    assert [shorten_text(" abc ", 3), shorten_text("abcdefghij", 8)] == ["abc", "abcd ..."]
