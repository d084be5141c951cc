"""D2, D4, D5: what the quote of a run's pages holds: the documents of the thread, or the agent's own text."""

from dataclasses import replace

from recto.agents.agent import CHAT, Agent
from recto.agents.file_input import FileInput
from recto.errors import FileRefused, StorageDown
from recto.page.quote import ParsedDocument, Quoted
from recto.tools.ports import FilesAtHand, tell_nobody
from recto.worker.quoting import CHARACTERS_PER_TOKEN, quoted
from tests.tools.files_at_hand import AtHand, a_file, at_hand
from tests.tools.growing_document import a_text

ALWAYS = replace(CHAT, file_input=FileInput(is_on=True, mode="always", max_files=2, quote_tokens=100))


async def quote(agent: Agent, files: FilesAtHand | None) -> Quoted:
    return await quoted(agent, files, tell_nobody)


async def test_D2_an_agent_whose_model_reads_with_a_tool_quotes_nothing():
    files = at_hand(a="one")
    assert await quote(CHAT, files) == ()
    assert files.opened == []


async def test_D2_the_documents_stand_in_the_quote_newest_first_up_to_the_limit():
    turns = [[a_file("a"), a_file("b")], [a_file("photo", "photo.png", "image"), a_file("c")]]
    files = AtHand(turns=turns, holds={"a": b"1", "b": b"2", "c": b"3"})
    assert await quote(ALWAYS, files) == (
        ParsedDocument(name="c.txt", content="3", total=1),
        ParsedDocument(name="a.txt", content="1", total=1),
    )
    assert set(files.opened) == {"a", "c"}


async def test_D2_the_own_text_of_an_agent_stands_in_the_place_of_documents():
    files = at_hand(a="one")
    assert await quote(replace(ALWAYS, quote="Our rules."), files) == "Our rules."
    assert await quote(replace(CHAT, quote="Our rules."), None) == "Our rules."
    assert files.opened == []


async def test_D2_a_text_of_blanks_is_none():
    assert await quote(replace(ALWAYS, quote=" \n"), at_hand(a="one")) == (
        ParsedDocument(name="a.txt", content="one", total=3),
    )


async def test_D2_a_server_without_files_quotes_none():
    assert await quote(ALWAYS, None) == ()


async def test_D2_a_document_is_waited_for_to_its_end_and_no_more_of_it_is_fetched_than_could_be_shown():
    growing = a_text("word " * 1_000)
    (document,) = await quote(ALWAYS, AtHand(turns=[[a_file("a")]], holds={"a": growing}))
    assert isinstance(document, ParsedDocument)
    assert growing.asked == ["whole", "characters"]
    assert len(document.content) == 100 * CHARACTERS_PER_TOKEN
    assert document.total == 5_000


async def test_D5_what_cannot_be_read_has_the_reason_in_its_place():
    files = at_hand(a=FileRefused("it is protected by a password.", code="encrypted"), b=StorageDown(problem="no disk"))
    first, second = await quote(ALWAYS, files)
    assert first == ParsedDocument(name="a.txt", content="Error: it is protected by a password.", failed=True)
    assert isinstance(second, ParsedDocument)
    assert second.failed
    assert "no disk" not in second.content


async def test_D5_a_document_without_text_says_so():
    assert await quote(ALWAYS, at_hand(a=" \n")) == (
        ParsedDocument(name="a.txt", content="[there is no text in this file]", total=2),
    )
