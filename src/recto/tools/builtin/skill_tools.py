"""The use_skill tool (S3): activates a skill. The agent's directory describes the skills."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from recto.conversation.json import Json, dump
from recto.conversation.messages import Text
from recto.errors import ToolError
from recto.skills.skill import CORE
from recto.tools.mark import tool
from recto.tools.ports import ToolContext, ToolResult

PAGE_CHARACTERS = 20_000
# Characters reserved for the frame around a part.
FRAME = 500
NO_TEXT = "{path} has {size} bytes that are no text, so it cannot be shown."
PART = "[characters {first}-{last} of {total} of {path}{more}]\n"
MORE = "; for more: read_skill_file({arguments})"
ACTIVATED, NEED_INFO = "activated", "need_info"
NO_SKILLS = "This agent has no skills. Answer without one."


@tool(safe_to_repeat=True)
async def read_skill_file(
    path: Annotated[str, Field(description="The file's path, as the skill names it.")],
    context: ToolContext,
    *,
    offset: Annotated[int, Field(description="How many characters to leave out.", ge=0)] = 0,
    limit: Annotated[int, Field(description="How many characters to show.", ge=1)] = PAGE_CHARACTERS,
) -> str:
    """Read a file that the active skill brings along: a reference, an example, a script (which cannot be run)."""
    if context.skills is None:
        raise ToolError(NO_SKILLS)
    data = await context.skills.read(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return NO_TEXT.format(path=path, size=len(data))
    if offset and offset >= len(text):
        raise ToolError(f"{path} has {len(text)} characters. Ask for an offset below that.")
    excerpt = text[offset : offset + min(limit, max(context.characters - FRAME, FRAME))]
    end = offset + len(excerpt)
    if not offset and end >= len(text):
        return excerpt
    more = MORE.format(arguments=dump({"path": path, "offset": end}).decode()) if end < len(text) else ""
    return PART.format(first=offset + 1, last=end, total=len(text), path=path, more=more) + excerpt


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
    row: dict[str, Json] = {"status": ACTIVATED, "skill": activation.skill or CORE, "scenario": activation.scenario}
    if missing := activation.missing:
        row |= {"status": NEED_INFO, "missing": list(missing), "collect_tool": activation.collect_tool or None}
    return ToolResult(parts=(Text(text=dump(row).decode()),), activates=activation)
