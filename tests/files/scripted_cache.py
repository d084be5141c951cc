"""A document cache with a scripted parser and a manual clock."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from recto.config.file_settings import DocumentSettings
from recto.conversation.document import Element
from recto.conversation.message_files import Attachment
from recto.files.documents.cached_document import CachedDocument
from recto.files.documents.document_cache import DocumentCache
from recto.files.parsing.ports import DocumentEnd, DocumentStart, FoundElements, Frame, Task

NOON = datetime(2026, 5, 14, 12, tzinfo=UTC)
ONE = Attachment(
    id="1",
    owner="ada",
    name="one.pdf",
    kind="document",
    mime_type="application/pdf",
    size=3,
    sha256="aa" * 32,
    blob="b",
    created=NOON,
)
# A gate: reading waits until the test opens it.
Step = Frame | asyncio.Event | Exception


@dataclass(kw_only=True)
class Script:
    """A parser that yields scripted frames and records its tasks."""

    steps: list[Step]
    tasks: list[tuple[str, Task]] = field(default_factory=list[tuple[str, Task]])
    inputs: list[bytes] = field(default_factory=list[bytes])
    started: asyncio.Event = field(default_factory=asyncio.Event)
    closed: int = 0

    async def parse(self, owner: str, task: Task, pieces: AsyncIterable[bytes]) -> AsyncGenerator[Frame]:
        self.tasks.append((owner, task))
        try:
            self.inputs.append(b"".join([piece async for piece in pieces]))
            self.started.set()
            for step in self.steps:
                match step:
                    case asyncio.Event():
                        await step.wait()
                    case Exception():
                        raise step
                    case _:
                        yield step
        finally:
            self.closed += 1


@dataclass(kw_only=True)
class ScriptedCache:
    """A document cache in a folder, with a manual clock."""

    folder: Path
    script: Script
    settings: DocumentSettings = field(default_factory=DocumentSettings)
    # Start at the machine's time, which files have.
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def open(self) -> DocumentCache:
        return DocumentCache(self.folder, self.script, self.settings, clock=lambda: self.now)

    def names(self) -> list[str]:
        files = [path for path in self.folder.rglob("*") if path.is_file() and path.parent != self.folder]
        return sorted(path.relative_to(self.folder).as_posix() for path in files)

    def stored_paths(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file() and "-4." in path.name)


async def pieces() -> AsyncGenerator[bytes]:
    yield b"the "
    yield b"bytes"


def page(number: int, *texts: str) -> FoundElements:
    head = Element(kind="page", text=f"[page {number}]", page=number)
    return FoundElements(
        elements=(head, *[Element(kind="paragraph", text=text, page=number) for text in texts]), pages=number
    )


def pdf(count: int) -> list[Step]:
    return [
        DocumentStart(unit="page", page_count=count),
        *[page(n, f"text of {n}") for n in range(1, count + 1)],
        DocumentEnd(),
    ]


def scripted_cache(folder: Path, *steps: Step, settings: DocumentSettings | None = None) -> ScriptedCache:
    return ScriptedCache(folder=folder, script=Script(steps=list(steps)), settings=settings or DocumentSettings())


async def reading(documents: DocumentCache, one: Attachment = ONE) -> CachedDocument:
    return await documents.open(one, pieces)


async def text_in(documents: DocumentCache, one: Attachment = ONE) -> str:
    return (await (await documents.open(one, pieces)).characters(0, 10**9)).text


async def wait_until_settled() -> None:
    while tasks := [task for task in asyncio.all_tasks() if task.get_name().startswith("read ")]:
        await asyncio.wait(tasks)


async def finish_and_close(documents: DocumentCache) -> None:
    await wait_until_settled()
    await documents.close()
