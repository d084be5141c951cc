"""What stands in the quote of a run's pages (D2): the agent's own text, or the thread's documents. Read once a run."""

from __future__ import annotations

from recto.agents.agent import Agent
from recto.page.quote import ParsedDocument, Quoted, choose_documents
from recto.tools.documents import NO_TEXT, Unread, failure, read_each
from recto.tools.ports import Document, FilesAtHand, Tell

# The most characters that may come to one token: what is beyond cannot be shown, so it is not fetched.
CHARACTERS_PER_TOKEN = 8


async def quoted(agent: Agent, files: FilesAtHand | None, tell: Tell) -> Quoted:
    """What the pages of a run carry before its history; empty: nothing.

    Documents are waited for to their end: a page that says how long they are must not change within a turn.
    """
    if agent.quote.strip():
        return agent.quote
    if files is None or agent.file_input.mode != "always":
        return ()
    chosen = choose_documents(files.turns, agent.file_input.max_files)
    most = agent.file_input.quote_tokens * CHARACTERS_PER_TOKEN

    async def take(document: Document) -> tuple[str, int]:
        extent = await document.whole()
        return (await document.characters(0, most)).text, extent.characters

    read = await read_each(chosen, take, files, tell)
    return tuple([_parsed(one.name, taken) for one, taken in zip(chosen, read, strict=True)])


def _parsed(name: str, taken: tuple[str, int] | Unread) -> ParsedDocument:
    """A document for the quote. One that cannot be read has the reason in its place (D5)."""
    if isinstance(taken, Unread):
        return ParsedDocument(name=name, content=failure(taken.reason), failed=True)
    text, total = taken
    is_empty = total <= len(text) and not text.strip()
    return ParsedDocument(name=name, content=NO_TEXT if is_empty else text, total=total)
