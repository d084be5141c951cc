"""What an agent can do, one file per tool, with one place that bounds output. Refuses to know who is asking."""

from recto.errors import ToolError
from recto.tools.mark import tool
from recto.tools.ports import Progress, ToolContext, ToolResult

__all__ = ["Progress", "ToolContext", "ToolError", "ToolResult", "tool"]
