"""Merging of profile changes (RFC 7396)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json
from recto.store.users.users import merge

NAMES = st.sampled_from(["a", "b", "c", "出"])
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3)
# The examples of RFC 7396, appendix A, whose target and patch are objects.
PUBLISHED: list[tuple[dict[str, Json], dict[str, Json], dict[str, Json]]] = [
    *(({"a": "b"}, {"a": "c"}, {"a": "c"}), ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"})),
    *(({"a": "b"}, {"a": None}, {}), ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"})),
    *(({"a": ["b"]}, {"a": "c"}, {"a": "c"}), ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]})),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("old", "patch", "expected"), PUBLISHED)
def test_S6_a_change_is_merged_like_the_examples_of_the_RFC(
    old: dict[str, Json], patch: dict[str, Json], expected: dict[str, Json]
):
    before = repr((old, patch))
    assert merge(old, patch) == expected
    assert repr((old, patch)) == before


@given(old=OBJECTS, patch=OBJECTS)
def test_S6_merging_is_idempotent_and_keeps_other_names(old: dict[str, Json], patch: dict[str, Json]):
    result = merge(old, patch)
    assert merge(result, patch) == result
    for name in {*old, *patch}:
        assert (name in result) == (patch[name] is not None if name in patch else True)
        if name not in patch:
            assert result[name] == old[name]
