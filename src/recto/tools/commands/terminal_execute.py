"""The terminal-execute tool (R15): runs a command in the workspace."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Annotated

from pydantic import Field

from recto.conversation.json import Json
from recto.errors import ToolError
from recto.tools.commands.answer import answer, fits
from recto.tools.commands.output import Output
from recto.tools.commands.running_command import Ending
from recto.tools.commands.terminal import Order
from recto.tools.daemon_thread import run_in_thread
from recto.tools.mark import tool
from recto.tools.ports import Progress, ToolContext
from recto.tools.workspace.open_path import names_in, open_path, roots_of
from recto.tools.workspace.workspace_files import SHOWN, open_root
from recto.tools.workspace.workspaces import Workspace

NO_TERMINAL = "This server runs no commands."
LABEL = 80
# Time to end a command and return its output before the call itself is cancelled.
ANSWERING_SECONDS = 2.0


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
    longest = settings.job_seconds if background else min(settings.seconds, _within(context.seconds))
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
        ending, output = await terminal.run(order, _reporting(context, command))
        return _told(output, _how(ending), context.characters)
    job = await terminal.begin(order)
    state: dict[str, Json] = {"job": job.id, "output": job.output.path}
    return _told(job.output, {**_how(job.ending), **state}, context.characters)


def _within(seconds: float) -> float:
    """Return how long a command may take so that time is left to return its output."""
    return max(seconds - ANSWERING_SECONDS, seconds / 2)


def _folder(workspace: Workspace, path: str) -> str:
    """Return the folder of a path, relative to the workspace with all links resolved."""
    names = names_in(path, roots_of(workspace.folder))
    # The first user of a workspace creates it.
    os.close(open_root(workspace))
    with open_path(workspace, names) as found:
        if not found.is_folder:
            raise ToolError(f"There is no folder {path[:SHOWN]!r} in the workspace.")
        return "/".join(found.names)


def _reporting(context: ToolContext, command: str) -> Callable[[Output], None]:
    label = command.strip().partition("\n")[0][:LABEL]

    def report(output: Output) -> None:
        context.report(Progress(label=label, done=output.lines, total=None, unit="lines", text=output.newest()))

    return report


def _how(ending: Ending | None) -> dict[str, Json]:
    if ending is None:
        return {}
    return {"exitCode": ending.code, **({"ended": ending.why} if ending.why else {})}


def _told(output: Output, rest: Mapping[str, Json], characters: int) -> str:
    stdout, stderr = output.printed("stdout"), output.printed("stderr")
    if not fits(stdout, stderr, rest, characters):
        output.keep_whole()
    return answer(stdout, stderr, rest, characters, output.path)
