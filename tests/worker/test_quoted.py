"""D2, D4, D5: what the quote of a run's pages holds: the documents of the thread, or the agent's own text."""

import asyncio
from dataclasses import dataclass, field, replace

from recto.agents.agent import CHAT, Agent
from recto.agents.file_input import FileInput
from recto.conversation.document import Excerpt
from recto.errors import FileRefused, StorageDown
from recto.page.prompt.quote import Quote
from recto.page.text.tokens import OFFLINE
from recto.tools.ports import ToolFiles, discard_progress
from recto.worker.context.prompt_context import build_quote
from tests.tools.growing_document import Growing, a_text
from tests.tools.thread_files import FakeFiles, a_file, make_files

ALWAYS = replace(CHAT, file_input=FileInput(is_on=True, mode="always", max_files=2, quote_tokens=100))


@dataclass(kw_only=True)
class Counting(Growing):
    """A document that records the number of requested characters."""

    counts: list[int] = field(default_factory=list[int])

    async def characters(self, start: int, count: int) -> Excerpt:
        self.counts.append(count)
        return await super().characters(start, count)


async def quote(agent: Agent, files: ToolFiles | None) -> Quote | None:
    return await build_quote(agent, files, OFFLINE, discard_progress, asyncio.Semaphore(1))


async def text(agent: Agent, files: ToolFiles | None) -> str:
    document_quote = await quote(agent, files)
    return document_quote.text if document_quote else ""


def block(name: str, content: str) -> str:
    return f"File: {name}\n<Content>\n{content}\n</Content>"


def whole(*blocks: str) -> str:
    text = "\n******\n".join(blocks)
    return f"Take what is in <Quote></Quote> as reference for this conversation:\n<Quote>\n{text}\n</Quote>"


async def test_D2_an_agent_whose_model_reads_with_a_tool_quotes_nothing():
    files = make_files(a="one")
    assert await quote(CHAT, files) is None
    assert files.opened_ids == []


async def test_D2_without_documents_there_is_no_quote():
    assert await quote(ALWAYS, make_files()) is None
    assert await quote(ALWAYS, None) is None


async def test_D2_the_documents_stand_in_the_quote_newest_first_up_to_the_limit():
    turns = [[a_file("a"), a_file("b")], [a_file("photo", "photo.png", "image"), a_file("c")]]
    files = FakeFiles(turns=turns, holds={"a": b"1", "b": b"2", "c": b"3"})
    assert await text(ALWAYS, files) == whole(block("c.txt", "3"), block("a.txt", "1"))
    assert set(files.opened_ids) == {"a", "c"}


async def test_D2_the_own_text_of_an_agent_stands_in_the_place_of_documents():
    files = make_files(a="one")
    assert await text(replace(ALWAYS, quote="Our rules."), files) == whole("Our rules.")
    assert await text(replace(CHAT, quote="Our rules."), None) == whole("Our rules.")
    assert files.opened_ids == []


async def test_D2_a_text_of_blanks_is_none():
    assert await text(replace(ALWAYS, quote=" \n"), make_files(a="one")) == whole(block("a.txt", "one"))


async def test_D2_a_long_document_is_waited_for_to_its_end_and_its_beginning_is_fetched():
    growing = Counting(all_elements=a_text("word " * 10_000).all_elements)
    document_quote = await quote(ALWAYS, FakeFiles(turns=[[a_file("a")]], holds={"a": growing}))
    assert document_quote is not None
    assert growing.requests[0] == "whole"
    assert max(growing.counts) == 800
    assert " of 50000 characters" in document_quote.text
    assert document_quote.tokens_after <= 100
    assert 9_000 < document_quote.tokens_before < 15_000


async def test_D2_a_document_of_few_tokens_for_its_length_is_not_cut_for_its_length():
    dots = "." * 4_000
    assert len(dots) > 8 * 150
    wider = replace(ALWAYS, file_input=replace(ALWAYS.file_input, quote_tokens=150))
    assert await text(wider, make_files(a=dots)) == whole(block("a.txt", dots))


async def test_D2_room_that_short_documents_leave_goes_to_the_long_ones():
    files = make_files(a="short", b="word " * 10_000)
    document_quote = await quote(ALWAYS, files)
    assert document_quote is not None
    assert [cut.name for cut in document_quote.cuts] == ["b.txt"]
    assert document_quote.tokens_after > 90


async def test_D5_what_cannot_be_read_has_the_reason_in_its_place():
    files = make_files(a=FileRefused("it has a password.", code="encrypted"), b=StorageDown(problem="no disk"))
    quote_text = await text(replace(ALWAYS, file_input=replace(ALWAYS.file_input, quote_tokens=500)), files)
    assert block("a.txt", "Error: it has a password.") in quote_text
    assert "File: b.txt\n<Content>\nError: the storage of files cannot be used" in quote_text
    assert "no disk" not in quote_text


async def test_D5_what_fails_as_nobody_foresaw_costs_its_own_block_only():
    quote_text = await text(ALWAYS, make_files(a=RuntimeError("a bug"), b="two"))
    assert "File: a.txt\n<Content>\nError: the server failed at reading it" in quote_text
    assert block("b.txt", "two") in quote_text
    assert "a bug" not in quote_text


async def test_D5_a_document_without_text_says_so():
    assert await text(ALWAYS, make_files(a=" \n")) == whole(block("a.txt", "[there is no text in this file]"))
