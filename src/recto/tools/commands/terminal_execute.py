"""The terminal-execute tool (R15): runs a command in the workspace."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from recto.conversation.json import Json
from recto.errors import ToolError
from recto.tools.commands.output import Output, fits, format_answer
from recto.tools.commands.running_command import Ending
from recto.tools.commands.terminal import BY_USER, JOB, Job, Order
from recto.tools.commands.whole_output import end_of_output, path_of
from recto.tools.daemon_thread import run_in_thread
from recto.tools.mark import tool
from recto.tools.ports import Progress, ToolContext
from recto.tools.workspace.open_path import names_in, open_path, roots_of
from recto.tools.workspace.workspace_files import SHOWN_CHARACTERS, open_root
from recto.tools.workspace.workspaces import Workspace

NAME = re.compile(rf"{JOB}[1-9][0-9]{{0,8}}")
COMMAND_SHOWN, NAME_SHOWN = 200, 60
NO_JOB = "There is no job {name!r} in this thread. Known: {known}."
UNNAMED = "`job` is missing: say which one. In this thread there are: {known}."
BEFORE = "It ended with the server it ran in, which was started again since; its exit code is not known."
NO_TERMINAL = "This server runs no commands."
LABEL = 80
# Time to end a command and return its output before the call itself is cancelled.
ANSWERING_SECONDS = 2.0


@tool(name="terminal-jobs", safe_to_repeat=True, reads=True)
async def terminal_jobs(
    action: Annotated[
        Literal["list", "look", "end"],
        Field(description="list: all jobs. look: how one is, and what it printed last. end: end one."),
    ],
    context: ToolContext,
    job: Annotated[str | None, Field(description="The job, as terminal-execute named it; for look and end.")] = None,
) -> dict[str, Json]:
    """Look at commands that terminal-execute runs in the background, or end them."""
    terminal, workspace = context.terminal, context.workspace
    if terminal is None or workspace is None:
        raise ToolError(NO_TERMINAL)
    jobs = terminal.jobs(context.owner, context.thread)
    if action == "list":
        return {"jobs": [_row(one) for one in jobs]}
    job_names = ", ".join(one.id for one in jobs) or "none"
    if not job:
        raise ToolError(UNNAMED.format(known=job_names))
    match = next((one for one in jobs if one.id == job), None)
    if match is None:
        # The job may be from before a server restart. Then only its file exists.
        may_be_earlier = NAME.fullmatch(job) and not terminal.is_of_others(workspace.folder, job)
        newest = await _newest(workspace, job, context.characters) if may_be_earlier else None
        if newest is None:
            raise ToolError(NO_JOB.format(name=job[:NAME_SHOWN], known=job_names))
        return {"job": job, "state": "ended", "ended": BEFORE, "output": path_of(f"{job}.txt"), "newest": newest}
    if action == "end":
        await terminal.end((match,), BY_USER)
    return {**_row(match), "newest": await _newest(workspace, match.id, context.characters)}


def _row(job: Job) -> dict[str, Json]:
    row: dict[str, Json] = {"job": job.id, "command": job.order.command[:COMMAND_SHOWN]}
    row |= {"state": "running" if job.ending is None else "ended", "seconds": round(job.seconds, 1)}
    return {**row, **_ending_row(job.ending), "output": job.output.path}


async def _newest(workspace: Workspace, id: str, characters: int) -> str | None:
    """Return the end of a job's output, within a third of the answer limit, because JSON makes text longer."""
    return await run_in_thread(lambda: end_of_output(workspace, f"{id}.txt", characters // 3), name="workspace")


@tool(name="terminal-execute", changes="anything")
async def terminal_execute(
    command: Annotated[str, Field(min_length=1, description="What to run, in bash.")],
    context: ToolContext,
    workingDirectory: Annotated[
        str | None, Field(description="A folder in the workspace to run it in; by default the workspace itself.")
    ] = None,
    timeout: Annotated[
        int | None, Field(ge=1, description="Milliseconds it may take; by default as long as is allowed at all.")
    ] = None,
    background: Annotated[
        bool, Field(description="Answer at once, and let it go on: for servers and long work. See terminal-jobs.")
    ] = False,
) -> str:
    """Run a command in the workspace; nobody can answer what it asks. The answer has stdout, stderr and exitCode; what
    is too long is cut in the middle, and then `output` is the path of a file that has all of it.
    """
    terminal, workspace = context.terminal, context.workspace
    if terminal is None or workspace is None:
        raise ToolError(NO_TERMINAL)
    settings = terminal.settings
    seconds = min(settings.seconds, max(context.seconds - ANSWERING_SECONDS, context.seconds / 2))
    longest = settings.job_seconds if background else seconds
    order = Order(
        command=command,
        workspace=workspace,
        folder=await run_in_thread(lambda: _folder(workspace, workingDirectory or "."), name="workspace"),
        owner=context.owner,
        thread=context.thread,
        seconds=min(timeout / 1_000, longest) if timeout else longest,
        characters=context.characters,
    )
    if not background:
        label = command.strip().partition("\n")[0][:LABEL]

        def report(output: Output) -> None:
            context.report(Progress(label=label, done=output.lines, total=None, unit="lines", text=output.newest()))

        ending, output = await terminal.run(order, report)
        return _format_answer(output, _ending_row(ending), context.characters)
    job = await terminal.begin(order)
    state: dict[str, Json] = {"job": job.id, "output": job.output.path}
    return _format_answer(job.output, {**_ending_row(job.ending), **state}, context.characters)


def _folder(workspace: Workspace, path: str) -> str:
    """Return the folder of a path, relative to the workspace with all links resolved."""
    names = names_in(path, roots_of(workspace.folder))
    # Create the workspace if it does not exist.
    os.close(open_root(workspace))
    with open_path(workspace, names) as place:
        if not place.is_folder:
            raise ToolError(f"There is no folder {path[:SHOWN_CHARACTERS]!r} in the workspace.")
        return "/".join(place.names)


def _ending_row(ending: Ending | None) -> dict[str, Json]:
    if ending is None:
        return {}
    return {"exitCode": ending.code, **({"ended": ending.why} if ending.why else {})}


def _format_answer(output: Output, rest: Mapping[str, Json], characters: int) -> str:
    stdout, stderr = output.printed("stdout"), output.printed("stderr")
    if not fits(stdout, stderr, rest, characters):
        output.keep_whole()
    return format_answer(stdout, stderr, rest, characters, output.path)
