"""Calls of file tools in a workspace, as a model makes them."""

import asyncio
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

from recto.conversation.messages import Text, ToolCall
from recto.tools.call import ToolLimits, call_tool
from recto.tools.load_tools import make_built_in_tools
from recto.tools.ports import Tool, ToolResult
from recto.tools.workspace.workspaces import Workspace
from tests.tools.runs import context, text_of

READ, CREATE, EDIT = "filesystem-read", "filesystem-create", "filesystem-edit"


@cache
def built_in() -> dict[str, Tool]:
    return {tool.name: tool for tool in make_built_in_tools()}


async def call_async(
    workspace: Path | Workspace, name: str, characters: int = 50_000, /, **arguments: object
) -> ToolResult:
    workspaces = workspace if isinstance(workspace, Workspace) else Workspace(folder=workspace)
    call = ToolCall(id="c1", name=name, arguments=json.dumps(arguments))
    limits = ToolLimits(characters=characters)
    return await call_tool(built_in(), call, replace(context(), workspace=workspaces), limits)


def call(workspace: Path | Workspace, name: str, characters: int = 50_000, /, **arguments: object) -> ToolResult:
    return asyncio.run(call_async(workspace, name, characters, **arguments))


def call_text(workspace: Path | Workspace, name: str, **arguments: object) -> str:
    """Call a tool and return its answer, which is no error."""
    result = call(workspace, name, **arguments)
    assert result.error is None, text_of(result)
    return text_of(result)


def call_error(workspace: Path | Workspace, name: str, **arguments: object) -> str:
    """Call a tool and return its error without the prefix."""
    result = call(workspace, name, **arguments)
    text = text_of(result)
    assert result.error == "error"
    assert text.startswith("Error: ")
    return text.removeprefix("Error: ")


def parts(result: ToolResult) -> list[tuple[str | None, str]]:
    return [(part.path, part.text) for part in result.parts if isinstance(part, Text)]
