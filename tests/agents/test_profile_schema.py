"""S6: what is kept of a user, held against an agent's schema."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.agents.profile_schema import check_profile
from recto.conversation.json import Json, dump

BIRTH: Json = {
    "type": "object",
    "properties": {"date": {"$ref": "#/$defs/text"}, "calendar": {"enum": ["solar", "lunar"]}},
    "required": ["date"],
    "additionalProperties": False,
}
SCHEMA = dump(
    {
        "type": "object",
        "properties": {"birth_info": BIRTH, "extracted": {"type": "array", "maxItems": 2}},
        "required": ["birth_info", "extracted"],
        "additionalProperties": False,
        "$defs": {"text": {"type": "string", "maxLength": 10}},
    }
).decode()
LISTS = dump({"type": "object", "required": ["a"], "properties": {"b": {"items": {"type": "string"}}}}).decode()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"birth_info": {"date": "1990-05-15", "calendar": "lunar"}, "extracted": []},
        {"another_agents": {"anything": [None]}},
    ],
)
def test_S6_what_the_schema_allows_passes_and_so_does_what_it_does_not_know(fields: dict[str, Json]):
    assert check_profile(fields, SCHEMA) is None


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"birth_info": {"date": 7}}, 'birth_info.date: 7 is not of type "string"'),
        ({"birth_info": {}}, 'birth_info: "date" is a required property'),
        (
            {"birth_info": {"date": "x", "calendar": "moon"}},
            'birth_info.calendar: "moon" is not one of "solar" or "lunar"',
        ),
        (
            {"extracted": {}, "birth_info": []},
            'extracted: {} is not of type "array"; birth_info: [] is not of type "object"',
        ),
    ],
)
def test_S6_what_it_does_not_allow_is_told_by_field(fields: dict[str, Json], problem: str):
    assert check_profile(fields, SCHEMA) == problem


def test_S6_what_is_told_is_short_whatever_was_sent():
    problem = check_profile({"extracted": ["x" * 5_000] * 3, "birth_info": {"date": "y" * 5_000}}, SCHEMA)
    assert problem is not None
    assert len(problem) < 1_000
    every = dump({"properties": {f"f{number}": {"type": "null"} for number in range(50)}}).decode()
    assert (check_profile({f"f{number}": number for number in range(50)}, every) or "").count(";") == 9


@pytest.mark.parametrize(
    "schema",
    [
        *("", "{", "[]", "{}", '{"properties": []}'),
        *('{"properties": {"a": {"type": "nothing"}}}', '{"properties": {"a": {"$ref": "https://recto.invalid/a"}}}'),
    ],
)
def test_S6_a_schema_that_is_none_refuses_nothing(schema: str, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, "recto.agents"):
        assert check_profile({"a": 1}, schema) is None


def test_S6_a_long_profile_is_told_its_first_fault_only():
    assert check_profile({"b": [1] * 100_000}, LISTS) == 'b.0: 1 is not of type "string"'
    assert check_profile({"b": ["x"] * 100_000}, LISTS) is None


@given(fields=st.dictionaries(st.sampled_from(["birth_info", "extracted", "other"]), VALUES))
def test_S6_whatever_a_profile_holds_the_check_ends_and_names_a_known_field(fields: dict[str, Json]):
    problem = check_profile(fields, SCHEMA)
    assert problem is None or problem.startswith(("birth_info", "extracted"))
    assert check_profile({"other": fields}, SCHEMA) is None
