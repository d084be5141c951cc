"""D6, D9: real documents of LibreOffice keep every sentence, heading, cell, link, note and name."""

import pytest

from recto.files.parsing.ports import DocumentStart, Failed
from tests.documents import content
from tests.documents.content import PARAGRAPHS, SHEETS, SLIDES
from tests.files.parsing.reading import read_document, squeezed

LETTERS = ("docx", "doc", "odt", "rtf", "epub", "html", "pdf")
STRUCTURED = ("docx", "odt", "rtf", "html")
SENTENCES = (
    *(content.TITLE, *PARAGRAPHS, content.LINK_BEFORE, content.LINK_TEXT, content.DATA_HEADING, content.STEPS_HEADING),
    *(*content.ITEMS, content.INNER_ITEM, *content.STEPS, content.NOTE_TEXT, content.FOOTNOTE, content.ENDING),
)


@pytest.mark.parametrize("form", LETTERS)
def test_D6_every_sentence_of_a_letter_is_read_in_order(form: str):
    text = squeezed(read_document(f"letter.{form}").text)
    for sentence in SENTENCES:
        assert squeezed(sentence) in text, sentence
    in_order = (content.TITLE, *PARAGRAPHS, content.DATA_HEADING, content.STEPS_HEADING, *content.STEPS, content.ENDING)
    places = [text.index(squeezed(one)) for one in in_order]
    assert places == sorted(places)


@pytest.mark.parametrize("form", ["docx", "odt", "rtf", "html"])
def test_D6_headings_have_their_level(form: str):
    headings = [(one.level, one.text) for one in read_document(f"letter.{form}").elements if one.kind == "heading"]
    assert headings == [
        (1, f"# {content.TITLE}"),
        (2, f"## {content.DATA_HEADING}"),
        (2, f"## {content.STEPS_HEADING}"),
    ]


@pytest.mark.parametrize("form", [*STRUCTURED, "epub", "doc", "pdf"])
def test_D9_a_table_is_markdown_and_its_cells_are_data(form: str):
    reading = read_document(f"letter.{form}")
    assert reading.cells() == list(content.TABLE)
    assert reading.texts("table") == [
        "| 城市 City | 收入 Revenue | 备注 Remark |\n"
        "| --- | --- | --- |\n"
        "| 北京 Beijing | 1,200 | 稳定 steady |\n"
        "| 上海 Shanghai | 3,400 | 甲\\|乙 |\n"
        "| 广州 Guangzhou | 560 | 新开 opened |"
    ]


@pytest.mark.parametrize("form", ["docx", "odt", "rtf", "epub", "html", "pdf"])
def test_D6_links_are_kept_as_markdown(form: str):
    text = read_document(f"letter.{form}").text
    assert f"[{content.LINK_TEXT}]({content.LINK_URL})" in text
    # Links within the document have no target outside.
    assert "](#" not in text


@pytest.mark.parametrize("form", ["docx", "doc", "rtf", "html", "odt"])
def test_D6_items_are_nested_and_steps_numbered_and_footnotes_say_that_they_are(form: str):
    reading = read_document(f"letter.{form}")
    items = {one.text.lstrip(" -*.0123456789"): one.level for one in reading.elements}
    assert items[content.INNER_ITEM] == 2
    assert [items[item] for item in (*content.ITEMS, *content.STEPS)] == [1] * 5
    if form != "html":
        assert reading.texts("item")[-2:] == [f"1. {content.STEPS[0]}", f"2. {content.STEPS[1]}"]
    if form not in ("html", "rtf"):
        assert reading.texts("note") == [f"[footnote] {content.FOOTNOTE}"]


@pytest.mark.parametrize("form", ["xlsx", "xls", "ods"])
def test_D6_every_sheet_has_its_name_and_every_cell(form: str):
    reading = read_document(f"book.{form}")
    assert reading.start == DocumentStart(unit="sheet", page_count=30)
    assert reading.texts("page") == [
        f"[sheet {number}: {sheet.name}{' (hidden)' if sheet.is_hidden else ''}]"
        for number, sheet in enumerate(SHEETS, 1)
    ]
    tables = [(one.page, one.rows) for one in reading.elements if one.kind == "table"]
    assert tables == [(number, sheet.rows) for number, sheet in enumerate(SHEETS, 1)]
    assert "| 梨\\|pear | 2025-02-02 | 12 |" in reading.text


