"""The list of commands: what it says of each is what the command says, and it loads none of them."""

import subprocess
import sys
from importlib import import_module
from inspect import getdoc

import pytest
import typer

from recto.cli.main import COMMANDS, Listed, command_in

LOADED = """
import sys
sys.argv = ["recto", {words}]
from recto.__main__ import main
try:
    main()
finally:
    print(*sys.modules)
"""


@pytest.mark.parametrize("listed", COMMANDS, ids=lambda one: one.name)
def test_C1_the_line_of_a_command_is_how_its_own_help_begins(listed: Listed):
    found = getattr(import_module(listed.module), listed.name)
    own = found.info.help if isinstance(found, typer.Typer) else getdoc(found)
    assert str(own).replace("\n", " ").startswith(listed.help)
    assert not isinstance(found, typer.Typer) or found.info.name == listed.name


@pytest.mark.parametrize("words", ["--help", "--version"])
def test_C1_the_list_and_the_version_load_no_command(words: str):
    shown = subprocess.run(
        [sys.executable, "-c", LOADED.format(words=repr(words))], capture_output=True, text=True, check=False
    )
    loaded = shown.stdout.splitlines()[-1].split()
    assert (shown.returncode, "typer" in loaded, "pydantic" in loaded) == (0, True, False)
    assert not {listed.module for listed in COMMANDS} & set(loaded)


@pytest.mark.parametrize(
    ("arguments", "command"), [([], ""), (["--help"], ""), (["fold", "serve"], "fold"), (["--version", "read"], "read")]
)
def test_C1_the_first_word_is_the_command(arguments: list[str], command: str):
    assert command_in(arguments) == command
