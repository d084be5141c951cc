"""The terminal-jobs tool: lists, shows and ends background commands."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from recto.conversation.json import Json
from recto.errors import ToolError
from recto.tools.commands.terminal import BY_USER, JOB, Job, Terminal
from recto.tools.commands.terminal_execute import NO_TERMINAL
from recto.tools.commands.whole_output import end_of_output, path_of
from recto.tools.daemon_thread import run_in_thread
from recto.tools.mark import tool
from recto.tools.ports import ToolContext
from recto.tools.workspace.workspaces import Workspace

NAME = re.compile(rf"{JOB}[1-9][0-9]{{0,8}}")
COMMAND_SHOWN, NAME_SHOWN = 200, 60
NO_JOB = "There is no job {name!r} in this thread. Known: {known}."
UNNAMED = "`job` is missing: say which one. In this thread there are: {known}."
BEFORE = "It ended with the server it ran in, which was started again since; its exit code is not known."


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
    known = ", ".join(one.id for one in jobs) or "none"
    if not job:
        raise ToolError(UNNAMED.format(known=known))
    found = next((one for one in jobs if one.id == job), None)
    if found is None and (earlier := await _earlier(terminal, workspace, job, context.characters)):
        return earlier
    if found is None:
        raise ToolError(NO_JOB.format(name=job[:NAME_SHOWN], known=known))
    if action == "end":
        await terminal.end((found,), BY_USER)
    return {**_row(found), "newest": await _newest(workspace, found.id, context.characters)}


def _row(job: Job) -> dict[str, Json]:
    told: dict[str, Json] = {"job": job.id, "command": job.order.command[:COMMAND_SHOWN]}
    told |= {"state": "running" if job.ending is None else "ended", "seconds": round(job.seconds, 1)}
    if job.ending is not None:
        told |= {"exitCode": job.ending.code, **({"ended": job.ending.why} if job.ending.why else {})}
    return {**told, "output": job.output.path}


async def _earlier(terminal: Terminal, workspace: Workspace, job: str, characters: int) -> dict[str, Json] | None:
    """Return a job from before a server restart. Only its file is left."""
    is_name = NAME.fullmatch(job) and not terminal.is_of_others(workspace.folder, job)
    newest = await _newest(workspace, job, characters) if is_name else None
    if newest is None:
        return None
    return {"job": job, "state": "ended", "ended": BEFORE, "output": path_of(f"{job}.txt"), "newest": newest}


async def _newest(workspace: Workspace, id: str, characters: int) -> str | None:
    """Return the end of its output, within a third of the answer limit: JSON makes it longer."""
    return await run_in_thread(lambda: end_of_output(workspace, f"{id}.txt", characters // 3), name="workspace")
