"""Names of files from the web (F12)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.files.fetch.web_names import web_name, with_ending
from recto.files.file_names import safe_name

PDF, HTML = "application/pdf", "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        *(('attachment; filename="a.pdf"', "a.pdf"), ("attachment; filename=a.pdf", "a.pdf")),
        ("inline; filename=\"plain.pdf\"; filename*=UTF-8''%E6%8A%A5%E5%91%8A.pdf", "报告.pdf"),
        ("attachment; filename*=ISO-8859-1''%E4.pdf", "ä.pdf"),
        ("attachment; filename*=nonsense''a.pdf; filename=b.pdf", "a.pdf"),
        *(('attachment; filename="%E6%8A%A5.pdf"', "报.pdf"), ('attachment; filename="报告.pdf"', "报告.pdf")),
        *(('attachment; filename="../../etc/passwd"', "passwd.pdf"), ("attachment", "b.pdf"), ("; ;;=", "b.pdf")),
    ],
)
def test_F12_a_file_is_called_what_its_server_calls_it(disposition: str, name: str):
    assert web_name(disposition, ["https://a.example/b.pdf"], PDF) == name


@pytest.mark.parametrize(
    ("path", "mime_type", "name"),
    [
        *(("x/%E6%8A%A5.PDF", PDF, "报.PDF"), ("get?filename=c.docx", "application/octet-stream", "c.docx")),
        *(("b.pdf?filename=c", PDF, "b.pdf"), ("pdf/2301.12345", PDF, "2301.12345.pdf")),
        *(("download.php?id=3", PDF, "download.php.pdf"), ("source.php", "text/plain", "source.php")),
        *(("page.aspx", HTML, "page.aspx.html"), ("page", HTML, "page.html"), ("", HTML, "file.html")),
        *(("data.bin", "application/octet-stream", "data.bin"), ("a%2Fb%5Cc.txt", None, "c.txt"), ("", None, "file")),
    ],
)
def test_F12_a_file_without_a_name_is_called_what_its_url_calls_it(path: str, mime_type: str | None, name: str):
    assert web_name(None, [f"https://a.example/{path}"], mime_type) == name


def test_F12_of_two_urls_the_one_that_tells_what_the_file_is_names_it():
    assert web_name(None, ["https://a.example/x1", "https://b.example/report.pdf"], PDF) == "report.pdf"
    assert web_name(None, ["https://a.example/report.pdf", "https://b.example/x1"], PDF) == "report.pdf"
    assert web_name(None, ["https://a.example/first", "https://b.example/last"], PDF) == "first.pdf"


def test_F12_a_name_its_sender_gave_gets_an_ending_where_it_has_none():
    assert [with_ending(name, PDF) for name in ("report", "report.pdf", "v1.2", "")] == [
        "report.pdf",
        "report.pdf",
        "v1.2.pdf",
        "file.pdf",
    ]


@given(st.text(max_size=60), st.text(max_size=30), st.sampled_from([PDF, HTML, "text/plain", "", None]))
def test_F12_whatever_a_server_says_the_name_is_one_that_can_be_kept(header: str, value: str, mime_type: str | None):
    for disposition in (header, f"attachment; filename={value}", f"attachment; filename*=UTF-8''{value}"):
        name = web_name(disposition, ["https://a.example/b"], mime_type)
        assert name == safe_name(name)
