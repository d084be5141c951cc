"""A context for tools, and calls run to their end."""

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo

from recto.conversation.messages import Text
from recto.tools.function import Function, make_tool
from recto.tools.ports import ToolContext, ToolResult

NOON = datetime(2026, 5, 14, 4, 0, 0, tzinfo=UTC)


def context(zone: tzinfo = UTC, now: datetime = NOON) -> ToolContext:
    return ToolContext(owner="ann", thread="t1", run="r1", call="c1", now=now, zone=zone)


def act(function: Function, arguments: str = "{}") -> ToolResult:
    """Call the function as a tool and return its answer."""

    async def acting() -> ToolResult:
        return await make_tool(function).act(arguments, context())

    return asyncio.run(acting())


@contextmanager
def repeated(step: Callable[[], object]) -> Generator[None]:
    """Repeat the step in its own thread inside the context."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.is_set():
            step()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def text_of(result: ToolResult) -> str:
    return "".join(part.text for part in result.parts if isinstance(part, Text))
