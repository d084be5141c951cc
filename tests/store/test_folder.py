"""The data folder: one process at a time, under one name."""

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


def test_a_second_process_is_refused_and_told_what_to_do(tmp_path: Path):
    with held_elsewhere(tmp_path):
        with pytest.raises(SettingsError) as refused:
            DataFolder(tmp_path)
        assert str(refused.value) == (
            f"Setting data is '{tmp_path}'; another Recto is using it. "
            "Stop that one, or name another folder with --data."
        )


def test_a_process_that_was_killed_holds_nothing(tmp_path: Path):
    with held_elsewhere(tmp_path) as (holder, node):
        holder.kill()
        holder.wait()
        folder = DataFolder(tmp_path)
    assert folder.node() == node
    folder.close()


def test_a_server_tells_its_address_while_it_holds_the_folder_and_no_older_one_is_told(tmp_path: Path):
    address = tmp_path / "address"
    address.write_text("http://127.0.0.1:1", encoding="ascii")
    folder = DataFolder(tmp_path)
    assert read_address(tmp_path) is None
    folder.write_address("http://127.0.0.1:8787")
    assert address.read_text(encoding="ascii") == "http://127.0.0.1:8787"
    assert stat.S_IMODE(address.stat().st_mode) == 0o600
    folder.close()
    assert not address.exists()


def test_who_looks_whether_a_folder_is_held_keeps_nobody_from_it(tmp_path: Path):
    DataFolder(tmp_path).close()
    looking = FileLock(tmp_path / "lock", thread_local=False)
    looking.acquire()
    threading.Timer(0.05, looking.release).start()
    folder = DataFolder(tmp_path)
    assert is_locked(tmp_path)
    folder.close()
    assert not is_locked(tmp_path)


def test_a_node_keeps_its_name_over_restarts_and_shares_it_with_nobody(tmp_path: Path):
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


def test_git_sees_nothing_of_a_folder_that_was_made_in_a_project_and_all_of_one_that_was_there(tmp_path: Path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    folder = DataFolder(tmp_path / "recto-data")
    (tmp_path / "recto-data" / "secret").write_text("secret")
    status = subprocess.run(["git", "status", "--porcelain"], cwd=tmp_path, check=True, capture_output=True)
    folder.close()
    assert status.stdout == b""
    DataFolder(tmp_path).close()
    assert not (tmp_path / ".gitignore").exists()


def test_a_path_that_is_no_folder_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="it cannot be used"):
        DataFolder(tmp_path / "file")


# Only for whoever runs the server


@pytest.fixture
def open_umask() -> Generator[None]:
    """What is made is readable by all, unless whoever makes it says otherwise."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir() if path.name.startswith("recto")}


@pytest.mark.usefixtures("open_umask")
async def test_C3_what_was_said_can_be_read_by_nobody_else_on_the_machine(tmp_path: Path):
    folder = DataFolder(tmp_path / "a" / "data")
    store = await open_store(folder.database_url)
    await admit(store, "r1")
    found = modes(folder.path)
    await store.close()
    folder.close()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert found == {"recto.db": 0o600, "recto.db-shm": 0o600, "recto.db-wal": 0o600}


@pytest.mark.usefixtures("open_umask")
async def test_C3_a_database_that_others_could_read_is_closed_to_them_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    url = f"sqlite:///{tmp_path / 'recto.db'}"
    await (await open_store(url)).close()
    assert not caplog.records
    (tmp_path / "recto.db").chmod(0o644)
    with caplog.at_level(logging.WARNING, "recto.store"):
        store = await open_store(url)
    await admit(store, "r1")
    found = modes(tmp_path)
    await store.close()
    assert set(found.values()) == {0o600}
    warning = f"Others could read {tmp_path / 'recto.db'} and may have done so. Now only you can."
    assert [record.getMessage() for record in caplog.records] == [warning]


@contextmanager
def held_elsewhere(path: Path) -> Generator[tuple["subprocess.Popen[str]", str]]:
    """Another process has the folder open. Gives that process and its node's name."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        try:
            yield holder, holder.stdout.readline().strip()
        finally:
            holder.kill()
