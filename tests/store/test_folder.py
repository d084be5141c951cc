"""The data folder: one process at a time, one node name."""

import logging
import os
import stat
import subprocess
import sys
import threading
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

from recto.errors import SettingsError
from recto.store.database.folder import DataFolder, is_locked, read_address
from recto.store.store import open_store
from tests.store.suite.samples import admit

HOLDER = """
import signal, sys
from pathlib import Path
from recto.store.database.folder import DataFolder
folder = DataFolder(Path(sys.argv[1]))
print(folder.node(), flush=True)
signal.pause()
"""


def test_a_second_process_is_rejected_with_advice(tmp_path: Path):
    with held_elsewhere(tmp_path):
        with pytest.raises(SettingsError) as error:
            DataFolder(tmp_path)
        assert str(error.value) == (
            f"Setting data is '{tmp_path}'; another Recto is using it. "
            "Stop that one, or name another folder with --data."
        )


def test_a_killed_process_releases_the_folder(tmp_path: Path):
    with held_elsewhere(tmp_path) as (holder, node):
        holder.kill()
        holder.wait()
        folder = DataFolder(tmp_path)
    assert folder.node() == node
    folder.close()


def test_the_address_counts_only_while_the_folder_is_locked(tmp_path: Path):
    address = tmp_path / "address"
    address.write_text("http://127.0.0.1:1", encoding="ascii")
    folder = DataFolder(tmp_path)
    assert read_address(tmp_path) is None
    folder.write_address("http://127.0.0.1:8787")
    assert address.read_text(encoding="ascii") == "http://127.0.0.1:8787"
    assert stat.S_IMODE(address.stat().st_mode) == 0o600
    folder.close()
    assert not address.exists()


def test_checking_the_lock_does_not_block_others(tmp_path: Path):
    DataFolder(tmp_path).close()
    looking = FileLock(tmp_path / "lock", thread_local=False)
    looking.acquire()
    threading.Timer(0.05, looking.release).start()
    folder = DataFolder(tmp_path)
    assert is_locked(tmp_path)
    folder.close()
    assert not is_locked(tmp_path)


def test_a_node_has_a_unique_name_that_survives_restarts(tmp_path: Path):
    names: list[str] = []
    for place in ("a", "a", "b"):
        folder = DataFolder(tmp_path / place)
        names += [folder.node(), folder.node()]
        with pytest.raises(SettingsError):
            DataFolder(tmp_path / place)
        folder.close()
    assert names[:4] == [names[0]] * 4
    assert names[4] != names[0]
    assert str(uuid.UUID(names[0])) == names[0]


def test_git_ignores_a_new_folder_and_no_existing_one(tmp_path: Path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    folder = DataFolder(tmp_path / "recto-data")
    (tmp_path / "recto-data" / "secret").write_text("secret")
    status = subprocess.run(["git", "status", "--porcelain"], cwd=tmp_path, check=True, capture_output=True)
    folder.close()
    assert status.stdout == b""
    DataFolder(tmp_path).close()
    assert not (tmp_path / ".gitignore").exists()


def test_a_path_of_a_file_is_rejected(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="it cannot be used"):
        DataFolder(tmp_path / "file")


@pytest.fixture
def open_umask() -> Generator[None]:
    """Let new files be readable by all, unless the code sets a mode."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir() if path.name.startswith("recto")}


@pytest.mark.usefixtures("open_umask")
async def test_C3_only_the_owner_can_read_the_data(tmp_path: Path):
    folder = DataFolder(tmp_path / "a" / "data")
    store = await open_store(folder.database_url)
    await admit(store, "r1")
    result = modes(folder.path)
    await store.close()
    folder.close()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert result == {"recto.db": 0o600, "recto.db-shm": 0o600, "recto.db-wal": 0o600}


@pytest.mark.usefixtures("open_umask")
async def test_C3_a_readable_database_becomes_private_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    url = f"sqlite:///{tmp_path / 'recto.db'}"
    await (await open_store(url)).close()
    assert not caplog.records
    (tmp_path / "recto.db").chmod(0o644)
    with caplog.at_level(logging.WARNING, "recto.store"):
        store = await open_store(url)
    await admit(store, "r1")
    result = modes(tmp_path)
    await store.close()
    assert set(result.values()) == {0o600}
    warning = f"Others could read {tmp_path / 'recto.db'} and may have done so. Now only you can."
    assert [record.getMessage() for record in caplog.records] == [warning]


@contextmanager
def held_elsewhere(path: Path) -> Generator[tuple["subprocess.Popen[str]", str]]:
    """Start another process that has the folder open. Yield that process and its node's name."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        try:
            yield holder, holder.stdout.readline().strip()
        finally:
            holder.kill()
