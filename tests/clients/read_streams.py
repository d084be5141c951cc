"""Hooks of pytest: every whole event stream of a session is read by stock clients when it is over, in both dialects.

Workers keep what their tests read in one folder; whoever started them has it read.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from recto.conversation.json import load_object
from tests.clients.node import FOLDER, NODE
from tests.support.stream_recorder import NEWEST, OLDER, STREAMS_FOLDER

SECONDS = 300.0
PROBLEM_CHARACTERS = 2_000
problems = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[problems] = []
    if not is_worker(config):
        os.environ[STREAMS_FOLDER] = tempfile.mkdtemp(prefix="recto-streams-")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if is_worker(session.config):
        return
    folder = Path(os.environ.pop(STREAMS_FOLDER))
    try:
        problems_found = session.config.stash[problems] = list_rejected(folder)
    finally:
        shutil.rmtree(folder)
    if problems_found and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for problem in config.stash[problems]:
        terminalreporter.write_line(f"A stream that a stock client does not take: {problem}", red=True)


def is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def list_rejected(folder: Path) -> list[str]:
    """Return what stock clients report about streams that they reject."""
    if not all((folder / version).is_dir() for version in (NEWEST, OLDER)):
        return []
    if not (FOLDER / "stock" / "node_modules").exists():
        return ["The stock clients are not installed. Run: make tests/clients/stock/node_modules/.made"]
    done = subprocess.run(
        [*NODE, "stock/verify.mjs", str(folder)],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        return [done.stderr[:PROBLEM_CHARACTERS]]
    results = [load_object(line) or {} for line in done.stdout.splitlines()]
    return [
        f"{one['version']}: {one['failed'] or one['warned']}\n{str(one['body'])[:PROBLEM_CHARACTERS]}"
        for one in results
    ]
