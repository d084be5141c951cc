"""The wall between a tool's code and the run: whatever a tool raises becomes a result the model can read."""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from recto.errors import ToolError
from recto.page.messages import Text
from recto.tools.ports import ToolResult

FAILED = "failed"

_log = logging.getLogger("recto.tools")


def said(text: str, error: str | None = None) -> ToolResult:
    """A result of words."""
    return ToolResult(parts=(Text(text=text),), error=error)


async def behind_wall(name: str, answer: Awaitable[ToolResult]) -> ToolResult:
    """What the tool answered, or what went wrong as a result. Only a cancel passes through."""
    try:
        return await answer
    except ToolError as error:
        return said(str(error), error.status)
    # The one place that catches everything, an exit too: no tool may end the run or the server it runs in.
    except (Exception, SystemExit) as error:
        _log.exception("Tool %s failed.", name)
        problem = ": ".join(filter(None, (type(error).__name__, str(error))))
        return said(f"{name} failed: {problem}", FAILED)
