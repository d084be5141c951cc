"""Examples run as they are, and the documents show them as they are."""

import subprocess
import sys
import time
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from recto.agents.agent import Limits
from recto.agents.fold_table import with_table
from recto.cli.config import load_config
from recto.cli.server_settings import ServerSettings, load_settings
from recto.page import FoldSettings, Project
from recto.page.folding import SEARCH
from recto.testing.process import ServerProcess
from recto.tools.load import tools_of_folder
from tests.house import ROOT
from tests.test_docs import ADDRESS, blocks, read

ENDED = "The run is finished, and stored."
EXAMPLES = sorted((ROOT / "examples").glob("[0-9]*.py"))


def blocks_of(document: str, language: str) -> list[str]:
    return [block.text for block in blocks(read(document)) if block.language == language]


def output_of(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_example_runs(example: Path):
    assert output_of(sys.executable, str(example))


def test_the_readme_shows_the_first_example_and_what_it_prints():
    assert blocks_of("README.md", "python") == [(ROOT / "examples" / "01_fold.py").read_text(encoding="utf-8")]
    _, shown = blocks_of("README.md", "text")
    assert shown == output_of(sys.executable, "examples/01_fold.py")


def test_the_readme_shows_the_first_run_of_a_server(tmp_path: Path):
    with ServerProcess.serve(tmp_path, {}, "--hello") as server:
        until = time.monotonic() + 60
        while ENDED not in server.output and time.monotonic() < until:
            time.sleep(0.01)
        printed = server.output.replace(server.url, ADDRESS).replace(str(tmp_path), "recto-data")
    shown = blocks_of("README.md", "text")[0].splitlines()
    lines = iter(line.rstrip() for line in printed.splitlines())
    # In this order: looking for a line takes those before it.
    assert [line for line in shown if line not in lines] == [], printed
    assert shown[-1] == ENDED


def test_make_run_starts_what_the_readme_shows():
    assert output_of("make", "--no-print-directory", "-n", "run").endswith(".venv/bin/recto serve --hello\n")


@pytest.mark.parametrize("code", blocks_of("docs/api.md", "python"))
def test_code_in_the_api_page_runs(code: str):
    assert output_of(sys.executable, "-c", code) == ""


def test_the_guide_shows_the_settings_that_are_the_defaults():
    shown = blocks_of("docs/fold.md", "toml")
    example = ROOT / "examples" / "recto.toml"
    assert shown == [example.read_text(encoding="utf-8")]
    assert tomllib.loads(shown[0])["fold"]["search"]["on"] is False
    searching = FoldSettings(search=SEARCH, project=Project())
    assert with_table(searching, load_config(example)) == FoldSettings()


def test_the_page_of_the_server_shows_every_setting_with_its_default(tmp_path: Path):
    (shown,) = blocks_of("docs/server.md", "toml")
    file = tmp_path / "recto.toml"
    file.write_text(shown, encoding="utf-8")
    assert load_settings({}, {}, file) == ServerSettings()
    tables = tomllib.loads(shown)
    without_default = {"agents", "database_url"}
    assert tables["server"].keys() == {field.name for field in fields(ServerSettings)} - without_default - {"limits"}
    assert tables["limits"].keys() == {field.name for field in fields(Limits)}


def test_the_page_of_the_server_shows_tools_that_work(tmp_path: Path):
    (shown,) = blocks_of("docs/server.md", "python")
    (tmp_path / "tools.py").write_text(shown, encoding="utf-8")
    assert [tool.name for tool in tools_of_folder(tmp_path)] == ["stock"]
