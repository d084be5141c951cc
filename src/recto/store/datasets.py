"""SQL of datasets: whose they are and whom they are shared with. One that is not shared with a user is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import CompoundSelect, Connection, Row, and_, delete, or_, select, update

from recto.errors import NotFound
from recto.page.reminder import Dataset
from recto.store.cursor import read_cursor, write_cursor
from recto.store.reads import AT_ONCE
from recto.store.schema import DATASET_SHARES, DATASETS, micros, moment
from recto.store.statement import insert_into, insert_missing

# Whom a dataset is shared with that everybody may use.
EVERYBODY = "*"


@dataclass(frozen=True, kw_only=True)
class StoredDataset:
    """A dataset's row. `shared_with` names all users to its owner; to another user only why they may use it."""

    id: str
    owner: str
    name: str
    description: str = ""
    shared_with: tuple[str, ...] = ()
    created: datetime
    updated: datetime


@dataclass(frozen=True, kw_only=True)
class DatasetChange:
    """What is to be different. None leaves it as it is."""

    now: datetime
    name: str | None = None
    description: str | None = None
    shared_with: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class DatasetList:
    """Datasets, newest first, and the cursor of those that follow."""

    datasets: tuple[StoredDataset, ...]
    next: str | None


NAMES = ("id", "owner", "name", "description", "created", "updated")
COLUMNS = [DATASETS.c[name] for name in NAMES]
MAKE = insert_into(DATASETS, NAMES)
SHARE = insert_missing(DATASET_SHARES, ("dataset", "user"))


def make(connection: Connection, dataset: StoredDataset) -> StoredDataset:
    """Store a dataset. An id that is taken is a Conflict."""
    times = {"created": micros(dataset.created), "updated": micros(dataset.updated)}
    MAKE.many(connection, [{**{name: getattr(dataset, name) for name in NAMES}, **times}])
    _share(connection, dataset.id, dataset.shared_with)
    return get(connection, dataset.owner, dataset.id)


def _share(connection: Connection, id: str, users: Sequence[str]) -> None:
    SHARE.many(connection, [{"dataset": id, "user": user} for user in sorted(set(users))])


def get(connection: Connection, user: str, id: str) -> StoredDataset:
    """A dataset this user may use."""
    found = _told(connection, user, [id])
    if not found:
        raise NotFound(what="dataset", id=id)
    return found[0]


def list_for(connection: Connection, user: str, cursor: str | None, limit: int) -> DatasetList:
    """Datasets a user may use, newest first."""
    query = select(DATASETS.c.id, DATASETS.c.created).where(DATASETS.c.id.in_(_usable(user)))
    if cursor is not None:
        created, id = read_cursor(cursor)
        same = and_(DATASETS.c.created == created, DATASETS.c.id < id)
        query = query.where(or_(DATASETS.c.created < created, same))
    # One more than wanted tells whether more follow.
    rows = connection.execute(query.order_by(DATASETS.c.created.desc(), DATASETS.c.id.desc()).limit(limit + 1)).all()
    kept = rows[:limit]
    more = write_cursor(kept[-1].created, kept[-1].id) if len(rows) > limit else None
    return DatasetList(datasets=_told(connection, user, [row.id for row in kept]), next=more)


def usable(connection: Connection, user: str, ids: Sequence[str]) -> tuple[Dataset, ...]:
    """Those of these datasets that a user may use, in this order, each once (F10)."""
    found = _told(connection, user, list(dict.fromkeys(ids)))
    return tuple([Dataset(id=one.id, name=one.name, description=one.description) for one in found])


def change(connection: Connection, owner: str, id: str, wish: DatasetChange) -> StoredDataset:
    """Change a dataset of this owner."""
    named = {"name": wish.name, "description": wish.description}
    values = {name: value for name, value in named.items() if value is not None}
    mine = and_(DATASETS.c.id == id, DATASETS.c.owner == owner)
    done = connection.execute(update(DATASETS).where(mine).values(**values, updated=micros(wish.now)))
    if not done.rowcount:
        raise NotFound(what="dataset", id=id)
    if wish.shared_with is not None:
        connection.execute(delete(DATASET_SHARES).where(DATASET_SHARES.c.dataset == id))
        _share(connection, id, wish.shared_with)
    return get(connection, owner, id)


def delete_one(connection: Connection, owner: str, id: str) -> None:
    """Delete a dataset of this owner. Nobody may use it any more."""
    mine = and_(DATASETS.c.id == id, DATASETS.c.owner == owner)
    if not connection.execute(delete(DATASETS).where(mine)).rowcount:
        raise NotFound(what="dataset", id=id)


def delete_all_of(connection: Connection, owner: str) -> tuple[int, int]:
    """Delete the datasets of an owner, and what others share with them: how many of each."""
    count = connection.execute(delete(DATASETS).where(DATASETS.c.owner == owner)).rowcount
    if owner == EVERYBODY:
        return count, 0
    return count, connection.execute(delete(DATASET_SHARES).where(DATASET_SHARES.c.user == owner)).rowcount


def shared_with(connection: Connection, id: str) -> tuple[str, ...]:
    """All users a dataset is shared with."""
    return tuple(_shares(connection, [id]).get(id, ()))


def _usable(user: str) -> CompoundSelect[str]:
    """The ids of all a user may use."""
    shared = select(DATASET_SHARES.c.dataset).where(DATASET_SHARES.c.user.in_((user, EVERYBODY)))
    return select(DATASETS.c.id).where(DATASETS.c.owner == user).union(shared)


def _told(connection: Connection, user: str, ids: Sequence[str]) -> tuple[StoredDataset, ...]:
    """Those of these datasets that a user may use, in this order, as they are told to them."""
    found: dict[str, StoredDataset] = {}
    for at in range(0, len(ids), AT_ONCE):
        some = ids[at : at + AT_ONCE]
        shares = _shares(connection, some)
        query = select(*COLUMNS).where(DATASETS.c.id.in_(some), DATASETS.c.id.in_(_usable(user)))
        found |= {row.id: _dataset(row, user, shares.get(row.id, ())) for row in connection.execute(query)}
    return tuple([found[id] for id in ids if id in found])


def _dataset(row: Row[*tuple[object, ...]], user: str, shares: Sequence[str]) -> StoredDataset:
    return StoredDataset(
        id=row.id,
        owner=row.owner,
        name=row.name,
        description=row.description,
        shared_with=tuple([one for one in shares if row.owner == user or one in (user, EVERYBODY)]),
        created=moment(row.created),
        updated=moment(row.updated),
    )


def _shares(connection: Connection, ids: Sequence[str]) -> dict[str, list[str]]:
    query = select(DATASET_SHARES.c.dataset, DATASET_SHARES.c.user).where(DATASET_SHARES.c.dataset.in_(ids))
    found: dict[str, list[str]] = {}
    for row in connection.execute(query.order_by(DATASET_SHARES.c.user)):
        found.setdefault(row.dataset, []).append(row.user)
    return found
