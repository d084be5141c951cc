"""D6: pages of a PDF come as they are read; scans say that they are, or are read where that is asked for."""

from collections.abc import Iterator, Sequence
from importlib import import_module
from io import BytesIO
from itertools import islice
from typing import Protocol, cast

import pytest

from recto.files.parsing.ocr import reader_for
from recto.files.parsing.parse import parse
from recto.files.parsing.pdf import BY_OCR, CHUNKS, LOST_IN_A_ROW, fuller
from recto.files.parsing.pdfium import open_pdf
from recto.files.parsing.ports import Failed, Found, Opened, ParseLimits, Task
from recto.page.document import Element
from tests.documents import content
from tests.files.parsing.reading import read, read_document, squeezed

LONG, SCAN, LETTER = ((content.HERE / f"{name}.pdf").read_bytes() for name in ("long", "scan", "letter"))
EMPTY = (
    b"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n"
    b"3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>\nendobj\ntrailer\n<</Root 1 0 R>>\n"
)
LANGUAGES = "chi_sim+eng"


class Joining(Protocol):
    """What of pypdfium2 joins documents."""

    def import_pages(self, pdf: object, /) -> None: ...
    def save(self, dest: object, /) -> None: ...


class Library(Protocol):
    class PdfDocument:
        def __init__(self, data: bytes, /) -> None: ...
        @staticmethod
        def new() -> Joining: ...


def joined(*documents: bytes) -> bytes:
    library = cast("Library", import_module("pypdfium2"))
    new = library.PdfDocument.new()
    for document in documents:
        new.import_pages(library.PdfDocument(document))
    out = BytesIO()
    new.save(out)
    return out.getvalue()


def founds(data: bytes) -> Iterator[Found]:
    frames = parse(data, Task(format="pdf", name="it.pdf"))
    return (frame for frame in frames if isinstance(frame, Found))


def texts_of(pages: Sequence[Found]) -> list[str]:
    return [element.text for page in pages for element in page.elements]


def test_D6_the_first_pages_are_there_before_the_rest_is_read():
    first = list(islice(founds(LONG), 2))
    assert first[0].pages <= CHUNKS[0]
    assert first[1].pages <= CHUNKS[0] + CHUNKS[1]
    assert texts_of(first)[0] == "[page 1]"


def test_D6_a_scan_says_that_it_has_no_text_and_what_to_do():
    reading = read_document("scan.pdf")
    assert reading.opened == Opened(unit="page", page_count=1)
    assert [(one.kind, one.text) for one in reading.elements] == [
        (
            "note",
            "[This document is a scan: pictures without text, and OCR is off. "
            "Ask the user for a copy with text, or for the words that matter, where they are needed.]",
        ),
        ("page", "[page 1]"),
        ("paragraph", "[page 1 has no text: it is a scan]"),
    ]


def test_D6_among_other_pages_scans_are_counted_and_say_so_in_their_place():
    reading = read(joined(LETTER, SCAN, SCAN), "pdf")
    assert reading.elements[0].text.startswith("[2 of 3 pages are scans: ")
    assert squeezed(content.ENDING) in squeezed(reading.text)
    assert [one.text for one in reading.elements if one.page == 3] == [
        "[page 3]",
        "[page 3 has no text: it is a scan]",
    ]


@pytest.mark.full
def test_D6_a_scan_is_read_where_tesseract_is_installed():
    reading = read_document("scan.pdf", ocr=LANGUAGES)
    if reader_for(LANGUAGES) is None:
        assert "OCR is not installed here, or not in these languages" in reading.elements[0].text
        assert reading.elements[-1].text == "[page 1 has no text: it is a scan]"
        return
    assert [one.text for one in reading.elements[:2]] == ["[page 1]", BY_OCR]
    text = squeezed(reading.text)
    # Chinese is read where its language is there too.
    known = content.SCAN if reader_for("chi_sim") else content.SCAN[1:2]
    assert all(squeezed(line) in text for line in known)


