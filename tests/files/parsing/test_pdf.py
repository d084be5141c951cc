"""D6: pages of a PDF arrive as they are read. Scans are announced, or read by OCR if enabled."""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest

from recto.config.file_settings import ParseLimits
from recto.conversation.document import Element
from recto.files.parsing.formats.parse import parse
from recto.files.parsing.formats.pdf.pdf_document import BY_OCR, CHUNKS, LOST_IN_A_ROW, PLAIN, complete_page, reader_for
from recto.files.parsing.formats.pdf.pdfium import PageSight, open_pdf
from recto.files.parsing.ports import DocumentStart, Failed, FoundElements, Task
from tests.documents import content
from tests.files.parsing.a_pdf import FONTS, one_page, stream, words_at
from tests.files.parsing.reading import join_pdfs, read, read_document, squeezed

LONG, SCAN, LETTER = ((content.HERE / f"{name}.pdf").read_bytes() for name in ("long", "scan", "letter"))
EMPTY = (
    b"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n"
    b"3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>\nendobj\ntrailer\n<</Root 1 0 R>>\n"
)


def sight(text: str) -> PageSight:
    return PageSight(text=text, links=(), remarks=(), tables=(), is_scan=False)


def founds(data: bytes) -> Iterator[FoundElements]:
    frames = parse(data, Task(format="pdf", name="it.pdf"))
    return (frame for frame in frames if isinstance(frame, FoundElements))


def texts_of(pages: Sequence[FoundElements]) -> list[str]:
    return [element.text for page in pages for element in page.elements]


def test_D6_the_first_pages_are_there_before_the_rest_is_read():
    first = list(islice(founds(LONG), 2))
    assert first[0].pages <= CHUNKS[0]
    assert first[1].pages <= CHUNKS[0] + CHUNKS[1]
    assert texts_of(first)[0] == "[page 1]"


def test_D6_a_scan_says_that_it_has_no_text_and_what_to_do():
    reading = read_document("scan.pdf")
    assert reading.start == DocumentStart(unit="page", page_count=1)
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
    reading = read(join_pdfs(LETTER, SCAN, SCAN), "pdf")
    assert reading.elements[0].text.startswith("[2 of 3 pages are scans: ")
    assert squeezed(content.ENDING) in squeezed(reading.text)
    assert [one.text for one in reading.elements if one.page == 3] == ["[page 3]", "[page 3 has no text: it is a scan]"]


def test_D6_the_first_pages_wait_for_no_look_at_the_others():
    notes = [
        [one.text.partition(":")[0] for one in read(join_pdfs(*parts), "pdf").elements if one.kind in ("page", "note")]
        for parts in ([SCAN] * 5, [EMPTY] * 4 + [SCAN, EMPTY, SCAN])
    ]
    marks = [f"[page {number}]" for number in range(1, 8)]
    assert notes[0] == ["[Pages of this document are scans", *marks[:5]]
    assert notes[1] == [*marks[:4], "[Pages of this document are scans", *marks[4:]]


