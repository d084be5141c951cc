"""Files taken in, found, read and deleted (P9, D1, D3). What is refused leaves nothing behind."""

import base64
import hashlib
import itertools
import os
import tracemalloc
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recto.agents.file_input import FileInput
from recto.config.file_settings import FileSettings
from recto.conversation.attachment import Attachment
from recto.conversation.messages import Data, File, Url
from recto.errors import FileRefused, NotFound, StorageDown, StoreDown
from recto.files.attachments import Attachments
from recto.files.ports import ServedAs, Upload
from recto.files.storage.choose_storage import open_storage
from recto.files.storage.local_storage import LocalStorage
from recto.testing.s3 import S3Server
from tests.files import heads
from tests.files.blob_names import NONE, blob_name, counted
from tests.files.file_service import ANY, FileService, given, read
from tests.files.rows import MemoryRows

PDF = heads.PDF


@pytest.fixture
def service(tmp_path: Path) -> FileService:
    return FileService(tmp_path)


async def test_P9_a_file_is_taken_in_with_all_that_is_known_of_it(service: FileService):
    body = PDF + os.urandom(3_000_000)
    pieces = [body[at : at + 70_001] for at in range(0, len(body), 70_001)]
    taken = await service.receive("C:\\papers\\a.PDF", *pieces)
    assert taken == Attachment(
        id=blob_name(2),
        owner="ada",
        name="a.PDF",
        kind="document",
        mime_type="application/pdf",
        size=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        blob=blob_name(1),
        created=service.now,
    )
    assert await read(service.files.read(taken)) == body
    assert await read(service.files.read(taken, 10, 20)) == body[10:20]
    assert await service.files.find("ada", taken.id) == taken
    assert await service.files.open(taken.id) == taken


@pytest.mark.parametrize("sizes", [[1] * 50, [65_535, 2], [65_536], [2**20], [2**20 + 1, 2**21]])
async def test_P9_however_the_bytes_arrive_they_are_the_same(service: FileService, sizes: Sequence[int]):
    pieces = [b"%PDF-" + os.urandom(size) if not place else os.urandom(size) for place, size in enumerate(sizes)]
    taken = await service.receive("a.pdf", *pieces)
    assert await read(service.files.read(taken)) == b"".join(pieces)
    assert taken.size == sum(map(len, pieces))
    assert taken.sha256 == hashlib.sha256(b"".join(pieces)).hexdigest()


@pytest.mark.parametrize(
    ("name", "pieces", "allowed", "code"),
    [
        ("a.txt", (), ANY, "empty"),
        ("a.txt", (b"", b""), ANY, "empty"),
        ("a.pdf", (heads.PNG,), ANY, "mismatch"),
        ("a.exe", (heads.PE,), ANY, "mismatch"),
        ("a.mp3", (heads.MP3,), FileInput(is_on=True), "not_allowed"),
        ("a.unheard", (heads.BINARY,), FileInput(is_on=True), "not_allowed"),
        ("a.unheard", (b"text",), FileInput(is_on=True, documents=False), "not_allowed"),
        ("a.unheard", (b"text",), FileInput(is_on=True, documents=False, endings=("gpx",)), "not_allowed"),
        ("a.txt", (b"text",), FileInput(), "not_allowed"),
        ("a.txt", (b"x" * 101,), FileInput(is_on=True, max_bytes=100), "too_large"),
        ("a.txt", (b"x" * 100, b"x"), FileInput(is_on=True, max_bytes=100), "too_large"),
        ("a.txt", (b"x" * 300_000, b"x" * 300_000), FileInput(is_on=True, max_bytes=500_000), "too_large"),
        ("a.txt", (b"x" * 3_000_000,) * 3, FileInput(is_on=True), "too_large"),
    ],
)
async def test_P9_what_may_not_come_is_refused_and_leaves_nothing(
    tmp_path: Path, name: str, pieces: Sequence[bytes], allowed: FileInput, code: str
):
    service = FileService(tmp_path, FileSettings(upload_bytes=8_000_000))
    with pytest.raises(FileRefused) as refused:
        await service.receive(name, *pieces, allowed=allowed)
    assert refused.value.code == code
    assert service.stored() == []
    assert service.rows.attachments == {}


