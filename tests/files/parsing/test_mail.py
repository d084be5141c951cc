"""D6: mail is read with its names, texts in any encoding, and attachments."""

from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.documents.content import HERE
from tests.files.parsing.reading import assert_legal, read

CHINESE = "邮件正文，价格一百元。"


def message(words: str = "words", **headers: str) -> EmailMessage:
    message_text = EmailMessage()
    for name, value in {"Subject": "about", "From": "a@example.com", **headers}.items():
        message_text[name] = value
    message_text.set_content(words)
    return message_text


def text_of_mail(message_text: EmailMessage) -> str:
    return read(message_text.as_bytes(), "eml").text


def test_D6_names_in_a_message_are_kept_with_their_addresses():
    message_text = message(To='Bea Lee <bea@example.com>, "Lee, Cem" <cem@example.com>', Cc="王 <w@example.com>")
    assert text_of_mail(message_text) == (
        'Subject: about\nFrom: a@example.com\nTo: Bea Lee <bea@example.com>, "Lee, Cem" <cem@example.com>\n'
        "Cc: 王 <w@example.com>\n\nwords"
    )


def test_D6_of_a_body_in_two_forms_the_one_with_structure_is_read():
    message_text = message("plain words")
    message_text.add_alternative("<h1>Rich</h1><p>words</p>", subtype="html")
    assert text_of_mail(message_text).endswith("\n\n# Rich\n\nwords")
    empty = message("plain words")
    empty.add_alternative("<html></html>", subtype="html")
    assert text_of_mail(empty).endswith("\n\nplain words")


def test_D6_an_attached_message_stands_apart_with_its_subject_and_sender():
    message_text = message("outer words")
    message_text.add_attachment(message("inner words", Subject="inner", From="Ina <ina@example.com>"))
    assert text_of_mail(message_text) == (
        "Subject: about\nFrom: a@example.com\n\nouter words\n\nAttachments:\n\n- inner (a message)\n\n## inner\n\n"
        "Subject: inner\nFrom: Ina <ina@example.com>\n\ninner words"
    )


def test_D6_what_is_attached_is_read_by_its_own_parser():
    message_text = message()
    book = (HERE / "book.xlsx").read_bytes()
    message_text.add_attachment(book, maintype="application", subtype="octet-stream", filename="表 book.xlsx")
    message_text.add_attachment(b"\x89PNG\r\n", maintype="image", subtype="png", filename="a.png")
    message_text.add_attachment(b"no pdf", maintype="application", subtype="pdf", filename="b.pdf")
    message_text.add_attachment(message("as a file").as_bytes(), maintype="application", subtype="x", filename="c.eml")
    reading = read(message_text.as_bytes(), "eml")
    assert reading.texts("item")[:3] == [
        f"- 表 book.xlsx ({len(book):,} bytes)",
        "- a.png (6 bytes)",
        "- b.pdf (6 bytes)",
    ]
    assert reading.texts("heading") == ["## 表 book.xlsx", "## b.pdf", "## c.eml"]
    assert reading.cells() == read(book, "xlsx").cells()
    assert not reading.texts("page")
    assert reading.texts("note")[-1].startswith("[b.pdf could not be read: it is damaged")
    assert reading.text.endswith("as a file")


@pytest.mark.parametrize(
    ("head", "charset"),
    [
        *(("", "gb18030"), ("Content-Type: text/plain; charset=gb2312\n", "gb18030")),
        ("Content-Type: text/plain; charset=us-ascii\n", "gb18030"),
        ("Content-Type: text/plain; charset=nonsense\n", "utf-8"),
        ("Content-Type: text/plain; charset=base64\n", "utf-8"),
        ("Content-Type: text/plain; charset=utf-7\nContent-Transfer-Encoding: 7bit\n", "utf-7"),
        ("Content-Type: text/plain; charset=hz-gb-2312\n", "hz"),
    ],
)
def test_D6_words_of_a_message_are_read_whatever_it_says_of_them(head: str, charset: str):
    mail_bytes = f"Subject: x\n{head}\n".encode() + CHINESE.encode(charset)
    assert read(mail_bytes, "eml").text == f"Subject: x\n\n{CHINESE}"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"=?utf-8?b?5Li76aKY?= and more", "主题 and more"),
        (b"=?gb2312?B?1vfM4g==?=\n =?gb2312?B?1vfM4g==?=", "主题主题"),
        *(
            ("主题没有编码".encode("gb18030"), "主题没有编码"),
            ("主题没有编码".encode(), "主题没有编码"),
            (b"=?nonsense?q?words?=", "words"),
        ),
        *((b"=?utf-8?b?5Li76aK?=", "主\ufffd"), (b"=?utf-8?b?5Li76?=", "=?utf-8?b?5Li76?=")),
        (b"folded\n  over lines", "folded over lines"),
    ],
)
def test_D6_a_header_is_read_whatever_it_is_written_in(header: bytes, expected: str):
    assert read(b"Subject: " + header + b"\n\nwords", "eml").text == f"Subject: {expected}\n\nwords"


def test_D6_lines_that_flow_are_joined_and_others_are_kept():
    mail_bytes = b"Subject: x\n\none\ntwo \nthree\n\n\n> said\n"
    assert read(mail_bytes, "eml").text == "Subject: x\n\none\ntwo \nthree\n\n> said"
    flowing = b"Subject: x\nContent-Type: text/plain; format=flowed\n\none \ntwo\nthree\n-- \nAnn\n"
    assert read(flowing, "eml").text == "Subject: x\n\none two\nthree\n-- \nAnn"


def test_D6_why_a_message_came_back_is_read():
    status = "Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\n"
    text = read(f"Subject: x\n{status}Reporting-MTA: m\n\nAction: failed\n\n--b--\n".encode(), "eml").text
    assert text == "Subject: x\n\nReporting-MTA: m\n\nAction: failed"


@pytest.mark.parametrize("depth", [3, 30, 300])
def test_D7_messages_within_messages_are_read_as_far_as_is_sensible(depth: int):
    message_text = b"Subject: innermost\n\nwords"
    for number in range(depth):
        message_text = f"Subject: m{number}\nContent-Type: message/rfc822\n\n".encode() + message_text
    reading = read(message_text, "eml")
    assert_legal(reading.frames)
    assert ("words" in reading.text) == (depth < 20)


def test_D7_attached_files_of_mail_within_each_other_come_to_an_end():
    message_text = b"Subject: innermost\n\nwords"
    for number in range(60):
        head = f"Subject: m{number}\nContent-Type: application/x; name=m.eml\nContent-Disposition: attachment\n\n"
        message_text = head.encode() + message_text
    text = read(message_text, "eml").text
    assert "words" not in text
    assert text.endswith("[too many messages are within each other: this one was not read]")


PIECES = st.sampled_from(
    [
        *(b"\n", b"\r\n\r\n", b"--b\n", b"--b--\n", b"Content-Type: multipart/mixed; boundary=b\n", b"\xff\xfe", b"a"),
        *(b"Content-Type: text/html; charset=", b"Content-Transfer-Encoding: base64\n", b"=?utf-8?b?", b"?=", b"="),
        *(b"Content-Disposition: attachment; filename*=utf-8''%E4.txt\n", b"Content-Type: message/rfc822\n", b"To: <"),
    ]
)


@given(parts=st.lists(PIECES, max_size=25))
def test_D6_any_mail_gives_a_legal_answer(parts: list[bytes]):
    assert_legal(read(b"Subject: x\n" + b"".join(parts), "eml").frames)
