"""Routes of datasets: create, list, read, change, delete. A user sees only their own and shared datasets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NotRequired

from pydantic import BaseModel, Field
from starlette.requests import Request
from typing_extensions import TypedDict

from recto.api.backend import backend_of, user_of
from recto.api.bodies import NUL, NUL_PROBLEM, read_object
from recto.api.files.attachments import GoneShape
from recto.api.route import Cursor, PageLimit, Route, in_path, stored_id
from recto.conversation.history import time_text
from recto.conversation.json import Json
from recto.conversation.title import CONTROLS
from recto.errors import WireError
from recto.store.files.datasets import DatasetChange, StoredDataset

DATASETS = "/api/v1/agent/datasets"
ONE = f"{DATASETS}/{{id}}"
NAME_CHARACTERS, DESCRIPTION_CHARACTERS = 200, 2_000
USERS, USER_CHARACTERS = 1_000, 256
# Maximum datasets of a user. A longer list is unusable, and each dataset may be shared with up to USERS users.
MOST_DATASETS = 1_000
DatasetId = Annotated[str, in_path("The dataset's id, a UUID.")]
DatasetName = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS)]
Description = Annotated[str, Field(max_length=DESCRIPTION_CHARACTERS)]
SharedWith = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=USER_CHARACTERS)]],
    Field(max_length=USERS, description="User names; `*` is everybody."),
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


async def make_dataset(request: Request) -> DatasetShape:
    """Create a dataset, for yourself and the users you share it with; `*` means everybody."""
    backend, user, body = backend_of(request), user_of(request).name, await read_object(request)
    now, description, users = backend.clock(), body.get("description"), body.get("sharedWith")
    dataset = StoredDataset(
        id=backend.new_id(),
        owner=user,
        name=_check_name(body.get("name")),
        description="" if description is None else _check_description(description),
        shared_with=() if users is None else _check_users(users),
        created=now,
        updated=now,
    )
    return dataset_row(await backend.store.datasets.create(dataset, MOST_DATASETS), user)


async def list_datasets(request: Request, cursor: Cursor = None, limit: PageLimit = 50) -> DatasetsShape:
    """List the datasets you may use, newest first: your own, and those shared with you."""
    user = user_of(request).name
    page = await backend_of(request).store.datasets.list_page(user, cursor, limit)
    return {"datasets": [dataset_row(dataset, user) for dataset in page.datasets], "next": page.next}


async def get_dataset(request: Request, id: DatasetId) -> DatasetShape:
    """Return a dataset you may use."""
    user = user_of(request).name
    return dataset_row(await backend_of(request).store.datasets.get(user, stored_id(id, "dataset")), user)


async def change_dataset(request: Request, id: DatasetId) -> DatasetShape:
    """Change a dataset of yours; missing fields stay unchanged."""
    backend, user, body = backend_of(request), user_of(request).name, await read_object(request)
    name, description, users = (body.get(field) for field in ("name", "description", "sharedWith"))
    change = DatasetChange(
        now=backend.clock(),
        name=None if name is None else _check_name(name),
        description=None if description is None else _check_description(description),
        shared_with=None if users is None else _check_users(users),
    )
    return dataset_row(await backend.store.datasets.change(user, stored_id(id, "dataset"), change), user)


async def delete_dataset(request: Request, id: DatasetId) -> GoneShape:
    """Delete a dataset of yours, for all users."""
    dataset = stored_id(id, "dataset")
    await backend_of(request).store.datasets.delete(user_of(request).name, dataset)
    return {"id": dataset}


def _check_name(value: Json) -> str:
    name = value.strip() if isinstance(value, str) else ""
    if not 0 < len(name) <= NAME_CHARACTERS:
        raise WireError(where="name", problem=f"must be a text of 1 to {NAME_CHARACTERS} characters")
    if any(letter in CONTROLS for letter in name):
        raise WireError(where="name", problem="contains a line break or another control character. Remove it")
    return name


def _check_description(value: Json) -> str:
    if not isinstance(value, str) or len(value) > DESCRIPTION_CHARACTERS:
        raise WireError(where="description", problem=f"must be a text of up to {DESCRIPTION_CHARACTERS:,} characters")
    if NUL in value:
        raise WireError(where="description", problem=NUL_PROBLEM)
    return value


def _check_users(value: Json) -> tuple[str, ...]:
    """Return unique user names. Unknown names pass, because an error would reveal which users exist."""
    if not isinstance(value, list) or len(value) > USERS:
        raise WireError(where="sharedWith", problem=f"must be a list of up to {USERS:,} user names, or of `*`")
    names = list(dict.fromkeys([one for one in value if isinstance(one, str)]))
    if not all(isinstance(one, str) for one in value) or not all(
        0 < len(name) <= USER_CHARACTERS and NUL not in name for name in names
    ):
        problem = f"must contain user names of 1 to {USER_CHARACTERS} characters without U+0000; `*` is everybody"
        raise WireError(where="sharedWith", problem=problem)
    return tuple(names)


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
    Route("POST", DATASETS, make_dataset, "datasets", status=201, body=DatasetBody, errors=(413, 422)),
    Route("GET", DATASETS, list_datasets, "datasets", errors=(422,)),
    Route("GET", ONE, get_dataset, "datasets", errors=(404,)),
    Route("PATCH", ONE, change_dataset, "datasets", body=DatasetChangeBody, errors=(404, 413, 422)),
    Route("DELETE", ONE, delete_dataset, "datasets", errors=(404,)),
)
