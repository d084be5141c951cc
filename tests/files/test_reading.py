"""D6, D9: complete documents read by a program, from a path or from bytes, in a child process."""

from pathlib import Path

import pytest

from recto import read_document
from recto.config.file_settings import ParseLimits
from recto.conversation.document import Extent, text_of
from recto.conversation.file_formats import format_of
from recto.errors import FileRefused
from recto.files.documents.read_document import Reading, read_with
from recto.files.parsing.ports import DocumentStart, Failed, FoundElements
from tests.files import heads
from tests.files.scripted_cache import Script, page, pdf

DOCUMENTS = Path(__file__).resolve().parents[1] / "documents"


async def test_D9_a_file_is_read_by_its_path_as_text_and_as_elements():
    document = await read_document(DOCUMENTS / "deck.pptx")
    assert (document.name, document.unit, document.page_count) == ("deck.pptx", "slide", 10)
    assert document.text.startswith("[slide 1]\n\n## 第1张幻灯片 Slide 1\n\n")
    assert document.text == text_of(document.elements)
    assert document.elements[1].kind == "heading"
    assert {element.page for element in document.pages(7, 8)} == {7, 8}
    assert not document.incomplete


@pytest.mark.full
async def test_D7_a_document_is_held_to_its_limits():
    with pytest.raises(FileRefused, match="bytes") as raised:
        await read_document(str(DOCUMENTS / "long.pdf"), limits=ParseLimits(file_bytes=100))
    assert raised.value.code == "too_large"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *(("none.txt", "missing"), ("empty.txt", "empty"), ("folder", "folder"), ("empty.txt/below", "missing")),
        *(("a\0b", "unreadable"), ("picture.png", "not_a_document"), ("picture.pdf", "mismatch")),
        ("program.txt", "mismatch"),
    ],
)
async def test_D6_what_is_no_document_is_refused_before_anything_is_started(tmp_path: Path, name: str, code: str):
    (tmp_path / "folder").mkdir()
    for file, data in {
        "empty.txt": b"",
        "picture.png": heads.PNG,
        "picture.pdf": heads.PNG,
        "program.txt": heads.ELF,
    }.items():
        (tmp_path / file).write_bytes(data)
    script = Script(steps=[])
    with pytest.raises(FileRefused) as raised:
        await read_with(script, Reading(source=tmp_path / name))
    assert raised.value.code == code
    assert not script.tasks


async def test_D7_a_file_that_breaks_off_while_it_is_read_is_told():
    with pytest.raises(FileRefused, match="cannot be read") as raised:
        await read_with(Script(steps=pdf(1)), Reading(source=Path("/proc/self/mem")))
    assert raised.value.code == "unreadable"


async def test_D9_a_document_that_breaks_off_has_what_came_and_says_why():
    script = Script(steps=[DocumentStart(unit="page"), page(1, "a"), FileRefused("it took too long", code="too_long")])
    document = await read_with(script, Reading(source=b"words", name="a.txt"))
    assert document.text == "[page 1]\n\na\n\n[the rest could not be read: it took too long]"
    assert document.incomplete == "it took too long"


@pytest.mark.parametrize(
    "steps", [[FileRefused("odd", code="odd")], [Failed(reason="odd", code="odd")], [DocumentStart()]]
)
async def test_D9_a_document_of_which_nothing_came_is_refused(steps: list[DocumentStart | Failed | FileRefused]):
    with pytest.raises(FileRefused):
        await read_with(Script(steps=[*steps]), Reading(source=b"words"))


async def test_F5_nothing_after_the_last_page_that_is_wanted_is_waited_for():
    script, problem = Script(steps=pdf(300)), list[Extent]()
    document = await read_with(script, Reading(source=b"words", last_page=2), problem.append)
    assert document.elements[-1].text == "text of 2"
    assert [extent.pages for extent in problem] == [0, 1, 2]
    assert document.page_count == 300
    assert script.closed == 1


async def test_D9_a_text_without_pages_is_read_to_its_end_whatever_page_is_wanted():
    script = Script(steps=[DocumentStart(), *[FoundElements(elements=page(1, "a").elements, pages=9)] * 2, *pdf(0)])
    document = await read_with(script, Reading(source=b"words", last_page=1))
    assert len(document.elements) == 4


def test_F12_the_stored_type_says_what_a_file_is_then_its_name():
    assert format_of("application/pdf", "a.txt") == "pdf"
    assert format_of("text/html; charset=utf-8", "a") == "html"
    assert format_of("application/octet-stream", "A.DOCX") == "docx"
    assert format_of("", "page.htm") == "html"
    assert format_of("text/plain", "a.csv") == "txt"
    assert format_of("text/x-python", "a.py") == "txt"
    assert format_of("image/png", "a.pdf") == "txt"
    assert format_of("", "Makefile") == "txt"
