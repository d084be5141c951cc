"""What a file from the web is called (F12)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.files.fetch.web_names import web_name, with_ending
from recto.files.types.names import safe_name

PDF, HTML = "application/pdf", "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("disposition", "url", "mime_type", "name"),
    [
        ('attachment; filename="a.pdf"', "https://a.example/b.txt", PDF, "a.pdf"),
        ("attachment; filename=a.pdf", "https://a.example/", PDF, "a.pdf"),
        (
            "inline; filename=\"plain.pdf\"; filename*=UTF-8''%E6%8A%A5%E5%91%8A.pdf",
            "https://a.example/",
            PDF,
            "报告.pdf",
        ),
        ("attachment; filename*=ISO-8859-1''%E4.pdf", "https://a.example/", PDF, "ä.pdf"),
        ("attachment; filename*=nonsense''a.pdf; filename=b.pdf", "https://a.example/", PDF, "a.pdf"),
        ('attachment; filename="%E6%8A%A5.pdf"', "https://a.example/", PDF, "报.pdf"),
        ('attachment; filename="../../etc/passwd"', "https://a.example/", "text/plain", "passwd.txt"),
        ('attachment; filename="报告.pdf"', "https://a.example/", PDF, "报告.pdf"),
        ("attachment", "https://a.example/b.pdf", PDF, "b.pdf"),
        ("; ;;=", "https://a.example/b.pdf", PDF, "b.pdf"),
        (None, "https://a.example/x/%E6%8A%A5.PDF", PDF, "报.PDF"),
        (None, "https://a.example/get?filename=c.docx", "application/octet-stream", "c.docx"),
        (None, "https://a.example/b.pdf?filename=c", PDF, "b.pdf"),
        (None, "https://a.example/pdf/2301.12345", PDF, "2301.12345.pdf"),
        (None, "https://a.example/download.php?id=3", PDF, "download.php.pdf"),
        (None, "https://a.example/source.php", "text/plain", "source.php"),
        (None, "https://a.example/page.aspx", HTML, "page.aspx.html"),
        (None, "https://a.example/page", HTML, "page.html"),
        (None, "https://a.example/", HTML, "file.html"),
        (None, "https://a.example/data.bin", "application/octet-stream", "data.bin"),
        (None, "https://a.example/a%2Fb%5Cc.txt", None, "c.txt"),
        (None, "https://a.example/", None, "file"),
    ],
)
def test_F12_a_file_is_called_what_its_server_or_its_url_calls_it(
    disposition: str | None, url: str, mime_type: str | None, name: str
):
    assert web_name(disposition, [url], mime_type) == name


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
