"""A server in its own process, which a test can start, stop, kill and pause."""

from __future__ import annotations

import multiprocessing
import os
import re
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Self

# Slow imports, done once for all processes. The command's own module is not among them, because it runs as a script.
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
    # The fork server imports the main module again, which would run a script twice.
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
        # The process has started, so `pid` is not None.
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


LISTENING = re.compile(r"listening on (http://[^\s#]+)")
START_SECONDS = 60.0
# The local token of every server that ServerProcess starts.
TOKEN = "the-token-of-our-test-servers"  # noqa: S105 - opens only servers of tests


def free_port() -> int:
    """Return a free port. Use it soon: another process may take it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class NotStarted(RuntimeError):
    """A server exited or timed out before it listened; `code` is its exit code, if any."""

    def __init__(self, code: int | None, output: str) -> None:
        super().__init__(f"The server did not start (it ended with {code}): {output}")
        self.code = code


class ServerProcess:
    """`recto serve`, or another module that prints the same first line, on its own port.

    With `token=None`, the server generates its own token instead of using that of our test client.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], *, token: str | None = TOKEN) -> None:
        self._command = list(command)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("RECTO_")}
        own = {} if token is None else {"RECTO_TOKEN": token}
        self._environment = {**clean, **own, **environment}
        self._process: subprocess.Popen[bytes] | WarmProcess | None = None
        self._output = tempfile.NamedTemporaryFile(prefix="recto-server-")  # noqa: SIM115 - closed when the process is
        self.url = ""

    @classmethod
    def serve(cls, data: Path, environment: Mapping[str, str], *flags: str, token: str | None = TOKEN) -> Self:
        """Return a `recto serve` process on a data folder."""
        return cls(["recto", "serve", "--port", "0", "--data", str(data), *flags], environment, token=token)

    def __enter__(self) -> Self:
        if can_fork(self._environment):
            self._process = WarmProcess(self._command, self._environment, Path(self._output.name))
        else:
            command = [sys.executable, "-m", *self._command]
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                command, stdout=self._output, stderr=subprocess.STDOUT, env=self._environment
            )
        until = time.monotonic() + START_SECONDS
        code = None
        while code is None and time.monotonic() < until:
            # Read the exit code before the output, so that the output is complete.
            code = self._process.poll()
            match = LISTENING.search(self.output)
            if match:
                self.url = match[1]
                return self
            time.sleep(0.01)
        self.kill()
        output = self.output
        self._output.close()
        raise NotStarted(code, output)

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._output.close()

    @property
    def output(self) -> str:
        """The complete output so far."""
        return os.pread(self._output.fileno(), 1_000_000, 0).decode(errors="replace")

    @property
    def pid(self) -> int:
        """The process id."""
        return self._running.pid

    @property
    def _running(self) -> subprocess.Popen[bytes] | WarmProcess:
        if self._process is None:
            raise RuntimeError("The server was not started: use it in a with statement.")
        return self._process

    def wait(self, seconds: float = START_SECONDS) -> int:
        """Wait for the end and return the exit code, or the negative number of the signal that ended the process."""
        return self._running.wait(seconds)

    def kill(self) -> None:
        """Kill the process."""
        if self._running.poll() is None:
            self.send(signal.SIGKILL)
            # SIGKILL also ends a paused process.
            self.wait()

    def stop(self, seconds: float = START_SECONDS) -> int:
        """Ask the process to stop, and wait."""
        self.send(signal.SIGTERM)
        return self.wait(seconds)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        self._running.send_signal(number)
