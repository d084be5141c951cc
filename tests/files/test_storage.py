"""Storages: bytes by name, whole or not at all (P9). The same tests for a folder and for a bucket."""

import asyncio
import urllib.error
import urllib.request
import uuid
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from obstore.store import S3Store

from recto.errors import NotFound, StorageDown
from recto.files.ports import LabelledStorage, ServedAs, Storage
from recto.files.storage.blobs import LABEL
from recto.files.storage.choose_storage import open_storage
from recto.files.storage.presign import S3Credentials, presign
from recto.testing.process import free_port
from tests.files.blob_names import NONE, A, B, C, blob_name
from tests.files.file_service import byte_stream, read
from tests.support.s3 import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, S3Server

MEBIBYTE = 2**20
# More than one part of an S3 upload, and no whole number of parts.
LARGE = 12 * MEBIBYTE + 3


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.full)])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> LabelledStorage:
    if request.param == "local":
        return open_storage(None, tmp_path / "files")
    return bucket_storage(request.getfixturevalue("object_server"))


@pytest.fixture
def bucket(object_server: S3Server) -> Storage:
    return bucket_storage(object_server)


def bucket_storage(server: S3Server) -> LabelledStorage:
    return open_storage(server.url(prefix=f"test/{uuid.uuid4()}"), Path())


@pytest.mark.parametrize("sizes", [(), (0,), (10, 0, 5), (LARGE,), (70_000,) * 100])
async def test_P9_what_was_written_is_read_whole(storage: Storage, sizes: Sequence[int]):
    body = [bytes([place % 251]) * size for place, size in enumerate(sizes)]
    await storage.write(A, byte_stream(*body))
    assert await read(storage.read(A)) == b"".join(body)
    (stored_blob,) = [blob async for some in storage.list_all() for blob in some]
    assert (stored_blob.name, stored_blob.size) == (A, sum(sizes))
    assert abs(datetime.now(UTC) - stored_blob.modified) < timedelta(minutes=1)


