"""File names: their stored form and their form in a header (P9)."""

import unicodedata
from email.message import Message

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.conversation.file_formats import ending_of
from recto.files.file_names import content_disposition, safe_name

NASTY = st.text(
    alphabet=st.characters()
    | st.sampled_from("./\\ \0\r\n\t\"';%:\u202e\u200b\u200d\ufe0f\ufeff\u2028❤🔥👩e\u0301\u1100\u1161\ud800")
)


@pytest.mark.parametrize(
    ("given_name", "expected"),
    [
        *(("a.pdf", "a.pdf"), ("报告 2026.docx", "报告 2026.docx"), ("🔥❤️‍🔥 👩‍👩‍👧.png", "🔥❤️‍🔥 👩‍👩‍👧.png")),
        *(("/etc/passwd", "passwd"), ("C:\\Users\\me\\a.txt", "a.txt"), ("../../a.txt", "a.txt")),
        *(("folder/", "folder"), ("", "file"), ("..", "file"), ("...", "file"), (" . ", "file"), ("/", "file")),
        *((".env", ".env"), ("a\0b\r\nc.txt", "a b c.txt"), ("invoice\u202efdp.exe", "invoicefdp.exe")),
        *(("a\u200bb\ufeff.txt", "ab.txt"), ("e\u0301.txt", "é.txt"), ("a.txt. . ", "a.txt"), ("con", "_con")),
        *(("NUL.txt", "_NUL.txt"), ("com1 .tar.gz", "_com1 .tar.gz"), ("lpt¹.txt", "_lpt¹.txt")),
        *(("console.txt", "console.txt"), ("a\ud800.txt", "a\ufffd.txt"), ("x" * 300 + ".xlsx", "x" * 195 + ".xlsx")),
        *(("x" * 300, "x" * 200), ("x" * 199 + "..pdf", "x" * 196 + ".pdf")),
    ],
)
def test_P9_a_name_is_kept_as_one_that_is_safe_and_reads_as_it_is(given_name: str, expected: str):
    assert safe_name(given_name) == expected


@given(NASTY)
def test_P9_a_safe_name_is_one_short_visible_path_component(name: str):
    stored_name = safe_name(name)
    assert safe_name(stored_name) == stored_name
    assert 0 < len(stored_name) <= 201
    assert not set(stored_name) & set("/\\\0")
    assert stored_name.strip(". ") != ""
    assert stored_name == unicodedata.normalize("NFC", stored_name)
    assert all(unicodedata.category(one) not in {"Cc", "Cs", "Zl", "Zp"} for one in stored_name)
    assert not any(
        unicodedata.bidirectional(one) in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI"} for one in stored_name
    )
    stored_name.encode()


@given(NASTY, st.booleans())
def test_P9_a_header_names_the_file_whatever_its_name_is(name: str, inline: bool):
    value = content_disposition(name, inline)
    assert value.isascii()
    assert value.isprintable()
    message = Message()
    message["Content-Disposition"] = value
    assert message.get_content_disposition() == ("inline" if inline else "attachment")
    params = [key for key, _ in message.get_params(header="Content-Disposition", failobj=[])][1:]
    assert params in (["filename"], ["filename", "filename"], ["filename", "filename*"])


def test_P9_a_plain_name_stands_in_the_header_once_and_another_twice():
    assert content_disposition("a b.pdf", inline=True) == 'inline; filename="a b.pdf"'
    problem = content_disposition('报"告.pdf', inline=False)
    assert problem == "attachment; filename=\"___.pdf\"; filename*=UTF-8''%E6%8A%A5%22%E5%91%8A.pdf"
    # A name that looks encoded is not decoded by browsers.
    assert content_disposition("a%41.txt", inline=True) == "inline; filename=\"a_41.txt\"; filename*=UTF-8''a%2541.txt"


@pytest.mark.parametrize(
    ("name", "ending"), [("a.PDF", "pdf"), ("a.tar.gz", "gz"), ("a", ""), (".env", ""), ("a.", ""), ("", "")]
)
def test_F12_an_ending_is_read_in_lower_case(name: str, ending: str):
    assert ending_of(name) == ending
