"""Profiles: how changes are merged, and how little is asked of the database."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection

from recto.conversation.json import Json
from recto.store.database.opening import migrate
from recto.store.database.sqlite import SqliteDatabase
from recto.store.statement import driver
from recto.store.users.profiles import ProfileChange, change, data_of, fields_of, merge
from tests.store.suite.samples import START

NAMES = st.sampled_from(["a", "b", "c", "出"])
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)
# Of the table in RFC 7396, appendix A: those whose target and patch are objects.
PUBLISHED: list[tuple[dict[str, Json], dict[str, Json], dict[str, Json]]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("old", "patch", "merged"), PUBLISHED)
def test_S6_a_change_is_merged_as_the_published_examples_say(
    old: dict[str, Json], patch: dict[str, Json], merged: dict[str, Json]
):
    before = repr((old, patch))
    assert merge(old, patch) == merged
    assert repr((old, patch)) == before


@given(old=OBJECTS, patch=OBJECTS)
def test_S6_merged_twice_is_merged_once_and_what_is_not_named_stays(old: dict[str, Json], patch: dict[str, Json]):
    merged = merge(old, patch)
    assert merge(merged, patch) == merged
    for name in {*old, *patch}:
        assert (name in merged) == (patch[name] is not None if name in patch else True)
        if name not in patch:
            assert merged[name] == old[name]


async def test_S6_declared_fields_are_one_question_and_data_of_a_skill_another(tmp_path: Path):
    database = SqliteDatabase(tmp_path / "recto.db")
    await database.write(migrate)
    changes = ProfileChange(fields={"birth_info": {"date": "x"}, "b": 2, "c": 3}, skill_data={"bazi": [1], "tarot": 2})
    await database.write(lambda connection: change(connection, "ann", changes, START, 999))
    found = await database.read(asked(lambda connection: fields_of(connection, "ann", ["b", "birth_info", "no"])))
    assert found[0] == {"b": 2, "birth_info": {"date": "x"}}
    (question,) = found[1]
    assert "profile_fields" in question
    data, questions = await database.read(asked(lambda connection: data_of(connection, "ann", "bazi")))
    assert (data, len(questions)) == ([1], 1)
    await database.close()


def asked(work: Callable[[Connection], Json]) -> Callable[[Connection], tuple[Json, list[str]]]:
    """Work, and what it asks of the database."""

    def watched(connection: Connection) -> tuple[Json, list[str]]:
        questions: list[str] = []
        driver(connection).set_trace_callback(questions.append)
        try:
            return work(connection), [one for one in questions if one.startswith("SELECT")]
        finally:
            driver(connection).set_trace_callback(None)

    return watched
