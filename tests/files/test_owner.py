"""A storage belongs to one database (P9, X4), checked before anything uses its files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import pytest

from recto.conversation.json import load_object
from recto.errors import SettingsError
from recto.files.ports import LabelledStorage
from recto.files.storage.blobs import LABEL, PROBE
from recto.files.storage.choose_storage import open_storage
from recto.files.storage.local_storage import LocalStorage, copy_files
from recto.files.storage.owner import ANOTHERS, NOTE, SHARED, adopt, check_owner, claim_storage, owner_of
from recto.ids import new_id
from tests.files.blob_names import A, B
from tests.files.file_service import byte_stream


class Database:
    """Notes, and names of blobs."""

    def __init__(self, *blobs: str, is_shared: bool = False) -> None:
        self.blobs = frozenset(blobs)
        self.values: dict[str, str] = {}
        self._is_shared = is_shared

    @property
    def is_shared(self) -> bool:
        return self._is_shared

    @property
    def notes(self) -> Self:
        return self

    @property
    def files(self) -> Self:
        return self

    async def find(self, name: str) -> str | None:
        return self.values.get(name)

    async def add(self, name: str, value: str) -> str:
        return self.values.setdefault(name, value)

    async def set(self, name: str, value: str) -> None:
        self.values[name] = value

    async def find_blobs(self, names: Sequence[str]) -> frozenset[str]:
        return self.blobs & frozenset(names)

    def copy(self) -> "Database":
        copied = Database(*self.blobs, is_shared=self.is_shared)
        copied.values = dict(self.values)
        return copied


@pytest.fixture
def storage(tmp_path: Path) -> LabelledStorage:
    return open_storage(None, tmp_path / "files")


async def start(storage: LabelledStorage, database: Database, owner: str) -> None:
    await claim_storage(storage, database, owner, new_id)


async def label_of(storage: LabelledStorage) -> object:
    return load_object(await storage.read_label() or b"")


async def refusal(storage: LabelledStorage, database: Database, owner: str) -> str:
    """Return the error of a server that may not start, and check that nothing changed."""
    before = await storage.read_label(), dict(database.values)
    with pytest.raises(SettingsError) as error:
        await start(storage, database, owner)
    assert (await storage.read_label(), database.values) == before
    return str(error.value)


async def test_P9_of_two_data_folders_on_one_storage_the_first_keeps_it_and_the_second_is_refused(
    storage: LabelledStorage,
):
    database = Database()
    for _ in range(2):
        await start(storage, database, "one")
    label = await label_of(storage)
    assert isinstance(label, dict)
    assert (label["owner"], load_object(database.values[NOTE])) == ("one", label)
    # It is empty, but the second server would delete later files of the first.
    text = await refusal(storage, Database(), "two")
    assert "recto storage adopt --data DIR" in text
    assert "\n" not in text
    await storage.write(A, byte_stream(b"x"))
    assert ANOTHERS in await refusal(storage, Database(), "two")


async def test_P9_a_restored_copy_of_the_database_is_refused_on_the_storage_of_its_original(storage: LabelledStorage):
    live = Database(A)
    await start(storage, live, "live")
    await storage.write(A, byte_stream(b"x"))
    assert ANOTHERS in await refusal(storage, live.copy(), "restored")
    with pytest.raises(SettingsError):
        await check_owner(storage, live.copy(), "restored")
    await check_owner(storage, live, "live")
    await start(storage, live, "live")


async def test_P9_a_restored_copy_with_its_files_gets_a_pair_of_its_own(tmp_path: Path):
    live, files = Database(A), open_storage(None, tmp_path / "live")
    await start(files, live, "live")
    await files.write(A, byte_stream(b"x"))
    assert copy_files(tmp_path / "live", tmp_path / "copy", lambda _: None) == 1
    assert not (tmp_path / "copy" / LABEL).exists()
    restored, copied = live.copy(), open_storage(None, tmp_path / "copy")
    await start(copied, restored, "restored")
    assert await label_of(copied) != await label_of(files)


async def test_P9_a_storage_with_files_from_before_there_were_labels_is_this_databases_if_it_knows_one(
    storage: LabelledStorage,
):
    await storage.write(A, byte_stream(b"x"))
    await storage.write(B, byte_stream(b"no row"))
    assert ANOTHERS in await refusal(storage, Database(), "stranger")
    await start(storage, Database(A), "one")
    assert ANOTHERS in await refusal(storage, Database(B), "two")


async def test_X4_whoever_is_killed_between_note_and_label_starts_again(storage: LabelledStorage, tmp_path: Path):
    class Killed(LocalStorage):
        async def write_label(self, label: bytes) -> None:
            raise KeyboardInterrupt

    database = Database()
    with pytest.raises(KeyboardInterrupt):
        await start(Killed(tmp_path / "files"), database, "one")
    notes = dict(database.values)
    assert notes
    assert await storage.read_label() is None
    await start(storage, database, "one")
    assert database.values == notes
    assert await label_of(storage) == load_object(notes[NOTE])


@pytest.mark.parametrize("names", [(), (A,)])
async def test_X4_a_database_older_than_its_label_goes_on_unless_it_knows_none_of_the_files(
    storage: LabelledStorage, names: Sequence[str]
):
    await start(storage, Database(), "one")
    for name in names:
        await storage.write(name, byte_stream(b"x"))
    older = Database(*names)
    await start(storage, older, "one")
    assert load_object(older.values[NOTE]) == await label_of(storage)
    if names:
        assert ANOTHERS in await refusal(storage, Database(), "one")


async def test_C3_what_a_killed_server_left_of_a_probe_is_nobodys_file(storage: LabelledStorage):
    await storage.write(f"{PROBE}{A}", byte_stream(b"recto"))
    await start(storage, Database(), "one")
    assert await storage.read_label() is not None


async def test_P9_an_empty_storage_in_place_of_one_that_is_gone_is_taken(storage: LabelledStorage, tmp_path: Path):
    database = Database(A)
    await start(storage, database, "one")
    empty = open_storage(None, tmp_path / "other")
    await start(empty, database, "one")
    assert await label_of(empty) == await label_of(storage)


# Databases that several servers share


def test_P9_files_are_all_servers_of_a_shared_database_unless_they_are_in_the_folder_of_one():
    assert owner_of("node", is_shared=False, is_in_data_folder=False) == "node"
    assert owner_of("node", is_shared=False, is_in_data_folder=True) == "node"
    assert owner_of("node", is_shared=True, is_in_data_folder=True) == "node"
    assert owner_of("node", is_shared=True, is_in_data_folder=False) == SHARED


async def test_P9_servers_of_one_database_share_a_storage_and_those_of_another_are_refused(storage: LabelledStorage):
    database = Database(is_shared=True)
    for _ in range(3):
        await start(storage, database, SHARED)
    assert await label_of(storage) == load_object(database.values[NOTE])
    assert ANOTHERS in await refusal(storage, Database(is_shared=True), SHARED)


async def test_P9_two_servers_of_one_database_with_folders_of_their_own_the_second_is_refused(tmp_path: Path):
    database = Database(is_shared=True)
    await start(open_storage(None, tmp_path / "one"), database, "one")
    text = await refusal(open_storage(None, tmp_path / "two"), database, "two")
    assert "Copy them to one storage for all servers" in text


async def test_P9_of_two_that_start_at_once_on_one_storage_both_write_the_same_label(storage: LabelledStorage):
    database = Database(is_shared=True)
    others = '{"storage":"others","owner":"shared"}'

    class Slow(Database):
        async def find(self, name: str) -> str | None:
            value = await super().find(name)
            # The other server arrives just after the check.
            await database.add(NOTE, others)
            return value

        async def add(self, name: str, value: str) -> str:
            return await database.add(name, value)

    await start(storage, Slow(is_shared=True), SHARED)
    assert await label_of(storage) == load_object(others)


# Adopting


async def test_P9_who_adopts_a_storage_starts_and_whose_it_was_does_not(storage: LabelledStorage):
    old, new = Database(A), Database()
    await start(storage, old, "old")
    await storage.write(A, byte_stream(b"x"))
    assert ANOTHERS in await refusal(storage, new, "new")
    await adopt(storage, new, "new", new_id)
    await start(storage, new, "new")
    assert ANOTHERS in await refusal(storage, old, "old")
    # So is one with an unreadable label.
    await storage.write_label(b"\xff not ours")
    assert ANOTHERS in await refusal(storage, old.copy(), "new")
