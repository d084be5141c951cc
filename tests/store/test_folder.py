"""The data folder: one process at a time, under one name."""

import subprocess
import sys
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recto.errors import SettingsError
from recto.store.folder import DataFolder

HOLDER = """
import sys, time
from pathlib import Path
from recto.store.folder import DataFolder
folder = DataFolder(Path(sys.argv[1]))
print(folder.node(), flush=True)
time.sleep(60)
"""


def test_a_second_process_is_refused_and_told_what_to_do(tmp_path: Path):
    with held_elsewhere(tmp_path):
        with pytest.raises(SettingsError) as refused:
            DataFolder(tmp_path)
        assert str(refused.value) == (
            f"Setting data is '{tmp_path}'; another Recto is using it. "
            "Stop that one, or name another folder with --data."
        )


def test_a_second_opening_in_the_same_process_is_refused(tmp_path: Path):
    folder = DataFolder(tmp_path)
    with pytest.raises(SettingsError, match="another Recto is using it"):
        DataFolder(tmp_path)
    folder.close()


def test_a_process_that_was_killed_holds_nothing(tmp_path: Path):
    with held_elsewhere(tmp_path) as (holder, node):
        holder.kill()
        holder.wait()
        folder = DataFolder(tmp_path)
    assert folder.node() == node
    folder.close()


def test_a_folder_that_was_closed_can_be_opened_again(tmp_path: Path):
    DataFolder(tmp_path).close()
    again = DataFolder(tmp_path)
    with pytest.raises(SettingsError):
        DataFolder(tmp_path)
    again.close()


def test_a_node_keeps_its_name_over_restarts_and_shares_it_with_nobody(tmp_path: Path):
    names: list[str] = []
    for place in ("a", "a", "b"):
        folder = DataFolder(tmp_path / place)
        names += [folder.node(), folder.node()]
        folder.close()
    assert names[:4] == [names[0]] * 4
    assert names[4] != names[0]
    assert str(uuid.UUID(names[0])) == names[0]


def test_the_database_is_in_the_folder_which_is_made_with_its_parents(tmp_path: Path):
    folder = DataFolder(tmp_path / "a" / "b")
    assert folder.database_url == f"sqlite:///{tmp_path / 'a' / 'b' / 'recto.db'}"
    assert (tmp_path / "a" / "b").is_dir()
    folder.close()


def test_a_path_that_is_no_folder_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="it cannot be used"):
        DataFolder(tmp_path / "file")


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