async def test_P9_a_range_is_read_without_the_rest(storage: Storage):
    body = bytes(range(256)) * (LARGE // 256) + b"end"
    await storage.write(A, byte_stream(body))
    inner = [(0, 1), (5, 10), (LARGE - 1, LARGE), (MEBIBYTE - 1, 9 * MEBIBYTE), (3, None), (7, 7)]
    for start, end in [*inner, (0, LARGE + 99), (LARGE, None)]:
        assert await read(storage.read(A, start, end)) == body[start:end]


async def test_P9_what_is_not_there_is_not_found(storage: Storage):
    with pytest.raises(NotFound):
        await read(storage.read(NONE))


async def test_P9_a_name_that_is_not_ours_is_refused_everywhere(storage: Storage):
    others = ["", "../a", "a/b", A.upper(), f"{A}.part", f"{A}\n", f"other-{A}", "customer-list", LABEL]
    for name in [*others, str(uuid.UUID(int=0))]:
        with pytest.raises(NotFound):
            await storage.write(name, byte_stream(b"x"))
        with pytest.raises(NotFound):
            await read(storage.read(name))
        with pytest.raises(NotFound):
            await storage.delete([name])
    assert await names(storage) == {}


async def test_P9_deleting_deletes_what_is_there_of_many(storage: Storage):
    for name in (A, B, C):
        await storage.write(name, byte_stream(b"x"))
    await storage.delete([A, NONE, C, *(blob_name(place + 1000) for place in range(1200))])
    await storage.delete([])
    assert await names(storage) == {B: 1}


@pytest.mark.parametrize(("size", "error"), [(10, ZeroDivisionError), (LARGE, ConnectionResetError)])
async def test_P9_an_upload_whose_sender_fails_leaves_nothing_and_the_reason_is_theirs(
    storage: Storage, tmp_path: Path, size: int, error: type[Exception]
):
    async def failing() -> AsyncGenerator[bytes]:
        yield bytes(size)
        raise error

    with pytest.raises(error):
        await storage.write(A, failing())
    assert await names(storage) == {}
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("size", [10, LARGE])
@pytest.mark.parametrize("is_whole", [False, True])
async def test_P9_a_cancelled_upload_leaves_nothing(storage: Storage, tmp_path: Path, size: int, is_whole: bool):
    async def pieces() -> AsyncGenerator[bytes]:
        yield bytes(size)
        asyncio.get_running_loop().call_soon(writing.cancel)
        if not is_whole:
            await asyncio.Event().wait()

    writing = asyncio.create_task(storage.write(A, pieces()))
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await names(storage) == {}
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


async def test_P9_a_label_is_read_as_it_was_last_written_and_is_no_file(storage: LabelledStorage):
    assert await storage.read_label() is None
    for label in (b"one", b"another"):
        await storage.write_label(label)
        assert await storage.read_label() == label
    await storage.write(A, byte_stream(b"x"))
    await storage.remove_leftovers()
    assert await names(storage) == {A: 1}


async def test_C3_a_storage_in_order_passes_its_probe_and_keeps_nothing_of_it(storage: Storage):
    await storage.probe()
    assert await names(storage) == {}


# Buckets only


@pytest.mark.full
async def test_P9_a_link_works_for_anybody_until_it_is_changed(bucket: Storage):
    await bucket.write(A, byte_stream(b"hello"))
    served = ServedAs(mime_type="text/csv", disposition="attachment; filename*=UTF-8''%E6%8A%A5.csv")
    url = await bucket.link(A, 60, served)
    assert url is not None
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == b"hello"
        assert answer.headers["Content-Type"] == "text/csv"
        assert answer.headers["Content-Disposition"] == served.disposition
    for old, new in (("text%2Fcsv", "text%2Fhtml"), ("Expires=60", "Expires=61"), (f"{A}?", f"{B}?")):
        assert old in url
        assert status(url.replace(old, new)) == 403
    assert status(await bucket.link(A, 60) or "") == 200


@pytest.mark.full
@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_P9_an_upload_broken_off_leaves_no_parts_in_the_bucket(object_server: S3Server, is_cancelled: bool):
    storage, reached_event = bucket_storage(object_server), asyncio.Event()

    async def broken() -> AsyncGenerator[bytes]:
        for _ in range(12):
            yield bytes(MEBIBYTE)
        reached_event.set()
        while is_cancelled:
            await asyncio.Event().wait()
        raise ConnectionResetError

    writing = asyncio.create_task(storage.write(A, broken()))
    await reached_event.wait()
    if is_cancelled:
        writing.cancel()
    with pytest.raises((ConnectionResetError, asyncio.CancelledError)):
        await writing
    assert await names(storage) == {}
    who = S3Credentials(access_key=ACCESS_KEY, secret_key=SECRET_KEY)
    url = presign(f"{object_server.endpoint}/{BUCKET}", who, now=datetime.now(UTC), seconds=60, query={"uploads": ""})
    with urllib.request.urlopen(url) as answer:
        body = answer.read()
    assert b"ListMultipartUploadsResult" in body
    assert b"<Upload>" not in body


@pytest.mark.full
async def test_C3_a_bucket_that_refuses_our_credentials_is_down_and_says_so(object_server: S3Server):
    storage = open_storage(object_server.url(secret="not-the-secret"), Path())
    with pytest.raises(StorageDown, match="refused our credentials") as down:
        await storage.probe()
    assert "not-the-secret" not in str(down.value)
    with pytest.raises(StorageDown):
        await storage.write(A, byte_stream(bytes(LARGE)))
    with pytest.raises(StorageDown):
        await names(storage)


@pytest.mark.full
async def test_P9_what_others_keep_in_the_same_bucket_is_not_listed(object_server: S3Server):
    prefix = str(uuid.uuid4())
    storage = open_storage(object_server.url(prefix=prefix), Path())
    others = S3Store(
        BUCKET,
        endpoint=object_server.endpoint,
        region=REGION,
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY,
        client_options={"allow_http": True},
    )
    for name in ("customer-list", ".DS_Store", f"{A}.part", f"inner/{A}", str(uuid.UUID(int=0))):
        others.put(f"{prefix}/{name}", b"not ours")
    assert [some async for some in storage.list_all()] == []
    await storage.write(A, byte_stream(b"x"))
    assert await names(storage) == {A: 1}


async def test_C3_a_bucket_that_nobody_serves_is_down_and_its_address_stays_unsaid():
    storage = open_storage(S3Server(port=free_port()).url(), Path())
    with pytest.raises(StorageDown, match="error sending request") as down:
        await storage.probe()
    assert "127.0.0.1" not in str(down.value)


def test_P9_a_link_is_signed_as_amazon_describes_it():
    # The example of the AWS documentation.
    who = S3Credentials(access_key="AKIAIOSFODNN7EXAMPLE", secret_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    url = "https://examplebucket.s3.amazonaws.com/test.txt"
    link = presign(url, who, now=datetime(2013, 5, 24, tzinfo=UTC), seconds=86_400)
    assert link.endswith("X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
    assert "wJalr" not in repr(who)


def test_P9_a_link_with_lent_keys_carries_their_token_and_lives_no_longer_than_it_may():
    who = S3Credentials(access_key="key", secret_key="secret", token="lent/token")
    url = presign("https://s3.example/bucket/a", who, now=datetime.now(UTC), seconds=10**9)
    assert "X-Amz-Security-Token=lent%2Ftoken" in url
    assert "X-Amz-Expires=604800" in url


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


async def names(storage: Storage) -> dict[str, int]:
    return {blob.name: blob.size async for some in storage.list_all() for blob in some}