@pytest.mark.parametrize("name", ["a.unheard", "a.kt", ".env", "Makefile"])
async def test_P9_text_is_taken_whatever_its_name_ends_in(service: FileService, name: str):
    taken = await service.receive(name, b"text", allowed=FileInput(is_on=True))
    assert (taken.kind, taken.mime_type) == ("document", "text/plain")


async def test_P9_a_file_of_just_the_most_bytes_is_taken(service: FileService):
    taken = await service.receive("a.txt", b"x" * 60, b"x" * 40, allowed=FileInput(is_on=True, max_bytes=100))
    assert taken.size == 100


async def test_P9_no_limit_of_bytes_is_none(tmp_path: Path):
    service = FileService(tmp_path, FileSettings(upload_bytes=0, user_bytes=0))
    assert (await service.receive("a.txt", b"x" * 1_000_000)).size == 1_000_000


async def test_P9_a_file_that_is_refused_is_read_no_further(service: FileService):
    asked: list[int] = []

    async def endless(piece: bytes) -> AsyncGenerator[bytes]:
        for place in itertools.count():
            asked.append(place)
            yield piece

    with pytest.raises(FileRefused, match="PNG"):
        await service.files.receive(Upload(owner="ada", name="a.pdf", allowed=ANY), endless(heads.PNG + bytes(2**16)))
    assert asked == [0]
    asked.clear()
    with pytest.raises(FileRefused, match="more than 3,000,000 bytes"):
        allowed = replace(ANY, max_bytes=3_000_000)
        await service.files.receive(Upload(owner="ada", name="a.bin", allowed=allowed), endless(bytes(2**20)))
    assert asked == [0, 1, 2]


async def test_P9_an_upload_that_takes_longer_than_bytes_without_a_row_are_kept_is_refused(service: FileService):
    async def slow() -> AsyncGenerator[bytes]:
        yield b"x" * 100_000
        service.now += timedelta(minutes=51)
        yield b"x"

    with pytest.raises(FileRefused) as refused:
        await service.files.receive(Upload(owner="ada", name="a.txt", allowed=ANY), slow())
    assert refused.value.code == "too_slow"
    assert service.stored() == []


async def test_P9_a_sender_that_breaks_off_leaves_nothing(service: FileService):
    async def broken() -> AsyncGenerator[bytes]:
        yield b"x" * 3_000_000
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await service.files.receive(Upload(owner="ada", name="a.txt", allowed=ANY), broken())
    assert service.stored() == []


async def test_D3_the_same_bytes_of_a_user_are_stored_once(service: FileService):
    first = await service.receive("a.txt", b"same")
    second = await service.receive("b.csv", b"same")
    others = await service.receive("a.txt", b"same", owner="bob")
    assert second.blob == first.blob
    assert second.id != first.id
    assert (second.name, second.mime_type) == ("b.csv", "text/csv")
    assert service.stored() == sorted([first.blob, others.blob])


async def test_P9_the_bytes_go_with_the_last_attachment_on_them(service: FileService):
    first = await service.receive("a.txt", b"same")
    second = await service.receive("b.txt", b"same")
    await service.files.delete("ada", first.id)
    assert await read(service.files.read(second)) == b"same"
    with pytest.raises(NotFound):
        await service.files.open(first.id)
    await service.files.delete("ada", second.id)
    assert service.stored() == []


async def test_P5_nobody_finds_or_deletes_what_is_anothers(service: FileService):
    taken = await service.receive("a.txt", b"mine")
    with pytest.raises(NotFound):
        await service.files.find("bob", taken.id)
    with pytest.raises(NotFound):
        await service.files.delete("bob", taken.id)
    assert await service.files.find("ada", taken.id) == taken


async def test_P9_more_than_a_user_may_have_is_refused_and_its_bytes_are_deleted(tmp_path: Path):
    service = FileService(tmp_path, FileSettings(user_bytes=10))
    kept = await service.receive("a.txt", b"123456")
    with pytest.raises(FileRefused) as refused:
        await service.receive("b.txt", b"12345")
    assert refused.value.code == "quota"
    assert service.stored() == [kept.blob]


