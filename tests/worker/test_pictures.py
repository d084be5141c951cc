"""D2: pictures as bytes: as many as a page holds, from memory the second time, none that a model cannot see."""

import base64
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from recto.agents.file_input import FileInput
from recto.errors import StorageDown
from recto.files.attachments import Attachments
from recto.files.local_storage import LocalStorage
from recto.files.ports import FileSettings, Upload
from recto.page.attachment import Attachment
from recto.worker.pictures import Pictures, PictureSettings
from tests.files.rows import MemoryRows

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 92
ALL = FileInput(is_on=True)


class CountingStorage(LocalStorage):
    """A storage that counts how often it is read, and can be out of order."""

    reads, is_down = 0, False

    async def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
        self.reads += 1
        if self.is_down:
            raise StorageDown(problem="it is pulled out")
        async for piece in super().read(name, start, end):
            yield piece


class Album:
    """Attachments with some pictures in them."""

    def __init__(self, folder: Path) -> None:
        ids = count()
        self.storage = CountingStorage(folder)
        self.files = Attachments(
            self.storage,
            MemoryRows(),
            FileSettings(),
            clock=lambda: datetime(2026, 5, 14, tzinfo=UTC),
            new_id=lambda: f"id-{next(ids)}",
        )

    async def add(self, name: str, body: bytes) -> Attachment:
        async def pieces() -> AsyncGenerator[bytes]:
            yield body

        return await self.files.receive(Upload(owner="ann", name=name, allowed=ALL), pieces())


def a_png(mark: int) -> bytes:
    return PNG + bytes([mark])


async def test_D2_pictures_come_as_base64_and_the_second_time_from_memory(tmp_path: Path):
    album, pictures = Album(tmp_path), Pictures()
    one = await album.add("a.png", a_png(1))
    assert await pictures.load([one.id], album.files) == {one.id: base64.b64encode(a_png(1)).decode()}
    assert list(await pictures.load([one.id], album.files)) == [one.id]
    assert album.storage.reads == 1


async def test_D2_the_first_named_come_into_the_page_until_it_is_full(tmp_path: Path):
    album = Album(tmp_path)
    ids = [(await album.add(f"{number}.png", a_png(number))).id for number in range(4)]
    pictures = Pictures(PictureSettings(page=2 * len(a_png(0)) + 10))
    assert list(await pictures.load(ids, album.files)) == ids[:2]


async def test_D2_what_is_too_large_no_picture_for_a_model_gone_or_unreadable_is_left_out(tmp_path: Path):
    album = Album(tmp_path)
    large = await album.add("large.png", PNG * 3)
    vector = await album.add("v.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    good = await album.add("good.png", PNG)
    pictures = Pictures(PictureSettings(each=len(PNG)))
    asked = [large.id, vector.id, "never there", good.id]
    assert list(await pictures.load(asked, album.files)) == [good.id]
    album.storage.is_down = True
    other = await album.add("other.png", a_png(9))
    assert await Pictures().load([other.id], album.files) == {}


async def test_D2_no_more_is_kept_in_memory_than_may_be(tmp_path: Path):
    album = Album(tmp_path)
    ids = [(await album.add(f"{number}.png", a_png(number))).id for number in range(3)]
    pictures = Pictures(PictureSettings(kept=len(base64.b64encode(a_png(0)))))
    for id in (*ids, ids[-1]):
        await pictures.load([id], album.files)
    assert album.storage.reads == 3
    await pictures.load([ids[0]], album.files)
    assert album.storage.reads == 4
