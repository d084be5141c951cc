"""C1, P9: servers that share a storage and should not, and `recto storage adopt` for when that is meant."""

import os
import time
from pathlib import Path

import pytest

from recto.conversation.json import load_object
from recto.files.storage.blobs import LABEL, is_ours
from recto.testing.process import NotStarted, ServerProcess, free_port
from tests.cli.in_process import FAILED, WRONG_USE, recto, recto_process
from tests.cli.test_data_commands import upload
from tests.support.client import request
from tests.support.s3 import S3Server

pytestmark = pytest.mark.full

LONG_AGO = 7_200


def list_stored(folder: Path) -> list[Path]:
    return [path for path in folder.glob("??/??/*") if is_ours(path.name)]


def grow_old(folder: Path) -> None:
    """Have everything look as if no upload could still want it."""
    then = time.time() - LONG_AGO
    for path in list_stored(folder):
        os.utime(path, (then, then))


def test_P9_a_restored_backup_does_not_start_on_the_storage_of_the_live_server_and_touches_none_of_its_files(
    tmp_path: Path,
):
    shared = tmp_path / "shared"
    settings = {"RECTO_STORAGE_URL": shared.as_uri()}
    with ServerProcess.serve(tmp_path / "live", settings) as live:
        upload(live.url, "monday.txt", b"monday")
        assert recto(tmp_path, "backup", "monday", "--data", "live", **settings).code == 0
        url = upload(live.url, "tuesday.txt", b"tuesday")
        grow_old(shared)
        with pytest.raises(NotStarted) as caught_error, ServerProcess.serve(tmp_path / "monday", settings):
            pass
        # Not by the way of a command either.
        deleted = recto(tmp_path, "user", "delete", "local", "--yes", "--data", "monday", **settings)
        assert deleted.code == WRONG_USE
        assert request(live.url, "GET", url.removeprefix(live.url), token=None).body == b"tuesday"
    assert caught_error.value.code == WRONG_USE
    messages = str(caught_error.value).partition(": ")[2]
    assert messages.count("\n") == 1
    assert "recto storage adopt --data DIR" in messages
    assert "Traceback" not in messages
    assert len(list_stored(shared)) == 2


def test_P9_two_data_folders_on_one_storage_until_the_second_adopts_it(tmp_path: Path):
    shared = tmp_path / "shared"
    settings = {"RECTO_STORAGE_URL": shared.as_uri()}
    for name in ("one", "two"):
        # Each has a database; the second one's was made without this storage.
        with ServerProcess.serve(tmp_path / name, settings if name == "one" else {}) as server:
            upload(server.url, "a.txt", name.encode())
    with pytest.raises(NotStarted), ServerProcess.serve(tmp_path / "two", settings):
        pass
    done = recto_process(tmp_path, "storage", "adopt", "--data", "two", RECTO_STORAGE_URL=shared.as_uri())
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("The storage now belongs to the data folder two;")
    assert (load_object((shared / LABEL).read_bytes()) or {})["owner"] == (tmp_path / "two" / "node").read_text()
    with ServerProcess.serve(tmp_path / "two", settings) as server:
        assert request(server.url, "GET", "/readyz").status == 200
    with pytest.raises(NotStarted) as caught_error, ServerProcess.serve(tmp_path / "one", settings):
        pass
    assert caught_error.value.code == WRONG_USE


def test_C1_a_storage_that_is_down_stops_the_start_and_the_command_with_one_line(tmp_path: Path):
    with ServerProcess.serve(tmp_path / "data", {}):
        pass
    settings = {"RECTO_STORAGE_URL": S3Server(port=free_port()).url()}
    with pytest.raises(NotStarted) as caught_error, ServerProcess.serve(tmp_path / "data", settings):
        pass
    assert caught_error.value.code == FAILED
    assert str(caught_error.value).count("\n") == 1
    assert "The storage of files cannot be used" in str(caught_error.value)
    done = recto(tmp_path, "storage", "adopt", "--data", "data", **settings)
    assert done.code == FAILED
    assert done.err.startswith("recto storage adopt: The storage of files cannot be used")
    assert done.err.count("\n") == 1


def test_C1_adopting_without_a_database_or_beside_its_server_is_wrong_use(tmp_path: Path):
    none = recto(tmp_path, "storage", "adopt", "--data", "nowhere")
    assert (none.code, none.err.count("\n")) == (WRONG_USE, 1)
    assert "there is no database" in none.err
    assert list(tmp_path.iterdir()) == []
    with ServerProcess.serve(tmp_path / "data", {}):
        busy = recto(tmp_path, "storage", "adopt", "--data", "data")
    assert (busy.code, busy.err.count("\n")) == (WRONG_USE, 1)
    assert "another Recto is using it" in busy.err
