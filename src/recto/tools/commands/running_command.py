"""One running command. It blocks its own thread, because bubblewrap ends with the thread that started it."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import IO

from recto.config.run_settings import CommandSettings
from recto.errors import ToolError
from recto.tools.commands.confinement import Start
from recto.tools.commands.output import Output, StreamName
from recto.tools.workspace.visible_files import open_inner
from recto.tools.workspace.workspace_files import bytes_in
from recto.tools.workspace.workspaces import Workspace

_PROCESSES = Path("/proc")
_RESIDENT = 1
_SHARE = re.compile(rb"^Pss:\s+(\d+) kB", re.MULTILINE)
PIECE_BYTES = 65_536
# Seconds between checks of the limits.
TICK_SECONDS = 0.1
# Seconds between measurements of a workspace that has a size limit.
DISK_SECONDS = 2.0
COUNTING = "workspace"
# Seconds to read the last output after the end. Without a sandbox, a surviving process may keep the pipe open.
DRAIN_SECONDS = 0.5
# Processes of a ready sandbox. If they do not appear within SETUP_SECONDS, the command starts anyway.
SANDBOX = ("bubblewrap", "the first process", "the shell")
SETUP_SECONDS, SETUP_TICK_SECONDS = 1.0, 0.002
KILLED = 128 + signal.SIGKILL
ENDING = "It was ended: "
TIMED_OUT = (
    ENDING + "it took longer than {seconds:g} seconds. Ask for less, give it more time, or run it in background."
)
JOB_TIMED_OUT = ENDING + "it took longer than {seconds:g} seconds. Ask for less, or give it more time."
PRINTED_TOO_MUCH = ENDING + "it printed more than {most:,} bytes. Have it print less, or write to a file."
TOO_MANY_PROCESSES = ENDING + "it had more than {most:,} processes."
TOO_MUCH_MEMORY = ENDING + "it had more than {most:,} bytes in memory."
TOO_MUCH_WRITTEN = ENDING + "the workspace holds more than {most:,} bytes. Delete what is not needed."


def family(pid: int, most: int) -> Sequence[int]:
    """Return a process and its descendants, at most one more than `most`."""
    pids, place = [pid], 0
    while place < len(pids) <= most:
        below = list[int]()
        # An ended process has no children: they ended too or moved to another parent.
        with suppress(OSError):
            for thread in (_PROCESSES / str(pids[place]) / "task").iterdir():
                below += map(int, (thread / "children").read_bytes().split())
        pids += below
        place += 1
    return pids


def _resident(pid: int) -> int:
    with suppress(OSError):
        return int((_PROCESSES / str(pid) / "statm").read_bytes().split()[_RESIDENT]) * os.sysconf("SC_PAGESIZE")
    return 0


def _share(pid: int) -> int:
    with suppress(OSError):
        if match := _SHARE.search((_PROCESSES / str(pid) / "smaps_rollup").read_bytes()):
            return int(match[1]) * 1_024
    return _resident(pid)


@dataclass(frozen=True, kw_only=True)
class Ending:
    """The exit code of a command, and the reason if the command was stopped."""

    code: int
    why: str = ""


class Command:
    """A running command. Its thread calls `report` whenever there may be new output; a job has no `report`."""

    def __init__(
        self,
        settings: CommandSettings,
        workspace: Workspace,
        output: Output,
        seconds: float,
        report: Callable[[], None] | None,
    ) -> None:
        self.output = output
        self._settings = settings
        self._workspace = workspace
        self._seconds = seconds
        self._report = report
        self._process: subprocess.Popen[bytes] | None = None
        self._is_confined = False
        self._why = ""
        self._lock = Lock()
        # Measure the workspace on its own thread, because that is slow and the other limits apply meanwhile.
        self._counting = Thread(name=COUNTING)

    def run(self, starting: AbstractContextManager[Start]) -> Ending:
        """Start the command and follow it to its end. Raises ToolError if it cannot be started."""
        process = self._start(starting)
        try:
            self._release(process)
            with selectors.DefaultSelector() as selector:
                for name, pipe in _pipes(process).items():
                    os.set_blocking(pipe.fileno(), False)
                    selector.register(pipe, selectors.EVENT_READ, name)
                self._follow(process, selector)
        finally:
            self.end()
            process.wait()
            for pipe in _pipes(process).values():
                pipe.close()
            self.output.finish()
        code = process.returncode
        return Ending(code=KILLED if self._why else 128 - code if code < 0 else code, why=self._why)

    def end(self, why: str = "") -> None:
        """End the command and all its processes at once. Callable from any thread; no effect after the end."""
        with self._lock:
            self._why = self._why or why
            process = self._process
            if process is None or process.returncode is not None:
                return
            # The processes of a sandbox end with its first process. Without a sandbox, some may have left the process
            # group.
            others = family(process.pid, self._settings.processes)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            for other in others:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(other, signal.SIGKILL)

    def _start(self, starting: AbstractContextManager[Start]) -> subprocess.Popen[bytes]:
        with starting as start, self._lock:
            if self._why:
                raise ToolError(self._why)
            self._is_confined = bool(start.descriptors)
            try:
                self._process = subprocess.Popen(  # noqa: S603 - as said
                    start.words,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=start.folder,
                    env=dict(start.environment),
                    pass_fds=start.descriptors,
                    start_new_session=True,
                )
            except OSError as error:
                raise ToolError(f"The command cannot be started: {error.strerror}.") from error
            return self._process

    def _release(self, process: subprocess.Popen[bytes]) -> None:
        """Start the command once its sandbox is ready. Earlier, the command would survive the death of this process."""
        until = time.monotonic() + SETUP_SECONDS
        while self._is_confined and time.monotonic() < until and not self._has_ended(process):
            if len(family(process.pid, len(SANDBOX))) == len(SANDBOX):
                break
            time.sleep(SETUP_TICK_SECONDS)
        # The write fails if the process has ended.
        if process.stdin:
            with suppress(BrokenPipeError), process.stdin:
                process.stdin.write(b"\n")

    def _follow(self, process: subprocess.Popen[bytes], selector: selectors.BaseSelector) -> None:
        began = looked = measured_at = time.monotonic()
        over: float | None = None
        while over is None or (selector.get_map() and time.monotonic() < over):
            # An empty selector sleeps for the full timeout. Shorten it, because a command without streams ends soon.
            for key, _ in selector.select(TICK_SECONDS if selector.get_map() else TICK_SECONDS / 5):
                with suppress(BlockingIOError):
                    data = os.read(key.fd, PIECE_BYTES)
                    if data:
                        name: StreamName = "stdout" if key.data == "stdout" else "stderr"
                        self.output.add(name, data)
                    else:
                        selector.unregister(key.fileobj)
            now = time.monotonic()
            if self.output.bytes > self._settings.output_bytes:
                self.end(PRINTED_TOO_MUCH.format(most=self._settings.output_bytes))
            if now - looked < TICK_SECONDS and selector.get_map():
                continue
            looked = now
            if self._report:
                self._report()
            if over is None and self._has_ended(process):
                over = now + DRAIN_SECONDS
            elif over is None:
                self._check(process.pid, now - began)
            if self._workspace.most_bytes and now - measured_at > DISK_SECONDS and not self._counting.is_alive():
                measured_at = now
                self._counting = Thread(target=self._check_disk, name=COUNTING, daemon=True)
                self._counting.start()

    def _has_ended(self, process: subprocess.Popen[bytes]) -> bool:
        # Poll under the lock, because after this call the process id may belong to another process.
        with self._lock:
            return process.poll() is not None

    def _check(self, pid: int, seconds: float) -> None:
        settings = self._settings
        if seconds > self._seconds:
            self.end((TIMED_OUT if self._report else JOB_TIMED_OUT).format(seconds=self._seconds))
            return
        # Two of the processes are bubblewrap's.
        pids = family(pid, settings.processes + 2)
        if len(pids) > settings.processes + 2:
            self.end(TOO_MANY_PROCESSES.format(most=settings.processes))
        # If the plain sum is too large, count shared memory only once.
        elif all(sum(map(count, pids)) > settings.memory_bytes for count in (_resident, _share)):
            self.end(TOO_MUCH_MEMORY.format(most=settings.memory_bytes))

    def _check_disk(self) -> None:
        most, size = self._workspace.most_bytes, 0
        with suppress(OSError), open_inner(str(self._workspace.folder)) as top:
            size = bytes_in(top)
        if size > most:
            self.end(TOO_MUCH_WRITTEN.format(most=most))


def _pipes(process: subprocess.Popen[bytes]) -> Mapping[StreamName, IO[bytes]]:
    return {"stdout": process.stdout, "stderr": process.stderr} if process.stdout and process.stderr else {}
