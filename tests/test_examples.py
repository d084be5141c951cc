"""Examples run as they are, and the documents show them as they are."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from recto.cli.config import load_config, with_config
from recto.page import FoldSettings, Project
from recto.page.folding import SEARCH
from tests.house import ROOT
from tests.test_docs import blocks, read

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
    assert blocks_of("README.md", "text") == [output_of(sys.executable, "examples/01_fold.py")]


def test_make_run_prints_what_the_readme_promises():
    assert output_of("make", "--no-print-directory", "run").endswith(blocks_of("README.md", "text")[0])


@pytest.mark.parametrize("code", blocks_of("docs/api.md", "python"))
def test_code_in_the_api_page_runs(code: str):
    assert output_of(sys.executable, "-c", code) == ""


def test_the_guide_shows_the_settings_that_are_the_defaults():
    shown = blocks_of("docs/fold.md", "toml")
    example = ROOT / "examples" / "recto.toml"
    assert shown == [example.read_text(encoding="utf-8")]
    assert tomllib.loads(shown[0])["fold"]["search"]["on"] is False
    searching = FoldSettings(search=SEARCH, project=Project())
    assert with_config(searching, load_config(example)) == FoldSettings()
