"""The owner of a storage. A storage belongs to one database, because a sweep would delete the files of another.

The label in the storage and the note in the database are equal. Both contain an id made for this pair, and the owner.
The note is written first, so that the next start can write the label if the server is killed between the two writes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Literal

from recto.conversation.json import dump, load_object
from recto.files.ports import LabelledStorage, OwningDatabase
from recto.files.storage.blobs import PROBE
from recto.files.storage.choose_storage import storage_error

NOTE = "storage"
# The owner of a storage for all servers of one database.
SHARED = "shared"
ANOTHERS = (
    "it holds the files of another data folder or database, and this server would delete them. Start with the data "
    "folder it belongs to, or name another storage; if that data folder is gone for good, run "
    "`recto storage adopt --data DIR` with this one, then start again"
)
ELSEWHERE = (
    "the files of this database are in the data folder of one of its servers. Copy them to one storage for all servers "
    "and name that; if they are gone for good, run `recto storage adopt --data DIR` with this data folder, then start "
    "again"
)

StorageOwner = Literal["nothing", "ours", "others"]


@dataclass(frozen=True, kw_only=True)
class Label:
    """The id shared by a storage and its database, and the owner: the node of a data folder, or `shared`."""

    storage: str
    owner: str


def owner_of(node: str, *, is_shared: bool, is_in_data_folder: bool) -> str:
    """Return `SHARED` if all servers of a database share the storage, otherwise the node of this data folder."""
    return SHARED if is_shared and not is_in_data_folder else node


async def claim_storage(
    storage: LabelledStorage, database: OwningDatabase, owner: str, new_id: Callable[[], str]
) -> None:
    """Make a new storage belong to this database. Raise SettingsError if it belongs to another."""
    label, note = await _labels(storage, database)
    if label is not None and (label.owner != owner or note not in (None, label)):
        raise storage_error(ANOTHERS)
    if label is not None and note is not None:
        return
    content = await _look(storage, database)
    # A database without a note is new, or older than the label. Blobs decide, because shared databases have the same
    # owner.
    if content == "others" or (label is not None and content == "nothing" and label.owner == SHARED):
        raise storage_error(ANOTHERS)
    if label is not None:
        await database.notes.add(NOTE, _text(label))
        return
    if content == "nothing" and note is not None and note.owner != owner and database.is_shared:
        raise storage_error(ELSEWHERE)
    new = Label(storage=new_id(), owner=owner)
    if note is None:
        note = _read((await database.notes.add(NOTE, _text(new))).encode())
    if note is None or note.owner != owner:
        # This database is a copy and contains the note of the original. Replace it.
        note = new
        await database.notes.set(NOTE, _text(note))
    await storage.write_label(_text(note).encode())


async def check_owner(storage: LabelledStorage, database: OwningDatabase, owner: str) -> None:
    """Raise SettingsError if the storage belongs to another database. Write nothing."""
    label, note = await _labels(storage, database)
    if label is not None and (label.owner != owner or note not in (None, label)):
        raise storage_error(ANOTHERS)


async def adopt(storage: LabelledStorage, database: OwningDatabase, owner: str, new_id: Callable[[], str]) -> None:
    """Make the storage belong to this database. Servers of other databases then fail to start with it."""
    label = Label(storage=new_id(), owner=owner)
    await database.notes.set(NOTE, _text(label))
    await storage.write_label(_text(label).encode())


async def _labels(storage: LabelledStorage, database: OwningDatabase) -> tuple[Label | None, Label | None]:
    """Return the label of the storage and the note of the database."""
    label, note = await storage.read_label(), await database.notes.find(NOTE)
    return _read(label), _read(note.encode() if note is not None else None)


async def _look(storage: LabelledStorage, database: OwningDatabase) -> StorageOwner:
    """Return whose blobs the storage contains. If this database has a row for one of them, all are ours."""
    is_empty = True
    async with aclosing(storage.list_all()) as listing:
        async for some in listing:
            names = [blob.name for blob in some if not blob.name.startswith(PROBE)]
            is_empty = is_empty and not names
            if names and await database.files.find_blobs(names):
                return "ours"
    return "nothing" if is_empty else "others"


def _read(text: bytes | None) -> Label | None:
    """Parse a label. An invalid one becomes an empty label, which no database has."""
    if text is None:
        return None
    fields = load_object(text) or {}
    return Label(storage=str(fields.get("storage", "")), owner=str(fields.get("owner", "")))


def _text(label: Label) -> str:
    return dump(asdict(label)).decode()
