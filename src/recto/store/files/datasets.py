"""Datasets of users and their shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, exists, func, or_, select, update

from recto.errors import LimitReached, NotFound
from recto.page.prompt.reminder import Dataset
from recto.store.cursor import decode_cursor, encode_cursor
from recto.store.database.database import Repository, lock_datasets, read_transaction, write_transaction
from recto.store.schema import DATASET_SHARES, DATASETS, from_micros, to_micros
from recto.store.statement import batches, insert_into, insert_missing

# The user name in shares that apply to every user.
EVERYBODY = "*"
LIMIT_REACHED = (
    "You have {many:,} datasets; you may have {most:,}. Delete one that you no longer need, then make this one"
)
# Suggested delay before a retry: the owner may delete a dataset meanwhile.
RETRY_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class StoredDataset:
    """A dataset's row. Its owner sees all shares; another user sees only those that apply to them."""

    id: str
    owner: str
    name: str
    description: str = ""
    shared_with: tuple[str, ...] = ()
    created: datetime
    updated: datetime


@dataclass(frozen=True, kw_only=True)
class DatasetChange:
    """Changes of a dataset. None leaves a field as it is."""

    now: datetime
    name: str | None = None
    description: str | None = None
    shared_with: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class DatasetList:
    """Datasets, newest first, and the cursor of the next page."""

    datasets: tuple[StoredDataset, ...]
    next: str | None


NAMES = ("id", "owner", "name", "description", "created", "updated")
COLUMNS = [DATASETS.c[name] for name in NAMES]
INSERT = insert_into(DATASETS, NAMES)
SHARE = insert_missing(DATASET_SHARES, ("dataset", "user"))


class Datasets(Repository):
    """Datasets, their owners and shares. To a user without a share, a dataset does not exist."""

    @write_transaction
    def create(self, connection: Connection, dataset: StoredDataset, most: int = 0) -> StoredDataset:
        """Store a dataset. Raise Conflict if the id exists.

        Raise LimitReached if the owner would have more than `most` datasets; 0 sets no limit.
        """
        if most:
            lock_datasets(connection, dataset.owner)
            query = select(func.count()).where(DATASETS.c.owner == dataset.owner)
            count = connection.execute(query).scalar_one()
            if count >= most:
                raise LimitReached(f"{LIMIT_REACHED.format(many=count, most=most)}.", retry=RETRY_SECONDS)
        times = {"created": to_micros(dataset.created), "updated": to_micros(dataset.updated)}
        INSERT.run_many(connection, [{**{name: getattr(dataset, name) for name in NAMES}, **times}])
        _add_shares(connection, dataset.id, dataset.shared_with)
        return _get(connection, dataset.owner, dataset.id)

    @read_transaction
    def list_page(self, connection: Connection, user: str, cursor: str | None, limit: int) -> DatasetList:
        """Return datasets that a user may use, own and shared, newest first."""
        shared = select(DATASET_SHARES.c.dataset).where(_is_shared_with(user))
        usable = select(DATASETS.c.id).where(DATASETS.c.owner == user).union(shared)
        query = select(DATASETS.c.id, DATASETS.c.created).where(DATASETS.c.id.in_(usable))
        if cursor is not None:
            created, id = decode_cursor(cursor)
            is_same_time = and_(DATASETS.c.created == created, DATASETS.c.id < id)
            query = query.where(or_(DATASETS.c.created < created, is_same_time))
        # Read one row more, to see if another page follows.
        rows = connection.execute(
            query.order_by(DATASETS.c.created.desc(), DATASETS.c.id.desc()).limit(limit + 1)
        ).all()
        page = rows[:limit]
        next_cursor = encode_cursor(page[-1].created, page[-1].id) if len(rows) > limit else None
        return DatasetList(datasets=_read_datasets(connection, user, [row.id for row in page]), next=next_cursor)

    @read_transaction
    def get(self, connection: Connection, user: str, id: str) -> StoredDataset:
        """Return a dataset that a user may use. Raise NotFound for any other id."""
        return _get(connection, user, id)

    @read_transaction
    def find_usable(self, connection: Connection, user: str, ids: Sequence[str]) -> tuple[Dataset, ...]:
        """Return the given datasets that a user may use (F10), in the given order and without duplicates.

        Ids ignore case.
        """
        unique_ids = list(dict.fromkeys([id.lower() for id in ids]))
        rows = _read_rows(connection, user, unique_ids)
        return tuple(
            [Dataset(id=id, name=rows[id].name, description=rows[id].description) for id in unique_ids if id in rows]
        )

    @write_transaction
    def change(self, connection: Connection, owner: str, id: str, change: DatasetChange) -> StoredDataset:
        """Change a dataset. Raise NotFound if the user does not own it."""
        fields = {"name": change.name, "description": change.description}
        values = {name: value for name, value in fields.items() if value is not None}
        is_own = and_(DATASETS.c.id == id, DATASETS.c.owner == owner)
        result = connection.execute(update(DATASETS).where(is_own).values(**values, updated=to_micros(change.now)))
        if not result.rowcount:
            raise NotFound(what="dataset", id=id)
        if change.shared_with is not None:
            connection.execute(delete(DATASET_SHARES).where(DATASET_SHARES.c.dataset == id))
            _add_shares(connection, id, change.shared_with)
        return _get(connection, owner, id)

    @write_transaction
    def delete(self, connection: Connection, owner: str, id: str) -> None:
        """Delete a dataset. Raise NotFound if the user does not own it."""
        is_own = and_(DATASETS.c.id == id, DATASETS.c.owner == owner)
        if not connection.execute(delete(DATASETS).where(is_own)).rowcount:
            raise NotFound(what="dataset", id=id)


