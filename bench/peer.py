"""A peer in an environment of its own, run beside ours. Never imported into ours."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conversation import Row

HERE = Path(__file__).parent
MARK = "made-from"
# What a package index that cannot be reached looks like in the installer's words.
UNREACHED = ("NewConnectionError", "ConnectTimeout", "Name or service", "Max retries", "No matching distribution")


class PeerMissing(Exception):
    """The peer cannot be run here. The text says why, in one line."""


@dataclass(frozen=True, kw_only=True)
class PeerRun:
    """One run of the peer: its time, the tokens it counted, the results it cleared."""

    seconds: float
    tokens: int
    cleared: int


class Peer:
    """A running peer: it waits until it is asked for a run."""

    def __init__(self, command: Sequence[str], task: dict[str, object]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        self._write(json.dumps(task))

    def run(self, kind: str) -> PeerRun:
        """One run, of a kind the peer knows."""
        self._write(kind)
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise PeerMissing(f"The peer ended with code {self._process.wait()}.")
        return PeerRun(**json.loads(line))

    def stop(self) -> None:
        """Let it end."""
        self._process.communicate()

    def _write(self, line: str) -> None:
        if self._process.stdin:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()


def start_langchain(rows: Sequence[Row], *, keep: int) -> Peer:
    """LangChain's ClearToolUsesEdit, which keeps the newest `keep` tool results."""
    python = environment_of("langchain")
    return Peer([str(python), str(HERE / "peers" / "langchain_edit.py")], {"messages": rows, "keep": keep})


def environment_of(name: str) -> Path:
    """Return the Python of the peer's environment, made at first use and again when its lock file changes."""
    folder, lock = HERE / ".envs" / name, HERE / "peers" / f"{name}.lock"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    digest, mark = hashlib.sha256(lock.read_bytes()).hexdigest(), folder / MARK
    if mark.exists() and mark.read_text(encoding="utf-8") == digest:
        return python
    print(f"Installing {name} into an environment of its own (once) ...", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    _quietly(name, sys.executable, "-m", "venv", "--without-pip", str(folder))
    locked = ("--require-hashes", "-r", str(lock))
    uv = [sys.executable, "-m", "uv", "pip", "install", "--system-certs", "--python", str(python), *locked]
    # uv takes seconds. It does not read pip's configuration, so pip tries where uv finds no registry.
    if subprocess.run(uv, capture_output=True, check=False).returncode != 0:
        pip = (sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--no-input")
        _quietly(name, *pip, "install", "--retries", "1", *locked)
    mark.write_text(digest, encoding="utf-8")
    return python


def _quietly(name: str, *command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    output = (done.stderr + done.stdout).strip()
    if any(sign in output for sign in UNREACHED):
        raise PeerMissing(f"{name} cannot be installed: the package index cannot be reached.")
    raise PeerMissing(f"{name} cannot be installed: {output.splitlines()[-1] if output else 'no reason given'}")