async def test_X4_where_nobody_knows_whether_the_row_is_there_the_bytes_stay_to_be_swept(tmp_path: Path):
    class Failing(MemoryRows):
        async def add_attachment(self, attachment: Attachment, user_bytes: int, user_files: int = 0) -> Attachment:
            await super().add_attachment(attachment, user_bytes, user_files)
            raise StoreDown(problem="the connection broke while it answered")

    service = FileService(tmp_path, rows=Failing())
    with pytest.raises(StoreDown):
        await service.receive("a.txt", b"x")
    (row,) = service.rows.attachments.values()
    assert service.stored() == [row.blob]


async def test_P9_a_deleted_row_is_gone_even_when_the_storage_is_down(
    service: FileService, caplog: pytest.LogCaptureFixture
):
    class Down(LocalStorage):
        async def delete(self, names: Sequence[str]) -> None:
            raise StorageDown(problem="unplugged")

    files = Attachments(
        Down(service.folder), service.rows, FileSettings(), clock=lambda: service.now, new_id=counted(100)
    )
    taken = await files.receive(Upload(owner="ada", name="a.txt", allowed=ANY), given(b"x"))
    await files.delete("ada", taken.id)
    assert service.rows.attachments == {}
    assert "unplugged" in caplog.text
    service.now += timedelta(hours=2)
    assert await service.files.clean() == 1
    assert service.stored() == []


async def test_P9_memory_stays_flat_however_large_an_upload_is(service: FileService):
    async def many() -> AsyncGenerator[bytes]:
        for _ in range(512):
            yield bytes(2**17)

    tracemalloc.start()
    try:
        await service.files.receive(Upload(owner="ada", name="a.bin", allowed=ANY), many())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * 2**20


# Inline


async def test_P9_bytes_in_a_message_are_taken_like_an_upload(service: FileService):
    file = inline(heads.PNG, name="a.png", mime_type="image/png")
    taken = await service.files.take_inline("ada", file, ANY)
    assert (taken.name, taken.kind, taken.mime_type, taken.size) == ("a.png", "image", "image/png", len(heads.PNG))
    assert await read(service.files.read(taken)) == heads.PNG


@pytest.mark.parametrize(
    ("body", "mime", "name"),
    [
        (heads.PNG, "image/png", "image.png"),
        (heads.PNG, "image/jpeg", "image.jpg"),
        (heads.PNG, None, "image"),
        (b"a,b", "text/csv", "image.csv"),
    ],
)
async def test_P9_bytes_without_a_name_get_one(service: FileService, body: bytes, mime: str | None, name: str):
    assert (await service.files.take_inline("ada", inline(body, mime_type=mime), ANY)).name == name


async def test_P3_bytes_in_a_message_sent_again_are_the_same_attachment_to_their_owner_alone(service: FileService):
    file = inline(heads.PNG, name="pictures/a.png")
    first = await service.files.take_inline("ada", file, ANY)
    assert await service.files.take_inline("ada", file, ANY) == first
    assert (await service.files.take_inline("ada", inline(heads.PNG, name="b.png"), ANY)).id != first.id
    assert service.stored() == [first.blob]
    assert (await service.files.take_inline("bob", file, ANY)).id != first.id


async def test_P9_bytes_that_are_not_what_the_message_declares_are_refused(service: FileService):
    with pytest.raises(FileRefused) as refused:
        await service.files.take_inline("ada", inline(heads.PNG, mime_type="application/pdf"), ANY)
    assert refused.value.code == "mismatch"


@pytest.mark.parametrize("text", ["!!!!", "YQ", "YQ=", "YQ===", "YW\nJj", " YWJj", "YWJj=", "YR=\n=", "ä", "\ud800"])
async def test_P9_data_that_is_no_base64_is_refused(service: FileService, text: str):
    with pytest.raises(FileRefused) as refused:
        await service.files.take_inline("ada", File(kind="document", source=Data(base64=text)), ANY)
    assert refused.value.code == "base64"
    assert service.stored() == []


async def test_P9_empty_data_and_files_without_data_are_refused(service: FileService):
    with pytest.raises(FileRefused) as refused:
        await service.files.take_inline("ada", inline(b""), ANY)
    assert refused.value.code == "empty"
    with pytest.raises(FileRefused) as refused:
        await service.files.take_inline("ada", File(kind="image", source=Url(url="https://a.example/")), ANY)
    assert refused.value.code == "not_inline"


# Cleaning