@pytest.fixture
def tesseract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install an OCR program that returns the same text for every picture."""
    program = tmp_path / "tesseract"
    program.write_text(
        '#!/bin/sh\n[ "$1" = --list-langs ] && printf "Languages:\\neng\\n" && exit\n'
        'cat > /dev/null\nprintf "Envelope 1234\\n\\nwords of a scan\\n"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


@pytest.mark.usefixtures("tesseract")
def test_D7_that_scans_are_read_is_told_once_before_the_first_of_them():
    task = Task(format="pdf", name="it.pdf", ocr="eng")
    batches = [one for one in parse(join_pdfs(LETTER, SCAN, SCAN), task) if isinstance(one, FoundElements)]
    problem = [one.scans for one in batches]
    assert (problem.count(True), batches[problem.index(True)].pages) == (1, 1)
    after = texts_of(batches[problem.index(True) + 1 :])
    assert after == ["[page 2]", BY_OCR, *(words := ["Envelope 1234", "words of a scan"]), "[page 3]", BY_OCR, *words]
    assert not any(one.scans for one in parse(LETTER, task) if isinstance(one, FoundElements))


@pytest.mark.usefixtures("tesseract")
def test_D7_only_so_many_scans_are_read():
    reading = read(join_pdfs(SCAN, SCAN), "pdf", ocr="eng", limits=ParseLimits(ocr_pages=1))
    assert reading.texts("paragraph")[-2:] == [
        "words of a scan",
        "[page 2 has no text: it is a scan, and only 1 scans of a document are read]",
    ]


@pytest.mark.full
def test_D6_a_scan_is_read_where_tesseract_is_installed():
    if reader := reader_for("chi_sim+eng"):
        # Chinese needs its language.
        lines = content.SCAN if len(reader.languages) > 1 else content.SCAN[1:2]
        text = squeezed(read_document("scan.pdf", ocr="chi_sim+eng").text)
        assert all(squeezed(line) in text for line in lines)


@pytest.mark.usefixtures("tesseract")
@pytest.mark.parametrize(
    ("ocr", "problem"), [("", ["[page 1 has little text: it is a scan]"]), ("eng", [BY_OCR, "words of a scan"])]
)
def test_D6_a_scan_with_a_stamp_on_it_is_a_scan_and_keeps_the_text_of_the_stamp(ocr: str, problem: list[str]):
    reading = read(with_picture("Envelope 1234", share=0.9), "pdf", ocr=ocr)
    assert [one.text for one in reading.elements if one.page == 1] == ["[page 1]", "Envelope 1234", *problem]
    assert [one.text.partition(":")[0] for one in reading.elements if not one.page] == (
        [] if ocr else ["[This document is a scan"]
    )


@pytest.mark.parametrize(("words", "share"), [("Envelope 1234", 0.4), ("many words " * 20, 0.9)])
def test_D6_a_page_with_a_small_picture_or_with_text_is_no_scan(words: str, share: float):
    assert "scan" not in read(with_picture(words, share), "pdf").text


@pytest.mark.usefixtures("tesseract")
def test_D6_languages_that_tesseract_lacks_are_left_out_and_a_scan_says_so_where_none_is_left():
    assert reader_for("") is None
    assert (reader := reader_for("no_such_language+eng")) and reader.languages == ("eng",)
    reading = read_document("scan.pdf", ocr="no_such_language+neither_this")
    assert "OCR is not installed here, or not in these languages" in reading.elements[0].text
    assert reading.elements[-1].text == "[page 1 has no text: it is a scan]"


@pytest.mark.parametrize(
    ("xberg_text", "pdfium_text", "is_bare"),
    [
        ("many words of the page", "many words of the page", False),
        ("words in a table | set apart", "words in a table set apart", False),
        ("only a part", "only a part of all the words that stand on the page", True),
        *((None, "a whole page of words that were not found", True), (None, "few", True)),
        *(("天 地\n行 势\n健 坤", "天行健\n地势坤", True), ("天 地 行", "天 地 行", False)),
        ("left one left two right one right two", "left one right one\nleft two right two", False),
        (None, " ", False),
    ],
)
def test_D6_where_much_was_missed_the_bare_text_of_a_page_stands(
    xberg_text: str | None, pdfium_text: str, is_bare: bool
):
    structured = [Element(kind="heading", text=xberg_text, page=7)] if xberg_text else []
    bare = [Element(kind="paragraph", text=pdfium_text, page=7)]
    assert complete_page(structured, sight(f" {pdfium_text}\n"), 7) == (bare if is_bare else structured)


LONGER = " More of its words." * 9


def test_D6_lines_that_were_missed_stand_where_pdfium_sees_them():
    table = Element(kind="table", text="| a | 1 |\n| --- | --- |\n| b | 2 |", page=7, rows=(("a", "1"), ("b", "2")))
    words = Element(kind="paragraph", text=f"The first words of the page, then an eﬀort.{LONGER}", page=7)
    lines = ["Running head", "The first words of", f"the page, then an effort.{LONGER}", "Finding: 42 per cent"]
    page_text = "\n".join([*lines, "n = 17", "a 1", "b 2", "图一"])
    assert complete_page([words, table], sight(page_text), 7) == [
        Element(kind="paragraph", text="Running head", page=7),
        words,
        Element(kind="paragraph", text="Finding: 42 per cent\nn = 17", page=7),
        table,
        Element(kind="paragraph", text="图一", page=7),
    ]


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


def test_D6_a_pdf_that_lost_its_end_is_read_as_far_as_it_can_be():
    reading = read(LETTER[: LETTER.rindex(b"startxref")], "pdf")
    assert squeezed(content.PARAGRAPHS[0]) in squeezed(reading.text)


def test_D7_what_takes_too_long_goes_on_without_headings_and_tables():
    reading = read(LONG, "pdf", limits=ParseLimits(seconds=1e-9))
    assert [one.text for one in reading.elements if not one.page] == [PLAIN]
    assert {one.page for one in reading.elements if one.kind == "heading"} == {1, 2, 3, 4}
    assert [one.page for one in reading.elements if one.kind == "page"] == list(range(1, 301))
    whole = [squeezed(one.text.lstrip("# ")) for one in read(LONG, "pdf").elements if one.page == 9]
    assert all(words in squeezed(reading.text) for words in whole)


# Annotations


def text_operator(words: str) -> str:
    return stream(f"BT /F 12 Tf 2 5 Td ({words}) Tj ET", f"/Type/XObject/Subtype/Form/BBox[0 0 250 25]{FONTS}")


def with_picture(words: str, share: float) -> bytes:
    picture = stream("@" * 100, "/Subtype/Image/Width 10/Height 10/ColorSpace/DeviceGray/BitsPerComponent 8")
    return one_page(f"q 600 0 0 {800 * share} 0 0 cm /I Do Q BT /F 8 Tf 72 20 Td ({words}) Tj ET", picture)


def test_D6_a_figure_that_the_parser_leaves_out_is_kept():
    prose = [
        words_at(72, 760 - 14 * number, f"{number}. Words of a page that go on for a line.") for number in range(9)
    ]
    figure = words_at(90, 560, "Finding: 42 per cent of patients") + words_at(90, 540, "n = 17, p = 0.04")
    after = words_at(72, 500, "Figure 1. What was found.")
    data = one_page("".join(prose) + f"/Artifact <</Type/Pagination>> BDC {figure} EMC {after}")
    assert read(data, "pdf").texts("paragraph")[-2:] == [
        "Finding: 42 per cent of patients\nn = 17, p = 0.04",
        "Figure 1. What was found.",
    ]


def test_D6_what_was_filled_into_a_form_and_written_onto_a_page_is_read():
    field = "/Subtype/Widget/Rect[150 640 400 665]"
    on_top = [
        f"<<{field}/FT/Tx/T(name)/V(Ann Lee)/AP<</N 7 0 R>>>>",
        "<</Subtype/FreeText/Contents(typed here)/Rect[72 400 300 430]/AP<</N 8 0 R>>>>",
        *(f"<<{field}/FT/Ch/T(city)/V(Paris)>>", f"<<{field}/FT/Btn/T(agree)/V/Yes/AS/Yes>>"),
        *(f"<<{field}/FT/Btn/T(refuse)/V/Off/AS/Off>>", f"<<{field}/FT/Tx/T(empty)>>"),
        "<</Subtype/Text/Contents(please change)/Rect[400 700 420 720]>>",
        "<</Subtype/Text/Contents(never seen)/F 2/Rect[400 700 420 720]>>",
        "<</Subtype/Popup/Contents(said twice)/Rect[400 700 420 720]>>",
        "<</Subtype/Link/Contents(a link)/Rect[72 640 140 660]/A<</S/URI/URI(https://example.com/)>>>>",
    ]
    data = one_page(
        "BT /F 12 Tf 72 645 Td (Full name:) Tj ET",
        "<<>>",
        text_operator("Ann Lee"),
        text_operator("typed here"),
        fields=f"/Annots[{' '.join(on_top)}]",
    )
    texts = [one.text for one in read(data, "pdf").elements]
    assert squeezed("".join(texts[:-4])) == squeezed("[page 1] Full name: Ann Lee typed here")
    assert texts[-4:] == [
        *("[form field] city: Paris", "[form field] agree: Yes", "[comment] please change"),
        "Links: [Full name:](https://example.com/)",
    ]


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
