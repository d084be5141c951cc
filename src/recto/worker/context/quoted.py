"""What stands in the quote of a run's pages (D2): the agent's own text, or the thread's documents. Set once a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from recto.agents.agent import Agent
from recto.conversation.document import Extent
from recto.conversation.input_files import InputFile
from recto.page.prompt.quote import ParsedDocument, Quote, Quoted, choose_documents, quote_message
from recto.page.text.cut import FULL_ENOUGH, common_length
from recto.page.text.tokens import TokenCounter
from recto.tools.documents.read_many import NO_TEXT, Unread, failure, read_each
from recto.tools.ports import Document, ReportProgress, ToolFiles

# How many characters are fetched for each token of the budget: first what words take, then what lines of dots do.
# Whatever takes more of them is mostly blanks, and not worth the memory.
CHARACTERS_PER_TOKEN = (8, 32)


async def quoted(
    agent: Agent, files: ToolFiles | None, counter: TokenCounter, report: ReportProgress, gate: asyncio.Semaphore
) -> Quote | None:
    """What the pages of a run carry before its history; None: nothing.

    Documents are waited for to their end: a page that says how long they are must not change within a turn. Tokens are
    counted beside the loop, and of no more than may be shown: it takes a while. Only as many quotes as the gate lets
    through are in the making: each takes its text several times.
    """
    if agent.quote.strip():
        return await _set(agent.quote, agent, counter)
    if files is None or agent.file_input.mode != "always":
        return None
    chosen = choose_documents(files.turns, agent.file_input.max_files)
    budget = agent.file_input.quote_tokens
    lengths = [_length(extent) for extent in await read_each(chosen, _whole, files, report)]
    async with gate:
        quote: Quote | None = None
        for share in CHARACTERS_PER_TOKEN:
            most = common_length(lengths, budget * share)
            quote = await _set(await _fetched(chosen, most, files, report), agent, counter)
            if quote is None or quote.tokens_after >= FULL_ENOUGH * budget or most >= max(lengths):
                break
        return quote


async def _whole(document: Document) -> Extent:
    return await document.whole()


def _length(extent: Extent | Unread) -> int:
    return extent.characters if isinstance(extent, Extent) else len(failure(extent.reason))


async def _set(quote: Quoted, agent: Agent, counter: TokenCounter) -> Quote | None:
    budget = agent.file_input.quote_tokens
    return await asyncio.to_thread(partial(quote_message, quote, budget=budget, counter=counter, locale=agent.locale))


async def _fetched(
    chosen: Sequence[InputFile], most: int, files: ToolFiles, report: ReportProgress
) -> tuple[ParsedDocument, ...]:
    async def beginning(document: Document) -> tuple[str, int]:
        return (await document.characters(0, most)).text, document.extent.characters

    read = await read_each(chosen, beginning, files, report)
    return tuple([_parsed(one.name, taken) for one, taken in zip(chosen, read, strict=True)])


def _parsed(name: str, taken: tuple[str, int] | Unread) -> ParsedDocument:
    """A document for the quote. One that cannot be read has the reason in its place (D5)."""
    if isinstance(taken, Unread):
        return ParsedDocument(name=name, content=failure(taken.reason), failed=True)
    text, total = taken
    is_empty = total <= len(text) and not text.strip()
    return ParsedDocument(name=name, content=NO_TEXT if is_empty else text, total=total)
