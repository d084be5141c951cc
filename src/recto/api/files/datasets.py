"""Routes of datasets: create, list, read, change, delete. Datasets that are not shared with a user do not exist for
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NotRequired

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from recto.api.backend import backend_of, json_answer, user_of
from recto.api.bodies import NUL, read_object
from recto.api.files.attachments import GoneShape
from recto.api.parameters import Cursor, PageLimit, in_path, stored_id
from recto.api.route import TIME, Route
from recto.conversation.history import time_text
from recto.conversation.json import Json
from recto.conversation.title import CONTROLS
from recto.errors import WireError
from recto.store.files.datasets import DatasetChange, StoredDataset

DATASETS = "/api/v1/agent/datasets"
ONE = f"{DATASETS}/{{id}}"
NAME_CHARACTERS, DESCRIPTION_CHARACTERS = 200, 2_000
USERS, USER_CHARACTERS = 1_000, 256
# Per user. More would be unusable in a list, and each may be shared with up to USERS users.
MOST_DATASETS = 1_000
DatasetId = Annotated[str, in_path("The dataset's id, a UUID.")]
DatasetName = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS)]
Description = Annotated[str, Field(max_length=DESCRIPTION_CHARACTERS)]
SharedWith = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=USER_CHARACTERS)]],
    Field(max_length=USERS, description="Users by name; `*` is everybody."),
]


class DatasetBody(BaseModel):
    """A new dataset."""

    name: DatasetName
    description: Description | None = ""
    shared_with: SharedWith | None = Field(default=[], alias="sharedWith")


class DatasetChangeBody(BaseModel):
    """The fields to change; missing fields stay unchanged."""

    name: DatasetName | None = None
    description: Description | None = None
    shared_with: SharedWith | None = Field(default=None, alias="sharedWith")


class DatasetShape(TypedDict):
    """A dataset. `sharedWith` is visible to its owner only."""

    id: str
    name: str
    description: str
    owner: str
    sharedWith: NotRequired[Sequence[str] | None]
    created: str
    updated: str
    mine: bool


class DatasetsShape(TypedDict):
    """Datasets you may use, newest first. `next` is the cursor of the next page."""

    datasets: Sequence[DatasetShape]
    next: str | None


DATASET = "01990b1e-6f3a-7c5e-8a57-1f0c2b9d4e13"
DATASET_BODY: Json = {"name": "Price lists", "description": "All of 2026", "sharedWith": ["bob"]}
DATASET_EXAMPLE: DatasetShape = {
    "id": DATASET,
    "name": "Price lists",
    "description": "All of 2026",
    "owner": "alice",
    "sharedWith": ["bob"],
    "created": TIME,
    "updated": TIME,
    "mine": True,
}
DATASETS_EXAMPLE: DatasetsShape = {"datasets": [DATASET_EXAMPLE], "next": None}


async def make_dataset(request: Request) -> Response:
    """Create a dataset, for yourself and the users you share it with; `*` means everybody."""
    backend, user, body = backend_of(request), user_of(request).name, await read_object(request)
    now, description, users = backend.clock(), body.get("description"), body.get("sharedWith")
    dataset = StoredDataset(
        id=backend.new_id(),
        owner=user,
        name=_name(body.get("name")),
        description="" if description is None else _description(description),
        shared_with=() if users is None else _users(users),
        created=now,
        updated=now,
    )
    return json_answer(dataset_row(await backend.store.make_dataset(dataset, MOST_DATASETS), user), 201)


async def list_datasets(request: Request, cursor: Cursor = None, limit: PageLimit = 50) -> Response:
    """List the datasets you may use, newest first: your own, and those shared with you."""
    user = user_of(request).name
    found = await backend_of(request).store.list_datasets(user, cursor, limit)
    rows = [dataset_row(dataset, user) for dataset in found.datasets]
    answer: DatasetsShape = {"datasets": rows, "next": found.next}
    return json_answer(answer)


async def get_dataset(request: Request, id: DatasetId) -> Response:
    """Return a dataset you may use."""
    user = user_of(request).name
    return json_answer(dataset_row(await backend_of(request).store.get_dataset(user, stored_id(id, "dataset")), user))


async def change_dataset(request: Request, id: DatasetId) -> Response:
    """Change a dataset of yours; missing fields stay unchanged."""
    backend, user, body = backend_of(request), user_of(request).name, await read_object(request)
    name, description, users = (body.get(field) for field in ("name", "description", "sharedWith"))
    change = DatasetChange(
        now=backend.clock(),
        name=None if name is None else _name(name),
        description=None if description is None else _description(description),
        shared_with=None if users is None else _users(users),
    )
    return json_answer(dataset_row(await backend.store.change_dataset(user, stored_id(id, "dataset"), change), user))


async def delete_dataset(request: Request, id: DatasetId) -> Response:
    """Delete a dataset of yours, for all users."""
    known = stored_id(id, "dataset")
    await backend_of(request).store.delete_dataset(user_of(request).name, known)
    answer: GoneShape = {"id": known}
    return json_answer(answer)


def _name(value: Json) -> str:
    name = value.strip() if isinstance(value, str) else ""
    if not 0 < len(name) <= NAME_CHARACTERS:
        raise WireError(where="name", problem=f"must be a text of 1 to {NAME_CHARACTERS} characters")
    if any(letter in CONTROLS for letter in name):
        raise WireError(where="name", problem="holds a line break or another control character; take it out")
    return name


def _description(value: Json) -> str:
    if not isinstance(value, str) or len(value) > DESCRIPTION_CHARACTERS:
        raise WireError(where="description", problem=f"must be a text of up to {DESCRIPTION_CHARACTERS:,} characters")
    if NUL in value:
        raise WireError(where="description", problem="holds the character U+0000, which cannot be stored; take it out")
    return value


def _users(value: Json) -> tuple[str, ...]:
    """Return unique user names. It does not reveal whether they exist."""
    if not isinstance(value, list) or len(value) > USERS:
        raise WireError(where="sharedWith", problem=f"must be a list of up to {USERS:,} names of users, or of `*`")
    names = list(dict.fromkeys([one for one in value if isinstance(one, str)]))
    if not all(isinstance(one, str) for one in value) or not all(map(_is_user, names)):
        problem = f"must name users, each in 1 to {USER_CHARACTERS} characters without U+0000; `*` is everybody"
        raise WireError(where="sharedWith", problem=problem)
    return tuple(names)


def _is_user(name: str) -> bool:
    return 0 < len(name) <= USER_CHARACTERS and NUL not in name


def dataset_row(dataset: StoredDataset, user: str) -> DatasetShape:
    """Return a dataset as a user sees it; only its owner sees `sharedWith`."""
    row: DatasetShape = {
        "id": dataset.id,
        "name": dataset.name,
        "description": dataset.description,
        "owner": dataset.owner,
        "sharedWith": list(dataset.shared_with),
        "created": time_text(dataset.created),
        "updated": time_text(dataset.updated),
        "mine": dataset.owner == user,
    }
    if not row["mine"]:
        del row["sharedWith"]
    return row


ROUTES = (
    Route(
        method="POST",
        path=DATASETS,
        handler=make_dataset,
        tag="datasets",
        status=201,
        body=DatasetBody,
        answer=DatasetShape,
        refusals=(413, 422),
        examples={"body": DATASET_BODY, "answer": DATASET_EXAMPLE},
    ),
    Route(
        method="GET",
        path=DATASETS,
        handler=list_datasets,
        tag="datasets",
        answer=DatasetsShape,
        refusals=(422,),
        examples={"answer": DATASETS_EXAMPLE},
    ),
    Route(
        method="GET",
        path=ONE,
        handler=get_dataset,
        tag="datasets",
        answer=DatasetShape,
        refusals=(404,),
        examples={"answer": DATASET_EXAMPLE},
    ),
    Route(
        method="PATCH",
        path=ONE,
        handler=change_dataset,
        tag="datasets",
        body=DatasetChangeBody,
        answer=DatasetShape,
        refusals=(404, 413, 422),
        examples={"body": {"sharedWith": ["*"]}, "answer": DATASET_EXAMPLE},
    ),
    Route(
        method="DELETE",
        path=ONE,
        handler=delete_dataset,
        tag="datasets",
        answer=GoneShape,
        refusals=(404,),
        examples={"answer": {"id": DATASET}},
    ),
)
