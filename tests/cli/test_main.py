"""Tests of the list of commands: its help lines, and the modules that it loads."""

import os
import subprocess
import sys
from importlib import import_module
from inspect import getdoc
from pathlib import Path

import pytest
import typer

from recto.cli.main import COMMANDS, CommandEntry, command_in
from tests.cli.in_process import recto
from tests.layers import ROOT

LOADED_MODULES = """
import sys
sys.argv = ["recto", {words}]
from recto.__main__ import main
try:
    main()
finally:
    print(*sys.modules)
"""


@pytest.mark.parametrize("row", COMMANDS, ids=lambda one: one.name)
def test_C1_the_line_of_a_command_is_how_its_own_help_begins(row: CommandEntry):
    command = getattr(import_module(row.module), row.name)
    own = command.info.help if isinstance(command, typer.Typer) else getdoc(command)
    assert str(own).replace("\n", " ").startswith(row.help)
    assert not isinstance(command, typer.Typer) or command.info.name == row.name


def loaded_by(*words: str) -> set[str]:
    """The modules that a command line loads."""
    script = LOADED_MODULES.format(words=", ".join(map(repr, words)))
    output_lines = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert output_lines.returncode == 0, output_lines.stderr
    return set(output_lines.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("words", ["--help", "--version"])
def test_C1_the_list_and_the_version_load_no_command(words: str):
    modules = loaded_by(words)
    assert "typer" in modules
    assert modules.isdisjoint({"pydantic", "asyncio", "aiohttp", "sqlalchemy", "rich.console"})
    assert modules.isdisjoint({row.module for row in COMMANDS})


@pytest.mark.full
@pytest.mark.parametrize("words", [("agents", "explain", "chat"), ("user", "--help")], ids=" ".join)
def test_C1_a_command_loads_neither_a_server_nor_a_database_it_does_not_use(words: tuple[str, ...]):
    modules = loaded_by(*words)
    assert modules.isdisjoint({"sqlalchemy", "aiohttp", "uvicorn", "starlette", "rich.console", "recto.app.run_server"})


@pytest.mark.full
def test_C1_a_check_of_settings_loads_neither_a_server_nor_a_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    modules = loaded_by("serve", "--check")
    assert "recto.app.check_server" in modules
    assert modules.isdisjoint({"sqlalchemy", "aiohttp", "uvicorn", "prometheus_client", "recto.app.run_server"})


@pytest.mark.parametrize(
    ("arguments", "command"), [([], ""), (["--help"], ""), (["fold", "serve"], "fold"), (["--version", "read"], "read")]
)
def test_C1_the_first_word_is_the_command(arguments: list[str], command: str):
    assert command_in(arguments) == command


@pytest.mark.full
@pytest.mark.parametrize("words", [("--help",), ("fold", "examples/session.json", "--json")], ids=" ".join)
def test_C1_a_reader_that_leaves_ends_a_command_quietly(words: tuple[str, ...]):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RECTO_", "PYTHONUNBUFFERED"))}
    with subprocess.Popen(
        [sys.executable, "-m", "recto", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=clean
    ) as command:
        assert command.stdout
        assert command.stderr
        # As `| head -0` does.
        command.stdout.close()
        assert command.stderr.read() == b""


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("agents check", ("[DIR]", "--strict Treat", "--offline", "--json Print", "0 no problems", "2 usage error")),
        ("agents explain", ("AGENT", "--skill NAME", "--scenario", "--user NAME", "--voice", "--agents DIR")),
        ("agents explain", ("--data", "--config", "--json", "2 usage error")),
        ("agents new", ("NAME", "--into", "2 usage error")),
        ("agents try", ("FOLDER", "MESSAGE", "--model", "--skill", "--agree", "2 usage error")),
        ("backup", ("DIR", "--data", "--config", "2 usage error")),
        ("chat", ("[QUESTION]", "--agent NAME", "--resume", "--server URL", "--data", "--agents DIR", "--mode")),
        ("chat", ("--workspace", "--config", "--json", "recto-data", "2 usage error")),
        ("explain", ("RUN", "[CALL]", "--every", "--json", "--curl", "--har", "--user", "--data", "--config")),
        ("fold", ("--json", "--all", "--root", "--now", "--keep", "--read-tool", "--search", "--config", "--verbose")),
        ("gateway", ("--host", "--port", "--data", "--model", "--gateway-keys", "--gateway-fold", "--config")),
        ("keys rotate", ("--data", "--config")),
        ("read", ("--json", "--pages", "--offset", "--limit", "--ocr", "--seconds", "--name", "Exit codes")),
        ("replay", ("--prices", "--policy", "--model", "--window", "--clear-over", "--cut", "--plot", "Exit codes")),
        ("serve", ("--host", "--port", "--data", "--agents", "--workspace", "--config", "127.0.0.1", "2 usage error")),
        ("user delete", ("NAME", "--yes", "--data", "--config", "forever", "2 usage error")),
        ("user export", ("NAME", "--data", "--config", "2 usage error")),
        ("user tier", ("1 to 32 of a-z, 0-9, `_` and `-`. The default tier is `free`.",)),
        ("storage adopt", ("Assign the file storage to this data folder",)),
    ],
)
def test_C1_help_names_every_option(command: str, options: tuple[str, ...]):
    done = recto(ROOT, *command.split(), "--help")
    output = " ".join(done.out.split())
    assert (done.code, [option for option in options if option not in output], "](" in output) == (0, [], False)
