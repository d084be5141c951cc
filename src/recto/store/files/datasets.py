"""SQL of datasets: whose they are and whom they are shared with. One that is not shared with a user is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, CompoundSelect, Connection, Row, and_, delete, exists, func, or_, select, update

from recto.errors import LimitReached, NotFound
from recto.page.prompt.reminder import Dataset
from recto.store.cursor import read_cursor, write_cursor
from recto.store.database.database import lock_datasets
from recto.store.schema import DATASET_SHARES, DATASETS, micros, moment
from recto.store.statement import in_pieces, insert_into, insert_missing

# Whom a dataset is shared with that everybody may use.
EVERYBODY = "*"
FULL = "You have {many:,} datasets; you may have {most:,}. Delete one that you no longer need, then make this one"
# No time helps by itself; who deletes one meanwhile may ask again.
RETRY_SECONDS = 60


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


def make(connection: Connection, dataset: StoredDataset, most: int = 0) -> StoredDataset:
    """Store a dataset. An id that is taken is a Conflict; one more than `most` of its owner, LimitReached."""
    if most:
        _check_room(connection, dataset.owner, most)
    times = {"created": micros(dataset.created), "updated": micros(dataset.updated)}
    MAKE.many(connection, [{**{name: getattr(dataset, name) for name in NAMES}, **times}])
    _share(connection, dataset.id, dataset.shared_with)
    return get(connection, dataset.owner, dataset.id)


def _check_room(connection: Connection, owner: str, most: int) -> None:
    lock_datasets(connection, owner)
    many = connection.execute(select(func.count()).where(DATASETS.c.owner == owner)).scalar_one()
    if many >= most:
        raise LimitReached(f"{FULL.format(many=many, most=most)}.", retry=RETRY_SECONDS)


def _share(connection: Connection, id: str, users: Sequence[str]) -> None:
    SHARE.many(connection, [{"dataset": id, "user": user} for user in sorted(set(users))])


def get(connection: Connection, user: str, id: str) -> StoredDataset:
    """A dataset this user may use."""
    found = _shown_to(connection, user, [id])
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
    return DatasetList(datasets=_shown_to(connection, user, [row.id for row in kept]), next=more)


def usable(connection: Connection, user: str, ids: Sequence[str]) -> tuple[Dataset, ...]:
    """Those of these datasets that a user may use, in this order, each once (F10). Upper case means the same."""
    known = list(dict.fromkeys([id.lower() for id in ids]))
    found = _rows(connection, user, known)
    return tuple(
        [Dataset(id=id, name=found[id].name, description=found[id].description) for id in known if id in found]
    )


def change(connection: Connection, owner: str, id: str, change: DatasetChange) -> StoredDataset:
    """Change a dataset of this owner."""
    named = {"name": change.name, "description": change.description}
    values = {name: value for name, value in named.items() if value is not None}
    mine = and_(DATASETS.c.id == id, DATASETS.c.owner == owner)
    done = connection.execute(update(DATASETS).where(mine).values(**values, updated=micros(change.now)))
    if not done.rowcount:
        raise NotFound(what="dataset", id=id)
    if change.shared_with is not None:
        connection.execute(delete(DATASET_SHARES).where(DATASET_SHARES.c.dataset == id))
        _share(connection, id, change.shared_with)
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
    return tuple(_shares(connection, DATASET_SHARES.c.dataset == id).get(id, ()))


def _usable(user: str) -> CompoundSelect[str]:
    """The ids of all a user may use."""
    shared = select(DATASET_SHARES.c.dataset).where(_is_for(user))
    return select(DATASETS.c.id).where(DATASETS.c.owner == user).union(shared)


def _shown_to(connection: Connection, user: str, ids: Sequence[str]) -> tuple[StoredDataset, ...]:
    """Those of these datasets that a user may use, in this order, as they are shown to them."""
    found = _rows(connection, user, ids)
    mine = [id for id, row in found.items() if row.owner == user]
    others = [id for id, row in found.items() if row.owner != user]
    shares: dict[str, list[str]] = {}
    for some in in_pieces(mine):
        shares |= _shares(connection, DATASET_SHARES.c.dataset.in_(some))
    for some in in_pieces(others):
        # Who else may use it is their own affair, and may be many.
        shares |= _shares(connection, and_(DATASET_SHARES.c.dataset.in_(some), _is_for(user)))
    return tuple([_dataset(found[id], shares.get(id, ())) for id in ids if id in found])


def _rows(connection: Connection, user: str, ids: Sequence[str]) -> dict[str, Row[*tuple[object, ...]]]:
    """Those of these datasets that a user may use, by their ids."""
    is_shared = exists().where(DATASET_SHARES.c.dataset == DATASETS.c.id, _is_for(user))
    query = select(*COLUMNS).where(or_(DATASETS.c.owner == user, is_shared))
    found = [row for some in in_pieces(ids) for row in connection.execute(query.where(DATASETS.c.id.in_(some)))]
    return {row.id: row for row in found}


def _is_for(user: str) -> ColumnElement[bool]:
    return DATASET_SHARES.c.user.in_((user, EVERYBODY))


def _dataset(row: Row[*tuple[object, ...]], shares: Sequence[str]) -> StoredDataset:
    return StoredDataset(
        id=row.id,
        owner=row.owner,
        name=row.name,
        description=row.description,
        shared_with=tuple(shares),
        created=moment(row.created),
        updated=moment(row.updated),
    )


def _shares(connection: Connection, which: ColumnElement[bool]) -> dict[str, list[str]]:
    query = select(DATASET_SHARES.c.dataset, DATASET_SHARES.c.user).where(which)
    found: dict[str, list[str]] = {}
    for row in connection.execute(query.order_by(DATASET_SHARES.c.user)):
        found.setdefault(row.dataset, []).append(row.user)
    return found
