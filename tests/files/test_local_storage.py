"""A folder as storage: its permissions, leftovers of killed processes, and storage URLs (P9, C2)."""

import asyncio
import os
import stat
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from recto.errors import SettingsError, StorageDown
from recto.files.storage.choose_storage import open_storage
from recto.files.storage.local_storage import STAGED, STAGED_SECONDS, LocalStorage
from tests.files.blob_names import A, B
from tests.files.file_service import byte_stream, read

MEBIBYTE = 2**20


async def test_P9_files_are_for_their_owner_alone(tmp_path: Path):
    folder = tmp_path / "data" / "files"
    folder.mkdir(mode=0o755, parents=True)
    await open_storage(None, folder).write(A, byte_stream(b"x"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}
    assert modes.pop(A) == 0o600
    assert set(modes.values()) == {0o700}
    assert len(modes) == 4


async def test_X4_what_a_killed_process_was_writing_is_gone_at_the_next_start(tmp_path: Path):
    (tmp_path / STAGED).mkdir()
    (tmp_path / STAGED / A).write_bytes(b"begun")
    storage = open_storage(None, tmp_path)
    assert [some async for some in storage.list_all()] == []
    await storage.remove_leftovers()
    assert list((tmp_path / STAGED).iterdir()) == []


async def test_X4_in_a_shared_folder_only_what_is_old_is_nobodys(tmp_path: Path):
    staged = tmp_path / STAGED
    staged.mkdir()
    for name, age in ((A, 60), (B, STAGED_SECONDS + 60), ("thesis", STAGED_SECONDS + 60)):
        (staged / name).write_bytes(b"x")
        then = time.time() - age
        os.utime(staged / name, (then, then))
    storage = open_storage(tmp_path.as_uri(), Path("/nowhere"))
    assert len(list(staged.iterdir())) == 3
    await storage.remove_leftovers()
    assert sorted(path.name for path in staged.iterdir()) == [A, "thesis"]


async def test_P9_what_others_keep_in_the_same_folder_is_not_listed(tmp_path: Path):
    storage = open_storage(None, tmp_path)
    await storage.write(A, byte_stream(b"x"))
    (ours,) = tmp_path.glob("??/??/*")
    (tmp_path / "my" / "do").mkdir(parents=True)
    # A file with a name like ours in another place, and other files.
    for path in (tmp_path / "my" / "do" / "thesis", tmp_path / "my" / "do" / B, ours.with_name(".DS_Store")):
        path.write_bytes(b"not ours")
    ours.with_name(f"{A}.part").write_bytes(b"not ours")
    assert [blob.name async for some in storage.list_all() for blob in some] == [A]
    ours.unlink()
    ours.mkdir()
    assert [some async for some in storage.list_all()] == []


class Syncs:
    """Records syncs in order: a file and whether it had its final name, or a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.seen: list[tuple[str, int, bool]] = []

    def __call__(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        has_name = any(self._folder.glob(f"??/??/{A}"))
        self.seen.append(("file" if stat.S_ISREG(status.st_mode) else "folder", status.st_ino, has_name))
        os.fsync(descriptor)


async def test_X4_bytes_are_on_the_disk_before_the_file_has_its_name_and_then_the_name_is(tmp_path: Path):
    syncs = Syncs(tmp_path)
    await LocalStorage(tmp_path, sync=syncs).write(A, byte_stream(b"x", b"y"))
    (path,) = tmp_path.glob("??/??/*")
    folders = [("folder", folder.stat().st_ino, False) for folder in (tmp_path, path.parent.parent)]
    expected_sync = ("folder", path.parent.stat().st_ino, True)
    assert syncs.seen == [("file", path.stat().st_ino, False), *folders, expected_sync]
    syncs.seen.clear()
    await LocalStorage(tmp_path, sync=syncs).write_label(b"x")
    assert [kind for kind, _, _ in syncs.seen] == ["file", "folder"]
    syncs.seen.clear()
    # A storage that is not durable does not wait for the disk.
    await LocalStorage(tmp_path, is_durable=False, sync=syncs).write(B, byte_stream(b"x"))
    assert syncs.seen == []


async def test_X4_while_a_file_is_written_nobody_sees_it_and_who_opens_the_folder_takes_nothing(tmp_path: Path):
    storage = open_storage(None, tmp_path)

    async def looking() -> AsyncGenerator[bytes]:
        yield b"x"
        await open_storage(None, tmp_path).delete([B])
        assert [some async for some in storage.list_all()] == []
        yield b"y"

    await storage.write(A, looking())
    assert await read(storage.read(A)) == b"xy"


async def test_P9_a_reader_that_leaves_or_is_cancelled_leaves_no_open_file(tmp_path: Path):
    storage = open_storage(None, tmp_path)
    await storage.write(A, byte_stream(bytes(5 * MEBIBYTE)))
    async with aclosing(storage.read(A)) as pieces:
        await anext(pieces)
        assert len(open_files(tmp_path)) == 1
    assert open_files(tmp_path) == []
    started = asyncio.Event()

    async def read_on() -> None:
        async with aclosing(storage.read(A)) as pieces:
            async for _ in pieces:
                started.set()

    reading = asyncio.create_task(read_on())
    await started.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert open_files(tmp_path) == []


async def test_X4_one_file_that_cannot_be_deleted_keeps_none_of_the_others(tmp_path: Path):
    storage = open_storage(None, tmp_path)
    for name in (A, B):
        await storage.write(name, byte_stream(b"x"))
    # A folder in its place cannot be deleted like a file.
    (path,) = tmp_path.rglob(A)
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageDown):
        await storage.delete([A, B])
    assert list(tmp_path.rglob(B)) == []


async def test_C3_a_folder_that_cannot_be_written_to_is_down_and_its_path_stays_unsaid(tmp_path: Path):
    storage = LocalStorage(tmp_path)
    (tmp_path / STAGED).rmdir()
    (tmp_path / STAGED).write_bytes(b"in the way")
    with pytest.raises(StorageDown) as down:
        await storage.probe()
    assert str(tmp_path) not in str(down.value)


async def test_C3_a_storage_that_forgets_what_was_written_is_down(tmp_path: Path):
    class Forgetful(LocalStorage):
        async def write(self, name: str, pieces: object) -> None:
            pass

    with pytest.raises(StorageDown, match="read back"):
        await Forgetful(tmp_path).probe()


@pytest.mark.parametrize(
    "url",
    [
        *("", "HUSH", "ftp://HUSH/", "file://host/HUSH", "file:HUSH", "file:///", "file:///HUSH?x=1"),
        *("file:///a%00HUSH", "s3://", "s3://a:HUSH@/x", "s3://a:HUSH@bucket/x?unknown=1", "s3://a:HUSH@bucket/x y"),
        *("s3://a:HUSH@bucket/x?endpoint=HUSH", "s3://a:HUSH@bucket/x?endpoint=http://u:HUSH@host"),
        *("s3://a:HUSH@bucket/x#HUSH", "s3://HUSH@bucket", "s3://a:HUSH@bucket/a//b", "s3://a:HUSH@bucket/a/../b"),
        *("s3://a:HUSH@bucket/..", "s3://a:HUSH@bucket/./a", "s3://a:HUSH@bucket/a/%2e%2e/b", "http://[HUSH"),
    ],
)
def test_C2_a_url_that_names_no_storage_is_refused_without_showing_it(tmp_path: Path, url: str):
    with pytest.raises(SettingsError) as error:
        open_storage(url, tmp_path)
    assert "RECTO_STORAGE_URL" in str(error.value)
    assert "HUSH" not in str(error.value)


def test_C2_a_bucket_without_credentials_says_which_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    with pytest.raises(SettingsError, match="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        open_storage("s3://bucket/prefix", tmp_path)


async def test_C2_a_bucket_takes_its_credentials_and_region_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "env-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "env-secret")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    url = await open_storage("s3://bucket/prefix", tmp_path).link(A, 60)
    assert url is not None
    assert url.startswith("https://s3.eu-central-1.amazonaws.com/bucket/prefix/" + A + "?")
    assert "env-key%2F" in url
    assert "eu-central-1" in url
    assert "env-secret" not in url


def test_C2_a_folder_that_cannot_be_made_is_refused(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SettingsError, match="cannot be used"):
        open_storage(None, tmp_path / "file" / "folder")


def open_files(folder: Path) -> list[Path]:
    links = [one.readlink() for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    return [path for path in links if path.is_relative_to(folder) and path.is_file()]
