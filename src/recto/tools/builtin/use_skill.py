"""The use_skill tool (S3): activates a skill. The agent's directory describes the skills."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from recto.conversation.json import Json, dump
from recto.conversation.messages import Text
from recto.errors import ToolError
from recto.skills.skill import CORE
from recto.tools.mark import tool
from recto.tools.ports import Activation, ToolContext, ToolResult

ACTIVATED, NEED_INFO = "activated", "need_info"
NO_SKILLS = "This agent has no skills. Answer without one."


@tool(safe_to_repeat=True, in_order=True)
async def use_skill(
    skill: Annotated[str, Field(description="The skill, as the directory names it.")],
    context: ToolContext,
    scenario: Annotated[str | None, Field(description="What of it is asked for; leave it out if unsure.")] = None,
) -> ToolResult:
    """Take up a skill."""
    if context.skills is None:
        raise ToolError(NO_SKILLS)
    activation = await context.skills.activate(skill, scenario)
    return ToolResult(parts=(Text(text=dump(_row(activation)).decode()),), activates=activation)


def _row(activation: Activation) -> dict[str, Json]:
    row: dict[str, Json] = {"status": ACTIVATED, "skill": activation.skill or CORE, "scenario": activation.scenario}
    if not activation.missing:
        return row
    return row | {
        "status": NEED_INFO,
        "missing": list(activation.missing),
        "collect_tool": activation.collect_tool or None,
    }
