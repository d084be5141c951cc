"""A terminal on a folder, and calls of its two tools run to their end."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from recto.config.run_settings import CommandSettings
from recto.conversation.json import Json
from recto.sandbox.bubblewrap import command_program
from recto.tools.commands.confinement import Confinement
from recto.tools.commands.terminal import Terminal
from recto.tools.commands.terminal_execute import terminal_execute, terminal_jobs
from recto.tools.function import make_tool
from recto.tools.ports import Progress, ToolContext
from recto.tools.workspace.workspaces import Workspace
from tests.tools.runs import context, text_of
from tests.waiting import wait_until

EXECUTE, JOBS = make_tool(terminal_execute), make_tool(terminal_jobs)


@dataclass(frozen=True, kw_only=True)
class Console:
    """A terminal and the context of its tools, with the reported progress."""

    context: ToolContext
    reports: list[Progress] = field(default_factory=list[Progress])

    @property
    def terminal(self) -> Terminal:
        assert self.context.terminal
        return self.context.terminal

    @property
    def folder(self) -> Path:
        assert self.context.workspace
        return self.context.workspace.folder

    def with_context(self, change: Callable[[ToolContext], ToolContext]) -> "Console":
        return replace(self, context=change(self.context))

    async def execute(self, command: str, **arguments: Json) -> dict[str, Json]:
        """Return the answer, which is one JSON object."""
        return cast("dict[str, Json]", json.loads(await self.say(command, **arguments)))

    async def say(self, command: str, **arguments: Json) -> str:
        context = replace(self.context, report=self.reports.append)
        return text_of(await EXECUTE.act(json.dumps({"command": command, **arguments}), context))

    async def jobs(self, action: str, job: Json = None) -> dict[str, Json]:
        result = await JOBS.act(json.dumps({"action": action, "job": job}), self.context)
        text = text_of(result)
        return cast("dict[str, Json]", json.loads(text)) if result.error is None else {"error": text}

    async def end(self, id: Json) -> dict[str, Json]:
        """Wait for the end of a job and return it."""
        jobs = self.terminal.jobs(self.context.owner, self.context.thread)
        [job] = [one for one in jobs if one.id == id]
        await wait_until(lambda: job.ending)
        return await self.jobs("look", id)


def console(
    folder: Path,
    settings: CommandSettings | None = None,
    *,
    is_confined: bool = True,
    environment: Mapping[str, str] = os.environ,
    workspace: Workspace | None = None,
) -> Console:
    program = command_program() if is_confined else None
    assert program or not is_confined, "bubblewrap is not installed"
    settings_in_use = settings or CommandSettings()
    folder.mkdir(parents=True, exist_ok=True)
    terminal = Terminal(
        settings_in_use, Confinement(settings=settings_in_use, program=program, server_environment=environment)
    )
    return Console(context=replace(context(), terminal=terminal, workspace=workspace or Workspace(folder=folder)))
