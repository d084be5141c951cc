"""Bytes that were lost come back with the next upload (P9); what is counted and what is not; the room of a user."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from recto.config.file_settings import FileSettings
from recto.conversation.messages import Data, File
from recto.engine.janitor import keep_clean
from recto.errors import FileRefused, NotFound, StorageDown
from recto.files.attachments import Attachments
from recto.files.ports import Upload
from recto.files.storage.local_storage import LocalStorage
from tests.files.blob_names import NONE, counted
from tests.files.file_service import ANY, FileService, given, read
from tests.files.rows import MemoryRows


@pytest.fixture
def service(tmp_path: Path) -> FileService:
    return FileService(tmp_path)


def path_of(service: FileService, blob: str) -> Path:
    (path,) = service.folder.rglob(blob)
    return path


@pytest.mark.parametrize("left", [None, b"", b"byte", b"bytes and more"])
async def test_P9_bytes_that_were_lost_are_there_again_for_all_their_attachments_once_they_are_uploaded_again(
    service: FileService, left: bytes | None
):
    first = await service.receive("a.txt", b"bytes")
    path = path_of(service, first.blob)
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    second = await service.receive("b.txt", b"bytes")
    for id in (first.id, second.id):
        assert await read(service.files.read(await service.files.open(id))) == b"bytes"
    assert (await service.files.open(second.id)) == second
    assert second.blob != first.blob


async def test_P9_bytes_that_are_there_are_kept_and_the_new_ones_are_not(service: FileService):
    first = await service.receive("a.txt", b"bytes")
    second = await service.receive("b.txt", b"bytes")
    assert second.blob == first.blob
    assert service.stored() == [first.blob]


async def test_P3_lost_bytes_that_come_again_in_a_message_are_the_same_attachment_and_are_there(service: FileService):
    file = File(kind="document", source=Data(base64=base64.b64encode(b"bytes").decode()), name="a.txt")
    first = await service.files.take_inline("ada", file, ANY)
    path_of(service, first.blob).unlink()
    again = await service.files.take_inline("ada", file, ANY)
    assert again.id == first.id
    assert await read(service.files.read(again)) == b"bytes"
    assert len(service.rows.attachments) == 1


async def test_P9_of_two_who_bring_lost_bytes_back_the_first_does_and_nothing_of_the_other_is_left(tmp_path: Path):
    class Overtaken(MemoryRows):
        async def mend_blob(self, old: str, new: str) -> None:
            await super().mend_blob(old, NONE)
            await super().mend_blob(old, new)

    service = FileService(tmp_path, rows=Overtaken())
    first = await service.receive("a.txt", b"bytes")
    path_of(service, first.blob).unlink()
    assert (await service.receive("b.txt", b"bytes")).blob == NONE
    assert service.stored() == []


async def test_P9_where_nobody_can_tell_whether_bytes_are_lost_they_stay_as_they_are(service: FileService):
    class Unreadable(LocalStorage):
        async def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
            raise StorageDown(problem="it cannot be read")
            yield b""

    storage = Unreadable(service.folder)
    files = Attachments(storage, service.rows, FileSettings(), clock=lambda: service.now, new_id=counted(100))
    first = await service.receive("a.txt", b"bytes")
    second = await files.receive(Upload(owner="ada", name="b.txt", allowed=ANY), given(b"bytes"))
    assert second.blob == first.blob
    assert service.stored() == [first.blob]


# Cleaning


class Stubborn(LocalStorage):
    """A storage that deletes nothing, and counts how often it is listed."""

    listed = 0

    async def delete(self, names: Sequence[str]) -> None:
        raise StorageDown(problem="deleting is not allowed")

    def list_all(self):
        self.listed += 1
        return super().list_all()


async def test_P9_what_could_not_be_deleted_is_not_counted_and_nobody_tries_again_at_once(service: FileService):
    storage = Stubborn(service.folder)
    files = Attachments(storage, service.rows, FileSettings(), clock=lambda: service.now, new_id=counted(100))
    await storage.write(NONE, given(b"x"))
    service.now += timedelta(hours=2)
    assert await files.clean() == 0
    reached = asyncio.Event()

    async def last() -> int:
        reached.set()
        return 0

    cleaning = asyncio.create_task(keep_clean({"files": files.clean, "the rest": last}, 3_600))
    async with asyncio.timeout(10):
        await reached.wait()
    cleaning.cancel()
    assert storage.listed == 2


async def test_X4_one_file_that_cannot_be_deleted_keeps_none_of_the_others(service: FileService):
    names = [next_name() for next_name in [counted(1)] for _ in range(3)]
    for name in names:
        await service.storage.write(name, given(b"x"))
    # A folder in its place cannot be deleted like a file.
    path = path_of(service, names[1])
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageDown):
        await service.storage.delete(names)
    assert service.stored() == []


# Room


@pytest.mark.parametrize(("room", "size"), [(0, 1), (10, 11), (3_000_000, 3_000_001)])
async def test_P9_a_file_there_is_no_room_for_is_refused_as_soon_as_that_is_known(
    service: FileService, room: int, size: int
):
    asked: list[int] = []

    async def endless() -> AsyncGenerator[bytes]:
        yield b"x" * size
        asked.append(size)
        yield b"x"

    with pytest.raises(FileRefused) as refused:
        await service.files.receive(Upload(owner="ada", name="a.txt", allowed=ANY, room=room), endless())
    assert refused.value.code == "quota"
    assert f"{room:,} bytes more" in str(refused.value)
    assert asked == []
    assert service.stored() == []


async def test_P9_a_file_that_just_fits_is_taken(service: FileService):
    taken = await service.files.receive(Upload(owner="ada", name="a.txt", allowed=ANY, room=10), given(b"x" * 10))
    assert taken.size == 10


async def test_P9_more_files_than_a_user_may_have_are_refused_and_leave_nothing(tmp_path: Path):
    service = FileService(tmp_path, FileSettings(user_files=1))
    kept = await service.receive("a.txt", b"one")
    with pytest.raises(FileRefused) as refused:
        await service.receive("b.txt", b"two")
    assert refused.value.code == "quota"
    assert service.stored() == [kept.blob]
    with pytest.raises(NotFound):
        await service.files.open(NONE)
