"""R15: text files in other encodings are told apart from each other, and from what is no text."""

import codecs

import pytest

from recto.tools.text.encodings import TextEncoding, detect_encoding

CHINESE = "函数返回用户的出生信息和当前的时间，如果没有就询问用户。\n请先读取文件再修改它的内容。\n" * 3
RUSSIAN = "функция возвращает имя пользователя\n" * 5
WESTERN = "déjà vu, naïve café, Straße über München, señor\n" * 5


@pytest.mark.parametrize(
    ("data", "name", "mark"),
    [
        (b"", "utf-8", b""),
        (CHINESE.encode()[:-1], "utf-8", b""),
        (codecs.BOM_UTF8 + b"x", "utf-8", codecs.BOM_UTF8),
        (codecs.BOM_UTF16_LE + CHINESE.encode("utf-16-le"), "utf-16-le", codecs.BOM_UTF16_LE),
        (codecs.BOM_UTF16_BE + b"\0x", "utf-16-be", codecs.BOM_UTF16_BE),
        (codecs.BOM_UTF32_LE + b"x\0\0\0", "utf-32-le", codecs.BOM_UTF32_LE),
        (WESTERN.encode("utf-16-le"), "utf-16-le", b""),
        (WESTERN.encode("utf-16-be"), "utf-16-be", b""),
        (b"good \xe4\xbd\xa0\xe5\xa5\xbd " * 20 + b"\xff bad", "utf-8", b""),
        (CHINESE.encode("gb18030"), "gb18030", b""),
        # A few western letters are text.
        (("déjà vu, naïve café, über\n" * 5 + "end").encode("cp1252"), "iso8859_1", b""),
    ],
)
def test_R15_the_encoding_of_a_text_is_told_by_its_bytes(data: bytes, name: str, mark: bytes):
    assert detect_encoding(data) == TextEncoding(name=name, mark=mark)


@pytest.mark.parametrize(("encoding", "text"), [("cp1252", WESTERN), ("gb18030", CHINESE), ("cp1251", RUSSIAN)])
def test_R15_older_encodings_come_back_byte_for_byte(encoding: str, text: str):
    data = text.encode(encoding)
    detected = detect_encoding(data)
    assert isinstance(detected, TextEncoding)
    assert (detected.decode(data), detected.encode(detected.decode(data))) == (text, data)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"%PDF-1.7\n", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a PNG image"),
        (b"PK\x03\x04", "a ZIP archive, or a document that is one"),
        (bytes(range(256)), "of an unknown binary kind"),
        (b"\x8f\xa3\xf1\xee" * 30 + b"\x02\x03\x04", "of an unknown binary kind"),
        (b"text with \0 in it", "of an unknown binary kind"),
        (WESTERN.encode("utf-16-le") + b"x", "of an unknown binary kind"),
        (b"".join(number.to_bytes(2, "little") for number in range(1, 100)), "of an unknown binary kind"),
        (b"\0a" * 10 + b"\xd8\x01" * 10, "of an unknown binary kind"),
    ],
)
def test_R15_what_is_no_text_has_a_word_for_what_it_is(data: bytes, kind: str):
    assert detect_encoding(data) == kind


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("name", ["utf-8", "utf-16-le", "gb18030"])
def test_R15_a_text_in_pieces_is_the_text(size: int, name: str):
    mark = codecs.BOM_UTF16_LE if name == "utf-16-le" else b""
    data = mark + CHINESE.encode(name)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert b"".join(TextEncoding(name=name, mark=mark).to_utf8(pieces)).decode() == CHINESE