@pytest.mark.full
def test_D6_only_so_many_scans_are_read():
    limits = ParseLimits(ocr_pages=1)
    reading = read(joined(SCAN, SCAN), "pdf", ocr=LANGUAGES, limits=limits)
    last = reading.elements[-1].text
    if reader_for(LANGUAGES) is None:
        assert last == "[page 2 has no text: it is a scan]"
    else:
        assert last == "[page 2 has no text: it is a scan, and only 1 scans of a document are read]"


def test_D6_languages_that_tesseract_lacks_are_left_out():
    assert reader_for("") is None
    assert reader_for("no_such_language+neither_this") is None
    reader = reader_for("no_such_language+eng")
    assert reader is None or reader.languages == ("eng",)


@pytest.mark.parametrize(
    ("found", "seen", "is_bare"),
    [
        ("many words of the page", "many words of the page", False),
        ("words in a table | set apart", "words in a table set apart", False),
        ("only a part", "only a part of all the words that stand on the page", True),
        (None, "a whole page of words that were not found", True),
        (None, "few", True),
    ],
)
def test_D6_where_much_was_missed_the_bare_text_of_a_page_stands(found: str | None, seen: str, is_bare: bool):
    structured = [Element(kind="heading", text=found, page=7)] if found else []
    bare = [Element(kind="paragraph", text=seen, page=7)]
    assert fuller(structured, f" {seen}\n", 7) == (bare if is_bare else structured)


def test_D6_a_page_without_words_has_no_element():
    assert fuller([], " \n", 7) == []


@pytest.mark.parametrize("box", [b"0 0 9 9", b"0 0 14400 14400", b"0 0 14400 3"])
def test_D6_a_picture_of_a_page_is_bounded(box: bytes):
    with open_pdf(EMPTY.replace(b"0 0 9 9", box)) as pdf:
        head, _, pixels = pdf.picture(0).partition(b"\n")
    kind, width, height, most = head.split()
    assert (kind, most) == (b"P5", b"255")
    assert len(pixels) == int(width) * int(height) <= 12_100_000


def test_D6_a_page_without_anything_is_only_marked():
    reading = read(EMPTY, "pdf")
    assert reading.texts("page", "paragraph", "note") == ["[page 1]"]


@pytest.mark.parametrize("data", [b"", b"%PDF-1.7\nnothing", b"words", LONG[:2_000]])
def test_D6_a_damaged_pdf_says_so(data: bytes):
    assert read(data, "pdf").frames == (
        Failed(
            code="damaged",
            reason="it is damaged, or is not what its name says. Ask the user to open it, save it anew and send that.",
        ),
    )


def test_D6_a_pdf_that_lost_its_end_is_read_as_far_as_it_can_be():
    reading = read(LETTER[: LETTER.rindex(b"startxref")], "pdf")
    assert squeezed(content.PARAGRAPHS[0]) in squeezed(reading.text)


# Damaged pages


def with_lost_pages(count: int) -> bytes:
    kids = "3 0 R " + "9 0 R " * count + "3 0 R"
    return EMPTY.replace(b"/Kids[3 0 R]/Count 1", f"/Kids[{kids}]/Count {count + 2}".encode())


def test_D6_a_damaged_page_says_so_and_the_next_is_read():
    pages = list(founds(with_lost_pages(1)))
    assert texts_of(pages) == ["[page 1]", "[page 2]", "[page 2 is damaged and cannot be read]", "[page 3]"]


def test_D7_a_file_that_only_claims_to_have_pages_is_not_tried_for_all_of_them():
    pages = list(founds(with_lost_pages(400)))
    assert pages[-1].pages == 1 + LOST_IN_A_ROW
    assert texts_of(pages)[-1] == "[the pages after it, up to 402, were not tried any more]"


def test_D7_a_page_tree_that_loops_has_no_pages_and_is_damaged():
    looping = EMPTY.replace(b"/Kids[3 0 R]/Count 1", b"/Kids[2 0 R 2 0 R]/Count 9999")
    (failed,) = parse(looping, Task(format="pdf", name="it.pdf"))
    assert isinstance(failed, Failed)
    assert failed.code == "damaged"