async def test_P9_uploads_that_no_thread_names_are_deleted_when_they_are_old(service: FileService):
    unused = await service.receive("a.txt", b"unused")
    used = await service.receive("b.txt", b"used")
    service.rows.named.add(used.id)
    service.now += timedelta(hours=23)
    young = await service.receive("c.txt", b"young")
    assert await service.files.clean() == 0
    service.now += timedelta(hours=2)
    assert await service.files.clean() == 1
    assert service.stored() == sorted([used.blob, young.blob])
    with pytest.raises(NotFound):
        await service.files.open(unused.id)


async def test_P9_uploads_are_deleted_in_rounds(service: FileService):
    one = await service.receive("a.txt", b"unused")
    service.rows.attachments |= {f"row-{place}": replace(one, id=f"row-{place}") for place in range(500)}
    service.now += timedelta(days=2)
    assert await service.files.clean() == 501
    assert service.rows.rounds == 2


async def test_P9_with_no_limit_of_time_unused_uploads_stay(tmp_path: Path):
    service = FileService(tmp_path, FileSettings(unused_hours=0))
    await service.receive("a.txt", b"unused")
    service.now += timedelta(days=400)
    assert await service.files.clean() == 0


async def test_X4_bytes_without_a_row_are_swept_once_no_upload_can_still_want_them(service: FileService):
    taken = await service.receive("a.txt", b"kept")
    service.rows.named.add(taken.id)
    await service.storage.write(NONE, given(b"x"))
    service.now += timedelta(minutes=59)
    assert await service.files.clean() == 0
    service.now += timedelta(minutes=2)
    assert await service.files.clean() == 1
    assert service.stored() == [taken.blob]


# Links, and the rest


@pytest.mark.full
async def test_P9_files_are_taken_in_and_given_back_by_a_bucket_as_by_a_folder(object_server: S3Server):
    storage = open_storage(object_server.url(prefix="attachments"), Path())
    files = Attachments(storage, MemoryRows(), FileSettings(), clock=lambda: datetime.now(UTC), new_id=counted(100))
    body = PDF + os.urandom(12_000_000)
    first = await files.receive(Upload(owner="ada", name="a.pdf", allowed=ANY), given(body[:5], body[5:]))
    second = await files.receive(Upload(owner="ada", name="b.pdf", allowed=ANY), given(body))
    with pytest.raises(FileRefused):
        allowed = replace(ANY, max_bytes=8_000_000)
        await files.receive(Upload(owner="ada", name="b.pdf", allowed=allowed), given(body))
    assert first.sha256 == second.sha256 == hashlib.sha256(body).hexdigest()
    assert [blob.name async for some in storage.list_all() for blob in some] == [first.blob]
    assert await read(files.read(second, 7_000_000)) == body[7_000_000:]
    assert (await files.link(second, 60) or "").startswith(object_server.endpoint)
    await files.delete("ada", first.id)
    await files.delete("ada", second.id)
    assert [some async for some in storage.list_all()] == []


async def test_P9_a_link_says_what_the_bytes_are_and_shows_in_place_only_what_does_nothing(service: FileService):
    asked: list[ServedAs | None] = []

    class Linking(LocalStorage):
        async def link(self, name: str, seconds: float, served: ServedAs | None = None) -> str | None:
            asked.append(served)
            return f"https://bucket.example/{name}?{seconds}"

    files = Attachments(
        Linking(service.folder), service.rows, FileSettings(), clock=lambda: service.now, new_id=counted(100)
    )
    image = await files.receive(Upload(owner="ada", name="a.png", allowed=ANY), given(heads.PNG))
    page = await files.receive(Upload(owner="ada", name="a.html", allowed=ANY), given(b"<p>"))
    assert await files.link(image, 60) == f"https://bucket.example/{image.blob}?60"
    await files.link(page, 60)
    assert asked == [
        ServedAs(mime_type="image/png", disposition='inline; filename="a.png"'),
        ServedAs(mime_type="application/octet-stream", disposition='attachment; filename="a.html"'),
    ]
    assert await service.files.link(image, 60) is None


async def test_C3_the_probe_is_the_storages(service: FileService):
    await service.files.probe()
    assert service.stored() == []


def inline(body: bytes, **known: str | None) -> File:
    return File(kind="image", source=Data(base64=base64.b64encode(body).decode()), **known)