def delete_all(connection: Connection, owner: str) -> tuple[int, int]:
    """Delete a user's datasets, and the shares that others gave to the user. Return both counts."""
    count = connection.execute(delete(DATASETS).where(DATASETS.c.owner == owner)).rowcount
    if owner == EVERYBODY:
        return count, 0
    return count, connection.execute(delete(DATASET_SHARES).where(DATASET_SHARES.c.user == owner)).rowcount


def list_shares(connection: Connection, id: str) -> tuple[str, ...]:
    """Return all users a dataset is shared with."""
    return tuple(_read_shares(connection, DATASET_SHARES.c.dataset == id).get(id, ()))


def _get(connection: Connection, user: str, id: str) -> StoredDataset:
    datasets = _read_datasets(connection, user, [id])
    if not datasets:
        raise NotFound(what="dataset", id=id)
    return datasets[0]


def _add_shares(connection: Connection, id: str, users: Sequence[str]) -> None:
    SHARE.run_many(connection, [{"dataset": id, "user": user} for user in sorted(set(users))])


def _read_datasets(connection: Connection, user: str, ids: Sequence[str]) -> tuple[StoredDataset, ...]:
    """Return the given datasets that a user may use, in the given order, with the shares that the user may see."""
    rows = _read_rows(connection, user, ids)
    own_ids = [id for id, row in rows.items() if row.owner == user]
    shared_ids = [id for id, row in rows.items() if row.owner != user]
    shares: dict[str, list[str]] = {}
    for batch in batches(own_ids):
        shares |= _read_shares(connection, DATASET_SHARES.c.dataset.in_(batch))
    for batch in batches(shared_ids):
        # Read only the user's own shares: the others are private to the owner and may be many.
        shares |= _read_shares(connection, and_(DATASET_SHARES.c.dataset.in_(batch), _is_shared_with(user)))
    return tuple(
        [
            StoredDataset(
                id=id,
                owner=row.owner,
                name=row.name,
                description=row.description,
                shared_with=tuple(shares.get(id, ())),
                created=from_micros(row.created),
                updated=from_micros(row.updated),
            )
            for id in ids
            if (row := rows.get(id))
        ]
    )


def _read_rows(connection: Connection, user: str, ids: Sequence[str]) -> dict[str, Row[*tuple[object, ...]]]:
    """Return the rows of the given datasets that a user may use, by id."""
    is_shared = exists().where(DATASET_SHARES.c.dataset == DATASETS.c.id, _is_shared_with(user))
    query = select(*COLUMNS).where(or_(DATASETS.c.owner == user, is_shared))
    rows = [row for batch in batches(ids) for row in connection.execute(query.where(DATASETS.c.id.in_(batch)))]
    return {row.id: row for row in rows}


def _is_shared_with(user: str) -> ColumnElement[bool]:
    return DATASET_SHARES.c.user.in_((user, EVERYBODY))


def _read_shares(connection: Connection, condition: ColumnElement[bool]) -> dict[str, list[str]]:
    query = select(DATASET_SHARES.c.dataset, DATASET_SHARES.c.user).where(condition)
    shares: dict[str, list[str]] = {}
    for row in connection.execute(query.order_by(DATASET_SHARES.c.user)):
        shares.setdefault(row.dataset, []).append(row.user)
    return shares
