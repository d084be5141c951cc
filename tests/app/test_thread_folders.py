"""R15: what of the server nobody is to see or to change, wherever it lies in a folder that agents work in."""

import sys
from pathlib import Path

import recto
from recto.app.agents import make_workspaces
from recto.config.settings import ServerSettings


def test_R15_settings_the_database_and_stored_files_are_hidden_in_the_folder_of_a_project(tmp_path: Path):
    settings = ServerSettings(
        data=tmp_path / "data",
        workspace=tmp_path,
        config_file=tmp_path / "own.toml",
        database_url=f"sqlite:///{tmp_path}/var/recto.db",
        storage_url=f"file://{tmp_path}/var/files",
    )
    hidden = {"data", "own.toml", "var/recto.db", "var/recto.db-wal", "var/recto.db-shm", "var/files"}
    assert {*make_workspaces(settings).of("t1").hidden} == hidden
    # A database inside the data folder is hidden with the folder.
    url = f"sqlite:///{tmp_path}/data/recto.db"
    inside = ServerSettings(data=tmp_path / "data", workspace=tmp_path, database_url=url)
    assert make_workspaces(inside).of("t1").hidden == ("data",)


def test_R15_the_code_of_the_server_is_guarded_in_a_folder_that_it_runs_from(tmp_path: Path):
    place = Path(recto.__file__).resolve().parents[1]
    for workspace, guarded in ((place, "recto"), (Path(sys.prefix).resolve().parent, Path(sys.prefix).name)):
        settings = ServerSettings(data=tmp_path / "data", workspace=workspace)
        assert guarded in make_workspaces(settings).of("t1").guarded