@pytest.mark.parametrize("form", ["pptx", "ppt", "odp"])
def test_D6_every_slide_has_its_title_lines_links_table_and_notes_in_place(form: str):
    reading = read_document(f"deck.{form}")
    assert reading.start == DocumentStart(unit="slide", page_count=10)
    for number, slide in enumerate(SLIDES, 1):
        elements = [(one.kind, one.text) for one in reading.elements if one.page == number]
        assert elements[:2] == [("page", f"[slide {number}]"), ("heading", f"## {slide.title}")]
        assert elements[-1] == ("note", f"[speaker notes] {slide.note}")
        texts = [text.strip(" -") for _, text in elements]
        assert texts[2:4] == list(slide.lines)
        assert form == "ppt" or f"[{content.SLIDE_LINK_TEXT}]({slide.link})" in "\n".join(texts)
        assert [row for one in reading.elements if one.page == number for row in one.rows] == list(slide.rows)


def test_D6_slides_in_a_pdf_have_their_words_links_and_table():
    reading = read_document("deck.pdf")
    for number, slide in enumerate(SLIDES, 1):
        elements = [one for one in reading.elements if one.page == number]
        text = squeezed("\n".join(one.text for one in elements))
        assert elements[0].text == f"[page {number}]"
        assert all(squeezed(words) in text for words in (slide.title, *slide.lines))
        assert f"]({slide.link})" in text
        assert [row for one in elements for row in one.rows] == list(slide.rows)


def test_D6_three_hundred_pages_are_read_each_in_its_place():
    reading = read_document("long.pdf")
    assert reading.start == DocumentStart(unit="page", page_count=300)
    assert reading.texts("page") == [f"[page {number}]" for number in range(1, 301)]
    for number, page in enumerate(content.LONG_PAGES, 1):
        text = squeezed("".join(one.text for one in reading.elements if one.page == number))
        assert all(squeezed(line) in text for line in page), number


@pytest.mark.parametrize("form", ["pdf", "docx", "doc", "odt", "xls"])
def test_D6_a_document_with_a_password_says_so(form: str):
    assert read_document(f"secret.{form}").frames == (
        Failed(
            code="encrypted",
            reason="it is protected by a password, and so cannot be read. Ask the user for a copy without one.",
        ),
    )


@pytest.mark.parametrize(("encoding", "text"), content.TEXTS.items())
def test_D6_a_text_is_read_in_its_encoding(encoding: str, text: str):
    reading = read_document(f"text.{encoding}.txt")
    assert (reading.text, reading.start) == (text, DocumentStart())
    # A web page declares its own.
    assert read_document("page.gb2312.html").text == "\n\n".join((f"# {content.TITLE}", *PARAGRAPHS))


@pytest.mark.parametrize(("encoding", "rows"), content.CSV_ROWS.items())
def test_D6_a_table_in_text_is_read_in_its_encoding(encoding: str, rows: tuple[tuple[str, ...], ...]):
    reading = read_document(f"table.{encoding}.csv")
    assert reading.cells() == list(rows)
    assert reading.texts("table") == [reading.text]


@pytest.mark.parametrize("form", ["eml", "msg"])
def test_D6_mail_says_who_wrote_to_whom_about_what(form: str):
    text = read_document(f"mail.{form}").text
    for words in (
        content.SUBJECT,
        content.SENDER,
        "ann@example.com",
        content.SENT_TIME,
        *content.BODY,
        content.ATTACHMENT_NAME,
    ):
        assert words in text
    places = [text.index(words) for words in (content.SENDER, *content.BODY, content.ATTACHMENT_NAME)]
    assert places == sorted(places)
    # A body in two forms is read once.
    assert all(text.count(line) == 1 for line in content.BODY)
