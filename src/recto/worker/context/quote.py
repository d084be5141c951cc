"""Quote of a run's pages (D2): the agent's own text, or the documents of the thread. Built once in a run."""

from __future__ import annotations

import asyncio
from functools import partial

from recto.agents.agent import Agent
from recto.conversation.document import Extent
from recto.page.prompt.quote import ParsedDocument, Quote, QuoteSource, choose_documents, quote_message
from recto.page.text.cut import FULL_ENOUGH, common_length
from recto.page.text.tokens import TokenCounter
from recto.tools.documents.read_many import NO_TEXT, Unread, failure, read_each
from recto.tools.ports import Document, ReportProgress, ToolFiles

# Characters to read for each token of the budget: enough for words, then enough for lines of dots.
# A text that needs more is mostly blanks and not worth the memory.
CHARACTERS_PER_TOKEN = (8, 32)


async def build_quote(
    agent: Agent, files: ToolFiles | None, counter: TokenCounter, report: ReportProgress, gate: asyncio.Semaphore
) -> Quote | None:
    """Return the quote that the pages of a run show before the history, or None.

    Wait until all documents are parsed, because their lengths must not change within a turn. Count tokens in a thread,
    and only of characters that may be shown. The gate limits how many quotes are built at the same time, because each
    holds several copies of its text.
    """
    budget = agent.file_input.quote_tokens

    async def cut(source: QuoteSource) -> Quote | None:
        cut_to_budget = partial(quote_message, source, budget=budget, counter=counter, locale=agent.locale)
        return await asyncio.to_thread(cut_to_budget)

    if agent.quote.strip():
        return await cut(agent.quote)
    if files is None or agent.file_input.mode != "always":
        return None
    documents = choose_documents(files.turns, agent.file_input.max_files)
    lengths = [_length(extent) for extent in await read_each(documents, _extent, files, report)]
    async with gate:
        quote: Quote | None = None
        for share in CHARACTERS_PER_TOKEN:
            size = common_length(lengths, budget * share)
            contents = await read_each(documents, partial(_beginning, size), files, report)
            quote = await cut(tuple([_parsed(one.name, text) for one, text in zip(documents, contents, strict=True)]))
            if quote is None or quote.tokens_after >= FULL_ENOUGH * budget or size >= max(lengths):
                break
        return quote


async def _extent(document: Document) -> Extent:
    return await document.whole()


async def _beginning(size: int, document: Document) -> tuple[str, int]:
    """Return the first characters of a document and the number of all."""
    return (await document.characters(0, size)).text, document.extent.characters


def _length(extent: Extent | Unread) -> int:
    return extent.characters if isinstance(extent, Extent) else len(failure(extent.reason))


def _parsed(name: str, content: tuple[str, int] | Unread) -> ParsedDocument:
    """Return a document for the quote. The reason replaces the text of an unreadable one (D5)."""
    if isinstance(content, Unread):
        return ParsedDocument(name=name, content=failure(content.reason), failed=True)
    text, total = content
    is_empty = total <= len(text) and not text.strip()
    return ParsedDocument(name=name, content=NO_TEXT if is_empty else text, total=total)
