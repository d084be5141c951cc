"""P1: changes of shared state: places in JSON values, and what differs between two of them as JSON Patch."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.json import Json, dump, load
from recto.conversation.thread_state import PatchOperation, ValueChange, apply_change, difference, is_same, value_at
from recto.errors import WireError

names: st.SearchStrategy[str] = st.sampled_from(("a", "b", "~", "/", "", "0", "-"))
leaves: st.SearchStrategy[Json] = st.one_of(
    st.none(), st.booleans(), st.integers(0, 2), st.sampled_from((0.0, 1.5)), st.text(max_size=2)
)
values: st.SearchStrategy[Json] = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)


def patched(value: Json, operations: list[PatchOperation]) -> Json:
    """The naive way of RFC 6902: each operation edits a copy."""
    whole = {"root": load(dump(value))}
    for operation in operations:
        steps = [
            "root",
            *[step.replace("~1", "/").replace("~0", "~") for step in str(operation["path"]).split("/")[1:]],
        ]
        holder = cast("Json", whole)
        for step in steps[:-1]:
            holder = holder[int(step)] if isinstance(holder, list) else cast("dict[str, Json]", holder)[step]
        edit(holder, steps[-1], operation)
    return whole["root"]


def edit(holder: Json, last: str, operation: PatchOperation) -> None:
    match operation["op"], holder:
        case ("add", list()):
            assert int(last) <= len(holder)
            holder.insert(int(last), operation["value"])
        case ("remove", list()):
            del holder[int(last)]
        case ("replace", list()):
            holder[int(last)] = operation["value"]
        case ("remove", dict()):
            del holder[last]
        case (op, dict()):
            assert (last in holder) == (op == "replace")
            holder[last] = operation["value"]
        case _:
            raise AssertionError(operation)


@given(values, values)
def test_P1_a_difference_makes_one_value_of_the_other(before: Json, after: Json):
    operations = difference(before, after)
    assert is_same(patched(before, operations), after)
    assert bool(operations) != is_same(before, after)


@given(st.lists(leaves, max_size=30), st.integers(0, 30), leaves)
def test_P1_an_item_put_into_a_list_is_one_operation(items: list[Json], place: int, item: Json):
    assert len(difference(items, [*items[:place], item, *items[place:]])) == 1


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, [], id="another order"),
        pytest.param({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}], id="true is not 1"),
        pytest.param({"a/b": {"~": 1}}, {"a/b": {}}, [{"op": "remove", "path": "/a~1b/~0"}], id="escaped"),
        pytest.param([1, 2, 3], [1, 3], [{"op": "remove", "path": "/1"}], id="out of a list"),
        pytest.param({}, {"a": None}, [{"op": "add", "path": "/a", "value": None}], id="null is something"),
    ],
)
def test_P1_a_difference_is_written_as_json_patch(before: Json, after: Json, operations: list[PatchOperation]):
    assert difference(before, after) == operations


def test_what_is_nested_deep_differs_as_a_whole():
    deep, other = cast("Json", 1), cast("Json", 2)
    for _ in range(120):
        deep, other = {"a": deep}, {"a": other}
    (operation,) = difference(deep, other)
    assert operation["path"] == "/a" * 32
    assert is_same(patched(deep, [operation]), other)


@pytest.mark.parametrize(
    ("whole", "path", "value", "after"),
    [
        pytest.param(None, "/a/b", 1, {"a": {"b": 1}}, id="objects on the way are made"),
        pytest.param({"a": [1, 2]}, "/a/1", 3, {"a": [1, 3]}, id="an item"),
        pytest.param({"a": [1]}, "/a/1", 3, {"a": [1, 3]}, id="behind the last, by its number"),
        pytest.param({"a": [1]}, "/a/-/b", 3, {"a": [1, {"b": 3}]}, id="below a new item"),
        pytest.param({"a": 1}, "/", 2, {"a": 1, "": 2}, id="an empty name"),
        pytest.param({}, "/a~1b~0", 2, {"a/b~": 2}, id="escaped"),
    ],
)
def test_P1_a_value_is_put_at_a_place(whole: Json, path: str, value: Json, after: Json):
    before = dump(whole)
    changed_value = apply_change(whole, ValueChange(path=path, value=dump(value).decode()))
    assert is_same(changed_value, after)
    assert dump(whole) == before
    if not path.endswith("-") and "/-/" not in path:
        assert is_same(value_at(changed_value, path), value)


@pytest.mark.parametrize(
    ("whole", "path", "after"),
    [
        pytest.param({"a": 1}, "", None, id="the whole"),
        pytest.param({"a": [1, 2, 3]}, "/a/1", {"a": [1, 3]}, id="an item"),
        pytest.param({"a": [{"b": 1, "c": 2}]}, "/a/0/b", {"a": [{"c": 2}]}, id="below an item"),
        pytest.param({"a": 1}, "/b/c", {"a": 1}, id="what is not there"),
        pytest.param({"a": [1]}, "/a/7", {"a": [1]}, id="an item that is not there"),
    ],
)
def test_P1_what_stands_at_a_place_is_removed(whole: Json, path: str, after: Json):
    changed_value = apply_change(whole, ValueChange(path=path))
    assert is_same(changed_value, after)
    assert value_at({"removed": changed_value}, f"/removed{path}/of/what") is None


@pytest.mark.parametrize(
    ("whole", "path", "problem"),
    [
        pytest.param({}, "a", "a: is no JSON Pointer", id="no pointer"),
        pytest.param({"a": "words"}, "/a/b", "/a/b: there is no place 'b' in \"words\"", id="a text in the way"),
        pytest.param({"a": [1]}, "/a/5", "'5' is no place in a list of 1", id="far behind the last"),
        pytest.param({"a": [1]}, "/a/01", "'01' is no place in a list of 1", id="a number written otherwise"),
        pytest.param({}, "/a" * 100, "leads more than 32 deep", id="too deep"),
    ],
)
def test_P1_a_place_that_cannot_be_is_told(whole: Json, path: str, problem: str):
    with pytest.raises(WireError) as caught_error:
        apply_change(whole, ValueChange(path=path, value="1"))
    assert problem in str(caught_error.value)
