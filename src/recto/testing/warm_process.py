"""Processes forked from one that has imported the server. They start in a fifth of the time."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

# Modules that are slow to import. The module of the command itself runs as a script.
PRELOAD = (
    "filelock",
    "recto.app.run_server",
    "recto.cli.main",
    "recto.cli.serve",
    "recto.cli.server_settings",
    "recto.models.demo.demo_model",
    "recto.store.store",
    "uvicorn.loops.uvloop",
)


def can_fork(environment: Mapping[str, str]) -> bool:
    """Return True if a forked process would behave like a new interpreter under this environment."""
    main = sys.modules["__main__"]
    # The fork server imports a script that is the main module once more, which would run it twice.
    if main.__spec__ is None and hasattr(main, "__file__"):
        return False
    return sys.platform == "linux" and _interpreter_settings(environment) == _interpreter_settings(os.environ)


def _interpreter_settings(environment: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in environment.items() if name.startswith("PYTHON")}


class WarmProcess:
    """`python -m MODULE ARGUMENT ...` in a forked process, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], output: Path) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(PRELOAD))
        self._process: ForkServerProcess = context.Process(
            target=run_module, args=(list(command), dict(environment), str(output)), daemon=True
        )
        self._process.start()
        # It is set once the process has started.
        self.pid: int = self._process.pid or 0

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process and return its exit code."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("recto", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


def run_module(command: Sequence[str], environment: Mapping[str, str], output: str) -> None:
    """Run a module as `python -m` does, with its output in a file."""
    file = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = list(command)
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)
