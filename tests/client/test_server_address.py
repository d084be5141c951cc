"""Server URL, token and import cost of the client."""

import subprocess
import sys
from pathlib import Path

import pytest

from recto.client.server_address import ServerAddress, find_server
from recto.errors import SettingsError
from recto.testing.process import ServerProcess

LIGHT = """
import sys
from recto.client import AsyncClient, Client

def heavy(*names):
    return sorted({name for name in sys.modules if name.split(".")[0] in names or name.startswith("recto.")
        and name.split(".")[1] in ("api", "app", "engine", "files", "models", "store", "worker", "page", "agents")})

found = heavy("aiohttp", "pydantic", "sqlalchemy", "starlette", "uvicorn", "typer", "rich")
assert not found, found

def tool(day: int) -> str:
    "A tool."
    return "x"

Client(tools=[tool]).chat("not sent")
found = heavy("aiohttp", "sqlalchemy", "starlette", "uvicorn")
assert not found, found
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recto-data").mkdir()
    (tmp_path / "recto-data" / "token").write_text("of-the-folder\n", encoding="ascii")
    return tmp_path


def test_arguments_override_the_environment_and_the_data_folder(folder: Path):
    environment = {"RECTO_URL": "http://localhost:9000/", "RECTO_TOKEN": "of-the-environment"}
    servers = [
        find_server("https://a.example/recto/", "told", environment),
        find_server(None, None, environment),
        find_server(None, None, {}),
    ]
    assert servers == [
        ServerAddress(url="https://a.example/recto", token="told"),
        ServerAddress(url="http://localhost:9000", token="of-the-environment"),
        ServerAddress(url="http://127.0.0.1:8787", token="of-the-folder"),
    ]


@pytest.mark.parametrize("url", ["https://a.example", "http://10.0.0.1:8787", "http://127.0.0.1.a.example"])
def test_the_token_of_the_data_folder_is_used_for_this_machine_only(folder: Path, url: str):
    assert find_server(url, None, {}).token is None
    elsewhere = folder / "elsewhere"
    (folder / "recto-data").rename(elsewhere)
    assert find_server(None, None, {"RECTO_DATA": str(elsewhere)}).token == "of-the-folder"
    assert find_server(None, None, {}).token is None


@pytest.mark.parametrize("url", ["localhost:8787", "ftp://a.example", "http://", "http://a.b:99999", "http://[::1"])
def test_an_invalid_address_is_rejected(url: str):
    with pytest.raises(SettingsError, match=r"RECTO_URL.*it is an address such as http://127\.0\.0\.1:8787"):
        find_server(url, None, {})


def test_importing_the_client_loads_no_server_code():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_a_client_finds_the_token_that_a_server_generated(tmp_path: Path):
    script = "from recto.client import Client; print(Client().chat('What is 12 * 7?').answer())"
    with ServerProcess.serve(tmp_path / "recto-data", {}, token=None) as server:
        command, environment = [sys.executable, "-c", script], {"RECTO_URL": server.url}
        answer = subprocess.check_output(command, cwd=tmp_path, env=environment, text=True, timeout=60)
    assert answer == "12 * 7 = 84.\n"
