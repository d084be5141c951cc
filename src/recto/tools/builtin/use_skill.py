"""The tool that chooses a skill (S3). What it says the skills are, the agent's directory says; here one is taken up."""

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
    found = await context.skills.activate(skill, scenario)
    return ToolResult(parts=(Text(text=dump(_row(found)).decode()),), activates=found)


def _row(found: Activation) -> dict[str, Json]:
    row: dict[str, Json] = {"status": ACTIVATED, "skill": found.skill or CORE, "scenario": found.scenario}
    if not found.missing:
        return row
    return row | {"status": NEED_INFO, "missing": list(found.missing), "collect_tool": found.collect_tool or None}
