"""Routes of datasets: make, list, look at, change, delete. What is not shared with a user is not there for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import Path
from starlette.requests import Request
from starlette.responses import Response

from recto.api.backend import backend_of, json_answer, user_of
from recto.api.bodies import NUL, read_body
from recto.api.files.file_shapes import (
    DATASET,
    DATASET_BODY,
    DATASET_EXAMPLE,
    DATASETS_EXAMPLE,
    DatasetBody,
    DatasetChangeBody,
    DatasetShape,
    DatasetsShape,
    GoneShape,
)
from recto.api.route import Route
from recto.api.threads.routes import Cursor, PageLimit
from recto.conversation.history import time_text
from recto.conversation.input.input_rules import UUID
from recto.conversation.json import Json, load_object
from recto.conversation.title import CONTROLS
from recto.errors import NotFound, WireError
from recto.store.files.datasets import DatasetChange, StoredDataset

DATASETS = "/api/v1/agent/datasets"
NAME_CHARACTERS, DESCRIPTION_CHARACTERS = 200, 2_000
USERS, USER_CHARACTERS = 1_000, 256
# Of one user. Nobody finds their way in a list of more, and each may be shared with as many as above.
MOST_DATASETS = 1_000
DatasetId = Annotated[str, Path(description="The dataset's id, a UUID.")]


async def make_dataset(request: Request) -> Response:
    """Make a dataset, for yourself and whom you share it with; `*` is everybody."""
    backend, user, body = backend_of(request), user_of(request).name, await _object(request)
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
    """The datasets you may use, newest first: your own, and those shared with you."""
    user = user_of(request).name
    found = await backend_of(request).store.list_datasets(user, cursor, limit)
    return json_answer({"datasets": [dataset_row(dataset, user) for dataset in found.datasets], "next": found.next})


async def get_dataset(request: Request, id: DatasetId) -> Response:
    """A dataset you may use."""
    user = user_of(request).name
    return json_answer(dataset_row(await backend_of(request).store.get_dataset(user, _dataset_id(id)), user))


async def change_dataset(request: Request, id: DatasetId) -> Response:
    """Change a dataset of yours; what you leave out stays as it is."""
    backend, user, body = backend_of(request), user_of(request).name, await _object(request)
    name, description, users = (body.get(field) for field in ("name", "description", "sharedWith"))
    change = DatasetChange(
        now=backend.clock(),
        name=None if name is None else _name(name),
        description=None if description is None else _description(description),
        shared_with=None if users is None else _users(users),
    )
    return json_answer(dataset_row(await backend.store.change_dataset(user, _dataset_id(id), change), user))


async def delete_dataset(request: Request, id: DatasetId) -> Response:
    """Delete a dataset of yours. Nobody may use it any more."""
    known = _dataset_id(id)
    await backend_of(request).store.delete_dataset(user_of(request).name, known)
    return json_answer({"id": known})


def _dataset_id(id: str) -> str:
    """The id of a dataset as it is stored. What is no UUID is no dataset's."""
    if not UUID.fullmatch(id):
        raise NotFound(what="dataset", id=id)
    return id.lower()


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
    """Names of users, each once. Nobody is told whether there is such a user."""
    if not isinstance(value, list) or len(value) > USERS:
        raise WireError(where="sharedWith", problem=f"must be a list of up to {USERS:,} names of users, or of `*`")
    names = list(dict.fromkeys([one for one in value if isinstance(one, str)]))
    if not all(isinstance(one, str) for one in value) or not all(map(_is_user, names)):
        problem = f"must name users, each in 1 to {USER_CHARACTERS} characters without U+0000; `*` is everybody"
        raise WireError(where="sharedWith", problem=problem)
    return tuple(names)


def _is_user(name: str) -> bool:
    return 0 < len(name) <= USER_CHARACTERS and NUL not in name


async def _object(request: Request) -> Mapping[str, Json]:
    found = load_object(await read_body(request, what="Request body"))
    if found is None:
        raise WireError(where="body", problem="must be a JSON object")
    return found


def dataset_row(dataset: StoredDataset, user: str) -> Mapping[str, Json]:
    """A dataset as a user sees it. Only its owner is told whom it is shared with."""
    is_mine = dataset.owner == user
    return {
        "id": dataset.id,
        "name": dataset.name,
        "description": dataset.description,
        "owner": dataset.owner,
        **({"sharedWith": list(dataset.shared_with)} if is_mine else {}),
        "created": time_text(dataset.created),
        "updated": time_text(dataset.updated),
        "mine": is_mine,
    }


ONE = f"{DATASETS}/{{id}}"
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
