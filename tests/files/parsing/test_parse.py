"""D6: the choice of a parser, and reasons for unreadable bytes."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recto.conversation.document import text_of
from recto.conversation.file_formats import FORMATS
from recto.files.decode import decode
from recto.files.parsing.formats.plain_text import PIECE_CHARACTERS, split_text
from recto.files.parsing.ports import DocumentStart, Failed
from tests.documents import content
from tests.documents.compound import compound_file
from tests.files.heads import BINARY, ELF, GZIP, PNG
from tests.files.parsing.hostile import package
from tests.files.parsing.reading import assert_legal, read

DAMAGED = Failed(
    code="damaged",
    reason="it is damaged, or is not what its name says. Ask the user to open it, save it anew and send that.",
)
CONTAINERS = ("docx", "xlsx", "pptx", "odt", "ods", "odp", "odg", "epub", "doc", "xls", "ppt", "msg", "rtf", "pdf")
VERBATIM = ("txt", "log", "md", "json", "jsonl", "xml", "yaml", "toml", "ini", "py", "c", "sql", "", "unknown")


@pytest.mark.parametrize("form", VERBATIM)
def test_D6_texts_are_given_as_they_are_written(form: str):
    text = "# 标题\n\n<a>b</a>\t{'c': 1}  \r\n| d |\n"
    reading = read(text.encode("gb18030"), form)
    assert reading.text == text
    assert reading.texts("text") == [text]


@given(text=st.text(alphabet=st.characters(exclude_categories=("Cs",))), repeats=st.sampled_from([1, 40, 9_000]))
@example(text="a line\n", repeats=9_000)
@example(text="x", repeats=9_000)
def test_D6_pieces_of_a_text_make_exactly_the_text(text: str, repeats: int):
    elements = list(split_text([text] * repeats))
    assert text_of(elements) == text * repeats
    assert all(0 < len(one.text) <= PIECE_CHARACTERS for one in elements)
    # Each except the last ends at a line end, unless the line is too long.
    assert all(one.text.endswith("\n") or "\n" not in one.text for one in elements[:-1])


@given(data=st.binary(max_size=400))
def test_D6_bytes_of_no_known_format_are_text_or_refused(data: bytes):
    reading, text = read(data, "bin"), decode(data)
    if not data.startswith(b"{\\rtf") and b"%PDF" not in data:
        assert reading.text == (text or "")
        assert isinstance(reading.frames[0], Failed) == (text is None)


@pytest.mark.parametrize("data", [PNG, ELF, GZIP, BINARY, package({"a": "b"})])
@pytest.mark.parametrize("form", ["bin", "txt", "csv", "html"])
def test_D6_bytes_that_are_no_text_say_what_can_be_read(data: bytes, form: str):
    assert read(data, form).frames == (
        Failed(
            code="not_text",
            reason=(
                "it has no text that can be read. What can be: pdf, docx, doc, odt, rtf, xlsx, xls, ods, pptx, ppt, "
                "odp, odg, epub, html, eml, msg, csv, tsv, ipynb, and texts of every kind. Ask the user for one of "
                "these."
            ),
        ),
    )


@pytest.mark.parametrize("form", CONTAINERS)
def test_D6_bytes_that_are_not_what_the_format_says_are_damaged(form: str):
    assert read(BINARY, form).frames == (DAMAGED,)
    assert form in ("doc", "xls") or read("just words 文字".encode(), form).frames == (DAMAGED,)
    assert read(package({"a": "b"}), form).frames == (DAMAGED,)
    assert read(compound_file({"Contents": b"nothing"}), form).frames == (DAMAGED,)


@pytest.mark.parametrize("data", [b"", BINARY, PNG, "没有信头的文字".encode(), b"Subject: x\n\n\0\0\0"])
def test_D6_what_does_not_begin_like_mail_is_none(data: bytes):
    assert read(data, "eml").frames == (DAMAGED,)


def test_D6_mail_from_a_mailbox_is_read():
    letter = "\ufeffFrom ann Mon Jul 14\r\nFrom: ann@example.com\r\nContent-Type: text/plain; charset=gb2312\r\n\r\n"
    text = read(letter.encode() + "正文没有编码。".encode("gb2312"), "eml").text
    assert "ann@example.com" in text
    assert text.endswith("正文没有编码。")


@pytest.mark.parametrize("form", ["docx", "xlsx", "pptx", "doc", "xls", "ppt"])
def test_D6_a_sealed_container_says_that_it_has_a_password(form: str):
    sealed = compound_file({"EncryptionInfo": b"\4\0\4\0", "EncryptedPackage": bytes(5_000)})
    assert read(sealed, form).failed.code == "encrypted"


@pytest.mark.parametrize("form", ["ods", "odp", "odg"])
def test_D6_an_open_document_with_a_password_says_so(form: str):
    manifest = "<manifest:manifest><manifest:file-entry><manifest:encryption-data/></manifest:file-entry>"
    sealed = package({"META-INF/manifest.xml": manifest, "content.xml": "\x07\x08"})
    assert read(sealed, form).failed.code == "encrypted"


@pytest.mark.parametrize(("ending", "really"), [("doc", "letter.docx"), ("xls", "book.xlsx"), ("ppt", "deck.pptx")])
def test_D6_a_new_document_under_an_old_name_is_read_and_so_is_the_other_way_round(ending: str, really: str):
    stem, _, form = really.rpartition(".")
    new, old = ((content.HERE / f"{stem}.{one}").read_bytes() for one in (form, ending))
    assert read(new, ending).text == read(new, form).text
    assert read(old, form).text == read(old, ending).text


def test_D6_what_programs_write_under_old_names_is_read_as_what_it_is():
    page = "<html><body><table><tr><td>甲</td><td>乙</td></tr><tr><td>1</td><td>2</td></tr></table></body></html>"
    assert read(page.encode("gb18030"), "xls").cells() == [("甲", "乙"), ("1", "2")]
    assert read("甲\t乙\n1\t2\n".encode("utf-16"), "xls").cells() == [("甲", "乙"), ("1", "2")]
    assert read(b"{\\rtf1\\ansi hello there\\par}", "doc").text == "hello there"
    assert read("words 文字".encode(), "doc").text == "words 文字"


def test_D6_a_page_of_html_has_its_structure_and_no_more():
    page = (
        "<html><head><title>页</title><meta name='author' content='x'><style>p{}</style><script>let a=1</script></head>"
        "<body><h2>标题 *star*</h2><p>one_two <a href='https://e.example/a_b?c=1&d=2'>link</a></p>"
        "<ul><li>a<ol><li>b</li></ol></li><li>c</li></ul><pre><code>x = 1\n  y | z</code></pre>"
        "<table><tr><th>h</th></tr><tr><td>a|b<br>c</td></tr></table></body></html>"
    )
    reading = read(page.encode(), "html")
    assert [(one.kind, one.level) for one in reading.elements] == [
        ("heading", 2),
        ("paragraph", None),
        *(("item", 1), ("item", 2), ("item", 1)),
        ("code", None),
        ("table", None),
    ]
    assert reading.elements[0].text == "## 标题 *star*"
    assert reading.elements[1].text == "one_two [link](https://e.example/a_b?c=1&d=2)"
    assert reading.elements[5].text == "```\nx = 1\n  y | z\n```"
    assert reading.text.count("页") == 0
    assert reading.cells()[0] == ("h",)


@pytest.mark.parametrize("form", ["txt", "csv", "html", "md"])
def test_D6_a_document_without_text_is_one_that_has_none(form: str):
    reading = read(b"", form)
    assert reading.start == DocumentStart()
    assert reading.text == ""


@pytest.mark.full
@given(data=st.one_of(st.binary(max_size=300), st.text(max_size=100).map(str.encode)))
@pytest.mark.parametrize("form", [*[row.ending for row in FORMATS if row.kind == "document"], "xlsm", "ts", "", "bin"])
@pytest.mark.parametrize("head", [b"", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"%PDF-1.4\n", b"{\\rtf1"])
def test_D6_any_bytes_under_any_format_give_a_legal_answer(form: str, head: bytes, data: bytes):
    assert_legal(read(head + data, form).frames)
