"""The tool that gives back what was folded or summarised (X5). It looks in the log: no tool acts again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from recto.conversation.messages import File, Text, ToolPart
from recto.errors import ToolError
from recto.page.earlier_results import NotRecalled, Recalled
from recto.page.fold.fold_settings import RECALL
from recto.page.manifest import Recall
from recto.tools.mark import tool as mark_tool
from recto.tools.ports import ToolContext, ToolResult

MOST_KNOWN = 30
HEAD = "[{what}, result {n} of {of} counted from the newest{time}; it may be out of date]\n"
NO_LOG = "There is no log to recall anything from."
OWN = "Results of recall cannot be recalled. Ask for the tool and the file that they came from."
NO_TOOL = "{tool} has no results. Tools that have: {known}."
NO_FILE = "{what} has no results. Files that have: {known}."
NO_NUMBER = "{what} has {of} results, so n is 1 (the newest) to {of}; it was {n}."
NO_RESULTS = "{what} has no results in this conversation. Failed ones that are still shown are not counted."
UNSORTED = "Results of {tool} are not counted by file. Leave path out: n then counts all of them."


@mark_tool(safe_to_repeat=True)
async def recall(
    tool: Annotated[str, Field(description="The tool whose result it was.")],
    n: Annotated[int, Field(description="Which one, counted from the newest: 1 is the newest.", ge=1)],
    context: ToolContext,
    path: Annotated[str | None, Field(description="Only results of this file, for a tool that reads files.")] = None,
) -> ToolResult:
    """Get back an earlier result of a tool that is no longer shown: one that a line or a summary stands for."""
    if context.log is None:
        raise ToolError(NO_LOG)
    if tool == RECALL:
        raise ToolError(OWN)
    asked = Recall(tool, path if path and path.strip() else None, n)
    found = await context.log.recall(asked)
    if isinstance(found, NotRecalled):
        raise ToolError(_refusal(asked, found))
    return ToolResult(parts=_with_head(asked, found))


def _with_head(asked: Recall, found: Recalled) -> tuple[ToolPart, ...]:
    """What it said, as one text behind a line that says what it is; and its files."""
    time = f", of {found.time:%Y-%m-%d %H:%M:%S %Z}" if found.time else ""
    head = HEAD.format(what=_what(asked), n=asked.n, of=found.of, time=time)
    words = "\n".join([part.text for part in found.parts if isinstance(part, Text)])
    return (Text(text=head + words), *[part for part in found.parts if isinstance(part, File)])


def _refusal(asked: Recall, found: NotRecalled) -> str:
    number = NO_NUMBER if found.of else NO_RESULTS
    text = {"tool": NO_TOOL, "file": NO_FILE, "number": number, "unsorted": UNSORTED}[found.problem]
    return text.format(what=_what(asked), tool=asked.tool, n=asked.n, of=found.of, known=_listed(found.known))


def _what(asked: Recall) -> str:
    return asked.tool if asked.path is None else f"{asked.tool} of {asked.path}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_KNOWN} more" if len(names) > MOST_KNOWN else ""
    return (", ".join(names[:MOST_KNOWN]) or "none") + more
