"""Parallel reading of documents, with progress reports for slow ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from recto.conversation.document import Extent
from recto.conversation.message_files import InputFile
from recto.errors import FileRefused, StorageDown, ToolError
from recto.tools.ports import Document, Progress, ReportProgress, ToolContext, ToolFiles

# Characters shown of a name, id or URL.
NAME_SHOWN = 200
# Documents read at the same time.
AT_ONCE = 4
REPORT_SECONDS = 0.5
NO_TEXT = "[there is no text in this file]"
NO_FILES = "This server keeps no files, so there are none to read."
FAILED = "the server failed at reading it, and its log says how. Tell the user so."
STORAGE_DOWN = "the storage of files cannot be used at present. Try again later, or tell the user."

LOGGER = logging.getLogger("recto.tools")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Unread:
    """The reason why a document could not be read."""

    reason: str


def require_files(context: ToolContext) -> ToolFiles:
    """Return the files of the thread. Raises ToolError if the server stores none."""
    if context.files is None:
        raise ToolError(NO_FILES)
    return context.files


def failure(reason: str) -> str:
    """Format a failure as the content of a document."""
    return f"Error: {reason}"


async def read_each(
    files: Sequence[InputFile],
    take: Callable[[Document], Awaitable[T]],
    thread_files: ToolFiles,
    report: ReportProgress,
    report_seconds: float = REPORT_SECONDS,
) -> Sequence[T | Unread]:
    """Apply `take` to all documents in parallel, and return the results in the given order.

    A failure affects only its own document.
    """
    gate = asyncio.Semaphore(AT_ONCE)

    async def read(file: InputFile) -> T | Unread:
        documents: list[Document] = []
        try:
            async with gate, _report_progress(file, documents, report, report_seconds):
                documents.append(await thread_files.document(file))
                return await take(documents[0])
        except FileRefused as error:
            return Unread(reason=str(error))
        except StorageDown:
            return Unread(reason=STORAGE_DOWN)
        except Exception:
            # Any error affects only this document.
            LOGGER.exception("a document cannot be read")
            return Unread(reason=FAILED)

    tasks = [asyncio.ensure_future(read(file)) for file in files]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _report_progress(
    file: InputFile, documents: Sequence[Document], report: ReportProgress, report_seconds: float
) -> AsyncGenerator[None]:
    """Report progress repeatedly, and once at the end. A fast read reports nothing."""
    is_reported = False

    def progress() -> Progress:
        extent = documents[0].extent if documents else Extent()
        if extent.unit is None:
            return Progress(label=file.name, done=extent.characters, total=None, unit="characters", id=file.id)
        return Progress(label=file.name, done=extent.pages, total=extent.page_count, unit=f"{extent.unit}s", id=file.id)

    async def report_again() -> None:
        nonlocal is_reported
        while True:
            await asyncio.sleep(report_seconds)
            is_reported = True
            report(progress())

    reporting = asyncio.create_task(report_again())
    try:
        yield
    finally:
        reporting.cancel()
        if is_reported:
            report(progress())
