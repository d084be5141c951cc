"""Servers as processes of their own on 127.0.0.1: started fresh, ended by their id. Never by a name."""

from __future__ import annotations

import http.client
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from peer import HERE, environment_of
from traffic import TOKEN

TOKENS = 50
TEXT = "word " * TOKENS
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")
# How often a server is looked at while it starts, and how long it may take, in seconds.
LOOK, PATIENCE = 0.005, 60.0


class Process:
    """A server that runs. `port` is where; what it says goes to a file, shown when it does not start."""

    def __init__(self, command: Sequence[str], folder: Path, settings: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._output = folder / "said.txt"
        self.ready = 0.0
        self.start_time = time.perf_counter()
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command, cwd=folder, env=_environ() | dict(settings or {}), stdout=output, stderr=subprocess.STDOUT
            )
        try:
            self.port = self._find_port()
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def stop(self, sign: signal.Signals = signal.SIGTERM) -> None:
        """End it, by force when it does not."""
        self._process.send_signal(sign)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def cpu(self) -> float:
        """The seconds of processor time it has taken so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> tuple[float, float]:
        """Resident megabytes: now, and the most there were."""
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        fields = {name: value for name, _, value in (line.partition(":") for line in lines)}
        return int(fields["VmRSS"].split()[0]) / 1024, int(fields["VmHWM"].split()[0]) / 1024

    def wait_until_answers(self, path: str) -> None:
        """Wait until a GET answers 200; `ready` is the seconds from the start of the process until then."""
        while time.perf_counter() - self.start_time < PATIENCE:
            if _status(self.port, path) == 200:
                self.ready = time.perf_counter() - self.start_time
                return
            time.sleep(LOOK)
        raise SystemExit(f"{path} did not answer 200 in {PATIENCE:.0f} s. The server said: {self._words()}")

    def _find_port(self) -> int:
        while time.perf_counter() - self.start_time < PATIENCE and self._process.poll() is None:
            if match := ADDRESS.search(self._words()):
                return int(match[1])
            time.sleep(LOOK)
        raise SystemExit(f"A server did not start.\n{self._words()}")

    def _words(self) -> str:
        return self._output.read_text(encoding="utf-8", errors="replace")


def _environ() -> dict[str, str]:
    """Ours, without what would send a request to a proxy or set what this bench sets."""
    prefixes = ("RECTO_", "OPENAI_", "AGNO_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(prefixes)}


def _status(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def kept_bytecode(folder: Path) -> dict[str, str]:
    """What has Python keep bytecode in a folder, as an installed package has it, whatever it is told elsewhere."""
    return {"PYTHONPYCACHEPREFIX": str(folder), "PYTHONDONTWRITEBYTECODE": ""}


def cpu_of_command(arguments: Sequence[str], folder: Path) -> float:
    """The seconds of processor time that a command of Recto takes, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "recto", *arguments]
    subprocess.run(command, env=_environ() | kept_bytecode(folder), stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def scratch(where: Path | None) -> tempfile.TemporaryDirectory[str]:
    """A folder for this run, gone at its end."""
    return tempfile.TemporaryDirectory(prefix="recto-bench-", dir=where, ignore_cleanup_errors=True)


def start_model(folder: Path, delay: float) -> Process:
    """The model everybody asks: the same words each time."""
    options = ("--tokens", str(TOKENS), "--delay", str(delay))
    return Process([sys.executable, "-m", "recto.testing.model_server", *options], folder)


def start_stamped(folder: Path, rate: float) -> Process:
    """A model whose every word is the time it was sent."""
    return Process([sys.executable, str(HERE / "stamped_model.py"), str(rate)], folder)


def start_recto(
    folder: Path, model: int, settings: Mapping[str, str] | None = None, script: str = "", what: str = "serve"
) -> Process:
    """Recto with a new data folder; `script` starts it in place of its own command."""
    begin = (str(HERE / script),) if script else ("-m", "recto")
    command = [sys.executable, *begin, what, "--port", "0", "--data", str(folder / "data")]
    environment = {"RECTO_MODEL": "compatible:fake", "RECTO_MODEL_URL": _base(model), "RECTO_MODEL_KEY": "none"}
    # All load comes from one user: limits that are counted, and never reached.
    environment |= {"RECTO_TOKEN": TOKEN, "RECTO_USER_REQUESTS": "100000000", "RECTO_USER_RUNS": "1000000"}
    environment |= {"RECTO_STREAMS": "0", "RECTO_USER_STREAMS": "0", "RECTO_USER_SLOTS": "1000000"}
    process = Process(command, folder, environment | dict(settings or {}))
    try:
        process.wait_until_answers("/readyz")
    except BaseException:
        process.stop()
        raise
    return process


def start_peer(name: str, folder: Path, model: int) -> Process:
    """A peer's server, in its own environment. PeerMissing when that cannot be made."""
    return Process([str(environment_of(name)), str(HERE / "peers" / f"{name}_server.py"), _base(model)], folder)


def _base(model: int) -> str:
    return f"http://127.0.0.1:{model}/v1"
