"""Datasets over HTTP (F10): made, listed, changed and deleted by their owner; used by whom they are shared with."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from recto.api.files import datasets
from recto.api.files.datasets import DATASETS
from recto.conversation.json import Json
from tests.api.local_api import NOW, Answer, LocalApi, assert_problem, local_api

LISTS: dict[str, Json] = {"name": "Price lists", "description": "All of 2026", "sharedWith": ["bob"]}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[LocalApi]:
    async with local_api(tmp_path, datasets.ROUTES) as server:
        yield server


async def make(api: LocalApi, **fields: Json) -> Mapping[str, Json]:
    answer = await api.ask("POST", DATASETS, {"name": "Mine", **fields})
    assert answer.status == 201, answer.body
    return answer.json


def names(answer: Answer) -> list[Json]:
    return [row["name"] for row in answer.rows("datasets")]


async def test_F10_a_dataset_is_told_changed_and_deleted_by_its_owner_under_its_id_in_any_case(api: LocalApi):
    dataset = await make(api, **LISTS)
    assert {**dataset, "id": ""} == {
        **LISTS,
        "id": "",
        "owner": "ann",
        "created": "2026-05-14T12:00:00.000Z",
        "updated": "2026-05-14T12:00:00.000Z",
        "mine": True,
    }
    one = f"{DATASETS}/{str(dataset['id']).upper()}"
    assert (await api.ask("GET", one)).json == dataset
    assert (await api.ask("GET", DATASETS)).json == {"datasets": [dataset], "next": None}
    assert (await api.ask("PATCH", one, {"name": "Other"})).json == {**dataset, "name": "Other"}
    assert (await api.ask("DELETE", one)).json == {"id": dataset["id"]}
    assert_problem(await api.ask("DELETE", one), 404, "There is no dataset")
    assert (await api.ask("GET", DATASETS)).rows("datasets") == []


async def test_F10_whom_a_dataset_is_shared_with_may_look_at_it_and_no_more(api: LocalApi):
    dataset = await make(api, **LISTS)
    one = f"{DATASETS}/{dataset['id']}"
    row = (await api.ask("GET", one, user="bob")).json
    assert row == {name: value for name, value in dataset.items() if name != "sharedWith"} | {"mine": False}
    assert (await api.ask("GET", DATASETS, user="bob")).rows("datasets") == [row]
    for method, body in (("PATCH", {"name": "taken over"}), ("DELETE", None)):
        assert_problem(await api.ask(method, one, body, user="bob"), 404, f"There is no dataset '{dataset['id']}'.")
    assert (await api.ask("GET", one)).json == dataset


async def test_F10_a_star_shares_with_everybody(api: LocalApi):
    dataset = await make(api, sharedWith=["*"])
    assert names(await api.ask("GET", DATASETS, user="whoever")) == ["Mine"]
    changed = await api.ask("PATCH", f"{DATASETS}/{dataset['id']}", {"sharedWith": []})
    assert changed.json["sharedWith"] == []
    assert names(await api.ask("GET", DATASETS, user="whoever")) == []


async def test_F10_what_a_change_leaves_out_stays(api: LocalApi):
    dataset = await make(api, **LISTS)
    api.change(clock=lambda: NOW + timedelta(seconds=5))
    one = f"{DATASETS}/{dataset['id']}"
    expected = {**dataset, "updated": "2026-05-14T12:00:05.000Z"}
    for change in ({"name": "Other"}, {"description": ""}, {"sharedWith": ["carol", "dave"]}, {"name": None}, {}):
        expected |= {name: value for name, value in change.items() if value is not None}
        answer = await api.ask("PATCH", one, change)
        assert (answer.status, answer.json) == (200, expected)


async def test_F10_datasets_are_listed_newest_first_and_page_by_page(api: LocalApi):
    for number in range(3):
        await make(api, name=str(number), sharedWith=["bob", "bob"])
    for user in ("ann", "bob"):
        first = await api.ask("GET", f"{DATASETS}?limit=2", user=user)
        second = await api.ask("GET", f"{DATASETS}?limit=2&cursor={first.json['next']}", user=user)
        assert (names(first), names(second), second.json["next"]) == (["2", "1"], ["0"], None)
    assert_problem(await api.ask("GET", f"{DATASETS}?cursor=x"), 422, "cursor")


async def test_F10_names_and_lists_of_just_the_longest_length_are_taken(api: LocalApi):
    users: list[Json] = [f"user-{number}" for number in range(1_000)]
    dataset = await make(api, name=f" {'n' * 200} ", description="d" * 2_000, sharedWith=users)
    assert (dataset["name"], dataset["description"]) == ("n" * 200, "d" * 2_000)
    assert sorted(map(str, dataset["sharedWith"] if isinstance(dataset["sharedWith"], list) else [])) == sorted(
        map(str, users)
    )


WRONG: Mapping[str, Sequence[Json]] = {
    "name": ["   ", "n" * 201, 7, "two\nlines"],
    "description": ["d" * 2_001, "\0"],
    "sharedWith": ["bob", [7], [""], ["b\0b"], ["b" * 257], ["b"] * 1_001],
}


async def test_F10_a_dataset_of_a_wrong_form_is_refused_by_the_name_of_the_field(api: LocalApi):
    dataset = await make(api)
    one = f"{DATASETS}/{dataset['id']}"
    bodies: Mapping[str, Sequence[object]] = {"body": [b"", []], "name": [{"description": "x"}]}
    for field, values in bodies.items():
        for body in values:
            assert_problem(await api.ask("POST", DATASETS, body), 422, field)
    for field, values in WRONG.items():
        for value in values:
            body = {"name": "a", field: value}
            assert_problem(await api.ask("POST", DATASETS, body), 422, field)
            assert_problem(await api.ask("PATCH", one, body), 422, field)
    assert (await api.ask("GET", DATASETS)).rows("datasets") == [dataset]


@pytest.mark.parametrize("id", ["x", "%00", "01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e12"])
async def test_F10_an_id_nobody_has_is_not_there(api: LocalApi, id: str):
    for method in ("GET", "DELETE"):
        assert (await api.send(method, f"{DATASETS}/{id}")).status == 404
    assert (await api.send("PATCH", f"{DATASETS}/{id}", [b"{}"])).status == 404
