"""A Node program that does what it is told, a line of JSON at a time: the hands of the tests of real clients."""

import itertools
import queue
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from recto.conversation.json import Json, dump, load_object
from tests.layers import ROOT

FOLDER = Path(__file__).parent
# Decides which Node.js it is.
NODE = ("sh", str(ROOT / "scripts" / "node.sh"), "node")
MISSING = "The clients are not installed. Run: make {}"
SECONDS = 30.0


class Failed(AssertionError):
    """A command that did not work: what the program said about it."""


class NodeProcess:
    """A Node program. Commands may overlap: `begin` returns a number for `wait`."""

    def __init__(self, script: str) -> None:
        self._script = script
        self._numbers = itertools.count(1)
        self._answers: dict[int, queue.Queue[dict[str, Json]]] = {}
        self._said: list[str] = []

    def __enter__(self) -> Self:
        marker = (FOLDER / self._script).parent / "node_modules" / ".made"
        assert marker.exists(), MISSING.format(marker.relative_to(ROOT))
        self._process = subprocess.Popen(
            [*NODE, self._script], cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._readers = [threading.Thread(target=work, daemon=True) for work in (self._read, self._listen)]
        for reader in self._readers:
            reader.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            for reader in self._readers:
                reader.join()

    def ask(self, command: str, **rest: Json) -> dict[str, Json]:
        return self.wait(self.begin(command, **rest))

    def begin(self, command: str, **rest: Json) -> int:
        number = next(self._numbers)
        self._answers[number] = queue.Queue()
        assert self._process.stdin is not None
        self._process.stdin.write(dump({"id": number, "command": command, **rest}) + b"\n")
        self._process.stdin.flush()
        return number

    def wait(self, number: int, seconds: float = SECONDS) -> dict[str, Json]:
        """Return the result of a command, without fields if it has none."""
        try:
            answer = self._answers[number].get(timeout=seconds)
        except queue.Empty:
            raise Failed(f"{self._script} did not answer in {seconds} seconds. It said: {self._said}") from None
        if "error" in answer:
            raise Failed(f"{answer['error']}\n{''.join(self._said[-20:])}")
        return cast("dict[str, Json]", answer.get("answer") or {})

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = dict(load_object(line) or {})
            self._answers[cast("int", answer["id"])].put(answer)
        for waiting in list(self._answers.values()):
            waiting.put({"error": f"{self._script} has ended"})

    def _listen(self) -> None:
        assert self._process.stderr is not None
        self._said.extend(line.decode(errors="replace") for line in self._process.stderr)
