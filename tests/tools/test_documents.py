"""F5: several documents are read at once, and those that take a while say how far they are."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from recto.conversation.document import Element
from recto.conversation.input_files import InputFile
from recto.tools.documents.document_parts import WantedPart
from recto.tools.documents.read_files import DocumentRequest, show_documents
from recto.tools.documents.read_many import AT_ONCE, FAILED, Unread, read_each
from recto.tools.ports import Document, Progress, report_nothing
from tests.tools.files_at_hand import AtHand, a_file, at_hand
from tests.tools.growing_document import Growing, in_pages
from tests.tools.runs import context
from tests.waiting import settle


async def told_of(files: AtHand, wanted: WantedPart, report_seconds: float) -> tuple[str, Sequence[Progress]]:
    """The answer about one document, and the progress reported until then: nothing is reported after it."""
    told: list[Progress] = []
    given = replace(context(), files=files, report=told.append)
    answer = await show_documents([DocumentRequest(id="a", file=a_file("a"))], wanted, given, report_seconds)
    before = list(told)
    await settle()
    assert told == before
    return json.loads(answer)[0]["content"], told


# How far it is


async def test_F5_of_what_is_quick_nothing_is_told():
    assert (await told_of(at_hand(a=in_pages("one", "two")), WantedPart(), 3_600))[1] == []


async def test_F5_what_takes_long_is_told_by_pages_until_its_part_is_there():
    deck = in_pages(*["x" * 100] * 9, unit="slide")
    _, told = await told_of(at_hand(a=deck), WantedPart(limit=500), 0)
    assert {(one.label, one.total, one.unit) for one in told} == {("a.txt", 9, "slides")}
    pages = [one.done for one in told]
    assert pages == sorted(pages)
    assert len(set(pages)) > 2
    # Its part ends on the fifth, so that four are done.
    assert pages[-1] == 4


async def test_F5_a_text_without_pages_is_told_by_characters_and_nobody_knows_of_how_many():
    growing = Growing(given=[Element(kind="text", text="x" * 100) for _ in range(5)])
    _, told = await told_of(at_hand(a=growing), WantedPart(), 0)
    assert told[-1] == Progress(label="a.txt", done=500, total=None, unit="characters", id="a")
    assert len({one.done for one in told}) > 2


async def test_F5_the_end_is_told_of_a_document_that_failed_too():
    growing = replace(in_pages("one"), fails_after=0)

    class Late(AtHand):
        async def document(self, file: InputFile) -> Document:
            await settle(3)
            return await super().document(file)

    content, told = await told_of(Late(turns=[[a_file("a")]], holds={"a": growing}), WantedPart(), 0)
    assert "it is gone" in content
    assert told[0] == Progress(label="a.txt", done=0, total=None, unit="characters", id="a")
    assert told[-1] == Progress(label="a.txt", done=0, total=1, unit="pages", id="a")


# Several at once


@dataclass(frozen=True, kw_only=True)
class Gated(AtHand):
    """Files that are opened only when the gate is, and know how many wait before it."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def document(self, file: InputFile) -> Document:
        self.opened.append(file.id)
        await self.gate.wait()
        self.closed.append(file.id)
        return await super().document(file)


async def length_of(document: Document) -> int:
    return (await document.whole()).characters


def gated(count: int) -> tuple[Gated, list[InputFile]]:
    documents = [a_file(f"f{number}") for number in range(count)]
    return Gated(turns=[documents], holds={one.id: b"x" * place for place, one in enumerate(documents)}), documents


async def test_F5_documents_are_read_at_once_but_not_all_and_answered_in_order():
    files, documents = gated(AT_ONCE + 2)
    reading = asyncio.create_task(read_each(documents, length_of, files, report_nothing))
    await settle(50)
    assert files.opened == [one.id for one in documents[:AT_ONCE]]
    files.gate.set()
    assert await reading == list(range(AT_ONCE + 2))


async def test_F5_who_stops_waiting_ends_all_reading():
    files, documents = gated(3)
    reading = asyncio.create_task(read_each(documents, length_of, files, report_nothing))
    await settle(50)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    files.gate.set()
    await settle(50)
    assert files.closed == []


async def test_F5_a_fault_of_ours_costs_its_document_alone_and_is_logged(caplog: pytest.LogCaptureFixture):
    files = at_hand(a=ValueError("a fault"), b="two")
    read = await read_each(list(files.maps.documents.values()), length_of, files, report_nothing)
    assert read == [Unread(reason=FAILED), 3]
    assert "a fault" in caplog.text
