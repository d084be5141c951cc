"""How long `recto chat` takes to its prompt, and whether its memory stays flat. A missed goal is told, not raised.

`python bench/chat.py` starts a server and opens terminals on it, in turns with `recto --version`; then one of them has
long answers streamed to it, as lines of code and as paragraphs.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import statistics
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Self, cast

from goal import Goal
from processes import kept_bytecode, scratch, start_recto
from traffic import TOKEN

from recto.conversation.json import Json
from recto.testing.model_server import Answer, ModelServer, Request

PROMPT_SECONDS, FLAT = 0.7, 1.1
ROUNDS, LINES = 7, (1_000, 10_000)
COLUMNS, ROWS = 80, 24
PATIENCE = 300.0
# What the terminal shows when one can type, when the server has answered, and behind a long answer.
PROMPT, GREETED, ALL = "›".encode(), b"/help", "That was all of {count}."
LINE_COUNT = re.compile(r"(\d+) lines")


class Options(argparse.Namespace):
    """What the command line says."""

    quick: bool
    json: Path | None


class OpenTerminal:
    """A command in a pseudo terminal, and how long it took. What it writes is read and thrown away."""

    def __init__(self, arguments: Sequence[str], settings: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("RECTO_", "LC_", "LANG"))}
        environment = {"TERM": "xterm-256color", "LANG": "C.UTF-8", **settings}
        command = [sys.executable, "-m", "recto", *arguments]
        self._start_time = time.perf_counter()
        self._process = subprocess.Popen(
            command, env=clean | environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def until(self, marks: Sequence[bytes]) -> list[float]:
        """The seconds from the start until each mark was written, in this order."""
        delays, rest = list[float](), b""
        while len(delays) < len(marks):
            before, is_there, behind = rest.partition(marks[len(delays)])
            if is_there:
                delays.append(time.perf_counter() - self._start_time)
                rest = behind
                continue
            # A mark may come in two pieces.
            rest = before[-len(marks[len(delays)]) :] + self._read()
        return delays

    def to_end(self) -> float:
        """The seconds from its start to its end."""
        self._process.wait(PATIENCE)
        return time.perf_counter() - self._start_time

    def say(self, text: str) -> None:
        """Type words, and press Enter."""
        os.write(self._master, text.encode() + b"\r")

    def memory(self) -> float:
        """Resident megabytes."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024

    def _read(self) -> bytes:
        try:
            return os.read(self._master, 65_536)
        except OSError as error:
            raise SystemExit(f"recto chat ended with {self._process.wait()} before it came to that.") from error


def main() -> int:
    """Measure, print the figures, and write them down where told to."""
    options = _options()
    rounds, lines = (1, (100, 1_000)) if options.quick else (ROUNDS, LINES)
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}.", flush=True)
    with scratch(None) as scratch_folder, ModelServer(_answer, keep=False) as model:
        folder = Path(scratch_folder)
        server = start_recto(folder, int(model.root.rpartition(":")[2]))
        try:
            settings = {"RECTO_TOKEN": TOKEN, "HOME": str(folder), **kept_bytecode(folder / "bytecode")}
            chat = ["chat", "--server", f"http://127.0.0.1:{server.port}"]
            goals = [*_starts(chat, settings, rounds), *_memory(chat, settings, lines)]
        finally:
            server.stop()
    for goal in goals:
        print(goal)
    if options.json:
        options.json.write_text(json.dumps([asdict(goal) for goal in goals]), encoding="utf-8")
    return 0


def _options() -> Options:
    parser = argparse.ArgumentParser(description="Measure the terminal: to the prompt, and its memory.")
    parser.add_argument("--quick", action="store_true", help="one start, and a tenth of the lines")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures down, too")
    return parser.parse_args(namespace=Options())


def _starts(chat: Sequence[str], settings: Mapping[str, str], rounds: int) -> list[Goal]:
    """Seconds until one can type, and until the server has answered, beyond those of a command that does nothing."""
    samples = list[tuple[float, float, float]]()
    # The first compiles all modules, as an installation does, and is not counted.
    for _ in range(rounds + 1):
        with OpenTerminal(["--version"], settings) as version:
            nothing = version.to_end()
        with OpenTerminal(chat, settings) as terminal:
            prompt, greeted = terminal.until((PROMPT, GREETED))
        samples.append((nothing, prompt - nothing, greeted - nothing))
    nothing, prompt, greeted = (statistics.median(column) for column in zip(*samples[1:], strict=True))
    return [
        Goal(name="recto chat, to the prompt, beyond --version", value=prompt, unit="s", most=PROMPT_SECONDS),
        Goal(name="recto chat, greeted, beyond --version", value=greeted, unit="s"),
        Goal(name="recto --version", value=nothing, unit="s"),
    ]


def _memory(chat: Sequence[str], settings: Mapping[str, str], lines: tuple[int, int]) -> list[Goal]:
    """Megabytes after an answer of some lines, and what ten times as many make of them."""
    with OpenTerminal(chat, settings) as terminal:
        terminal.until((PROMPT, GREETED))
        memory = [_streamed(terminal, count) for count in lines]
    few, many = lines
    return [
        Goal(name=f"memory, {many:,} lines beside {few:,}", value=memory[1] / memory[0], unit="x", most=FLAT),
        Goal(name=f"memory, {few:,} lines", value=memory[0], unit="MB"),
    ]


def _streamed(terminal: OpenTerminal, count: int) -> float:
    terminal.say(f"{count} lines")
    terminal.until((ALL.format(count=count).encode(),))
    return terminal.memory()


def _answer(request: Request) -> Answer:
    """As many lines as were asked for last, half of them in one block of code."""
    texts = [str(one.get("content")) for one in cast("Sequence[Mapping[str, Json]]", request.page["messages"])]
    numbers = LINE_COUNT.findall(texts[-1])
    if not numbers:
        return Answer(text="Lines")
    count = int(numbers[-1])
    code = "\n".join(f"line {number} of a long answer" for number in range(count // 2))
    words = "\n\n".join(f"Line {number} of a long answer." for number in range(count // 2, count))
    return Answer(text=f"```text\n{code}\n```\n\n{words}\n\n{ALL.format(count=count)}\n")


if __name__ == "__main__":
    sys.exit(main())
