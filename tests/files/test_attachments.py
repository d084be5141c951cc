"""Attachments are stored, found, read, repaired and deleted (P9, D1, D3). A rejected file leaves nothing behind."""

import base64
import hashlib
import itertools
import os
import tracemalloc
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from recto.agents.file_input import FileInput
from recto.config.file_settings import FileSettings
from recto.conversation.message_files import Attachment
from recto.conversation.messages import Data, File, Url
from recto.errors import FileRefused, NotFound, StorageDown, StoreDown
from recto.files.ports import ServedAs, Upload
from recto.files.storage.local_storage import LocalStorage
from tests.files import heads
from tests.files.blob_names import NONE, blob_name
from tests.files.file_service import ANY, FileService, byte_stream, read
from tests.files.rows import MemoryRows


@pytest.fixture
def service(tmp_path: Path) -> FileService:
    return FileService(tmp_path)


async def test_P9_a_file_is_taken_in_with_all_that_is_known_of_it(service: FileService):
    body = heads.PDF + os.urandom(3_000_000)
    pieces = [body[:1], body[1:5], b"", *[body[at : at + 70_001] for at in range(5, len(body), 70_001)]]
    attachment = await service.receive("C:\\papers\\a.PDF", *pieces)
    assert attachment == Attachment(
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
    assert await read(service.files.read(attachment)) == body
    assert await read(service.files.read(attachment, 10, 20)) == body[10:20]
    assert await service.files.find("ada", attachment.id) == attachment
    assert await service.files.get(attachment.id) == attachment


@pytest.mark.parametrize(
    ("name", "pieces", "allowed", "code"),
    [
        ("a.txt", (), ANY, "empty"),
        ("a.pdf", (heads.PNG,), ANY, "mismatch"),
        ("a.mp3", (heads.MP3,), FileInput(is_on=True), "not_allowed"),
        ("a.unheard", (heads.BINARY,), FileInput(is_on=True), "not_allowed"),
        ("a.unheard", (b"text",), FileInput(is_on=True, documents=False), "not_allowed"),
        ("a.txt", (b"text",), FileInput(), "not_allowed"),
        ("a.txt", (b"x" * 100, b"x"), FileInput(is_on=True, max_bytes=100), "too_large"),
        ("a.txt", (b"x" * 3_000_000,) * 3, FileInput(is_on=True), "too_large"),
    ],
)
async def test_P9_what_may_not_come_is_refused_and_leaves_nothing(
    tmp_path: Path, name: str, pieces: Sequence[bytes], allowed: FileInput, code: str
):
    service = FileService(tmp_path, FileSettings(upload_bytes=8_000_000))
    with pytest.raises(FileRefused) as error:
        await service.receive(name, *pieces, allowed=allowed)
    assert error.value.code == code
    assert service.stored_names() == []
    assert service.rows.attachments == {}


@pytest.mark.parametrize("name", ["a.unheard", "a.kt", ".env", "Makefile"])
async def test_P9_text_is_taken_whatever_its_name_ends_in(service: FileService, name: str):
    attachment = await service.receive(name, b"text", allowed=FileInput(is_on=True))
    assert (attachment.kind, attachment.mime_type) == ("document", "text/plain")


@pytest.mark.parametrize(
    ("upload", "pieces", "refusal"),
    [
        (Upload(owner="ada", name="a.pdf", allowed=ANY), 1, ("mismatch", "PNG")),
        (Upload(owner="ada", name="a.png", allowed=replace(ANY, max_bytes=3_000_000)), 3, ("too_large", "3,000,000")),
        (Upload(owner="ada", name="a.png", allowed=ANY, room=0), 1, ("quota", "0 bytes more")),
        (Upload(owner="ada", name="a.png", allowed=ANY, room=2**20), 1, ("quota", "1,048,576 bytes more")),
    ],
)
async def test_P9_a_file_that_is_refused_is_read_no_further(
    service: FileService, upload: Upload, pieces: int, refusal: tuple[str, str]
):
    requests: list[int] = []

    async def endless() -> AsyncGenerator[bytes]:
        for place in itertools.count(1):
            requests.append(place)
            yield heads.PNG + bytes(2**20)

    with pytest.raises(FileRefused, match=refusal[1]) as error:
        await service.files.receive(upload, endless())
    assert (error.value.code, len(requests), service.stored_names()) == (refusal[0], pieces, [])


async def test_P9_an_upload_that_takes_longer_than_bytes_without_a_row_are_kept_is_refused(service: FileService):
    async def slow() -> AsyncGenerator[bytes]:
        yield b"x" * 100_000
        service.now += timedelta(minutes=51)
        yield b"x"

    with pytest.raises(FileRefused) as error:
        await service.files.receive(Upload(owner="ada", name="a.txt", allowed=ANY), slow())
    assert error.value.code == "too_slow"
    assert service.stored_names() == []


async def test_D3_the_same_bytes_of_a_user_are_stored_once_and_go_with_the_last_attachment_on_them(
    service: FileService,
):
    first = await service.receive("a.txt", b"same")
    second = await service.receive("b.csv", b"same")
    others = await service.receive("a.txt", b"same", owner="bob")
    assert (second.blob, second.name, second.mime_type) == (first.blob, "b.csv", "text/csv")
    assert service.stored_names() == sorted([first.blob, others.blob])
    await service.files.delete("ada", first.id)
    assert await read(service.files.read(second)) == b"same"
    with pytest.raises(NotFound):
        await service.files.get(first.id)
    await service.files.delete("ada", second.id)
    assert service.stored_names() == [others.blob]


@pytest.mark.parametrize("settings", [FileSettings(user_bytes=10), FileSettings(user_files=1)])
async def test_P9_more_than_a_user_may_have_is_refused_and_its_bytes_are_deleted(
    tmp_path: Path, settings: FileSettings
):
    service = FileService(tmp_path, settings)
    attachment = await service.receive("a.txt", b"123456")
    with pytest.raises(FileRefused) as error:
        await service.receive("b.txt", b"12345")
    assert error.value.code == "quota"
    assert service.stored_names() == [attachment.blob]


@pytest.mark.parametrize(
    ("settings", "upload"),
    [
        (FileSettings(), Upload(owner="ada", name="a.txt", allowed=FileInput(is_on=True, max_bytes=100))),
        (FileSettings(), Upload(owner="ada", name="a.txt", allowed=ANY, room=100)),
        (FileSettings(upload_bytes=0, user_bytes=0), Upload(owner="ada", name="a.txt", allowed=ANY)),
    ],
)
async def test_P9_a_file_that_just_fits_or_has_no_limit_is_taken(
    tmp_path: Path, settings: FileSettings, upload: Upload
):
    files = FileService(tmp_path, settings).files
    assert (await files.receive(upload, byte_stream(b"x" * 60, b"x" * 40))).size == 100


async def test_X4_where_nobody_knows_whether_the_row_is_there_the_bytes_stay_to_be_swept(tmp_path: Path):
    class Failing(MemoryRows):
        async def add(self, attachment: Attachment, user_bytes: int, user_files: int = 0) -> Attachment:
            await super().add(attachment, user_bytes, user_files)
            raise StoreDown(problem="the connection broke while it answered")

    service = FileService(tmp_path, rows=Failing())
    with pytest.raises(StoreDown):
        await service.receive("a.txt", b"x")
    (row,) = service.rows.attachments.values()
    assert service.stored_names() == [row.blob]


async def test_P9_a_deleted_row_is_gone_even_when_the_storage_is_down(
    service: FileService, caplog: pytest.LogCaptureFixture
):
    class Down(LocalStorage):
        async def delete(self, names: Sequence[str]) -> None:
            raise StorageDown(problem="unplugged")

    files = service.over(Down(service.folder))
    attachment = await files.receive(Upload(owner="ada", name="a.txt", allowed=ANY), byte_stream(b"x"))
    await files.delete("ada", attachment.id)
    assert service.rows.attachments == {}
    assert "unplugged" in caplog.text
    service.now += timedelta(hours=2)
    # Undeleted bytes do not count, or the janitor would retry at once.
    assert await files.clean() == 0
    assert await service.files.clean() == 1
    assert service.stored_names() == []


async def test_P9_memory_stays_flat_however_large_an_upload_is(service: FileService):
    async def many() -> AsyncGenerator[bytes]:
        for _ in range(512):
            yield bytes(2**17)

    tracemalloc.start()
    try:
        attachment = await service.files.receive(Upload(owner="ada", name="a.bin", allowed=ANY), many())
        async for _ in service.files.read(attachment):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * 2**20


# Inline


@pytest.mark.parametrize(
    ("body", "mime", "given_name", "name"),
    [
        *((heads.PNG, "image/png", "a.png", "a.png"), (heads.PNG, "image/png", None, "image.png")),
        *((heads.PNG, "image/jpeg", None, "image.jpg"), (heads.PNG, None, None, "image")),
        (b"a,b", "text/csv", None, "image.csv"),
    ],
)
async def test_P9_bytes_in_a_message_are_taken_like_an_upload_and_get_a_name(
    service: FileService, body: bytes, mime: str | None, given_name: str | None, name: str
):
    attachment = await service.files.receive_inline("ada", inline(body, mime_type=mime, name=given_name), ANY)
    assert (attachment.name, attachment.size) == (name, len(body))
    assert await read(service.files.read(attachment)) == body


async def test_P3_bytes_in_a_message_sent_again_are_the_same_attachment_to_their_owner_alone(service: FileService):
    file = inline(heads.PNG, name="pictures/a.png")
    first = await service.files.receive_inline("ada", file, ANY)
    assert await service.files.receive_inline("ada", file, ANY) == first
    assert (await service.files.receive_inline("ada", inline(heads.PNG, name="b.png"), ANY)).id != first.id
    assert service.stored_names() == [first.blob]
    assert (await service.files.receive_inline("bob", file, ANY)).id != first.id


NO_BASE64 = ["!!!!", "YQ", "YQ=", "YQ===", "YW\nJj", " YWJj", "YWJj=", "YR=\n=", "ä", "\ud800"]


@pytest.mark.parametrize(
    ("file", "code"),
    [
        *((File(kind="document", source=Data(base64=text)), "base64") for text in NO_BASE64),
        (File(kind="image", source=Data(base64="")), "empty"),
        (File(kind="image", source=Url(url="https://a.example/")), "not_inline"),
        (
            File(kind="image", source=Data(base64=base64.b64encode(heads.PNG).decode()), mime_type="application/pdf"),
            "mismatch",
        ),
    ],
)
async def test_P9_data_in_a_message_that_is_no_file_is_refused(service: FileService, file: File, code: str):
    with pytest.raises(FileRefused) as error:
        await service.files.receive_inline("ada", file, ANY)
    assert error.value.code == code
    assert service.stored_names() == []


# Cleaning


async def test_P9_uploads_that_no_thread_names_are_deleted_when_they_are_old(service: FileService):
    unused = await service.receive("a.txt", b"unused")
    used_file = await service.receive("b.txt", b"used")
    service.rows.named.add(used_file.id)
    service.now += timedelta(hours=23)
    young = await service.receive("c.txt", b"young")
    assert await service.files.clean() == 0
    service.now += timedelta(hours=2)
    # Without a time limit they stay.
    assert await service.over(service.storage, FileSettings(unused_hours=0)).clean() == 0
    assert await service.files.clean() == 1
    assert service.stored_names() == sorted([used_file.blob, young.blob])
    with pytest.raises(NotFound):
        await service.files.get(unused.id)


async def test_X4_bytes_without_a_row_are_swept_once_no_upload_can_still_want_them(service: FileService):
    attachment = await service.receive("a.txt", b"kept")
    service.rows.named.add(attachment.id)
    await service.storage.write(NONE, byte_stream(b"x"))
    service.now += timedelta(minutes=59)
    assert await service.files.clean() == 0
    service.now += timedelta(minutes=2)
    assert await service.files.clean() == 1
    assert service.stored_names() == [attachment.blob]


# Links, and the rest


async def test_P9_a_link_says_what_the_bytes_are_and_shows_in_place_only_what_does_nothing(service: FileService):
    requests: list[ServedAs | None] = []

    class Linking(LocalStorage):
        async def link(self, name: str, seconds: float, served: ServedAs | None = None) -> str | None:
            requests.append(served)
            return f"https://bucket.example/{name}?{seconds}"

    files = service.over(Linking(service.folder))
    image = await files.receive(Upload(owner="ada", name="a.png", allowed=ANY), byte_stream(heads.PNG))
    page = await files.receive(Upload(owner="ada", name="a.html", allowed=ANY), byte_stream(b"<p>"))
    assert await files.link(image, 60) == f"https://bucket.example/{image.blob}?60"
    await files.link(page, 60)
    assert requests == [
        ServedAs(mime_type="image/png", disposition='inline; filename="a.png"'),
        ServedAs(mime_type="application/octet-stream", disposition='attachment; filename="a.html"'),
    ]
    assert await service.files.link(image, 60) is None


# Lost bytes


def path_of(service: FileService, blob: str) -> Path:
    (path,) = service.folder.rglob(blob)
    return path


@pytest.mark.parametrize("remaining", [None, b"", b"byte", b"bytes and more"])
async def test_P9_bytes_that_were_lost_are_there_again_for_all_their_attachments_once_they_are_uploaded_again(
    service: FileService, remaining: bytes | None
):
    first = await service.receive("a.txt", b"bytes")
    path = path_of(service, first.blob)
    path.unlink()
    if remaining is not None:
        path.write_bytes(remaining)
    second = await service.receive("b.txt", b"bytes")
    for id in (first.id, second.id):
        assert await read(service.files.read(await service.files.get(id))) == b"bytes"
    assert (await service.files.get(second.id)) == second
    assert second.blob != first.blob


async def test_P3_lost_bytes_that_come_again_in_a_message_are_the_same_attachment_and_are_there(service: FileService):
    file = inline(b"bytes", name="a.txt")
    first = await service.files.receive_inline("ada", file, ANY)
    path_of(service, first.blob).unlink()
    again = await service.files.receive_inline("ada", file, ANY)
    assert again.id == first.id
    assert await read(service.files.read(again)) == b"bytes"
    assert len(service.rows.attachments) == 1


async def test_P9_of_two_who_bring_lost_bytes_back_nothing_of_the_second_is_left(tmp_path: Path):
    class Overtaken(MemoryRows):
        async def rename_blob(self, old: str, new: str) -> None:
            await super().rename_blob(old, NONE)

    service = FileService(tmp_path, rows=Overtaken())
    path_of(service, (await service.receive("a.txt", b"bytes")).blob).unlink()
    assert (await service.receive("b.txt", b"bytes")).blob == NONE
    assert service.stored_names() == []


async def test_P9_where_nobody_can_tell_whether_bytes_are_lost_they_stay_as_they_are(service: FileService):
    class Unreadable(LocalStorage):
        async def read(self, name: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes]:
            raise StorageDown(problem="it cannot be read")
            yield b""

    files = service.over(Unreadable(service.folder))
    first = await service.receive("a.txt", b"bytes")
    second = await files.receive(Upload(owner="ada", name="b.txt", allowed=ANY), byte_stream(b"bytes"))
    assert second.blob == first.blob
    assert service.stored_names() == [first.blob]


def inline(body: bytes, **fields: str | None) -> File:
    return File(kind="image", source=Data(base64=base64.b64encode(body).decode()), **fields)
