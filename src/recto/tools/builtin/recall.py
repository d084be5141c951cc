"""The recall tool (X5): returns folded or summarised results from the log without running a tool again."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from recto.conversation.messages import File, Text
from recto.errors import ToolError
from recto.page.earlier_results import NotRecalled
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
    query = Recall(tool, path if path and path.strip() else None, n)
    what = tool if query.path is None else f"{tool} of {query.path}"
    result = await context.log.recall(query)
    if isinstance(result, NotRecalled):
        number = NO_NUMBER if result.of else NO_RESULTS
        text = {"tool": NO_TOOL, "file": NO_FILE, "number": number, "unsorted": UNSORTED}[result.problem]
        names = result.alternatives
        more = f" and {len(names) - MOST_KNOWN} more" if len(names) > MOST_KNOWN else ""
        raise ToolError(
            text.format(
                what=what,
                tool=query.tool,
                n=query.n,
                of=result.of,
                known=(", ".join(names[:MOST_KNOWN]) or "none") + more,
            )
        )
    time = f", of {result.time:%Y-%m-%d %H:%M:%S %Z}" if result.time else ""
    head = HEAD.format(what=what, n=query.n, of=result.of, time=time)
    words = "\n".join([part.text for part in result.parts if isinstance(part, Text)])
    return ToolResult(parts=(Text(text=head + words), *[part for part in result.parts if isinstance(part, File)]))
