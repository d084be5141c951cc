"""Commands and background jobs of a server. Jobs belong to a thread and end with this process."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from recto.config.run_settings import CommandSettings
from recto.errors import ToolError
from recto.tools.commands.confinement import Confinement
from recto.tools.commands.output import Output
from recto.tools.commands.placeholders import Placeholders
from recto.tools.commands.running_command import Command, Ending
from recto.tools.commands.whole_output import WholeOutput, new_output
from recto.tools.daemon_thread import run_in_thread
from recto.tools.workspace.workspaces import Workspace, refresh_guarded

LOGGER = logging.getLogger("recto.tools")
JOB = "job-"
# Characters of a job's head and tail in memory. Its file contains everything.
JOB_CHARACTERS = 2_000
# The number of ended jobs to remember.
JOBS_KNOWN = 200
STOP_SECONDS = 2.0
# Seconds to wait for an early end, so that the answer reports a job that fails at once.
AT_ONCE_SECONDS = 0.3
BY_USER, BY_SERVER, BY_THREAD = "It was ended as asked.", "It ended with the server.", "Its thread was deleted."
CANCELLED = "It was ended with its run."
BY_MISTAKE = "It was ended because something went wrong in the server."
TOO_MANY_JOBS = "{counted} at work {where}, and no more may be. End one with terminal-jobs, or wait for one."


@dataclass(frozen=True, kw_only=True)
class Order:
    """A command to run: folder and workspace, thread, time limit, and the characters of output to keep at both ends."""

    command: str
    workspace: Workspace
    folder: str
    owner: str
    thread: str
    seconds: float
    characters: int


@dataclass(kw_only=True)
class Job:
    """A command in the background. `ending` is None while it runs."""

    id: str
    order: Order
    running: Command
    ending: Ending | None = None
    began: float = field(default_factory=time.monotonic)
    end_time: float = 0.0
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def output(self) -> Output:
        """The output so far."""
        return self.running.output

    @property
    def seconds(self) -> float:
        """The run time so far."""
        return (self.end_time or time.monotonic()) - self.began


class Terminal:
    """Runner of commands for one event loop. `notes` is the folder for notes on placeholders."""

    def __init__(self, settings: CommandSettings, confinement: Confinement, notes: Path | None = None) -> None:
        self.settings = settings
        self._confinement = confinement
        self._free = asyncio.Semaphore(settings.at_once)
        self._placeholders = Placeholders(notes)
        self._jobs: list[Job] = []

    async def run(self, order: Order, report: Callable[[Output], None]) -> tuple[Ending, Output]:
        """Run a command to its end; cancelling ends it. `report` receives the output so far."""
        async with self._free:
            loop, is_over = asyncio.get_running_loop(), False

            def make() -> WholeOutput:
                used_paths = self._paths_in_use(order.workspace.folder)
                return new_output(order.workspace, "", most=self.settings.outputs, used_paths=used_paths)

            def show() -> None:
                if not is_over:
                    report(output)

            def tell() -> None:
                # The loop may be closed.
                with suppress(RuntimeError):
                    loop.call_soon_threadsafe(show)

            output = Output(order.characters, make)
            command = Command(self.settings, order.workspace, output, order.seconds, tell)
            try:
                return await run_in_thread(partial(self._follow, order, command), name="command"), output
            finally:
                is_over = True
                command.end(CANCELLED)

    async def begin(self, order: Order) -> Job:
        """Start a job and wait briefly for an early end. Raises ToolError if there are too many."""
        old_jobs = [job for job in self._jobs if job.ending is not None][:-JOBS_KNOWN]
        self._jobs = [job for job in self._jobs if job not in old_jobs]
        at_work = [job for job in self._jobs if job.ending is None]
        own = [job for job in at_work if job in self.jobs(order.owner, order.thread)]
        limits = (own, self.settings.thread_jobs, "in this thread"), (at_work, self.settings.jobs, "on this server")
        for jobs, most, where in limits:
            if len(jobs) >= most:
                count = "1 job is" if len(jobs) == 1 else f"{len(jobs)} jobs are"
                raise ToolError(TOO_MANY_JOBS.format(counted=count, where=where))
        used_paths = self._paths_in_use(order.workspace.folder)
        # No other job can start before this one is added, because there is no await in between.
        file = new_output(order.workspace, JOB, most=self.settings.outputs, used_paths=used_paths)
        output = Output(JOB_CHARACTERS, lambda: file, file)
        command = Command(self.settings, order.workspace, output, order.seconds, None)
        job = Job(id=Path(file.path).stem, order=order, running=command)
        self._jobs.append(job)
        threading.Thread(target=self._work, args=(job,), name=job.id, daemon=True).start()
        await run_in_thread(partial(job.done.wait, AT_ONCE_SECONDS), name="job")
        return job

    def jobs(self, owner: str, thread: str) -> Sequence[Job]:
        """Return the jobs of a thread, oldest first."""
        return [job for job in self._jobs if (job.order.owner, job.order.thread) == (owner, thread)]

    def is_of_others(self, workspace: Path, id: str) -> bool:
        """Return True if any thread has a job of this name in the workspace."""
        return any((job.order.workspace.folder, job.id) == (workspace, id) for job in self._jobs)

    def is_at_work_in(self, workspace: Path) -> bool:
        """Return True if any job runs in the workspace."""
        return bool(self._paths_in_use(workspace))

    async def end(self, jobs: Collection[Job], why: str) -> None:
        """End jobs and wait briefly for them."""
        for job in jobs:
            job.running.end(why)
        until = time.monotonic() + STOP_SECONDS
        for job in jobs:
            await run_in_thread(partial(job.done.wait, max(until - time.monotonic(), 0.0)), name="job")

    async def end_threads(self, threads: Collection[str]) -> None:
        """End and forget the jobs of deleted threads."""
        theirs = [job for job in self._jobs if job.order.thread in threads]
        await self.end(theirs, BY_THREAD)
        self._jobs = [job for job in self._jobs if job not in theirs]

    def threads(self) -> Sequence[str]:
        """Return the threads that have jobs."""
        return list(dict.fromkeys(job.order.thread for job in self._jobs))

    async def close(self) -> None:
        """End all jobs."""
        await self.end(self._jobs, BY_SERVER)

    def _follow(self, order: Order, command: Command) -> Ending:
        with self._placeholders.create_missing(refresh_guarded(order.workspace)) as workspace:
            return command.run(self._confinement.prepare(order.command, workspace, order.folder))

    def _paths_in_use(self, workspace: Path) -> frozenset[str]:
        running = [job for job in self._jobs if job.ending is None and job.order.workspace.folder == workspace]
        return frozenset(job.output.path for job in running)

    def _work(self, job: Job) -> None:
        try:
            job.ending = self._follow(job.order, job.running)
        except ToolError as error:
            job.ending = Ending(code=1, why=str(error))
        except Exception:  # otherwise the job would count as running forever
            LOGGER.exception("%s could not be followed to its end", job.id)
            job.ending = Ending(code=1, why=BY_MISTAKE)
        finally:
            job.end_time = time.monotonic()
            job.done.set()
