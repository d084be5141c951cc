"""P9, D2: where urls of files lead, whether a provider can reach them, and which storage a server starts with."""

import shutil
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from recto.app.file_services import (
    PublicAddress,
    has_reachable_urls,
    is_durable_database,
    make_file_services,
    make_library,
    make_signer,
    open_files,
)
from recto.config.access_settings import GateSettings
from recto.config.file_settings import PictureSettings, UploadRules
from recto.config.run_settings import SqliteSettings
from recto.config.settings import ServerSettings
from recto.errors import FileRefused, SettingsError, StorageDown
from recto.files.ports import Upload
from recto.files.storage.local_storage import STAGED
from recto.store.store import Store, open_store
from recto.testing.process import free_port
from tests.files.blob_names import A
from tests.files.file_service import ANY, byte_stream
from tests.support.s3 import S3Server


def public(url: str) -> GateSettings:
    return GateSettings(public_url=url)


@pytest.mark.parametrize(
    ("settings", "listening", "url"),
    [
        (ServerSettings(), "http://127.0.0.1:8787", "http://127.0.0.1:8787"),
        (ServerSettings(port=0), "http://127.0.0.1:4711", "http://127.0.0.1:4711"),
        (ServerSettings(host="::1", port=0), "http://[::1]:4711", "http://[::1]:4711"),
        (ServerSettings(host="0.0.0.0"), "http://0.0.0.0:8787", "http://127.0.0.1:8787"),
        (ServerSettings(gate=public("https://a.example/b/"), port=0), "http://127.0.0.1:1", "https://a.example/b"),
    ],
)
def test_P9_urls_lead_to_the_public_address_or_the_one_that_is_listened_on(
    settings: ServerSettings, listening: str, url: str
):
    address = PublicAddress.of(settings)
    address.set_port(settings, listening)
    assert address.url == url


@pytest.mark.parametrize(
    ("settings", "is_public"),
    [
        (ServerSettings(), False),
        (ServerSettings(gate=public("https://recto.example")), True),
        (ServerSettings(gate=public("http://localhost:9000")), False),
        (ServerSettings(gate=public("http://[::1]:9000")), False),
        (ServerSettings(gate=public("https://recto.example"), pictures=PictureSettings(image_urls=False)), False),
        (ServerSettings(pictures=PictureSettings(image_urls=True)), True),
    ],
)
def test_D2_pictures_go_by_url_only_where_a_provider_can_come_for_them(settings: ServerSettings, is_public: bool):
    assert has_reachable_urls(settings) is is_public


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[Store]:
    store = await open_store(f"sqlite:///{tmp_path / 'recto.db'}")
    yield store
    await store.close()


async def test_P9_a_server_starts_again_with_its_files_and_no_other_with_them(store: Store, tmp_path: Path):
    settings = ServerSettings(data=tmp_path, storage_url=(tmp_path / "shared").as_uri())
    storage = await open_files(settings, store, "one")
    await storage.write(A, byte_stream(b"x"))
    await open_files(settings, store, "one")
    with pytest.raises(SettingsError, match="recto storage adopt"):
        await open_files(settings, store, "two")
    other = await open_store(f"sqlite:///{tmp_path / 'other.db'}")
    with pytest.raises(SettingsError, match="recto storage adopt"):
        await open_files(settings, other, "two")
    await other.close()


async def test_X4_a_server_that_starts_removes_what_a_killed_one_was_writing_once_the_files_are_known_to_be_its_own(
    store: Store, tmp_path: Path
):
    settings = ServerSettings(data=tmp_path)
    await open_files(settings, store, "one")
    staged = settings.files_folder / STAGED / A
    staged.write_bytes(b"half")
    with pytest.raises(SettingsError):
        await open_files(settings, store, "two")
    assert staged.exists()
    await open_files(settings, store, "one")
    assert not staged.exists()


async def test_C3_a_storage_that_cannot_be_used_or_written_to_stops_the_start(store: Store, tmp_path: Path):
    url = S3Server(port=free_port()).url()
    with pytest.raises(StorageDown, match="cannot be used") as down:
        await open_files(ServerSettings(data=tmp_path, storage_url=url), store, "one")
    assert "\n" not in str(down.value)
    (tmp_path / "files").write_bytes(b"in the way")
    settings = ServerSettings(data=tmp_path)
    with pytest.raises(SettingsError, match="cannot be used"):
        await open_files(settings, store, "one")
    (tmp_path / "files").unlink()
    # It can be read.
    await open_files(settings, store, "one")
    for number in range(256):
        folder = settings.files_folder / f"{number:02x}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.write_bytes(b"in the way")
    with pytest.raises(StorageDown, match="cannot be used"):
        await open_files(settings, store, "one")


async def test_P9_a_user_has_no_more_files_than_the_settings_say(store: Store, tmp_path: Path):
    settings = ServerSettings(data=tmp_path, uploads=UploadRules(user_files=1))
    signer = make_signer(settings, tmp_path, PublicAddress.of(settings))
    storage = await open_files(settings, store, "one")
    files = make_file_services(settings, storage, store, signer, make_library(settings)).attachments
    await files.receive(Upload(owner="ada", name="a.txt", allowed=ANY), byte_stream(b"one"))
    with pytest.raises(FileRefused) as caught_error:
        await files.receive(Upload(owner="ada", name="b.txt", allowed=ANY), byte_stream(b"two"))
    assert caught_error.value.code == "quota"


def test_X4_files_outlive_what_rows_outlive():
    normal, full = (ServerSettings(sqlite=SqliteSettings(synchronous=mode)) for mode in ("NORMAL", "FULL"))
    assert not is_durable_database(normal, is_shared=False)
    assert is_durable_database(full, is_shared=False) and is_durable_database(normal, is_shared=True)
