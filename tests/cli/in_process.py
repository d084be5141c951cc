"""Commands run in the test's own process: a new one takes a second to begin. One test of each command starts one."""

import logging
import os
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple

from typer.testing import CliRunner

from recto.app.check_server import check
from recto.app.file_services import try_tools
from recto.app.run_server import serve
from recto.cli.main import make_app
from recto.cli.server_entry import ServerEntry
from recto.config.settings import ServerSettings

FAILED, WRONG_USE = 1, 2
# What the surroundings of the tests would tell a command.
FOREIGN = ("RECTO_", "OPENAI_", "ANTHROPIC_", "GEMINI_")


class Done(NamedTuple):
    """What a command left: its exit code, and what it printed."""

    code: int
    out: str
    err: str


def no_gateway(_settings: ServerSettings, _announce: object) -> None:
    raise NotImplementedError


def recto(folder: Path, *words: str, stdin: str | bytes = "", **environment: str) -> Done:
    """Run a command in a folder; what it does to the process is undone."""
    clean = {name: None for name in os.environ if name.startswith(FOREIGN)}
    entry = ServerEntry(serve=serve, relay=no_gateway, check=check, try_tools=try_tools)
    roots = logging.getLogger(), logging.getLogger("recto")
    before, mask = [(logger.handlers, logger.level) for logger in roots], os.umask(0o022)
    logging.getLogger().handlers = []
    try:
        with chdir(folder):
            done = CliRunner().invoke(
                make_app(words[0]),
                words,
                input=stdin,
                env={**clean, "COLUMNS": "120", "NO_COLOR": "1", **environment},
                prog_name="recto",
                obj=entry,
            )
    finally:
        os.umask(mask)
        for logger, (handlers, level) in zip(roots, before, strict=True):
            logger.handlers = handlers
            logger.setLevel(level)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Done(done.exit_code, done.stdout, done.stderr)


def recto_process(folder: Path, *words: str, stdin: bytes = b"", **environment: str) -> Done:
    """Run a command as people do, in a process of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    done = subprocess.run(
        [sys.executable, "-m", "recto", *words],
        cwd=folder,
        env={**clean, "COLUMNS": "120", **environment},
        input=stdin,
        umask=0o022,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
